"""The forms of answers of the admin port: JSON documents, and how JSON in a request is read."""

import json
from typing import TypeVar

import msgspec

from verditer.core.errors import Code, StorageError
from verditer.rest.http.message import Request, Response

MAX_DOCUMENT = 64 * 1024  # bytes
T = TypeVar("T")


class InvalidDocument(Exception):
    """The text says what is wrong with the body of a request."""


def json_answer(status: int, document: object) -> Response:
    body = json.dumps(document).encode() + b"\n"
    headers = [("Content-Type", "application/json"), ("Cache-Control", "no-store"), ("X-Content-Type-Options", "nosniff")]
    return Response(status=status, headers=headers, body=body)


async def document_of(request: Request, kind: type[T]) -> T:
    """The JSON object in the body of a request; no body is an empty object."""
    try:
        return msgspec.json.decode(await request.body.read_all(MAX_DOCUMENT) or b"{}", type=kind)
    except RecursionError:
        raise InvalidDocument("the document is nested too deeply") from None
    except (msgspec.MsgspecError, UnicodeDecodeError) as problem:
        raise InvalidDocument(str(problem)) from None
    except StorageError as problem:
        if problem.code is not Code.RequestBodyTooLarge:
            raise
        raise InvalidDocument(f"the document is longer than {MAX_DOCUMENT} bytes") from None
