"""The shared engine: any number of processes on one PostgreSQL database."""
