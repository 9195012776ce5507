"""QUERY_DIRECTORY: the entries of a directory that match a pattern, as many at a time as the client has room for.

A scan remembers the last name it gave, and goes on after that name, so it sees entries that are created behind it and costs no
memory between requests.
"""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

from verditer.core.records.file import FileEntry
from verditer.services.file.handles.handle import Handle
from verditer.services.file.handles.listing import find_child, list_page
from verditer.services.file.handles.state import entry_of
from verditer.smb.call import Call, Reply
from verditer.smb.info.directory_entries import DIRECTORY_CLASSES, EntryList
from verditer.smb.info.entries import ShownEntry, shown
from verditer.smb.info.wildcards import is_wild, literal_prefix, matcher
from verditer.smb.status import SmbError, Status
from verditer.smb.wire.information import (
    REOPEN,
    RESTART_SCANS,
    RETURN_SINGLE_ENTRY,
    QueryDirectoryRequest,
    build_buffer,
    parse_query_directory,
)

_FIRST_PAGE, _PAGE = 256, 1000  # entries that are read at once: few directories have more than the first
_DOTS = (".", "..")


@dataclass(slots=True)
class DirectoryScan:
    """Where a scan is: `dots` of the two entries `.` and `..` were given, and then all entries up to `after`."""

    pattern: str
    dots: int = 0
    after: str | None = None
    is_ended: bool = False
    has_answered: bool = False
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)  # requests on one handle take turns


async def query_directory(call: Call) -> Reply:
    request = parse_query_directory(call.message)
    if not call.file.handle.is_directory:
        raise SmbError(Status.INVALID_PARAMETER)
    row = DIRECTORY_CLASSES.get(request.information_class)
    if row is None:
        raise SmbError(Status.INVALID_INFO_CLASS)
    found = EntryList(row, min(request.max_bytes, call.connection.max_io_bytes))
    scan = _scan(call, request)
    async with scan.lock:
        await _fill(call, scan, found, single=bool(request.flags & RETURN_SINGLE_ENTRY))
        if not found.count:
            raise SmbError(Status.NO_MORE_FILES if scan.has_answered else Status.NO_SUCH_FILE)
        scan.has_answered = True
    return Reply(build_buffer(found.data()))


async def end_of_scan(call: Call) -> None:
    """A query that has begun gets its answer, also when the client has sent a CLOSE behind it."""
    scan = call.file.scan
    if scan is not None:
        async with scan.lock:
            pass


def _scan(call: Call, request: QueryDirectoryRequest) -> DirectoryScan:
    """The pattern of the first request holds until a request starts the scan again and brings another. REOPEN forgets it."""
    scan = call.file.scan
    if scan is None or request.flags & (RESTART_SCANS | REOPEN):
        if "\\" in request.pattern:
            raise SmbError(Status.OBJECT_NAME_INVALID)
        former = scan.pattern if scan is not None and not request.flags & REOPEN else "*"
        scan = call.file.scan = DirectoryScan(request.pattern or former)
    return scan


async def _fill(call: Call, scan: DirectoryScan, found: EntryList, *, single: bool) -> None:
    async for entry in _entries(call, scan):
        if not found.add(entry[0]):
            return
        scan.dots, scan.after = entry[1], entry[2]
        if single:
            return
    scan.is_ended = True


async def _entries(call: Call, scan: DirectoryScan) -> AsyncIterator[tuple[ShownEntry, int, str | None]]:
    """The entries that remain, each with where the scan is after it."""
    if scan.is_ended:
        return
    handle = call.file.handle
    matches = matcher(scan.pattern)
    if scan.dots < len(_DOTS):
        wanted = [number for number in range(scan.dots, len(_DOTS)) if is_wild(scan.pattern) and matches(_DOTS[number])]
        own = shown((await entry_of(call.ctx, handle)).entry) if wanted else None
        for number in wanted:
            assert own is not None
            yield own._replace(name=_DOTS[number]), number + 1, None
    if not is_wild(scan.pattern):
        entry = await find_child(call.ctx, handle, scan.pattern)
        if entry is not None and scan.after is None:
            yield shown(entry), len(_DOTS), entry.folded
        return
    async for entry in _pages(call, handle, scan):
        if matches(entry.folded):
            yield shown(entry), len(_DOTS), entry.folded


async def _pages(call: Call, handle: Handle, scan: DirectoryScan) -> AsyncIterator[FileEntry]:
    after, limit = scan.after, _FIRST_PAGE
    prefix = literal_prefix(scan.pattern) or None
    while True:
        page = await list_page(call.ctx, handle, prefix, after, limit)
        for entry in page:
            yield entry
        if len(page) < limit:
            return
        after, limit = page[-1].folded, _PAGE
