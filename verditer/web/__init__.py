"""The admin port: health, metrics, control for tests, and the explorer with its pages and its JSON API."""
