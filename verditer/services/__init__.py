"""What Azure Storage does, free of HTTP and SMB."""
