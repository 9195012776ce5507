"""The names of headers and parameters: what operations take from a request and what their responses say."""
