"""Microsoft's Python client libraries against a running server."""
