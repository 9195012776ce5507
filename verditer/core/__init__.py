"""Domain types and rules. This package has no I/O, no async and no protocol; the time is an argument."""
