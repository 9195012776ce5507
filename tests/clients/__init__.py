"""Third-party clients against a running server: `make clients` installs them and runs these tests."""
