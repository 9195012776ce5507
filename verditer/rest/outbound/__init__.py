"""Outbound HTTP: one client, used for copy sources and for the key sets of token issuers."""
