"""The Table service: tables, entities, queries, entity group transactions."""
