"""What every front end needs, whatever its protocol: listening sockets, TLS, accepting connections, worker processes, graceful
shutdown, metrics and the request log. Nothing here knows HTTP, SMB or a service."""
