"""Does every engine and every store of bytes keep its promise? One suite for all of them."""
