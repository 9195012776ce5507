"""Transactions on the event loop, in batches: reads that wait share a snapshot, writes that wait share a transaction."""
