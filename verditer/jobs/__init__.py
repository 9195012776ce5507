"""Background work: removing what no request can reach any more, and continuing pending copies."""
