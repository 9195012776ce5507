"""The bodies of Queue, and pop receipts."""
