"""The Blob service: containers and blobs."""
