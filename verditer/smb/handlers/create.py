"""CREATE: opens, creates, overwrites or supersedes a file or directory. The checks are in the order of Windows.

What depends on the state of the share is checked in one transaction by `services/file/handles/opening.py`.
"""

from verditer.core.files.access_mask import AccessMask, file_access
from verditer.core.files.oplocks import OplockLevel
from verditer.core.names import ShareName
from verditer.services.file.handles.opening import open_entry
from verditer.services.file.handles.requests import CreateDisposition, Opened, OpenEntry
from verditer.services.file.handles.space import snapshot_at
from verditer.smb.call import Call, Reply
from verditer.smb.handlers.create_contexts import WantedContexts, answer_contexts, read_contexts
from verditer.smb.handlers.listening import OpenListener
from verditer.smb.handlers.paths import requested_path
from verditer.smb.info.access import ACCESS_SYSTEM_SECURITY, granted_access, optional_access
from verditer.smb.info.entries import shown
from verditer.smb.limits import MAX_OPENS
from verditer.smb.opens import OpenFile, new_file_id
from verditer.smb.status import SmbError, Status
from verditer.smb.wire.create import CreateRequest, CreateResponse, build_create, parse_create

_MAX_IMPERSONATION, _MAX_SHARE_MODE = 3, 7
_DIRECTORY_FILE, _NON_DIRECTORY_FILE, _DELETE_ON_CLOSE = 0x1, 0x40, 0x1000
_INVALID_OPTIONS = 0xFF000000
_UNSUPPORTED_OPTIONS = 0x00102080  # create a tree connection, open by file id, reserve an oplock filter
_INVALID_ATTRIBUTES = 0xFFFF8048
_MODE_OPTIONS = 0x0000103E  # what FileModeInformation shows of the options
_REPLACING = frozenset({CreateDisposition.SUPERSEDE, CreateDisposition.OVERWRITE, CreateDisposition.OVERWRITE_IF})
_INTERIM_SECONDS = 0.5  # only an oplock break takes longer; some clients refuse an interim answer, as it is not signed
_OPLOCKS = {int(level): level for level in OplockLevel}  # a lease (0xFF) is declined: no oplock


async def create(call: Call) -> Reply:
    request = parse_create(call.message)
    _check_options(request)
    wanted = read_contexts(request.contexts)
    access = _access(request)
    _check_attributes(request)
    call.path = request.name
    if len(call.session.opens) >= MAX_OPENS:
        raise SmbError(Status.TOO_MANY_OPENED_FILES)
    share = call.tree.share
    assert share is not None, "IPC$ has handlers of its own"
    requested = requested_path(share, request.name)
    snapshot = await _snapshot(call, share, wanted.version or requested.version)
    listener = OpenListener(call.connection, call.session)
    wanted_open = _open_entry(call, request, wanted, access, snapshot)
    client = call.connection.client_of(call.session)
    opened = await call.wait(
        open_entry(call.ctx, requested.path, wanted_open, client, listener), interim_seconds=_INTERIM_SECONDS
    )
    return _answer(call, request, wanted, opened, listener)


def _check_options(request: CreateRequest) -> None:
    if request.impersonation > _MAX_IMPERSONATION:
        raise SmbError(Status.BAD_IMPERSONATION_LEVEL)
    is_both = request.options & _DIRECTORY_FILE and request.options & _NON_DIRECTORY_FILE
    if request.disposition > CreateDisposition.OVERWRITE_IF.value or request.options & _INVALID_OPTIONS or is_both:
        raise SmbError(Status.INVALID_PARAMETER)
    if request.options & _UNSUPPORTED_OPTIONS:
        raise SmbError(Status.NOT_SUPPORTED)
    if request.options & _DIRECTORY_FILE and CreateDisposition(request.disposition) in _REPLACING:
        raise SmbError(Status.INVALID_PARAMETER)


def _access(request: CreateRequest) -> int:
    if request.access & ACCESS_SYSTEM_SECURITY:
        raise SmbError(Status.PRIVILEGE_NOT_HELD)
    access = granted_access(request.access)
    if access is None or (request.options & _DELETE_ON_CLOSE and not access & AccessMask.DELETE):
        raise SmbError(Status.ACCESS_DENIED)
    return access


def _check_attributes(request: CreateRequest) -> None:
    if request.attributes & _INVALID_ATTRIBUTES or request.share_mode > _MAX_SHARE_MODE:
        raise SmbError(Status.INVALID_PARAMETER)


async def _snapshot(call: Call, share: ShareName, version: int | None) -> int | None:
    if version is None:
        return None
    snapshot = await snapshot_at(call.ctx, share, version)
    if snapshot is None:
        raise SmbError(Status.OBJECT_NAME_NOT_FOUND)
    return snapshot


def _open_entry(call: Call, request: CreateRequest, wanted: WantedContexts, access: int, snapshot: int | None) -> OpenEntry:
    delete_on_close = bool(request.options & _DELETE_ON_CLOSE)
    return OpenEntry(
        access=access,
        optional_access=optional_access(request.access),
        share_mode=request.share_mode,
        disposition=CreateDisposition(request.disposition),
        wants_directory=bool(request.options & _DIRECTORY_FILE),
        wants_file=bool(request.options & _NON_DIRECTORY_FILE),
        delete_on_close=delete_on_close,
        attributes=request.attributes,
        descriptor=wanted.descriptor,
        allocation_bytes=wanted.allocation_bytes,
        oplock=_OPLOCKS.get(request.oplock, OplockLevel.NONE),
        snapshot=snapshot,
        share_id=call.tree.share_id,
        is_transient=call.closes_later and not file_access(access) and not delete_on_close,
    )


def _answer(call: Call, request: CreateRequest, wanted: WantedContexts, opened: Opened, listener: OpenListener) -> Reply:
    file_id = new_file_id(opened.handle.handle_id)
    file = OpenFile(file_id=file_id, tree=call.tree, handle=opened.handle, mode=request.options & _MODE_OPTIONS)
    call.opened(file)
    listener.attach(file)
    entry = shown(opened.entry, opened.handle.reserved_bytes)
    contexts = answer_contexts(wanted, entry.file_id, opened.handle.share_id)
    response = CreateResponse(
        oplock=opened.oplock,
        action=opened.action,
        times=entry.times,
        allocation_bytes=entry.allocation_bytes,
        size_bytes=entry.size_bytes,
        attributes=entry.attributes,
        file_id=file_id,
        contexts=contexts,
    )
    return Reply(build_create(response))
