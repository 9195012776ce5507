"""What SMB shows of a file or directory: times as FILETIMEs, sizes, attributes and the file id, as every structure needs them."""

from typing import NamedTuple

from verditer.core.files.attributes import from_win32, to_win32
from verditer.core.files.times import to_filetime
from verditer.core.records.file import FileEntry
from verditer.services.file.handles.requests import allocation_of
from verditer.smb.wire.create import Times


class ShownEntry(NamedTuple):
    times: Times
    allocation_bytes: int
    size_bytes: int
    attributes: int
    file_id: int
    name: str
    is_directory: bool
    links: int


def shown(entry: FileEntry, reserved_bytes: int = 0) -> ShownEntry:
    return ShownEntry(
        times=times_of(entry),
        allocation_bytes=0 if entry.is_directory else allocation_of(entry, reserved_bytes),
        size_bytes=0 if entry.is_directory else entry.size,
        attributes=attributes_of(entry),
        file_id=entry.node_id,
        name=entry.name,
        is_directory=entry.is_directory,
        links=entry.link_count,
    )


def times_of(entry: FileEntry) -> Times:
    accessed = entry.written if entry.accessed is None else entry.accessed
    return Times(to_filetime(entry.created), to_filetime(accessed), to_filetime(entry.written), to_filetime(entry.changed))


def attributes_of(entry: FileEntry) -> int:
    return to_win32(from_win32(entry.attributes, is_directory=entry.is_directory))
