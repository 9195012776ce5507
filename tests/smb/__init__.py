"""SMB on the wire: one file for each command or subject, with smbprotocol as the client."""
