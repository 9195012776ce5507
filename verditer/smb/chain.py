"""A chain: the requests of one frame, in order, and their answers (MS-SMB2 3.3.5.2.7). Most chains have one request.

A related request takes session, tree and open from the request before it.
"""

import asyncio
from time import monotonic
from typing import TYPE_CHECKING

from verditer.smb.call import Call, Reply
from verditer.smb.dispatch import answer
from verditer.smb.load import ChainLoad
from verditer.smb.status import SmbError, Status
from verditer.smb.wire.header import (
    HEADER_BYTES,
    CommandNumber,
    Flags,
    Header,
    build_async_header,
    build_error,
    build_header,
)

if TYPE_CHECKING:
    from verditer.smb.connection import SmbConnection
    from verditer.smb.crypto.signing import Buffer
    from verditer.smb.opens import Open
    from verditer.smb.sessions import Session, TreeConnection

_SEEN_BY_OTHERS = (CommandNumber.CREATE, CommandNumber.LOCK, CommandNumber.CHANGE_NOTIFY)
_KEPT_FLAGS = Flags.RELATED | Flags.PRIORITY


class Chain:
    """`sealed` is the session whose key the frame was encrypted with. `failure` answers what is related to a
    failed CREATE."""

    __slots__ = (
        "_answers",
        "_index",
        "cancelled",
        "connection",
        "failure",
        "load",
        "messages",
        "open",
        "sealed",
        "session",
        "tree",
    )

    def __init__(
        self, connection: "SmbConnection", messages: list[tuple[Header, memoryview]], sealed: "Session | None", load: ChainLoad
    ) -> None:
        self.connection = connection
        self.messages = messages
        self.sealed = sealed
        self.load = load
        self.session: Session | None = None
        self.tree: TreeConnection | None = None
        self.open: Open | None = None
        self.failure: Status | None = None
        self.cancelled: set[int] = set()  # message ids of requests that the client does not want to wait for
        self._answers: list[tuple[Call, Reply]] = []
        self._index = 0

    async def run(self) -> None:
        connection = self.connection
        for index, (header, message) in enumerate(self.messages):
            self._index = index
            if not header.is_related:
                self.session = self.tree = self.open = self.failure = None
            started = monotonic()
            call = Call(connection, self, header, message)
            reply = await answer(call)
            if connection.is_closed:
                return
            self._answers.append((call, reply))
            connection.observe(call, reply, monotonic() - started)
        self._send_answers()

    def cancel_later(self, cancel: Header) -> None:
        """A CANCEL has come before its request waits for anything: the request ends when it would begin to."""
        if any(header.message_id == cancel.message_id for header, _ in self.messages):
            self.cancelled.add(cancel.message_id)

    @property
    def is_last(self) -> bool:
        return self._index == len(self.messages) - 1

    def closes_later(self) -> bool:
        for header, _ in self.messages[self._index + 1 :]:
            if not header.is_related or header.command in _SEEN_BY_OTHERS:
                return False
            if header.command == CommandNumber.CLOSE:
                return True
        return False

    def send_interim(self, call: Call) -> None:
        """Tell the client that the answer comes later. Only the last request of a chain may take that long, and CREATE."""
        connection = self.connection
        if connection.is_closed:
            return
        if not self.is_last:
            if call.header.command != CommandNumber.CREATE:
                call.end(Status.INTERNAL_ERROR)
            return
        try:
            call.async_id = connection.load.begin_pending(self.load)
        except SmbError as error:
            call.end(error.status)
            return
        self._send_answers()
        header = call.header
        interim = build_async_header(
            credit_charge=header.credit_charge,
            status=Status.PENDING,
            command=header.command,
            credits_granted=connection.credits.grant(header.credits),
            flags=Flags.RESPONSE | Flags.ASYNC | (header.flags & _KEPT_FLAGS),
            message_id=header.message_id,
            async_id=call.async_id,
            session_id=call.session.session_id,
        )
        connection.send([interim, build_error()], self.sealed)
        asyncio.get_running_loop().call_soon(connection.take_frames)  # this chain no longer blocks others

    def _send_answers(self) -> None:
        """Send what has been answered so far, as one frame."""
        answers, self._answers = self._answers, []
        if not answers:
            return
        parts: list[Buffer] = []
        for call, reply in answers[:-1]:
            parts += self._build(call, reply, has_next=True)
        parts += self._build(*answers[-1], has_next=False)
        self.connection.send(parts, self.sealed)

    def _build(self, call: Call, reply: Reply, *, has_next: bool) -> "list[Buffer]":
        """The parts of one answer. All but the last of a frame are padded, and the signature covers the padding.

        A signed request whose session is unknown cannot be answered with a signature: the answer says that it has one, and has
        zeros there, as clients expect it.
        """
        body, status, payload = reply
        length = HEADER_BYTES + len(body) + len(payload)
        padding = -length % 8 if has_next else 0
        session = getattr(call, "session", None)
        signing = None if self.sealed is not None or session is None else session.signs(call.header, status)
        is_signed = signing is not None or (session is None and self.sealed is None and call.header.is_signed)
        flags = Flags.RESPONSE | (call.header.flags & _KEPT_FLAGS) | (Flags.SIGNED if is_signed else 0)
        header = self._header(call, status, flags, length + padding if has_next else 0)
        parts: list[Buffer] = [header + body] if not payload else [header + body, payload]
        if padding:
            parts.append(bytes(padding))
        if signing is not None:
            signature = signing.sign(parts, call.header.message_id)
            parts[0] = b"".join((header[:48], signature, body))
        elif call.header.command <= CommandNumber.SESSION_SETUP:
            self.connection.hash_answer(call, status, parts[0])
        return parts

    def _header(self, call: Call, status: int, flags: int, next_command: int) -> bytes:
        header = call.header
        session = getattr(call, "session", None)
        session_id = session.session_id if session is not None else header.session_id
        if call.async_id:
            return build_async_header(
                credit_charge=header.credit_charge,
                status=status,
                command=header.command,
                credits_granted=0,  # the interim answer carried them
                flags=flags | Flags.ASYNC,
                message_id=header.message_id,
                async_id=call.async_id,
                session_id=session_id,
            )
        tree = getattr(call, "tree", None)
        return build_header(
            header,
            status=status,
            credits_granted=self.connection.credits.grant(header.credits),
            flags=flags,
            next_command=next_command,
            tree_id=tree.tree_id if tree is not None else header.tree_id,
            session_id=session_id,
        )
