"""Are the rules right? No server and no store, unless a test says so."""
