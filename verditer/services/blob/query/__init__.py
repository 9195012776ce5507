"""Query Blob Contents: the SQL subset, the formats of input and output, and the engine that evaluates a query."""
