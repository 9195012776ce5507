"""The bare loops that large blobs are held against: what this machine reaches in plain Python with nothing of a storage service.

`python -m benchmarks.bare FOLDER PORT` keeps a file for each path. A PUT reads the socket while one thread digests and another
writes, then syncs the file; a GET copies the file to the socket. Just enough HTTP that the same client measures it.
"""

import hashlib
import os
import queue
import socket
import sys
import threading
from pathlib import Path

from benchmarks.servers import HOST

CHUNK_BYTES = 1 << 20
CHUNKS_AHEAD = 8


def serve(folder: Path, port: int) -> None:
    with socket.create_server((HOST, port)) as listener:
        while True:
            connection, _ = listener.accept()
            threading.Thread(target=answer, args=(connection, folder), daemon=True).start()


def answer(connection: socket.socket, folder: Path) -> None:
    """Requests of one connection, until it closes."""
    with connection:
        while head := read_head(connection):
            method, target, length = head
            path = folder / hashlib.sha256(target.encode()).hexdigest()
            if method == "PUT":
                receive(connection, path, length)
                connection.sendall(b"HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n")
            elif path.exists():
                send(connection, path)
            else:
                connection.sendall(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")


def read_head(connection: socket.socket) -> tuple[str, str, int] | None:
    """Method, target and content length, read byte by byte so that nothing of the body is taken."""
    head = bytearray()
    while not head.endswith(b"\r\n\r\n"):
        if not (byte := connection.recv(1)):
            return None
        head += byte
    first, *lines = head.decode("latin-1").split("\r\n")
    lengths = [line.partition(":")[2] for line in lines if line.lower().startswith("content-length:")]
    method, target, _ = first.split(" ")
    return method, target, int(lengths[0]) if lengths else 0


def receive(connection: socket.socket, path: Path, length: int) -> None:
    """Socket, MD5 and file at once: reading, digesting and writing all release the interpreter lock."""
    to_digest: queue.Queue[bytearray | None] = queue.Queue(CHUNKS_AHEAD)
    to_write: queue.Queue[bytearray | None] = queue.Queue(CHUNKS_AHEAD)
    digest = hashlib.md5(usedforsecurity=False)

    def digest_chunks() -> None:
        while (chunk := to_digest.get()) is not None:
            digest.update(chunk)

    def write_chunks() -> None:
        with path.open("wb", buffering=0) as file:
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
            raise ConnectionError("the client went away")
        view = view[count:]


def send(connection: socket.socket, path: Path) -> None:
    """The file, which a PUT has just left in the page cache, by read and send."""
    buffer = memoryview(bytearray(CHUNK_BYTES))
    with path.open("rb", buffering=0) as file:
        length = os.fstat(file.fileno()).st_size
        connection.sendall(f"HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n".encode())
        while count := file.readinto(buffer):
            connection.sendall(buffer[:count])


if __name__ == "__main__":
    serve(Path(sys.argv[1]), int(sys.argv[2]))
