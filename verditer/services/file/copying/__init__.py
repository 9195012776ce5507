"""Copies into files: from this server and from any URL, at once or in the background."""
