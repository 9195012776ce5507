"""One large body over one connection, timed by a client in a separate process with plain sockets and one reused buffer.

`python -m benchmarks.streaming put|put_ranges|get PORT TARGET SIZE` prints the seconds from connecting to the last byte of the
response."""

import os
import socket
import subprocess
import sys
import time

from benchmarks.benchmark import Invalid
from benchmarks.sas import VERSION, target
from benchmarks.servers import HOST, ROOT, Server

CHUNK_BYTES = 1 << 20
CHUNK = memoryview(os.urandom(CHUNK_BYTES))
RANGE_BYTES = 4 << 20  # the largest that one Put Range takes
RANGE_QUERY = "&comp=range"


def put_seconds(server: Server, path: str, size_bytes: int) -> float:
    return run("put", server, path, size_bytes)


def put_ranges_seconds(server: Server, path: str, size_bytes: int) -> float:
    return run("put_ranges", server, path, size_bytes)


def get_seconds(server: Server, path: str, size_bytes: int) -> float:
    return run("get", server, path, size_bytes)


def run(action: str, server: Server, path: str, size_bytes: int) -> float:
    words = [sys.executable, "-m", "benchmarks.streaming", action, str(server.port), target(path), str(size_bytes)]
    done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=ROOT)
    if done.returncode:
        raise Invalid((done.stderr.strip().splitlines() or ["the streaming client failed"])[-1])
    return float(done.stdout)


def put(connection: socket.socket, path: str, size_bytes: int) -> None:
    send(connection, path, size_bytes, "x-ms-blob-type: BlockBlob\r\n")


def put_ranges(connection: socket.socket, path: str, size_bytes: int) -> None:
    """Create File, then one Put Range after the other."""
    send(connection, path, 0, f"x-ms-type: file\r\nx-ms-content-length: {size_bytes}\r\n")
    for start in range(0, size_bytes, RANGE_BYTES):
        sent = min(size_bytes - start, RANGE_BYTES)
        send(connection, path + RANGE_QUERY, sent, f"x-ms-write: update\r\nx-ms-range: bytes={start}-{start + sent - 1}\r\n")


def send(connection: socket.socket, path: str, size_bytes: int, headers: str) -> None:
    common = f"Host: {HOST}\r\nx-ms-version: {VERSION}\r\nContent-Length: {size_bytes}\r\n"
    connection.sendall(f"PUT {path} HTTP/1.1\r\n{common}{headers}\r\n".encode())
    left = size_bytes
    while left:
        sent = min(left, CHUNK_BYTES)
        connection.sendall(CHUNK[:sent])
        left -= sent
    read_head(connection, 201)


def get(connection: socket.socket, path: str, size_bytes: int) -> None:
    connection.sendall(f"GET {path} HTTP/1.1\r\nHost: {HOST}\r\nx-ms-version: {VERSION}\r\n\r\n".encode())
    left = size_bytes - len(read_head(connection, 200))
    buffer = memoryview(bytearray(CHUNK_BYTES))
    while left:
        count = connection.recv_into(buffer[: min(left, CHUNK_BYTES)])
        if not count:
            raise ConnectionError(f"{left} bytes were missing")
        left -= count


def read_head(connection: socket.socket, status: int) -> bytes:
    """Read the head of a response, which must have `status`. Returns the bytes of the body that arrived with it."""
    received = b""
    while b"\r\n\r\n" not in received:
        if not (more := connection.recv(65536)):
            raise ConnectionError("the server closed the connection")
        received += more
    head, _, body = received.partition(b"\r\n\r\n")
    if int(head.split(b" ", 2)[1]) != status:
        raise ConnectionError(f"answered {head.splitlines()[0].decode()} {body[:200]!r}")
    return body


def main(action: str, port: str, path: str, size: str) -> None:
    started = time.perf_counter()
    with socket.create_connection((HOST, int(port)), timeout=120) as connection:
        {"put": put, "put_ranges": put_ranges, "get": get}[action](connection, path, int(size))
        print(time.perf_counter() - started)


if __name__ == "__main__":
    main(*sys.argv[1:])
