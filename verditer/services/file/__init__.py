"""The File service: shares, directories and files. REST and SMB call the same functions."""
