"""The bodies and attributes of File."""
