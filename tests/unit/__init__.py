"""Tests of rules, without a server and a store unless a test says otherwise. `test_tidy.py` checks the repository itself."""
