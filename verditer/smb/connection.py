"""One connection of an SMB client: frames come in, each becomes a chain that runs in a task of its own, answers go out.

A frame is four bytes of length and one message or chain of messages, encrypted or not. What arrives is bounded: a client that has
too much running, or does not take its answers, is not read from until that has changed.
"""

import asyncio
import contextlib
import hashlib
import logging
import socket
from typing import TYPE_CHECKING, cast

from verditer.services.file.handles.requests import Client
from verditer.smb.call import Call, Reply
from verditer.smb.cancelling import is_cancel
from verditer.smb.chain import Chain
from verditer.smb.credits import CreditWindow
from verditer.smb.crypto.sealing import TRANSFORM_BYTES, session_of_frame
from verditer.smb.crypto.signing import Buffer
from verditer.smb.ending import end_sessions
from verditer.smb.frames import FRAME_HEADER, BadFrame, FrameBuffer, split_chain
from verditer.smb.limits import MAX_FRAME_BYTES, MAX_FRAME_BYTES_BEFORE_LOGIN, MAX_IO_BYTES_2_0_2
from verditer.smb.load import ChainLoad, Load
from verditer.smb.progress import ClientProgress
from verditer.smb.sessions import Session, SessionState
from verditer.smb.setup.negotiate import answer_smb1
from verditer.smb.status import Status
from verditer.smb.wire.header import (
    ENCRYPTED_MAGIC,
    HEADER_BYTES,
    MAGIC,
    NONE_64,
    SMB1_MAGIC,
    CommandNumber,
    Flags,
    Header,
    build_async_header,
)
from verditer.smb.wire.negotiate import SmbDialect

if TYPE_CHECKING:
    from verditer.smb.server import SmbServer
    from verditer.smb.setup.negotiate import Negotiated

logger = logging.getLogger("verditer")
_JOINED_BYTES = 16 * 1024  # smaller frames are written with one call
_KEEPALIVE = ((socket.TCP_KEEPIDLE, 60), (socket.TCP_KEEPINTVL, 10), (socket.TCP_KEEPCNT, 3))


class SmbConnection(asyncio.BufferedProtocol):
    """`sessions` are the logins of this connection, `waiting` the requests that a CANCEL can reach, by message id."""

    def __init__(self, server: "SmbServer") -> None:
        self.server = server
        self.ctx = server.ctx
        self.commands = server.commands
        self.task: asyncio.Task[None] | None = None  # ends the connection
        self.host = self.address = ""
        self.is_closed = False
        self.credits = CreditWindow()
        self.sessions: dict[int, Session] = {}
        self.waiting: dict[int, Call] = {}
        self.negotiated: Negotiated | None = None
        self.preauth_hash = bytes(64)
        self.dialect = 0
        self.max_io_bytes = MAX_IO_BYTES_2_0_2
        self.has_large_mtu = False
        self._transport: asyncio.Transport | None = None
        self._frames = FrameBuffer()
        self.chains: dict[asyncio.Task[None], Chain] = {}
        self.ending: set[asyncio.Task[None]] = set()  # end sessions that another connection has told to end
        self.load = Load()
        self._is_shutting_down = False
        self._is_reading = True
        self._progress = ClientProgress()

    # --- the socket ---

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        host, port = transport.get_extra_info("peername")[:2]
        self.host, self.address = host, f"{host}:{port}"
        connected = transport.get_extra_info("socket")
        connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)  # opens of a client that vanished have to end
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for option, value in _KEEPALIVE:
            connected.setsockopt(socket.IPPROTO_TCP, option, value)
        if not self.server.admit(self):
            self.abort()

    def connection_lost(self, error: Exception | None) -> None:
        self._begin_end()

    def get_buffer(self, size_hint: int) -> memoryview:
        return self._frames.room()

    def buffer_updated(self, count: int) -> None:
        self._progress.received()
        self._frames.received(count)
        self.take_frames()

    def pause_writing(self) -> None:
        self._progress.stall()
        self._regulate()

    def resume_writing(self) -> None:
        self._progress.resume()
        self.take_frames()

    # --- frames ---

    @property
    def _is_overloaded(self) -> bool:
        return self._progress.is_stalled or self.load.is_too_much

    def _regulate(self) -> None:
        """Read from the client unless it has too much running already."""
        if self._transport is None or self.is_closed or self._is_reading is not self._is_overloaded:
            return
        self._is_reading = not self._is_overloaded
        if self._is_reading:
            self._transport.resume_reading()
        else:
            self._transport.pause_reading()

    def take_frames(self) -> None:
        """Start the chains of all complete frames, unless too much is running."""
        try:
            while not self.is_closed and not self._is_overloaded:
                frame = self._frames.next_frame(self._max_frame)
                if frame is None:
                    break
                self._take_frame(frame)
        except BadFrame as reason:
            self._drop(str(reason))
        self._regulate()

    @property
    def _max_frame(self) -> int:
        return MAX_FRAME_BYTES if self.sessions else MAX_FRAME_BYTES_BEFORE_LOGIN

    def _take_frame(self, frame: memoryview) -> None:
        magic, sealed = bytes(frame[:4]), None
        if magic == ENCRYPTED_MAGIC:
            sealed = self._sealed_by(frame)
            plain = sealed.sealing.unseal(frame) if sealed is not None and sealed.sealing is not None else None
            if sealed is None or plain is None:
                self._drop("a frame that cannot be decrypted")
                return
            sealed.is_sealing = True
            frame = memoryview(plain)
            magic = bytes(frame[:4])
        if magic == SMB1_MAGIC and sealed is None:
            answer_smb1(self, frame)
        elif magic != MAGIC:
            self._drop("a frame that is not SMB2")
        elif (messages := split_chain(frame)) is None:
            self._drop("a chain with wrong lengths")
        else:
            self._start(messages, sealed, len(frame))

    def _sealed_by(self, frame: memoryview) -> Session | None:
        return self.sessions.get(session_of_frame(frame)) if len(frame) > TRANSFORM_BYTES else None

    def _start(self, messages: list[tuple[Header, memoryview]], sealed: Session | None, length: int) -> None:
        answer_bytes, has_cancel = 0, False
        for header, message in messages:
            if header.command == CommandNumber.CANCEL:
                has_cancel = True
                continue
            if not self.credits.use(header.message_id, header.credit_charge):
                self._drop("message id %d is not to be used", header.message_id)
                return
            row = self.commands.get(header.command)
            if row is not None and row.payload is not None and len(message) >= HEADER_BYTES + (row.request_size & ~1):
                moved = min(row.payload(message), self.max_io_bytes)
                answer_bytes += max(moved - len(message), 0)  # what a request carries itself is not in its answer
        if has_cancel:
            messages = [(header, message) for header, message in messages if not is_cancel(self, header, message, sealed)]
            if not messages:
                return
        chain = Chain(self, messages, sealed, ChainLoad(length, answer_bytes))
        self.load.begin(chain.load)
        task = asyncio.get_running_loop().create_task(chain.run())
        self.chains[task] = chain
        task.add_done_callback(lambda task: self._chain_ended(chain, task))

    def _chain_ended(self, chain: Chain, task: "asyncio.Task[None]") -> None:
        self.chains.pop(task, None)
        self.load.end(chain.load)
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.error("a chain of SMB requests failed", exc_info=error)
            self.abort()
        if self._is_shutting_down and not self.chains:
            self._close()
        else:
            self.take_frames()

    # --- answers ---

    def send(self, parts: list[Buffer], sealed: Session | None) -> None:
        if self.is_closed or self._transport is None:
            return
        if sealed is not None and sealed.sealing is not None:
            parts = list(sealed.sealing.seal(parts))
        length = sum(map(len, parts))
        parts.insert(0, FRAME_HEADER.pack(length))
        if length <= _JOINED_BYTES:
            self._transport.write(b"".join(parts))
        else:
            self._transport.writelines(parts)

    def send_notification(self, session: Session, body: bytes) -> None:
        """An OPLOCK_BREAK that answers no request. It is never signed (MS-SMB2 3.3.4.6)."""
        header = build_async_header(
            credit_charge=0,
            status=Status.SUCCESS,
            command=CommandNumber.OPLOCK_BREAK,
            credits_granted=0,
            flags=Flags.RESPONSE,
            message_id=NONE_64,
            async_id=0,
            session_id=0,
        )
        self.send([header, body], session if session.is_sealing else None)

    def hash_answer(self, call: Call, status: int, message: Buffer) -> None:
        """Part of the integrity check of 3.1.1: the answers of the negotiation and of a login that goes on."""
        if self.dialect != SmbDialect.SMB_3_1_1:
            return
        if call.header.command == CommandNumber.NEGOTIATE:
            self.preauth_hash = hashlib.sha512(self.preauth_hash + message).digest()
        elif status == Status.MORE_PROCESSING_REQUIRED and call.session.state is SessionState.IN_PROGRESS:
            call.session.preauth_hash = hashlib.sha512(call.session.preauth_hash + message).digest()

    def observe(self, call: Call, reply: Reply, seconds: float) -> None:
        self.server.observe(call, reply, seconds)

    def client_of(self, session: Session) -> Client:
        return Client(session_id=session.session_id, address=self.address, name=session.client_name)

    # --- the end ---

    def _drop(self, reason: str, *values: object) -> None:
        logger.debug("SMB client %s is cut off: " + reason, self.address, *values)
        self.abort()

    def shut_down(self) -> None:
        self._is_shutting_down = True
        for call in list(self.waiting.values()):
            call.end(Status.CANCELLED)
        if not self.chains:
            self._close()

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()
        self._begin_end()

    def _close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    def _begin_end(self) -> None:
        if self.task is None:
            self.is_closed = True
            self.task = asyncio.get_running_loop().create_task(self._end())

    async def _end(self) -> None:
        """Let running requests finish, end those that wait, and close all opens. A cancellation only stops the waiting."""
        for call in list(self.waiting.values()):
            call.end(Status.CANCELLED)
        closing = asyncio.get_running_loop().create_task(self._close_all())
        while not closing.done():
            try:
                await asyncio.shield(closing)
            except asyncio.CancelledError:
                for task in self.chains:
                    task.cancel()
        with contextlib.suppress(Exception):
            closing.result()
        self.server.forget(self)

    async def _close_all(self) -> None:
        if running := self.chains.keys() | self.ending:
            await asyncio.wait(running)
        await end_sessions(self)

    def enforce_time_limits(self, now: float) -> None:
        is_receiving = self._is_reading and not self._frames.is_empty
        unsent = self._transport.get_write_buffer_size() if self._transport is not None else 0
        limits = self.server.limits
        if self._progress.is_too_slow(limits, now, has_login=self.has_login, is_receiving=is_receiving, unsent=unsent):
            self._drop("it is too slow")

    @property
    def has_login(self) -> bool:
        return any(session.state is SessionState.VALID for session in self.sessions.values())
