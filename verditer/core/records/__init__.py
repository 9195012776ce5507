"""Stored records: one struct for each kind, with its key, its version and its life cycle."""
