"""Documents and paths of the Table service: entities as JSON, OData errors and links, and names in paths."""
