"""The operation tables: one file per service. Start reading here."""
