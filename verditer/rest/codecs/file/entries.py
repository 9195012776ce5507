"""The documents of the File service about entries: directory listings, ranges, handles. A page of 5000 entries is a hot path."""

from urllib.parse import quote

from verditer.core.dates import iso, rfc1123
from verditer.core.files.share_modes import FileAccess
from verditer.core.names import FilePath
from verditer.core.records.file import FileEntry
from verditer.core.records.file_open import FileOpen
from verditer.rest.codecs import etag as etags
from verditer.rest.codecs.file.attributes import format_attributes
from verditer.rest.codecs.listings import service_endpoint
from verditer.rest.codecs.xml import element, escape, is_plain, render
from verditer.rest.stages import Decoded
from verditer.services.file.answers import EntryPage, FileRanges, HandlePage

_ECHOES = (("prefix", "Prefix"), ("marker", "Marker"), ("maxresults", "MaxResults"))
_IDS_SINCE = "2020-10-02"
_RIGHTS = ((FileAccess.READ, "Read"), (FileAccess.WRITE, "Write"), (FileAccess.DELETE, "Delete"))


def render_entries(page: EntryPage, decoded: Decoded) -> bytes:
    query = decoded.address.query
    include = frozenset(query.get("include", "").lower().replace(" ", "").split(",")) - {""}
    extended = bool(include) or decoded.request.headers.get("x-ms-file-extended-info", "").lower() == "true"
    has_ids = extended or decoded.version >= _IDS_SINCE
    rows = "".join([_entry(entry, include, has_ids) for entry in page.entries])
    echoes = "".join([_text(name, query[key]) for key, name in _ECHOES if query.get(key)])
    entries = f"<Entries>{rows}</Entries>" if rows else "<Entries />"
    directory = f"<DirectoryId>{page.directory.node_id}</DirectoryId>" if decoded.version >= _IDS_SINCE else ""
    return render(
        f"<EnumerationResults {_attributes(decoded)}>{echoes}{directory}{entries}"
        f"{element('NextMarker', page.next_marker)}</EnumerationResults>"
    )


def _attributes(decoded: Decoded) -> str:
    """The path is the one that the directory was found by, so without the trailing dots that do not count."""
    target, snapshot = decoded.target, decoded.address.query.get("sharesnapshot")
    assert isinstance(target, FilePath)
    path = "/".join(target.names)
    shown = f' ShareSnapshot="{escape(snapshot)}"' if snapshot else ""
    encoded = f'Encoded="true" DirectoryPath="{_encoded(path)}"' if _needs_encoding(path) else f'DirectoryPath="{escape(path)}"'
    return f'ServiceEndpoint="{escape(service_endpoint(decoded))}" ShareName="{escape(target.share)}"{shown} {encoded}'


def _entry(entry: FileEntry, include: frozenset[str], has_id: bool) -> str:
    kind = "Directory" if entry.is_directory else "File"
    node = f"<FileId>{entry.node_id}</FileId>" if has_id else ""
    properties = "" if entry.is_directory else f"<Content-Length>{entry.size}</Content-Length>"
    if "timestamps" in include:
        properties += (
            f"<CreationTime>{iso(entry.created)}</CreationTime><LastAccessTime>{iso(entry.last_access)}</LastAccessTime>"
            f"<LastWriteTime>{iso(entry.written)}</LastWriteTime><ChangeTime>{iso(entry.changed)}</ChangeTime>"
            f"<Last-Modified>{rfc1123(entry.etag)}</Last-Modified>"
        )
    if "etag" in include:
        properties += f"<Etag>{escape(etags.show(entry.etag))}</Etag>"
    attributes = key = ""
    if entry.posix is None and "attributes" in include:
        attributes = f"<Attributes>{format_attributes(entry.attributes)}</Attributes>"
    if entry.permission_key is not None and "permissionkey" in include:
        key = f"<PermissionKey>{entry.permission_key}</PermissionKey>"
    shown = f"<Properties>{properties}</Properties>" if properties else "<Properties />"
    return f"<{kind}>{_text('Name', entry.name)}{node}{shown}{attributes}{key}</{kind}>"


def _text(name: str, text: str) -> str:
    """U+FFFE and U+FFFF, which XML cannot carry, make the text percent-encoded."""
    if is_plain(text):
        return f"<{name}>{text}</{name}>"
    if _needs_encoding(text):
        return f'<{name} Encoded="true">{_encoded(text)}</{name}>'
    return element(name, text)


def _needs_encoding(text: str) -> bool:
    return "\ufffe" in text or "\uffff" in text


def _encoded(text: str) -> str:
    return quote(text, safe="/")


def render_file_ranges(found: FileRanges, decoded: object) -> bytes:
    rows = []
    for one in found.ranges:
        kind = "ClearRange" if one.cleared else "Range"
        rows.append(f"<{kind}><Start>{one.start}</Start><End>{one.end - 1}</End></{kind}>")
    marker = element("NextMarker", found.next_marker) if found.next_marker else ""
    return render(f"<Ranges>{''.join(rows)}{marker}</Ranges>" if rows else "<Ranges />")


def render_handles(page: HandlePage, decoded: Decoded) -> bytes:
    rows = "".join(_handle(handle, decoded.version) for handle in page.handles)
    entries = f"<Entries>{rows}</Entries>" if rows else "<Entries />"
    return render(f"<EnumerationResults>{entries}{element('NextMarker', page.next_marker)}</EnumerationResults>")


def _handle(handle: FileOpen, version: str) -> str:
    rights = "".join(f"<AccessRight>{name}</AccessRight>" for right, name in _RIGHTS if handle.access & right)
    reconnected = (
        f"<LastReconnectTime>{rfc1123(handle.reconnected)}</LastReconnectTime>" if handle.reconnected is not None else ""
    )
    return (
        f"<Handle><HandleId>{handle.handle_id}</HandleId>{_text('Path', '/'.join(handle.path))}"
        f"<FileId>{handle.node_id}</FileId><ParentId>{handle.parent_id}</ParentId><SessionId>{handle.session_id}</SessionId>"
        f"{f'<AccessRightList>{rights}</AccessRightList>' if version >= '2023-01-03' else ''}"
        f"{element('ClientIp', handle.client)}{element('ClientName', handle.client_name) if version >= '2024-05-04' else ''}"
        f"<OpenTime>{rfc1123(handle.opened)}</OpenTime>{reconnected}</Handle>"
    )
