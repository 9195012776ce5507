"""How a client gets to its files: negotiation, login, connecting to shares, and leaving again."""
