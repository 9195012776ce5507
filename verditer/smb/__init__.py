"""The SMB front end of the File service: SMB 2.0.2 to 3.1.1 on a port of its own. Start reading in `commands.py`."""
