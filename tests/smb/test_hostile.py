"""Hostile clients: whatever they send is answered with a status or ends their connection, and nobody else notices.

The fuzzers change valid requests at random (`fuzzing.py`). The fixture `account` fails a test when the server logs an error,
which it does for every unexpected exception.
"""

import contextlib
import os
import random
import struct
import uuid
from pathlib import Path

import pytest
from azure.storage.fileshare import ShareClient
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from smbprotocol.connection import Ciphers, Connection
from smbprotocol.session import Session

from tests.rest.running import Running
from tests.smb.fuzzing import ROUNDS, bodies, changed
from tests.smb.raw import (
    ALL_ONES,
    CLOSE,
    CREATE,
    ECHO,
    EMPTY,
    IS_RELATED,
    IS_SIGNED,
    READ,
    SMB_2_1,
    WRITE,
    Cut,
    RawClient,
    close_body,
    create_body,
    file_id_of,
)
from verditer.core.limits import KIB
from verditer.smb.limits import MAX_LOGINS
from verditer.smb.status import Status

pytestmark = pytest.mark.usefixtures("still_serving")


@pytest.fixture
def port(account: Running) -> int:
    return account.app.servers["smb"].port


class Fuzzed:
    """A client that logs in again when the server has cut it off."""

    def __init__(self, server: Running, share: str) -> None:
        self._server, self._share = server, share
        self.cuts = self.answers = 0
        self._connect()

    def _connect(self) -> None:
        self.client = RawClient(self._server).mounted(self._share)
        self.file_id = file_id_of(self.client.ask(CREATE, create_body("file"), credits_asked=512))
        self.directory = file_id_of(self.client.ask(CREATE, create_body("", options=1)))

    def exchange(self, *messages: bytes, signs: bool = True) -> None:
        """Every request is answered, or the connection ends."""
        try:
            if signs:
                self.client.send(*messages)
            else:
                self.client.send_frame(b"".join(messages))
            self.client.send(self.client.request(ECHO, EMPTY))
            last = self.client.message_id - 1
            while not any(answer.message_id == last for answer in self.client.receive()):
                self.answers += 1
        except (Cut, ConnectionError):
            self.cuts += 1
            self.client.close()
            self._connect()


def test_changed_requests_are_answered_or_end_the_connection(account: Running, sdk: ShareClient, chance: random.Random) -> None:
    fuzzed = Fuzzed(account, sdk.share_name)
    for _ in range(ROUNDS):
        command, body = chance.choice(bodies(fuzzed.file_id, fuzzed.directory))
        fuzzed.exchange(fuzzed.client.request(command, changed(chance, body)))
    assert fuzzed.answers > ROUNDS / 2
    fuzzed.client.close()


def test_changed_chains_are_answered_or_end_the_connection(account: Running, sdk: ShareClient, chance: random.Random) -> None:
    fuzzed = Fuzzed(account, sdk.share_name)
    for _ in range(ROUNDS // 4):
        valid = bodies(ALL_ONES, ALL_ONES)
        chain = [fuzzed.client.request(CREATE, create_body("file"))]
        for _ in range(chance.randrange(1, 6)):
            command, body = chance.choice(valid)
            flags = chance.choice((IS_SIGNED, IS_SIGNED | IS_RELATED))
            chain.append(fuzzed.client.request(command, chance.choice((body, changed(chance, body))), flags=flags))
        fuzzed.exchange(*chain)
    assert fuzzed.answers
    fuzzed.client.close()


def test_changed_headers_are_answered_or_end_the_connection(account: Running, sdk: ShareClient, chance: random.Random) -> None:
    fuzzed = Fuzzed(account, sdk.share_name)
    for _ in range(ROUNDS // 4):
        message = fuzzed.client.signed(fuzzed.client.request(ECHO, EMPTY))
        fuzzed.exchange(changed(chance, message), signs=False)
    assert fuzzed.cuts
    fuzzed.client.close()


def test_changed_frames_before_a_login_end_the_connection_or_are_answered(account: Running, chance: random.Random) -> None:
    negotiate = (
        bytes.fromhex("fe534d42 4000") + bytes(58) + struct.pack("<HHHHI16sQHH", 36, 2, 1, 0, 0, bytes(16), 0, SMB_2_1, 0x311)
    )
    setup = (
        bytes.fromhex("fe534d42 4000 0000 00000000 0100")
        + bytes(50)
        + struct.pack("<HBBIIHHQ", 25, 0, 1, 0, 0, 88, 8, 0)
        + b"NTLMSSP\0"
    )
    for _ in range(ROUNDS // 8):
        client = RawClient(account)
        with contextlib.suppress(OSError):  # it may be cut off already
            client.send_frame(changed(chance, negotiate) or b"x")
            client.send_frame(changed(chance, setup) or b"x")
            client.finish()
        while not client.is_cut():
            pass
        client.close()


@pytest.mark.parametrize(
    "data",
    [
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        b"\x81\0\0\x44" + bytes(68),  # NetBIOS
        b"\0\xff\xff\xff",  # a frame of 16 MiB
        b"\0\0\0\0",
        b"\0\0\0\x05\xfeSMB\0",
        b"\0\0\0\x40\xfcSMB" + bytes(60),  # compressed
        b"\0\0\0\x60\xfdSMB" + bytes(92),  # encrypted by nobody
        b"\0\0\0\x50" + os.urandom(80),
    ],
    ids=["HTTP", "NetBIOS", "too long", "empty", "no header", "compressed", "encrypted by nobody", "noise"],
)
def test_what_is_no_smb_ends_the_connection(account: Running, data: bytes) -> None:
    client = RawClient(account)
    client.send_bytes(data)
    assert client.is_cut()
    client.close()


def test_large_frames_are_not_accepted_before_a_login(account: Running) -> None:
    client = RawClient(account)
    client.send_bytes(b"\0" + (1 << 17).to_bytes(3, "big"))
    assert client.is_cut()
    client.close()


def _sealed(session: Session, plain: bytes, nonce: bytes) -> bytes:
    fields = nonce + bytes(4) + struct.pack("<IHHQ", len(plain), 0, 1, session.session_id)
    sealed = AESGCM(session.encryption_key).encrypt(nonce, plain, fields)
    return b"\xfdSMB" + sealed[-16:] + fields + sealed[:-16]


@pytest.mark.parametrize("how", ["wrong key", "wrong content", "nested", "empty"])
def test_encrypted_garbage_ends_the_connection(account: Running, port: int, how: str) -> None:
    connection = Connection(uuid.uuid4(), "127.0.0.1", port)
    connection.connect(preferred_encryption_algos=[Ciphers.AES_128_GCM], timeout=20)
    session = Session(connection, account.account, account.key)
    session.connect()
    plain = {"empty": b"", "nested": b"\xfdSMB" + bytes(90)}.get(how, os.urandom(200))
    frame = bytearray(_sealed(session, plain, os.urandom(12)))
    if how == "wrong key":
        frame[-1] ^= 1
    connection.transport._sock.sendall(len(frame).to_bytes(4, "big") + bytes(frame))
    connection._t_worker.join(20)
    assert not connection._t_worker.is_alive()


def test_a_client_that_takes_no_answers_is_not_read_from(account: Running, sdk: ShareClient) -> None:
    """It asks for 512 MiB and reads nothing: the server keeps a few of these answers only."""
    client = RawClient(account).mounted(sdk.share_name)
    client.ask(ECHO, EMPTY, credits_asked=8192)
    file_id = file_id_of(client.ask(CREATE, create_body("large")))
    write = struct.pack("<HHIQ16sIIHHI", 49, 112, 1 << 20, 0, file_id, 0, 0, 0, 0, 0) + bytes(1 << 20)
    assert client.ask(WRITE, write, charge=16, credits_asked=16).status == 0
    read = struct.pack("<HBBIQ16sIIIHH", 49, 0, 0, 1 << 20, 0, file_id, 0, 0, 0, 0, 0) + b"\0"
    for _ in range(480):
        client.send(client.request(READ, read, charge=16))

    async def unsent() -> int:
        server = account.app.servers["smb"]
        return sum(connection._transport.get_write_buffer_size() for connection in server._connections)  # type: ignore[attr-defined]

    other = RawClient(account).mounted(sdk.share_name)  # is served meanwhile
    assert other.ask(ECHO, EMPTY).status == 0
    assert account.run(unsent()) < 40 << 20
    other.close()
    for _ in range(480):  # and all are answered when it does
        (answer,) = client.receive()
        assert answer.status == 0
    client.close()


def test_five_hundred_idle_sessions_cost_nobody_anything(account: Running, sdk: ShareClient) -> None:
    """Each may keep 64 KiB, on the side of the client as well."""
    clients = []
    before = resident_bytes()
    try:
        for _ in range(500):
            clients.append(RawClient(account))
            clients[-1].negotiate(SMB_2_1)
            assert clients[-1].log_in().status == 0
        assert resident_bytes() - before < 500 * 64 * KIB
        assert clients[0].ask(ECHO, EMPTY).status == 0
        assert clients[-1].connect_tree(sdk.share_name).status == 0
    finally:
        for client in clients:
            client.close()


def resident_bytes() -> int:
    """The memory of this process, which has the server in it."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_a_session_has_a_limited_number_of_open_files(
    account: Running, sdk: ShareClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("verditer.smb.handlers.create.MAX_OPENS", 3)
    client = RawClient(account).mounted(sdk.share_name)
    opened = [client.ask(CREATE, create_body(f"file{number}")) for number in range(4)]
    assert [one.status for one in opened] == [0, 0, 0, Status.TOO_MANY_OPENED_FILES]
    assert client.ask(CLOSE, close_body(file_id_of(opened[0]))).status == 0
    assert client.ask(CREATE, create_body("file3")).status == 0
    client.close()


def test_logins_that_do_not_end_keep_little_and_are_few(account: Running) -> None:
    client = RawClient(account)
    client.negotiate(SMB_2_1)
    first = b"NTLMSSP\0\x01\0\0\0" + struct.pack("<I", 0x201) + bytes(16)
    assert client.setup(first + bytes(1024)).status == Status.LOGON_FAILURE
    statuses = [client.setup(first).status for _ in range(MAX_LOGINS + 1)]
    assert statuses == [Status.MORE_PROCESSING_REQUIRED] * MAX_LOGINS + [Status.INSUFFICIENT_RESOURCES]
    client.close()


def test_a_wrong_key_is_answered_later_each_time(account: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    """The delays are counted, not waited for."""
    delays: list[float] = []
    failures = account.app.servers["smb"].failures  # type: ignore[attr-defined]
    failures.succeeded("127.0.0.1")
    count = failures.failed

    def counted(host: str) -> float:
        delays.append(count(host))
        return 0.0

    monkeypatch.setattr("verditer.smb.auth.failures.monotonic", lambda: 1000.0)
    monkeypatch.setattr(failures, "failed", counted)
    for _ in range(4):
        client = RawClient(account)
        client.negotiate(SMB_2_1)
        assert client.log_in(key="d3Jvbmc=").status == Status.LOGON_FAILURE
        client.close()
    failures.succeeded("127.0.0.1")
    assert delays == pytest.approx([0.1, 0.3, 0.7, 1.5])  # one after the other: no time passes
