"""Copies into blobs: from this server and from any URL, synchronous or in the background."""
