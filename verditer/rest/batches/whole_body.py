"""The body of a request that is in memory already, such as a part of a batch."""


class WholeBody:
    ended = True

    def __init__(self, body: bytes) -> None:
        self._body = body
        self.length: int | None = len(body)

    async def read(self) -> bytes:
        body, self._body = self._body, b""
        return body

    async def read_all(self, limit: int) -> bytes:
        return self._body
