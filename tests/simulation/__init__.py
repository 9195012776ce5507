"""Random operations, races and crashes, compared with models."""
