"""The processes that serve handles: owners with a heartbeat, sessions that all of them know, and signals between them."""
