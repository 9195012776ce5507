"""The three blob types: block, append and page blobs."""
