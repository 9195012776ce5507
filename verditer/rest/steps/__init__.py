"""The steps of the pipeline, one module each: from the head of a request to its answer."""
