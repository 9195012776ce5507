"""The bodies of Blob: listings in Arrow form, block lists, page ranges, queries, tags."""
