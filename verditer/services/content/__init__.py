"""The bytes of blobs and files: inline bodies, layouts of extents, interval maps, sharing, receiving, reading."""
