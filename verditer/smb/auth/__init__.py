"""Login with the name and a key of a storage account: NTLMv2 inside SPNEGO."""
