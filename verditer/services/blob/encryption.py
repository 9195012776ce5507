"""Keys of clients and encryption scopes: what a request says, what a blob has, and whether they agree.

A blob that was written with a key is stored encrypted under it: its content as `stream/encrypted.py` says, its metadata here.
The record has the SHA-256 of the key and never the key, so every request for the content or the metadata has to bring it. A scope
is a name for a key that the service keeps; it is recorded and shown. Microsoft's pages: Provide an encryption key on a request;
Encryption scopes.
"""

import dataclasses
import hashlib
import hmac
import secrets
from typing import TYPE_CHECKING, TypeVar

import msgspec

from verditer.core.errors import Code, StorageError
from verditer.core.records.blob import NO_RARE_PROPERTIES, Blob
from verditer.core.records.container import Container
from verditer.services.blob.answers import Encryption
from verditer.services.context import Context
from verditer.stream.encrypted import EncryptedExtents

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

B = TypeVar("B", bound=Blob)
NONCE_BYTES = 12
replace = msgspec.structs.replace


class EncryptionRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What a request says about encryption: a key with its digest and algorithm, or a scope."""

    encryption_key: bytes | None = None
    encryption_key_sha256: bytes | None = None
    encryption_algorithm: str | None = None
    encryption_scope: str | None = None
    sas_scope: str | None = None  # the scope of a SAS

    @property
    def is_plain(self) -> bool:
        """True for most requests: no key, no scope."""
        return (
            self.encryption_key is None
            and self.encryption_key_sha256 is None
            and self.encryption_algorithm is None
            and self.encryption_scope is None
            and self.sas_scope is None
        )

    def check(self) -> None:
        """The three headers of a key come together, the digest is that of the key, and a key excludes a scope."""
        parts = {
            "encryption_key": self.encryption_key,
            "encryption_key_sha256": self.encryption_key_sha256,
            "encryption_algorithm": self.encryption_algorithm,
        }
        missing = [name for name, value in parts.items() if value is None]
        if len(missing) == len(parts):
            return
        if missing:
            raise StorageError(Code.MissingRequiredHeader, field=missing[0])
        if self.encryption_scope is not None:
            raise StorageError(Code.InvalidHeaderValue, field="encryption_scope", value=self.encryption_scope)
        assert self.encryption_key is not None
        assert self.encryption_key_sha256 is not None
        if not hmac.compare_digest(hashlib.sha256(self.encryption_key).digest(), self.encryption_key_sha256):
            raise StorageError(Code.InvalidHeaderValue, field="encryption_key_sha256", value="")

    @property
    def scope(self) -> str | None:
        """The scope that the request names. A SAS with a scope allows no other one, and no key of the client."""
        if self.sas_scope is not None and (self.encryption_key or self.encryption_scope not in (None, self.sas_scope)):
            raise StorageError(Code.AuthorizationPermissionMismatch)
        return self.encryption_scope or self.sas_scope


NO_ENCRYPTION = EncryptionRequest()


def keyed(ctx: Context, request: EncryptionRequest) -> Context:
    """The context in which the bytes of the request are written and read: under its key, if it has one. No bytes stay in records
    then, because rows are not encrypted."""
    if request.is_plain:
        return ctx
    request.check()
    if request.encryption_key is None:
        return ctx
    return dataclasses.replace(ctx, extents=EncryptedExtents(ctx.extents, request.encryption_key), inline_limit=0)


def check_key(blob: Blob, request: EncryptionRequest) -> None:
    """Raise StorageError unless the request brings the key of the blob."""
    if blob.rare is None and request.is_plain:
        return
    request.check()
    check_digest(blob.rare.key_sha256 if blob.rare is not None else None, request)
    scope = blob.rare.encryption_scope if blob.rare is not None else None
    if request.encryption_scope not in (None, scope):
        raise StorageError(Code.BlobUsesCustomerSpecifiedEncryption)


def check_digest(stored: bytes | None, request: EncryptionRequest) -> None:
    sent = request.encryption_key_sha256
    if stored == sent:
        return
    raise StorageError(
        Code.BlobDoesNotUseCustomerSpecifiedEncryption if stored is None else Code.BlobUsesCustomerSpecifiedEncryption
    )


def check_unencrypted(blob: Blob) -> None:
    """For copies that share bytes: the key of the source is not known."""
    if blob.rare is not None and blob.rare.key_sha256 is not None:
        raise StorageError(Code.BlobUsesCustomerSpecifiedEncryption)


def chosen_encryption(container: Container, request: EncryptionRequest, scopes: tuple[str, ...]) -> Encryption | None:
    """The key or the scope of the request, or the scope of the container. `scopes` are those of the account."""
    if request.is_plain and container.encryption is None:
        return None
    request.check()
    scope = effective_scope(container, request)
    if scope is not None and scope not in scopes and not (container.encryption and scope == container.encryption.scope):
        raise StorageError(Code.EncryptionScopeNotFound)
    if request.encryption_key_sha256 is None and scope is None:
        return None
    return Encryption(key_sha256=request.encryption_key_sha256, scope=scope)


def encrypted(container: Container, blob: Blob, request: EncryptionRequest, scopes: tuple[str, ...]) -> Blob:
    chosen = chosen_encryption(container, request, scopes)
    if chosen is None:
        return blob
    rare = blob.rare or NO_RARE_PROPERTIES
    return sealed(replace(blob, rare=replace(rare, key_sha256=chosen.key_sha256, encryption_scope=chosen.scope)), request)


def sealed(blob: B, request: EncryptionRequest) -> B:
    """With new metadata, which is encrypted if the blob is. The request brings the key of the blob."""
    if request.encryption_key is None or blob.rare is None:
        return blob
    nonce = secrets.token_bytes(NONCE_BYTES)
    data = nonce + _cipher(request.encryption_key).encrypt(nonce, msgspec.json.encode(blob.metadata), None)
    return replace(blob, metadata={}, rare=replace(blob.rare, sealed_metadata=data))


def opened(blob: B, request: EncryptionRequest) -> B:
    """With the metadata that it was given. `check_key` has found that the key is the one of the blob."""
    data = blob.rare.sealed_metadata if blob.rare is not None else None
    if data is None:
        return blob
    assert request.encryption_key is not None
    metadata = _cipher(request.encryption_key).decrypt(data[:NONCE_BYTES], data[NONCE_BYTES:], None)
    return replace(blob, metadata=msgspec.json.decode(metadata, type=dict[str, str]))


def _cipher(key: bytes) -> "AESGCM":
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # importing takes 30 ms

    return AESGCM(key)


def shown_encryption(blob: Blob) -> Encryption | None:
    """What the answer to a write says."""
    rare = blob.rare
    if rare is None or (rare.key_sha256 is None and rare.encryption_scope is None):
        return None
    return Encryption(key_sha256=rare.key_sha256, scope=rare.encryption_scope)


def effective_scope(container: Container, request: EncryptionRequest) -> str | None:
    named, default = request.scope, container.encryption
    if default is None:
        return named
    if default.no_override and (named not in (None, default.scope) or request.encryption_key is not None):
        raise StorageError(Code.RequestForbiddenByContainerEncryptionPolicy)
    return named or (default.scope if request.encryption_key is None else None)
