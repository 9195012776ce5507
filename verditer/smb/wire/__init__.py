"""Layouts of SMB2 messages: plain functions over bytes, one module per group of commands."""
