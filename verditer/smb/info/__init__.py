"""Information classes of SMB2 (MS-FSCC 2.4 to 2.6): files, volumes, directory entries, changes and name patterns, as bytes."""
