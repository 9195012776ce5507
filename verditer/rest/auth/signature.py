"""What the authentication schemes have in common: HMAC-SHA256 over a string to sign, the stated version, and the refusal."""

import base64
import hmac
from collections.abc import Iterable

from verditer.core.errors import Code, StorageError
from verditer.rest.address import Address
from verditer.rest.http.message import Request


def sign(key: bytes, text: str) -> bytes:
    return base64.b64encode(hmac.digest(key, text.encode("utf-8", "surrogatepass"), "sha256"))


def matches(keys: Iterable[bytes], text: str, signature: str) -> bool:
    """Whether one of the keys gives this signature. The comparison takes the same time for every signature."""
    sent = signature.encode("utf-8", "surrogatepass")
    return any(hmac.compare_digest(sign(key, text), sent) for key in keys)


def stated_version(request: Request, address: Address) -> str:
    """The version that a request names itself or, in a batch, that the batch names; "" where none does."""
    return request.outer_version or request.headers.get("x-ms-version") or address.query.get("api-version", "")


def authentication_failed(detail: str) -> StorageError:
    """The detail may name the string to sign, as Azure does; it never names a key or the expected signature."""
    return StorageError(Code.AuthenticationFailed, reason=detail)
