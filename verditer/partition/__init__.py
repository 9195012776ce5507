"""Records: transactions over any record in `core/records`."""
