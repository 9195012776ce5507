"""The stages of a request: what is known after each step of the pipeline, as one immutable struct per step.

Up to `Decoded` each stage extends the one before, so a step takes exactly the stage it relies on. The error answer and the
request log read the last stage that a request has reached.
"""

from collections.abc import Callable, Coroutine
from typing import Any, NamedTuple, TypeVar

import msgspec

from verditer.core.grant import Grant
from verditer.core.guard import Guard
from verditer.core.names import (
    AccountName,
    BlobName,
    ContainerName,
    EntityName,
    FilePath,
    MessageName,
    QueueName,
    ShareName,
    TableName,
)
from verditer.rest.address import Address
from verditer.rest.codecs.table.json_format import PLAIN, JsonFormat
from verditer.rest.http.message import Request
from verditer.rest.operation import Op
from verditer.services.copying.sources import CopySource

Taken = TypeVar("Taken")
Given = TypeVar("Given")
Step = Callable[[Taken], Given | Coroutine[Any, Any, Given]]
"""A step of the pipeline: the stage that it takes, and the stage that it gives, as a coroutine when it may have to wait."""

LATEST_VERSION = "2026-10-06"

ResourceName = AccountName | ContainerName | BlobName | QueueName | MessageName | TableName | EntityName | ShareName | FilePath


class BatchScope(msgspec.Struct, frozen=True, kw_only=True):
    """What a batch imposes on the requests in it."""

    account: str
    version: str


class IncomingRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The head of a request has arrived."""

    request: Request
    request_id: str
    batch: BatchScope | None = None  # of the batch that the request is a part of


class AddressedRequest(IncomingRequest, frozen=True, kw_only=True):
    """The account and the path are known."""

    address: Address


class Accepted(AddressedRequest, frozen=True, kw_only=True):
    """The account exists, and the request is served by the rules of this version."""

    version: str


class Routed(Accepted, frozen=True, kw_only=True):
    """The row of the operation and the resource it acts on are known."""

    op: Op
    target: ResourceName


class Authenticated(Routed, frozen=True, kw_only=True):
    """The caller is known."""

    grant: Grant


class Authorized(Authenticated, frozen=True, kw_only=True):
    """The caller may call the operation."""

    create_only: bool  # the caller may create and not overwrite


class Decoded(Authorized, frozen=True, kw_only=True):
    """Everything the function of the row wants to know."""

    guard: Guard
    format: JsonFormat = PLAIN  # chosen by the row's `accepts`
    parameters: msgspec.Struct | None = None  # the struct that the function calls its request
    source: CopySource | FilePath | None = None  # of a copy or a rename


class Called(NamedTuple):
    """The function of the row has returned."""

    decoded: Decoded
    result: object  # of the type that the answer of the row takes
