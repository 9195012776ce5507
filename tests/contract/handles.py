"""Short forms of what SMB clients do with handles, without a front end."""

from dataclasses import dataclass, field

from tests.contract.files import Files, path
from verditer.core.files.access_mask import AccessMask
from verditer.core.files.oplocks import OplockLevel
from verditer.services.context import Context
from verditer.services.file.handles import closing, data, opening
from verditer.services.file.handles.handle import Handle
from verditer.services.file.handles.requests import Client, CreateDisposition, Opened, OpenEntry

R, W, D = 1, 2, 4  # share modes
ALL = R | W | D
READ, WRITE, DELETE = AccessMask.READ_DATA, AccessMask.WRITE_DATA, AccessMask.DELETE
ATTRIBUTES = AccessMask.READ_ATTRIBUTES | AccessMask.WRITE_ATTRIBUTES
CLIENT = Client(session_id=7, address="127.0.0.1:5", name="test")


@dataclass
class Listener:
    """What a client was told without having asked."""

    breaks: list[OplockLevel] = field(default_factory=list)
    times_changed: int = 0
    is_closed: bool = False

    def oplock_broken(self, level: OplockLevel) -> None:
        self.breaks.append(level)

    def changed(self) -> None:
        self.times_changed += 1

    def closed(self) -> None:
        self.is_closed = True


async def opened(
    where: Files | Context,
    name: str,
    access: int = READ | WRITE,
    share_mode: int = ALL,
    disposition: CreateDisposition = CreateDisposition.OPEN,
    *,
    listener: Listener | None = None,
    delete_on_close: bool = False,
    oplock: OplockLevel = OplockLevel.NONE,
    attributes: int = 0,
    snapshot: int | None = None,
    is_transient: bool = False,
) -> Opened:
    """A name that ends in `/` is a directory."""
    request = OpenEntry(
        access=access,
        share_mode=share_mode,
        disposition=disposition,
        wants_directory=name.endswith("/"),
        delete_on_close=delete_on_close,
        oplock=oplock,
        attributes=attributes,
        snapshot=snapshot,
        is_transient=is_transient,
    )
    ctx = where.ctx if isinstance(where, Files) else where
    return await opening.open_entry(ctx, path(name), request, CLIENT, listener)


async def handle_on(
    where: Files | Context, name: str, access: int = READ | WRITE, share_mode: int = ALL, *, delete_on_close: bool = False
) -> Handle:
    return (await opened(where, name, access, share_mode, delete_on_close=delete_on_close)).handle


async def created(files: Files, name: str, content: bytes = b"") -> Handle:
    handle = (await opened(files, name, READ | WRITE | DELETE, disposition=CreateDisposition.OVERWRITE_IF)).handle
    if content:
        assert await data.write(files.ctx, handle, 0, content) == len(content)
    return handle


async def close(files: Files, *handles: Handle) -> None:
    for handle in handles:
        await closing.close_handle(files.ctx, handle)
