"""The Queue service: queues and messages."""
