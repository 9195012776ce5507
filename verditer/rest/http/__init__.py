"""HTTP/1.1: connections, the request parser, bodies, responses, sendfile and response batching. Nothing here knows Azure."""
