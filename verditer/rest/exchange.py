"""One request on its way through the pipeline: what is known of it so far. Steps fill it in; the log line reads it."""

from typing import Any

import msgspec

from verditer.core.grant import Grant
from verditer.rest.address import Address
from verditer.rest.message import Request
from verditer.rest.operation import Op

LATEST_VERSION = "2026-10-06"


class Exchange(msgspec.Struct, kw_only=True):
    request: Request
    request_id: str
    started: float
    address: Address | None = None
    op: Op | None = None
    grant: Grant | None = None
    create_only: bool = False
    form: Any = None  # what the row's `accepts` chose
    version: str = LATEST_VERSION
    outer: "Exchange | None" = None  # the batch it came in
