"""Hostile bytes in three more layers: the contexts of NEGOTIATE, chains that are encrypted as they should be, and remote
procedure calls. The fixture `account` fails a test when the server logs an error."""

import contextlib
import os
import random
import struct
import uuid

import pytest
from azure.storage.fileshare import ShareClient
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from smbprotocol.connection import Ciphers, Connection
from smbprotocol.session import Session
from smbprotocol.tree import TreeConnect

from tests.rest.running import Running
from tests.smb.fuzzing import ROUNDS, bodies, changed
from tests.smb.raw import (
    ALL_ONES,
    CLOSE,
    CREATE,
    HEADER,
    IOCTL,
    IS_RELATED,
    SMB_2_1,
    SMB_3_1_1,
    Cut,
    RawClient,
    close_body,
    create_body,
    file_id_of,
)
from verditer.smb.status import Status

pytestmark = pytest.mark.usefixtures("still_serving")

PIPE_TRANSCEIVE = 0x0011C017
BIND = bytes.fromhex(
    "05000b03100000004800000001000000b810b810000000000100000000000100"
    "c84f324b7016d30112785a47bf6ee18803000000045d888aeb1cc9119fe808002b10486002000000"
)
"""Binds the server service with NDR."""
LIST_SHARES = bytes.fromhex(
    "0500000310000000380000000200000020000000000f00" + "00" + "00000000" + "01000000" + "01000000" + "00000200" + "00000000" * 2
    + "ffffffff" + "00000000"
)  # fmt: skip


def test_changed_contexts_of_negotiate_are_answered_or_end_the_connection(account: Running, chance: random.Random) -> None:
    kinds = ((1, struct.pack("<HHH", 1, 32, 1) + bytes(32)), (2, struct.pack("<HHH", 2, 2, 1)), (8, struct.pack("<HHH", 2, 2, 0)))
    valid = b"".join(
        (struct.pack("<HHI", kind, len(data), 0) + data).ljust(-(-len(data) // 8) * 8 + 8, b"\0") for kind, data in kinds
    )
    statuses = set()
    for round in range(ROUNDS // 8):
        client = RawClient(account)
        contexts, count = (valid, 3) if not round else (changed(chance, valid), chance.choice((3, 3, 3, 2, 4, 0xFFFF)))
        with contextlib.suppress(Cut):
            statuses.add(client.negotiate(SMB_2_1, SMB_3_1_1, contexts=contexts, context_count=count).status)
        client.close()
    assert {0, Status.INVALID_PARAMETER} <= statuses


def test_changed_remote_procedure_calls_are_answered_or_break_the_pipe(account: Running, chance: random.Random) -> None:
    client = RawClient(account).mounted("IPC$")
    statuses = set()
    for round in range(ROUNDS // 4):
        pipe = file_id_of(client.ask(CREATE, create_body("srvsvc"), credits_asked=8))
        bind = BIND if chance.random() < 0.8 else changed(chance, BIND)
        for data in (bind, LIST_SHARES if not round else changed(chance, LIST_SHARES)):
            fixed = struct.pack("<HHI16sIIIIIIII", 57, 0, PIPE_TRANSCEIVE, pipe, 120, len(data), 0, 0, 0, 1024, 1, 0)
            statuses.add(client.ask(IOCTL, fixed + (data or bytes(1))).status)
        assert client.ask(CLOSE, close_body(pipe)).status == 0
    assert {0, Status.PIPE_DISCONNECTED} <= statuses
    client.close()


class Encrypted:
    """A session that sends encrypted chains of its own making."""

    def __init__(self, server: Running, share: str) -> None:
        self.connection = Connection(uuid.uuid4(), "127.0.0.1", server.app.servers["smb"].port)
        self.connection.connect(preferred_encryption_algos=[Ciphers.AES_128_GCM], timeout=20)
        self.session = Session(self.connection, server.account, server.key, require_encryption=True)
        self.session.connect()
        self.tree = TreeConnect(self.session, rf"\\127.0.0.1\{share}")
        self.tree.connect()
        self._message_id = self.connection.sequence_window["low"]
        self._socket = self.connection.transport._sock

    def chain(self, chance: random.Random) -> bytes:
        """Requests with random changes that follow one another as they should, from the first message id that is free."""
        built = b""
        for number in range(count := chance.randrange(1, 5)):
            command, body = chance.choice(bodies(ALL_ONES, ALL_ONES))
            body = changed(chance, body)
            body += bytes(-len(body) % 8)
            following = 64 + len(body) if number < count - 1 else 0
            ids = (0, self.tree.tree_connect_id, self.session.session_id)
            flags = chance.choice((0, IS_RELATED))
            built += (
                HEADER.pack(b"\xfeSMB", 64, 1, 0, command, 8, flags, following, self._message_id + number, *ids, bytes(16)) + body
            )
        return built

    def send(self, plain: bytes) -> None:
        nonce = os.urandom(12)
        fields = nonce + bytes(4) + struct.pack("<IHHQ", len(plain), 0, 1, self.session.session_id)
        sealed = AESGCM(self.session.encryption_key).encrypt(nonce, plain, fields)
        frame = b"\xfdSMB" + sealed[-16:] + fields + sealed[:-16]
        self._socket.sendall(len(frame).to_bytes(4, "big") + frame)


def test_changed_chains_inside_encryption_are_answered_or_end_the_connection(
    account: Running, sdk: ShareClient, chance: random.Random
) -> None:
    """smbprotocol gives up on an answer that it does not expect: the server has read the chain then."""
    for _ in range(ROUNDS // 20):
        client = Encrypted(account, sdk.share_name)
        client.send(client.chain(chance))
        client.connection._t_worker.join(20)
        assert not client.connection._t_worker.is_alive()
        client.connection.disconnect(close=False)
