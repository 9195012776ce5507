"""Directory trees: paths, listings, renames and snapshots. Used by Files; hierarchical namespaces of blobs will use it too."""
