"""Clients that other people wrote, against a running server: `make clients` installs them and runs these tests."""
