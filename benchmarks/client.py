"""Requests before and after a measurement: creating containers, filling them, checking contents. Their speed does not matter."""

import http.client

from benchmarks.benchmark import Unsupported
from benchmarks.sas import VERSION, target
from benchmarks.servers import HOST, Server

CONTAINER = "bench"
BLOB_TYPE = {"x-ms-blob-type": "BlockBlob"}


class Client:
    """One connection to a server; a response other than success raises."""

    def __init__(self, server: Server, service: str = "") -> None:
        """A connection to the measured service, or to another one."""
        self._connection = http.client.HTTPConnection(HOST, server.ports[service or server.service], timeout=60)

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def ask(self, method: str, path: str, query: str = "", body: bytes = b"", headers: dict[str, str] | None = None) -> bytes:
        status, answer = self.try_ask(method, path, query, body, headers)
        if not 200 <= status < 300:
            raise Unsupported(f"{method} {path}?{query} answered {status}\n{answer[:500]!r}")
        return answer

    def try_ask(
        self, method: str, path: str, query: str = "", body: bytes = b"", headers: dict[str, str] | None = None
    ) -> tuple[int, bytes]:
        length = {"Content-Length": str(len(body))} if method == "PUT" else {}
        self._connection.request(method, target(path, query), body, {"x-ms-version": VERSION, **length, **(headers or {})})
        response = self._connection.getresponse()
        return response.status, response.read()

    def create_container(self, name: str = CONTAINER) -> None:
        self.ask("PUT", name, "restype=container")

    def put_blob(self, name: str, body: bytes) -> None:
        self.ask("PUT", f"{CONTAINER}/{name}", body=body, headers=BLOB_TYPE)


def create_container(server: Server) -> None:
    """The preparation of most benchmarks."""
    with Client(server) as client:
        client.create_container()
