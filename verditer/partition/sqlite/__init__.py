"""The embedded engine: one SQLite file in WAL mode, group commit, several worker processes."""
