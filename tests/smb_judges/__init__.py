"""Judges of the SMB front end: independent clients and Samba's own test suite, run with `make smb`.

Every judge takes a `Target`, so that the same cases also run against Debian's smbd (`make smb ARGS="--target samba"`). A case
that fails on both is a defect of the case.
"""
