"""Background work: collecting what nothing names any more."""
