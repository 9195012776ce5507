"""TREE_CONNECT, TREE_DISCONNECT, and what goes on in IPC$."""

import struct
from collections.abc import Iterator

import pytest
from azure.storage.fileshare import ShareClient

from tests.rest.running import Running
from tests.smb.mounted import Mounted, refused
from tests.smb.raw import (
    CLOSE,
    CREATE,
    EMPTY,
    IOCTL,
    READ,
    SMB_2_1,
    TREE_DISCONNECT,
    WRITE,
    RawClient,
    close_body,
    create_body,
    file_id_of,
)
from verditer.smb.status import Status

PIPE_TRANSCEIVE, PIPE_WAIT, DFS_GET_REFERRALS, NETWORK_INTERFACES = 0x0011C017, 0x00110018, 0x00060194, 0x001401FC
SRVSVC = bytes.fromhex("c84f324b7016d30112785a47bf6ee188") + struct.pack("<I", 3)
NDR = bytes.fromhex("045d888aeb1cc9119fe808002b104860") + struct.pack("<I", 2)
ENUMERATE, GET_INFO = 15, 16


@pytest.fixture
def client(account: Running) -> Iterator[RawClient]:
    client = RawClient(account)
    client.negotiate(SMB_2_1)
    assert client.log_in().status == 0
    yield client
    client.close()


def test_a_share_is_found_whatever_its_case(client: RawClient, sdk: ShareClient) -> None:
    answer = client.connect_tree(sdk.share_name.upper())
    assert answer.status == 0
    size, kind, _, flags, capabilities, access = struct.unpack("<HBBIII", answer.body)
    assert (size, kind, flags, capabilities, access) == (16, 1, 0, 0, 0x1F01FF)


@pytest.mark.parametrize("name", ["nothing-here", "share\\folder", "", "a" * 600])
def test_what_is_not_a_share_is_a_bad_network_name(client: RawClient, name: str) -> None:
    assert client.connect_tree(name).status == Status.BAD_NETWORK_NAME


def test_a_tree_is_gone_after_its_disconnect(client: RawClient, sdk: ShareClient) -> None:
    client.connect_tree(sdk.share_name)
    opened = client.ask(CREATE, create_body("file"))
    assert client.ask(TREE_DISCONNECT, EMPTY).status == 0
    assert client.ask(TREE_DISCONNECT, EMPTY).status == Status.NETWORK_NAME_DELETED
    assert client.ask(CLOSE, close_body(file_id_of(opened))).status == Status.NETWORK_NAME_DELETED
    client.connect_tree(sdk.share_name)
    assert client.ask(CLOSE, close_body(file_id_of(opened))).status == Status.FILE_CLOSED


def test_a_file_id_belongs_to_its_tree(client: RawClient, sdk: ShareClient) -> None:
    client.connect_tree(sdk.share_name)
    opened = client.ask(CREATE, create_body("file"))
    first = client.tree_id
    client.connect_tree(sdk.share_name)
    assert client.tree_id != first
    assert client.ask(CLOSE, close_body(file_id_of(opened))).status == Status.FILE_CLOSED
    assert client.ask(CLOSE, close_body(file_id_of(opened)), tree_id=first).status == 0


# --- IPC$ ---


def _ioctl(code: int, file_id: bytes, data: bytes, room: int = 8192) -> bytes:
    fixed = struct.pack("<HHI16sIIIIIIII", 57, 0, code, file_id, 120, len(data), 0, 0, 0, room, 1, 0)
    return fixed + (data or b"\0")


def _fragment(kind: int, body: bytes, flags: int = 3) -> bytes:
    return struct.pack("<BBBBIHHI", 5, 0, kind, flags, 0x10, 16 + len(body), 0, 1) + body


def _bind(interface: bytes = SRVSVC) -> bytes:
    return _fragment(11, struct.pack("<HHIB3xHBx", 4280, 4280, 0, 1, 0, 1) + interface + NDR)


def _call(operation: int, arguments: bytes, flags: int = 3) -> bytes:
    return _fragment(0, struct.pack("<IHH", len(arguments), 0, operation) + arguments, flags)


def _text(value: str) -> bytes:
    data = (value + "\0").encode("utf-16-le")
    return struct.pack("<III", len(data) // 2, 0, len(data) // 2) + data + bytes(-len(data) % 4)


ENUMERATION = struct.pack("<I", 0) + struct.pack("<IIIII", 1, 1, 0x20000, 0, 0) + struct.pack("<II", 0xFFFFFFFF, 0)


@pytest.fixture
def pipe(client: RawClient) -> bytes:
    assert client.connect_tree("IPC$").status == 0
    opened = client.ask(CREATE, create_body("srvsvc", access=0x12019F, disposition=1))
    assert opened.status == 0
    return file_id_of(opened)


def _transceive(client: RawClient, pipe: bytes, data: bytes) -> bytes:
    answer = client.ask(IOCTL, _ioctl(PIPE_TRANSCEIVE, pipe, data))
    assert answer.status == 0
    at, length = struct.unpack_from("<II", answer.body, 32)
    return answer.message[at : at + length]


def test_the_shares_of_the_account_can_be_listed(client: RawClient, sdk: ShareClient, pipe: bytes) -> None:
    assert _transceive(client, pipe, _bind())[2] == 12
    listed = _transceive(client, pipe, _call(ENUMERATE, ENUMERATION))
    assert listed[2] == 2
    assert (sdk.share_name + "\0").encode("utf-16-le") in listed
    assert "IPC$\0".encode("utf-16-le") in listed
    assert listed[-4:] == bytes(4)


@pytest.mark.parametrize(("name", "result"), [("", 0), ("nothing", 2310)])
def test_a_share_can_be_asked_about(client: RawClient, sdk: ShareClient, pipe: bytes, name: str, result: int) -> None:
    _transceive(client, pipe, _bind())
    arguments = struct.pack("<I", 0) + _text(name or sdk.share_name) + struct.pack("<I", 1)
    answer = _transceive(client, pipe, _call(GET_INFO, arguments))
    assert int.from_bytes(answer[-4:], "little") == result


def test_a_pipe_can_be_written_and_read(client: RawClient, pipe: bytes) -> None:
    """In two parts: a message that is longer than the room for it goes on with the next read."""
    data = _bind()
    for part in (data[:20], data[20:]):
        body = struct.pack("<HHIQ16sIIHHI", 49, 112, len(part), 0, pipe, 0, 0, 0, 0, 0) + part
        assert client.ask(WRITE, body).status == 0
    read = struct.pack("<HBBIQ16sIIIHH", 49, 0, 0, 10, 0, pipe, 0, 0, 0, 0, 0) + b"\0"
    first = client.ask(READ, read)
    assert first.status == Status.BUFFER_OVERFLOW
    assert first.body[16:18] == b"\x05\0"
    rest = struct.pack("<HBBIQ16sIIIHH", 49, 0, 0, 4096, 0, pipe, 0, 0, 0, 0, 0) + b"\0"
    assert client.ask(READ, rest).status == 0
    assert client.ask(READ, rest).status == Status.PIPE_EMPTY
    assert client.ask(CLOSE, close_body(pipe)).status == 0


@pytest.mark.parametrize("protocol", ["SMB", "NFS"])
def test_a_tree_ends_with_its_share_also_when_another_share_gets_the_name(
    mounted: Mounted, sdk: ShareClient, protocol: str
) -> None:
    sdk.delete_share()
    sdk.create_share(protocols=protocol)
    with refused(Status.NETWORK_NAME_DELETED):
        mounted.put("file")
    with refused(Status.NETWORK_NAME_DELETED):
        mounted.open("")
    assert list(sdk.list_directories_and_files()) == []


def test_calls_that_do_not_exist_are_faults(client: RawClient, pipe: bytes) -> None:
    unbound = _transceive(client, pipe, _call(ENUMERATE, ENUMERATION))
    assert unbound[2] == 3
    _transceive(client, pipe, _bind())
    assert _transceive(client, pipe, _call(99, b""))[2] == 3
    assert _transceive(client, pipe, _call(ENUMERATE, b"\xff" * 7))[2] == 3
    assert _transceive(client, pipe, _bind(bytes(20)))[36 - 4 :][:2] != b"\0\0"


@pytest.mark.parametrize("data", [b"\xff" * 16, b"\x05\0\x0b\x03" + bytes(12), _call(15, bytes(9), flags=1)[:-3] + bytes(70000)])
def test_what_is_no_call_breaks_the_pipe(client: RawClient, pipe: bytes, data: bytes) -> None:
    answer = client.ask(IOCTL, _ioctl(PIPE_TRANSCEIVE, pipe, data), charge=2)
    assert answer.status in (Status.PIPE_DISCONNECTED, Status.PIPE_EMPTY)
    assert client.ask(CLOSE, close_body(pipe)).status == 0


def test_other_pipes_and_other_commands_do_not_exist(client: RawClient, pipe: bytes) -> None:
    assert client.ask(CREATE, create_body("wkssvc", disposition=1)).status == Status.OBJECT_NAME_NOT_FOUND
    assert client.ask(IOCTL, _ioctl(PIPE_WAIT, b"\xff" * 16, b"x")).status == Status.OBJECT_NAME_NOT_FOUND
    assert client.ask(IOCTL, _ioctl(DFS_GET_REFERRALS, b"\xff" * 16, b"x")).status == Status.FS_DRIVER_REQUIRED
    assert client.ask(IOCTL, _ioctl(NETWORK_INTERFACES, b"\xff" * 16, b"")).status == Status.NOT_SUPPORTED
    assert client.ask(IOCTL, _ioctl(0x00144064, pipe, b"")).status == Status.INVALID_DEVICE_REQUEST
    assert client.ask(IOCTL, _ioctl(0x77777777, pipe, b"")).status == Status.INVALID_DEVICE_REQUEST
    assert client.ask(7, struct.pack("<HHI", 24, 0, 0) + pipe).status == Status.INVALID_DEVICE_REQUEST
