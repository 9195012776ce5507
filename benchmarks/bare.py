"""The minimal loop that large blobs and files are compared with: what this machine reaches in Python without a storage service.

`python -m benchmarks.bare FOLDER PORT` keeps a file for each path. A PUT reads the socket while one thread digests and another
writes, then syncs the file; with `x-ms-range` it writes that part of the file. A GET copies the file to the socket. It implements
just enough HTTP for the same client.
"""

import hashlib
import os
import queue
import socket
import sys
import threading
from pathlib import Path

from benchmarks.servers import HOST
from benchmarks.streaming import RANGE_QUERY

CHUNK_BYTES = 1 << 20
CHUNKS_AHEAD = 8


def serve(folder: Path, port: int) -> None:
    with socket.create_server((HOST, port)) as listener:
        while True:
            connection, _ = listener.accept()
            threading.Thread(target=answer, args=(connection, folder), daemon=True).start()


def answer(connection: socket.socket, folder: Path) -> None:
    """Serve the requests of one connection until it closes."""
    with connection:
        while head := read_head(connection):
            method, target, length, start = head
            path = folder / hashlib.sha256(target.removesuffix(RANGE_QUERY).encode()).hexdigest()
            if method == "PUT":
                receive(connection, path, length, start)
                connection.sendall(b"HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n")
            elif path.exists():
                send(connection, path)
            else:
                connection.sendall(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")


def read_head(connection: socket.socket) -> tuple[str, str, int, int] | None:
    """Method, target, content length and where a range begins, read byte by byte so that no byte of the body is consumed."""
    head = bytearray()
    while not head.endswith(b"\r\n\r\n"):
        if not (byte := connection.recv(1)):
            return None
        head += byte
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    method, target, _ = first.split(" ")
    start = headers.get("x-ms-range", "bytes=0-").removeprefix("bytes=").partition("-")[0]
    return method, target, int(headers.get("content-length", "0")), int(start)


def receive(connection: socket.socket, path: Path, length: int, start: int) -> None:
    """Socket, MD5 and file in parallel: reading, digesting and writing all release the interpreter lock."""
    to_digest: queue.Queue[bytearray | None] = queue.Queue(CHUNKS_AHEAD)
    to_write: queue.Queue[bytearray | None] = queue.Queue(CHUNKS_AHEAD)
    digest = hashlib.md5(usedforsecurity=False)

    def digest_chunks() -> None:
        while (chunk := to_digest.get()) is not None:
            digest.update(chunk)

    def write_chunks() -> None:
        with path.open("r+b" if start else "wb", buffering=0) as file:
            file.seek(start)
            while (chunk := to_write.get()) is not None:
                file.write(chunk)
            os.fsync(file.fileno())

    workers = [threading.Thread(target=digest_chunks), threading.Thread(target=write_chunks)]
    for worker in workers:
        worker.start()
    while length:
        chunk = bytearray(min(length, CHUNK_BYTES))
        fill(connection, chunk)
        length -= len(chunk)
        to_digest.put(chunk)
        to_write.put(chunk)
    to_digest.put(None)
    to_write.put(None)
    for worker in workers:
        worker.join()


def fill(connection: socket.socket, chunk: bytearray) -> None:
    view = memoryview(chunk)
    while view:
        count = connection.recv_into(view)
        if not count:
            raise ConnectionError("the client disconnected")
        view = view[count:]


def send(connection: socket.socket, path: Path) -> None:
    """Send the file, which a PUT has just left in the page cache, with read and send."""
    buffer = memoryview(bytearray(CHUNK_BYTES))
    with path.open("rb", buffering=0) as file:
        length = os.fstat(file.fileno()).st_size
        connection.sendall(f"HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n".encode())
        while count := file.readinto(buffer):
            connection.sendall(buffer[:count])


if __name__ == "__main__":
    serve(Path(sys.argv[1]), int(sys.argv[2]))
