"""Keys of a session, signatures of messages, and encryption of messages."""
