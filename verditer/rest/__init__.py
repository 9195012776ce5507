"""The HTTP front end of the services."""
