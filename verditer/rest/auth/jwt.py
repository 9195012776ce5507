"""JSON Web Tokens as text: parsed and not trusted. `jwks.py` verifies signatures, `oauth.py` checks claims."""

import base64
import re
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import msgspec

from verditer.core.dates import TICKS_PER_SECOND, UNIX_EPOCH

T = TypeVar("T")

MAX_TOKEN = 32 * 1024
_LAST_SECOND = 253_402_300_799  # the end of the year 9999, the last that a time can have
_BASE64URL = re.compile(r"[A-Za-z0-9_-]+")


class InvalidToken(Exception):
    """The text says what is wrong; the client may see it."""


class _Header(msgspec.Struct, frozen=True):
    alg: str
    kid: str | None = None
    crit: object = None  # extensions that the server would have to understand; it understands none


class _Payload(msgspec.Struct, frozen=True):
    iss: str
    aud: str | list[str]
    exp: int | float
    nbf: int | float | None = None
    oid: str | None = None
    tid: str | None = None
    sub: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Claims:
    """What a token says. Times are ticks."""

    issuer: str
    audiences: tuple[str, ...]
    expiry: int
    not_before: int | None
    oid: str
    tid: str


class Jwt(NamedTuple):
    algorithm: str
    key_id: str | None
    claims: Claims
    signed: bytes  # what the signature covers
    signature: bytes


def parse(token: str) -> Jwt:
    parts = token.split(".")
    if len(parts) != 3 or len(token) > MAX_TOKEN:
        raise InvalidToken("The token is not a JSON Web Token.")
    header = _decoded(parts[0], _Header)
    if header.crit is not None:
        raise InvalidToken("The token asks for extensions that are not known.")
    signed = f"{parts[0]}.{parts[1]}".encode()
    return Jwt(header.alg, header.kid, _claims(_decoded(parts[1], _Payload)), signed, _bytes(parts[2]) if parts[2] else b"")


def _decoded(part: str, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(_bytes(part), type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise InvalidToken("The token is not a JSON Web Token.") from None


def _bytes(part: str) -> bytes:
    if _BASE64URL.fullmatch(part) is None or len(part) % 4 == 1:
        raise InvalidToken("The token is not a JSON Web Token.")
    return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))


def _claims(payload: _Payload) -> Claims:
    return Claims(
        issuer=payload.iss,
        audiences=(payload.aud,) if isinstance(payload.aud, str) else tuple(payload.aud),
        expiry=_ticks(payload.exp),
        not_before=None if payload.nbf is None else _ticks(payload.nbf),
        oid=payload.oid or payload.sub or "",
        tid=payload.tid or "",
    )


def _ticks(second: float) -> int:
    if not 0 <= second <= _LAST_SECOND:
        raise InvalidToken("Lifetime validation failed. A time is out of range.")
    return int(second * TICKS_PER_SECOND) + UNIX_EPOCH
