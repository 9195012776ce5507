"""Verditer: an Azure-Storage-compatible server. Start reading in `rest/operations/blob.py`, or in `docs/MAP.md`."""

__version__ = "0.1.0"
