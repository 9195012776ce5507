"""Nouns and rules. No I/O, no async; time is always passed in."""
