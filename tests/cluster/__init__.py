"""Several nodes on PostgreSQL under Patroni and on an S3 server, under load, while parts of it fail. `make cluster` runs it."""
