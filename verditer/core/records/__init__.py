"""What is stored: one struct per noun, with its key and version."""
