"""NTFS attributes of files and directories: which of them each kind may have, and the bits of Win32 and SMB.

A file without any attribute is NORMAL in Win32. The text form of REST is in `rest/codecs/file/attributes.py`.
"""

from enum import IntFlag

_WIN32_NORMAL = 0x80


class FileAttributes(IntFlag):
    NONE = 0
    READ_ONLY = 0x1
    HIDDEN = 0x2
    SYSTEM = 0x4
    DIRECTORY = 0x10
    ARCHIVE = 0x20
    TEMPORARY = 0x100
    OFFLINE = 0x1000
    NOT_CONTENT_INDEXED = 0x2000
    NO_SCRUB_DATA = 0x20000


_ALL = FileAttributes(sum(FileAttributes))


def refused_attributes(*, is_directory: bool) -> FileAttributes:
    """What this kind of resource cannot have."""
    return FileAttributes.TEMPORARY if is_directory else FileAttributes.DIRECTORY


def attributes_of(given: FileAttributes, *, is_directory: bool) -> FileAttributes:
    """A directory always has the attribute Directory."""
    return given | FileAttributes.DIRECTORY if is_directory else given


def attributes_of_new(given: FileAttributes, *, is_directory: bool) -> FileAttributes:
    """The attributes after a REST create. The service answers `Archive` for a new file that asked for none."""
    return attributes_of(given, is_directory=is_directory) or FileAttributes.ARCHIVE


def to_win32(attributes: FileAttributes) -> int:
    return int(attributes) or _WIN32_NORMAL


def from_win32(value: int, *, is_directory: bool) -> FileAttributes:
    """Keep the bits that a client may set on this kind of resource. SMB ignores the others."""
    kept = FileAttributes(value & _ALL & ~refused_attributes(is_directory=is_directory))
    return attributes_of(kept, is_directory=is_directory)
