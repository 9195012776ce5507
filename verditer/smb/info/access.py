"""What access a CREATE asks for, and what it gets: generic bits become bits of `core/files/access_mask.py`.

A session that was opened with the account key may do everything, so every request for access is granted.
"""

from verditer.core.files.access_mask import ALL_ACCESS

ACCESS_SYSTEM_SECURITY = 0x1000000  # reading and writing audit rules: a right that the account key does not have
MAXIMUM_ALLOWED = 0x2000000
_GENERIC = {0x10000000: ALL_ACCESS, 0x20000000: 0x1200A0, 0x40000000: 0x120116, 0x80000000: 0x120089}
_RESERVED = 0x0CE0FE00  # bits without a meaning


def granted_access(desired: int) -> int | None:
    """The access of an open, without generic bits. None: the request names no access, or one that does not exist."""
    if not desired or desired & (_RESERVED | ACCESS_SYSTEM_SECURITY):
        return None
    if desired & MAXIMUM_ALLOWED:
        return ALL_ACCESS
    granted = desired & ALL_ACCESS
    for generic, meaning in _GENERIC.items():
        if desired & generic:
            granted |= meaning
    return granted


def optional_access(desired: int) -> int:
    """The rights that a request takes if it can get them: MAXIMUM_ALLOWED asks for all, beside those that it names."""
    if not desired & MAXIMUM_ALLOWED:
        return 0
    named = granted_access(desired & ~MAXIMUM_ALLOWED)
    return ALL_ACCESS & ~(named or 0)
