"""A small SMB client that sends exactly the bytes it is told to: for chains, wrong ids, wrong signatures and broken frames.

It logs in with pyspnego, which is not the server's code, and signs as SMB 2.1 does, with HMAC-SHA256."""

import hashlib
import hmac
import os
import socket
import struct
from typing import NamedTuple

import spnego

from tests.rest.running import Running

HEADER = struct.Struct("<4sHHIHHIIQIIQ16s")
NEGOTIATE, SESSION_SETUP, LOGOFF, TREE_CONNECT, TREE_DISCONNECT, CREATE, CLOSE = range(7)
FLUSH, READ, WRITE, LOCK, IOCTL, CANCEL, ECHO, QUERY_DIRECTORY, CHANGE_NOTIFY, QUERY_INFO, SET_INFO = range(7, 18)
IS_ANSWER, IS_ASYNC, IS_RELATED, IS_SIGNED = 1, 2, 4, 8
SMB_2_0_2, SMB_2_1, SMB_3_0, SMB_3_0_2, SMB_3_1_1 = 0x0202, 0x0210, 0x0300, 0x0302, 0x0311
ALL_ONES = b"\xff" * 16
EMPTY = b"\x04\0\0\0"  # the body of ECHO, LOGOFF and TREE_DISCONNECT
BINDING = struct.pack("<HBBIIHHQ", 25, 1, 1, 0, 0, 88, 1, 0) + b"x"


class Answer(NamedTuple):
    """One message of the server."""

    charge: int
    status: int
    command: int
    credits: int
    flags: int
    message_id: int
    tree_id: int  # the upper half of the async id, if the message has one
    session_id: int
    async_id: int
    body: bytes
    message: bytes


class Cut(Exception):
    """The server has ended the connection."""


class RawClient:
    """`log_in` and `connect_tree` do the usual; `request` makes a message, `send` sends messages as one frame."""

    def __init__(self, server: Running, port: int | None = None) -> None:
        self._server = server
        self._socket = socket.create_connection(("127.0.0.1", port or server.app.servers["smb"].port), timeout=20)
        self.message_id = 0
        self.session_id = 0
        self.tree_id = 0
        self.key = b""

    def close(self) -> None:
        self._socket.close()

    def finish(self) -> None:
        """Send nothing more."""
        self._socket.shutdown(socket.SHUT_WR)

    # --- frames ---

    def send_bytes(self, data: bytes) -> None:
        self._socket.sendall(data)

    def send_frame(self, payload: bytes) -> None:
        self._socket.sendall(len(payload).to_bytes(4, "big") + payload)

    def send(self, *messages: bytes) -> None:
        """As one chain: all but the last are padded and say where the next begins. Signed when there is a key."""
        chain = b""
        for number, message in enumerate(messages, start=1):
            if number < len(messages):
                message += bytes(-len(message) % 8)
                message = message[:20] + struct.pack("<I", len(message)) + message[24:]
            chain += self.signed(message)
        self.send_frame(chain)

    def signed(self, message: bytes) -> bytes:
        flags = struct.unpack_from("<I", message, 16)[0]
        if not self.key or not flags & IS_SIGNED:
            return message
        return message[:48] + hmac.digest(self.key, message, hashlib.sha256)[:16] + message[64:]

    def receive_frame(self) -> bytes:
        length = int.from_bytes(self._receive(4), "big")
        return self._receive(length)

    def _receive(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            try:
                more = self._socket.recv(count - len(data))
            except ConnectionError:
                raise Cut from None
            if not more:
                raise Cut
            data += more
        return data

    def receive(self) -> list[Answer]:
        """The messages of the next frame."""
        frame, answers = self.receive_frame(), []
        while frame:
            following = struct.unpack_from("<I", frame, 20)[0]
            message, frame = (frame[:following], frame[following:]) if following else (frame, b"")
            answers.append(_parse(message))
        return answers

    def is_cut(self) -> bool:
        """Whether the server ends the connection without an answer."""
        try:
            self.receive_frame()
        except Cut:
            return True
        return False

    # --- requests ---

    def request(
        self,
        command: int,
        body: bytes,
        *,
        flags: int | None = None,
        message_id: int | None = None,
        session_id: int | None = None,
        tree_id: int | None = None,
        charge: int = 1,
        credits_asked: int = 1,
    ) -> bytes:
        if message_id is None:
            message_id, self.message_id = self.message_id, self.message_id + max(charge, 1)
        given = flags if flags is not None else 0
        if self.key and flags is None:
            given |= IS_SIGNED
        session = self.session_id if session_id is None else session_id
        tree = self.tree_id if tree_id is None else tree_id
        return (
            HEADER.pack(b"\xfeSMB", 64, charge, 0, command, credits_asked, given, 0, message_id, 0, tree, session, bytes(16))
            + body
        )

    def ask(self, command: int, body: bytes, **how: int) -> Answer:
        self.send(self.request(command, body, **how))
        (answer,) = self.receive()
        return answer

    def negotiate(self, *dialects: int, contexts: bytes = b"", context_count: int = 0, capabilities: int = 0) -> Answer:
        at = 64 + 36 + 2 * len(dialects)
        padding = -at % 8
        where = struct.pack("<IHH", at + padding if contexts else 0, context_count, 0)
        body = struct.pack("<HHHHI16s", 36, len(dialects), 1, 0, capabilities, os.urandom(16)) + where
        body += struct.pack(f"<{len(dialects)}H", *dialects)
        return self.ask(NEGOTIATE, body + bytes(padding) + contexts, charge=0, credits_asked=64)

    def setup(self, token: bytes, *, flags: int = 0, previous: int = 0) -> Answer:
        body = struct.pack("<HBBIIHHQ", 25, flags, 1, 0, 0, 88, len(token), previous) + token
        return self.ask(SESSION_SETUP, body, flags=0, credits_asked=512)

    def log_in(self, *, key: str | None = None, user: str | None = None, previous: int = 0, raw: bool = False) -> Answer:
        """The last answer. Signs from then on when the login has succeeded."""
        context = spnego.client(
            user or self._server.account,
            key or self._server.key,
            protocol="ntlm" if raw else "negotiate",
            options=spnego.NegotiateOptions.use_ntlm,
        )
        first = self.setup(context.step() or b"")
        self.session_id = first.session_id
        last = self.setup(context.step(_token(first)) or b"", previous=previous)
        if last.status == 0:
            context.step(_token(last)) if not raw else None
            self.key = context.session_key
        return last

    def connect_tree(self, share: str) -> Answer:
        path = rf"\\server\{share}".encode("utf-16-le")
        answer = self.ask(TREE_CONNECT, struct.pack("<HHHH", 9, 0, 72, len(path)) + path)
        if answer.status == 0:
            self.tree_id = answer.tree_id
        return answer

    def mounted(self, share: str) -> "RawClient":
        self.negotiate(SMB_2_1)
        assert self.log_in().status == 0
        assert self.connect_tree(share).status == 0
        return self


def create_body(name: str, *, access: int = 0x1F01FF, disposition: int = 3, options: int = 0, share: int = 7) -> bytes:
    """OPEN_IF unless told otherwise."""
    text = name.encode("utf-16-le")
    fixed = struct.pack("<HBBIQQIIIIIHHII", 57, 0, 0, 2, 0, 0, access, 0, share, disposition, options, 120, len(text), 0, 0)
    return fixed + (text or bytes(1))


def close_body(file_id: bytes) -> bytes:
    return struct.pack("<HHI", 24, 0, 0) + file_id


def file_id_of(answer: Answer) -> bytes:
    return answer.body[64:80]


def _token(answer: Answer) -> bytes:
    at, length = struct.unpack_from("<HH", answer.body, 4)
    return answer.message[at : at + length]


def _parse(message: bytes) -> Answer:
    _, _, charge, status, command, granted, flags, _, message_id, process, tree, session, _ = HEADER.unpack_from(message)
    return Answer(charge, status, command, granted, flags, message_id, tree, session, tree << 32 | process, message[64:], message)
