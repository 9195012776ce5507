"""Work on whole stores: check, back up, restore, copy."""
