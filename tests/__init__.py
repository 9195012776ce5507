"""The tests: docs/HACKING.md describes the folders."""
