"""What the request log and the metrics know about one request, whatever its protocol. A front end fills it."""

import msgspec


class RequestSummary(msgspec.Struct, kw_only=True):
    time: int  # of the answer, in ticks
    service: str
    operation: str | None  # None: no operation was recognised
    method: str
    path: str  # without the query, which holds signatures
    status: int | str
    error_code: str | None
    bytes_in: int
    bytes_out: int
    seconds: float
    request_id: str
    client: str  # the client's address
