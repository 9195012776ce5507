"""Bodies that lie in files: the kernel copies them to the socket, and every promise about bodies is kept all the same."""

import asyncio
import errno
import os
import random
import socket
import ssl
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest

from tests.rest.client import Box
from tests.rest.copies import wait_for
from tests.rest.http_wire import PATIENCE_SECONDS, Wire, request, serving
from verditer.rest.http.message import FileBody, FilePart, Request, Response
from verditer.rest.http.sendfile import SocketFileSender
from verditer.rest.http.server import HttpLimits
from verditer.services.content.reading import LONG_SLICE, StoredBody
from verditer.serving import tls
from verditer.stream.local import THREADS, LocalExtents

MIB = 1 << 20
LARGE = random.Random(1).randbytes(24 * MIB)  # more than the buffers of two sockets
EXTENT = "0" * 31 + "1"
QUICK = HttpLimits(write_stall_seconds=0.1)
STORED: type[FileBody] = StoredBody


class Files:
    """Answers with stretches of one extent, `GET /offset/length/...`; `/0/0` is a short body of bytes."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / EXTENT[16:18] / EXTENT
        self.path.parent.mkdir()
        self.path.write_bytes(LARGE)
        self.store = LocalExtents(folder, lambda: EXTENT)
        self.closed = threading.Event()  # the last body was

    async def handler(self, request: Request) -> Response:
        numbers = [int(number) for number in request.target.split("/")[1:]]
        stretches = list(zip(numbers[::2], numbers[1::2], strict=True))
        if stretches == [(0, 0)]:
            return Response(status=200, headers=[], body=b"short")
        return Response(status=200, headers=[], body=_Body(self, stretches), length=sum(length for _, length in stretches))

    def close(self) -> None:
        asyncio.run(self.store.close())


class _Body:
    def __init__(self, files: Files, stretches: list[tuple[int, int]]) -> None:
        self._files = files
        self._stretches = stretches
        self._pieces = self._read()

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._pieces

    async def __anext__(self) -> bytes:
        return await anext(self._pieces)

    async def _read(self) -> AsyncIterator[bytes]:
        for offset, length in self._stretches:
            async for piece in self._files.store.read(EXTENT, offset, length):
                yield piece

    async def parts(self) -> AsyncIterator[bytes | FilePart]:
        try:
            for offset, length in self._stretches:
                if length < MIB:
                    yield LARGE[offset : offset + length]
                    continue
                with closing(self._files.store.file(EXTENT, offset, length)) as file:
                    yield file
        finally:
            self._files.closed.set()


@pytest.fixture
def files(tmp_path: Path) -> Iterator[Files]:
    """Nothing stays open when a test is over. On a busy machine the event loop closes a socket a little later."""
    before = open_here(tmp_path)
    files = Files(tmp_path)
    yield files
    files.close()
    wait_for(lambda: open_here(tmp_path) <= before)


def open_here(folder: Path) -> set[str]:
    """The sockets of this process, and the files of a folder, that are open."""
    names = set()
    for entry in Path("/proc/self/fd").iterdir():
        with suppress(OSError):  # closed by now
            names.add(os.readlink(entry))
    return {name for name in names if name.startswith(("socket:", str(folder)))}


class Copies:
    """The bytes that sendfile has sent. A call and its count are one step: who has read the bytes sees them counted."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sent = 0
        self._sendfile = os.sendfile

    def sendfile(self, target: int, file: int, offset: int, count: int) -> int:
        with self._lock:
            sent = self._sendfile(target, file, offset, count)
            self._sent += sent
            return sent

    def take(self) -> int:
        """How many since the last question."""
        with self._lock:
            sent, self._sent = self._sent, 0
            return sent


@pytest.fixture
def copies(monkeypatch: pytest.MonkeyPatch) -> Copies:
    copies = Copies()
    monkeypatch.setattr(os, "sendfile", copies.sendfile)
    return copies


def whole(wire: Wire) -> Wire:
    return wire.send(request("GET", f"/0/{len(LARGE)}"))


def stalled(files: Files, wire: Wire) -> None:
    """The head has come, and the client reads nothing more."""
    assert whole(wire).answer(head_only=True).status == 200
    assert not files.closed.wait(0.05)


def rest(wire: Wire) -> bytes:
    return wire._exactly(len(LARGE))


def cut_off(wire: Wire) -> bool:
    try:
        rest(wire)
    except (EOFError, ConnectionError):
        return True
    return False


def test_files_and_bytes_leave_whole_and_in_order(files: Files, copies: Copies) -> None:
    """Pipelined on one connection: a short body, two large ones, ranges, and small stretches between large ones."""
    mixed = f"/5/{3 * MIB + 1}/7/10/{MIB + 1}/{2 * MIB}/0/1"
    targets = ["/0/0", f"/0/{len(LARGE)}", f"/3/{len(LARGE) - 3}", "/0/0", f"/1/{MIB}", mixed, "/0/0"]
    with serving(files.handler) as server, server.connect() as wire:
        wire.send(b"".join(request("GET", target) for target in targets))
        bodies = [wire.answer().body for _ in targets]
    assert bodies[0] == bodies[3] == bodies[6] == b"short"
    assert bodies[1] == LARGE
    assert bodies[2] == LARGE[3:]
    assert bodies[4] == LARGE[1 : MIB + 1]
    assert bodies[5] == LARGE[5 : 3 * MIB + 6] + LARGE[7:17] + LARGE[MIB + 1 : 3 * MIB + 1] + LARGE[:1]
    assert copies.take() == len(LARGE) * 2 - 3 + MIB + 5 * MIB + 1


def test_a_client_that_reads_slowly_gets_everything(files: Files) -> None:
    with serving(files.handler) as server, server.connect(receive_buffer_bytes=65_536) as wire:
        stalled(files, wire)
        assert rest(wire) == LARGE
        assert wire.send(request("GET", "/0/0")).answer().body == b"short"


def test_a_file_waits_for_the_bytes_before_it(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    unsent: list[int] = []
    original = SocketFileSender.__init__

    def opened(sender: SocketFileSender, transport: asyncio.Transport) -> None:
        unsent.append(transport.get_write_buffer_size())
        original(sender, transport)

    monkeypatch.setattr(SocketFileSender, "__init__", opened)
    target = (f"/1/{MIB - 1}" + f"/0/{MIB}") * 16
    with serving(files.handler) as server, server.connect(receive_buffer_bytes=65_536) as wire:
        assert wire.send(request("GET", target)).answer().body == (LARGE[1:MIB] + LARGE[:MIB]) * 16
    assert unsent == [0] * 16


def test_a_client_that_stops_reading_a_file_is_cut_off(files: Files) -> None:
    with serving(files.handler, limits=QUICK) as server, server.connect(receive_buffer_bytes=65_536) as wire:
        stalled(files, wire)
        assert files.closed.wait(PATIENCE_SECONDS)
        assert cut_off(wire)


def test_a_client_that_goes_away_leaves_nothing_open(files: Files) -> None:
    with serving(files.handler) as server:
        for reset in (True, False):
            files.closed.clear()
            with server.connect(receive_buffer_bytes=65_536) as wire:
                stalled(files, wire)
                if reset:
                    wire.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            assert files.closed.wait(PATIENCE_SECONDS)


def test_clients_that_do_not_read_hold_no_thread(files: Files) -> None:
    with serving(files.handler) as server:
        waiting = [server.connect(receive_buffer_bytes=65_536) for _ in range(THREADS + 1)]
        for wire in waiting:
            stalled(files, wire)
        with server.connect() as reading:
            assert whole(reading).answer().body == LARGE
        for wire in waiting:
            wire.sock.close()


def test_a_server_that_stops_lets_go_of_a_file_it_is_sending(files: Files) -> None:
    with serving(files.handler) as server, server.connect(receive_buffer_bytes=65_536) as wire:
        stalled(files, wire)
        server.stop(grace_seconds=0.01)
        assert files.closed.is_set()
        assert cut_off(wire)


def test_a_file_that_is_removed_goes_on_being_sent(files: Files) -> None:  # race G1
    with serving(files.handler) as server, server.connect(receive_buffer_bytes=65_536) as wire:
        stalled(files, wire)
        files.path.unlink()
        assert rest(wire) == LARGE


@pytest.mark.parametrize("size", [None, 0, len(LARGE) - 1])
def test_a_file_that_is_missing_or_short_never_looks_complete(files: Files, size: int | None) -> None:
    if size is None:
        files.path.unlink()
    else:
        os.truncate(files.path, size)
    with serving(files.handler, errors=True) as server, server.connect() as wire, pytest.raises((EOFError, ConnectionError)):
        whole(wire).answer()
    assert len(server.errors) == 1


def test_a_file_that_becomes_shorter_never_looks_complete(files: Files) -> None:
    with serving(files.handler, errors=True) as server, server.connect(receive_buffer_bytes=65_536) as wire:
        stalled(files, wire)
        os.truncate(files.path, len(LARGE) - 1)
        assert cut_off(wire)
    assert len(server.errors) == 1


def test_a_file_system_that_cannot_copy_is_read_instead(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    def sendfile(*_: int) -> int:
        raise OSError(errno.EINVAL, "Invalid argument")

    monkeypatch.setattr(os, "sendfile", sendfile)
    with serving(files.handler) as server, server.connect(receive_buffer_bytes=65_536) as wire:
        stalled(files, wire)
        assert rest(wire) == LARGE


def test_over_tls_files_are_read_and_encrypted(files: Files, copies: Copies, tmp_path: Path) -> None:
    cert, key = tls.development_certificate(tmp_path)
    client = ssl.create_default_context(cafile=str(cert))
    with serving(files.handler, tls=tls.server_context(cert, key)) as server:
        sock = client.wrap_socket(socket.create_connection(("127.0.0.1", server.port)), server_hostname="localhost")
        with Wire(sock) as wire:
            assert whole(wire).answer().body == LARGE
    assert copies.take() == 0


def test_a_blob_of_large_and_small_blocks_comes_back_whole_and_in_ranges(box: Box, copies: Copies) -> None:
    assert box.put(body=LARGE[: 5 * MIB]).status == 201
    assert box.get().body == LARGE[: 5 * MIB]
    assert copies.take() == 5 * MIB
    blocks = {"AAAA": LARGE[:LONG_SLICE], "AAAB": b"0123456789", "AAAC": LARGE[-70_000:], "AAAD": LARGE[: LONG_SLICE + 5]}
    for block_id, block in blocks.items():
        assert box.put_block(block_id, block).status == 201
    assert box.put_block_list("".join(f"<Latest>{block_id}</Latest>" for block_id in blocks)).status == 201
    content = b"".join(blocks.values())
    assert box.get().body == content
    assert copies.take() == 2 * LONG_SLICE + 5
    assert box.get(headers={"Range": "bytes=1-"}).body == content[1:]
    assert box.get(headers={"Range": f"bytes=70000-{3 * MIB}"}).body == content[70_000 : 3 * MIB + 1]
