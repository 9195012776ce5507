"""HMAC-SHA256 over a string to sign: what Shared Key and SAS have in common, and how both are refused."""

import base64
import hmac
from collections.abc import Iterable

from verditer.core.errors import Code, StorageError


def sign(key: bytes, text: str) -> bytes:
    return base64.b64encode(hmac.digest(key, text.encode("utf-8", "surrogatepass"), "sha256"))


def matches(keys: Iterable[bytes], text: str, signature: str) -> bool:
    """Whether one of the account's keys gives this signature. The time a comparison takes says nothing about the right one."""
    sent = signature.encode("utf-8", "surrogatepass")
    return any(hmac.compare_digest(sign(key, text), sent) for key in keys)


def authentication_failed(detail: str) -> StorageError:
    """The detail may name the string to sign, as Azure's does, and never a key or the signature we expected."""
    return StorageError(Code.AuthenticationFailed, details={"AuthenticationErrorDetail": detail})
