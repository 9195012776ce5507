"""The access mask of an SMB handle: what its holder may do. The numbers are those of MS-SMB2 2.2.13.1."""

from enum import IntEnum

from verditer.core.files.share_modes import FileAccess


class AccessMask(IntEnum):
    """The bits. They are combined as plain integers, whose arithmetic is several times as fast as that of flags."""

    READ_DATA = 0x1  # of a directory: list
    WRITE_DATA = 0x2
    APPEND_DATA = 0x4
    READ_EA = 0x8
    WRITE_EA = 0x10
    EXECUTE = 0x20
    DELETE_CHILD = 0x40
    READ_ATTRIBUTES = 0x80
    WRITE_ATTRIBUTES = 0x100
    DELETE = 0x10000
    READ_CONTROL = 0x20000
    WRITE_DAC = 0x40000
    WRITE_OWNER = 0x80000
    SYNCHRONIZE = 0x100000


ALL_ACCESS = 0x1F01FF
_READS, _WRITES, _DELETES, _ATTRIBUTES = 0x21, 0x06, 0x10000, 0x100180
_READ, _WRITE, _DELETE = int(FileAccess.READ), int(FileAccess.WRITE), int(FileAccess.DELETE)


def file_access(mask: int) -> int:
    """The part of an access mask that decides about conflicts with other opens, as bits of `FileAccess`. An open without it
    conflicts with none."""
    return (_READ if mask & _READS else 0) | (_WRITE if mask & _WRITES else 0) | (_DELETE if mask & _DELETES else 0)


def is_attribute_only(mask: int) -> bool:
    """Whether an open leaves oplocks alone: it only looks at attributes, or sets them."""
    return not mask & ~_ATTRIBUTES
