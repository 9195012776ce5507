"""How a write on PostgreSQL excludes others: advisory locks or rows, in one order, and the proof at the start that they hold."""
