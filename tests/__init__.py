"""The tests: docs/HACKING.md says what each folder asks."""
