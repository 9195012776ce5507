"""The server service (MS-SRVS): the calls by which clients list the shares of a server. The shares are those of the account that
has logged in."""

from collections.abc import Awaitable, Callable

from verditer.core.errors import Code, StorageError
from verditer.core.guard import NO_GUARD
from verditer.core.names import AccountName, ShareName
from verditer.services.context import Context
from verditer.services.file.shares import GetShare, ListShares, get_share, list_shares
from verditer.smb.pipes.ndr import NdrReader, NdrWriter

SRVSVC = bytes.fromhex("c84f324b7016d30112785a47bf6ee188")  # 4b324fc8-1670-01d3-1278-5a47bf6ee188, version 3.0
SRVSVC_VERSION = 3
_OK, _MORE_DATA, _INVALID_LEVEL, _NAME_NOT_FOUND = 0, 234, 124, 2310
_DISK, _IPC = 0, 0x80000003
_UNLIMITED = 0xFFFFFFFF
MAX_LISTED = 5000

# The members of a share at each level of detail: text is a string, a number stands for itself.
_LEVELS: dict[int, Callable[[str, int], tuple[str | int, ...]]] = {
    0: lambda name, kind: (name,),
    1: lambda name, kind: (name, kind, ""),
    2: lambda name, kind: (name, kind, "", 0, _UNLIMITED, 0, "", ""),
    502: lambda name, kind: (name, kind, "", 0, _UNLIMITED, 0, "", "", 0, 0),  # without a security descriptor
    501: lambda name, kind: (name, kind, "", 0),
    1005: lambda name, kind: (0,),
}

RemoteCall = Callable[[Context, str, NdrReader], Awaitable[NdrWriter]]


async def enumerate_shares(ctx: Context, account: str, arguments: NdrReader) -> NdrWriter:
    """NetrShareEnum. The handle to resume with is the number of shares that earlier calls returned."""
    arguments.optional_string()  # the name of the server
    level, _, container = arguments.number(), arguments.number(), arguments.number()
    if container:
        arguments.number()  # entries, of which a request has none
        if arguments.number():
            arguments.number()
    arguments.number()  # the preferred length of the answer
    resume = arguments.optional_number()
    shares = [*await _shares_of(ctx, account), ("IPC$", _IPC)]
    start = min(resume or 0, len(shares))
    page = shares[start : start + MAX_LISTED]
    return _listing(level, page, len(shares), start + len(page), has_resume=resume is not None)


async def _shares_of(ctx: Context, account: str) -> list[tuple[str, int]]:
    found: list[tuple[str, int]] = []
    marker = ""
    while True:
        page = await list_shares(ctx, AccountName(account, "file"), ListShares(marker=marker))
        found += [(share.name, _DISK) for share in page.shares if "SMB" in share.protocols.upper()]
        marker = page.next_marker
        if not marker:
            return found


def _listing(level: int, shares: list[tuple[str, int]], total: int, reached: int, *, has_resume: bool) -> NdrWriter:
    writer = NdrWriter()
    members = _LEVELS.get(level)
    writer.number(level)
    writer.number(level)
    writer.pointer(members is not None)
    if members is not None:
        writer.number(len(shares))
        writer.pointer()
        writer.number(len(shares))
        for name, kind in shares:
            _write(writer, members(name, kind))
        writer.finish_structure()
    writer.number(total)
    writer.pointer(has_resume)
    if has_resume:
        writer.number(reached if reached < total else 0)
    writer.number(_INVALID_LEVEL if members is None else _MORE_DATA if reached < total else _OK)
    return writer


async def share_information(ctx: Context, account: str, arguments: NdrReader) -> NdrWriter:
    """NetrShareGetInfo."""
    arguments.optional_string()
    name, level = arguments.string(), arguments.number()
    kind = _IPC if name.upper() == "IPC$" else await _kind_of(ctx, account, name)
    members = _LEVELS.get(level)
    writer = NdrWriter()
    writer.number(level)
    writer.pointer(members is not None and kind is not None)
    if members is not None and kind is not None:
        _write(writer, members(name, kind))
        writer.finish_structure()
    writer.number(_INVALID_LEVEL if members is None else _OK if kind is not None else _NAME_NOT_FOUND)
    return writer


async def _kind_of(ctx: Context, account: str, name: str) -> int | None:
    try:
        found = await get_share(ctx, ShareName(account, name.lower()), GetShare(), NO_GUARD)
    except StorageError as error:
        if error.code is Code.ShareNotFound:
            return None
        raise
    return _DISK if "SMB" in found.share.protocols.upper() else None


def _write(writer: NdrWriter, members: tuple[str | int, ...]) -> None:
    for member in members:
        if isinstance(member, str):
            writer.string(member)
        else:
            writer.number(member)


# By operation number.
CALLS: dict[int, RemoteCall] = {15: enumerate_shares, 16: share_information}
