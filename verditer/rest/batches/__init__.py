"""Requests that contain requests: Blob Batch and the entity group transactions of Table."""
