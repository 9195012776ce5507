"""Memory after hostile requests: what malformed requests leave behind is bounded."""

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.simulation.servers import Server

REQUESTS = 1000  # in each round, none like another
PIPELINED = 10
MOST_BYTES = 1 << 20  # less than a third of what a round of requests has sent, so nothing keeps them


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    server = Server(tmp_path / "data", "--workers", "1").start()
    yield server
    server.kill()


def hostile(number: int) -> bytes:
    """One of the kinds that clients can vary without end: a path, a host, a version, a signature, a query, a header."""
    long = f"{number:08d}" * 300
    account = "devstoreaccount1"
    target, headers = [
        (f"/{account}/c{long}", {}),
        (f"/{account}/c?restype=container&comp=list&prefix={long}", {"Host": f"{account}.h{number}.example"}),
        (f"/{account}/c/b?comp=nothing", {"x-ms-version": f"20{number:08d}"}),
        (f"/{account}/c/b?sv=2021-12-02&ss=b&srt=o&sp=r&se=2030-01-01T00:00:00Z&sig={long}", {}),
        (f"/{account}/?comp=list&{long}={long}", {"Authorization": f"SharedKey {account}:{long}"}),
        (f"/{account}-{number}/c/b", {"X-HTTP-Method": long, "Range": f"bytes={long}"}),
    ][number % 6]
    lines = {"Host": "127.0.0.1", "x-ms-version": "2021-12-02", **headers}
    fields = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    return f"GET {target} HTTP/1.1\r\n{fields}\r\n".encode()


def send(server: Server, numbers: range) -> None:
    with socket.create_connection(("127.0.0.1", server.port), 30) as connection, connection.makefile("rb") as answers:
        for number in numbers:
            if number % PIPELINED == 0:
                connection.sendall(b"".join(map(hostile, range(number, number + PIPELINED))))
            status = int(answers.readline().split()[1])
            assert 400 <= status < 500
            length = 0
            while (line := answers.readline()) != b"\r\n":
                if line.lower().startswith(b"content-length:"):
                    length = int(line.partition(b":")[2])
            answers.read(length)


def anonymous_bytes(server: Server) -> int:
    """Without the mapped database, whose pages the kernel takes back."""
    lines = Path(f"/proc/{server.pid}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("Anonymous:"))


def test_hostile_requests_leave_no_more_memory_behind_the_more_there_are(server: Server) -> None:
    used = []
    for iteration in range(3):
        send(server, range(iteration * REQUESTS, (iteration + 1) * REQUESTS))
        used.append(anonymous_bytes(server))
    assert used[-1] - used[0] < MOST_BYTES, used
