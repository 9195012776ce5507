"""Named pipes of IPC$: the server service, which lists the shares of an account."""
