"""Bytes: immutable extents and their digests."""
