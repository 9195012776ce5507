"""Raw HTTP against a running server: answers, headers, errors, conditions, leases."""
