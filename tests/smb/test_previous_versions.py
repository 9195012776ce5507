"""Previous versions: share snapshots over SMB, by the time of a context or by a token in the path."""

import struct

from azure.storage.fileshare import ShareClient
from smbprotocol.create_contexts import CreateContextName, SMB2CreateContextRequest

from tests.smb.mounted import (
    DIRECTORY_FILE,
    MAXIMUM_ALLOWED,
    OVERWRITE_IF,
    READ_ATTRIBUTES,
    READ_DATA,
    WRITE_DATA,
    Mounted,
    refused,
)
from tests.smb.requests import control
from verditer.core.files.times import to_filetime
from verditer.smb.handlers.paths import parse_version_token
from verditer.smb.status import Status

ENUMERATE_SNAPSHOTS = 0x00144064


def tokens(mounted: Mounted) -> list[str]:
    root = mounted.open("", READ_DATA)
    found = control(root, ENUMERATE_SNAPSHOTS)
    count, returned, size = struct.unpack_from("<III", found)
    names = found[12 : 12 + size].decode("utf-16-le").rstrip("\0").split("\0") if count else []
    assert (count, returned) == (len(names), len(names))
    room = struct.unpack_from("<III", control(root, ENUMERATE_SNAPSHOTS, max_bytes=16))
    assert room == (count, 0 if count else room[1], size)
    root.close()
    return names


def test_snapshots_are_listed_and_read_but_never_written(mounted: Mounted, sdk: ShareClient) -> None:
    assert tokens(mounted) == []
    mounted.make_directory("dir")
    mounted.put("dir\\file", b"before")
    sdk.create_snapshot()
    mounted.open("dir\\file", disposition=OVERWRITE_IF).close()
    mounted.put("dir\\later")
    [token] = tokens(mounted)
    assert mounted.get("dir\\file") == b""
    for name in (f"{token}\\dir\\file", f"dir\\{token}\\file"):
        handle = mounted.open(name, READ_DATA)
        assert handle.read(0, 100) == b"before"
        handle.close()
    with refused(Status.OBJECT_NAME_NOT_FOUND):
        mounted.open(f"{token}\\dir\\later", READ_DATA)
    with refused(Status.MEDIA_WRITE_PROTECTED):
        mounted.open(f"{token}\\dir\\file", WRITE_DATA)
    directory = mounted.open(f"{token}\\dir", READ_DATA | READ_ATTRIBUTES, options=DIRECTORY_FILE)
    names = [entry["file_name"].get_value().decode("utf-16-le") for entry in directory.query_directory("*", 37)]
    assert names == [".", "..", "file"]
    directory.close()


def test_a_context_names_a_snapshot_by_its_time(mounted: Mounted, sdk: ShareClient) -> None:
    mounted.put("file", b"before")
    sdk.create_snapshot()
    mounted.open("file", disposition=OVERWRITE_IF).close()
    [token] = tokens(mounted)
    ticks = parse_version_token(token)
    assert ticks is not None

    def version(filetime: int) -> list[SMB2CreateContextRequest]:
        context = SMB2CreateContextRequest()
        context["buffer_name"] = CreateContextName.SMB2_CREATE_TIMEWARP_TOKEN
        context["buffer_data"] = struct.pack("<Q", filetime)
        return [context]

    handle = mounted.open("file", READ_DATA, contexts=version(to_filetime(ticks)))
    assert handle.read(0, 100) == b"before"
    handle.close()
    with refused(Status.OBJECT_NAME_NOT_FOUND):
        mounted.open("file", READ_DATA, contexts=version(to_filetime(ticks) - 50_000_000))


def test_a_client_that_takes_what_access_it_can_get_reads_a_previous_version(mounted: Mounted, sdk: ShareClient) -> None:
    mounted.put("file", b"before")
    sdk.create_snapshot()
    [token] = tokens(mounted)
    handle = mounted.open(f"{token}\\file", MAXIMUM_ALLOWED)
    assert handle.read(0, 100) == b"before"
    with refused(Status.ACCESS_DENIED):
        handle.write(b"after")
    handle.close()
