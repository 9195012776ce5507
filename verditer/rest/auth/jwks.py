"""Key sets (RFC 7517): the public keys of an issuer, from a file or a URL, and the signatures they prove.

The algorithm is the key's to choose, not the token's: a key proves RSA or elliptic-curve signatures of its own kind and
nothing else, so neither `none` nor an HMAC made with a public key gets anywhere.
"""

import asyncio
import base64
import binascii
import json
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

from verditer.core.dates import seconds
from verditer.core.errors import Code, StorageError
from verditer.rest.auth import jwt
from verditer.rest.auth.jwt import Claims, InvalidToken, Jwt
from verditer.rest.outbound.client import HttpClient, RequestFailed
from verditer.rest.outbound.urls import parse_url

logger = logging.getLogger("verditer")

MAX_AGE = seconds(3600)  # a key the issuer withdraws is trusted no longer than this
RETRY = seconds(30)  # how often, at most, an unknown key or a failure makes us look again
MAX_JWKS_BYTES = 1 << 20
FETCH_SECONDS = 5.0
_LOOPBACK = ("127.0.0.1", "::1", "localhost")
_MIN_RSA_BITS = 2048
_PROVEN = 1000  # tokens whose signature was found valid: the same one comes with request after request

PublicKey = rsa.RSAPublicKey | ec.EllipticCurvePublicKey
_HASHES: dict[str, hashes.HashAlgorithm] = {"256": hashes.SHA256(), "384": hashes.SHA384(), "512": hashes.SHA512()}
_RSA_ALGORITHMS = frozenset({"RS256", "RS384", "RS512"})
_EC_ALGORITHMS = frozenset({"ES256"})


class KeySet:
    def __init__(self, keys: list[tuple[str | None, frozenset[str], PublicKey]]) -> None:
        self._keys = keys  # (kid, the algorithms it is good for, the key)
        self._proven: dict[str, Claims] = {}

    @classmethod
    def parse(cls, document: bytes) -> "KeySet":
        """Keys of other kinds or for other uses are passed over; ValueError when none is left."""
        try:
            rows = json.loads(document)["keys"]
            keys = [key for row in rows if (key := _key(row)) is not None]
        except (ValueError, KeyError, TypeError, RecursionError):
            raise ValueError("not a JSON Web Key Set") from None
        if not keys:
            raise ValueError("the key set holds no RSA key of 2048 bits or more and no P-256 key for signatures")
        return cls(keys)

    def has(self, key_id: str | None) -> bool:
        return key_id is None or any(kid == key_id for kid, _, _ in self._keys)

    def claims_of(self, token: str, read: Jwt | None = None) -> Claims:
        proven = self._proven.get(token)
        if proven is not None:
            return proven
        read = read or jwt.parse(token)
        if not any(_proves(key, read) for kid, algorithms, key in self._keys if _fits(kid, algorithms, read)):
            raise InvalidToken("Signature validation failed. The token is not signed by a key of the issuer.")
        if len(self._proven) >= _PROVEN:
            self._proven.clear()
        self._proven[token] = read.claims
        return read.claims


class FixedKeys:
    """A key set that never changes."""

    def __init__(self, keys: KeySet) -> None:
        self._keys = keys

    async def claims_of(self, token: str, now: int) -> Claims:
        return self._keys.claims_of(token)


class LoadedKeys:
    """A key set that is loaded when first needed, again when it is old, and when a token names a key it does not hold."""

    def __init__(self, source: str, load: Callable[[], Awaitable[bytes]]) -> None:
        self._source = source
        self._load = load
        self._keys: KeySet | None = None
        self._loaded = self._tried = 0
        self._loading = asyncio.Lock()

    async def claims_of(self, token: str, now: int) -> Claims:
        read = jwt.parse(token)
        keys = self._keys
        if keys is None or now >= self._loaded + MAX_AGE or not keys.has(read.key_id):
            keys = await self._refreshed(now)
        return keys.claims_of(token, read)

    async def _refreshed(self, now: int) -> KeySet:
        async with self._loading:
            if not self._tried or now >= self._tried + RETRY:
                self._tried = now
                try:
                    self._keys = KeySet.parse(await self._load())
                    self._loaded = now
                except (OSError, ValueError, RequestFailed) as problem:
                    logger.warning("the keys of the token issuer cannot be loaded from %s: %s", self._source, problem)
            if self._keys is None:
                raise StorageError(Code.ServerBusy, message="The keys of the token issuer are not available for now.")
            return self._keys


def keys_from(source: str) -> LoadedKeys:
    """`source` is a URL or the path of a file. A source that cannot work raises ValueError at once."""
    url = parse_url(source)
    if url is not None:
        if url.scheme == "http" and url.hostname not in _LOOPBACK:
            raise ValueError(f"{source}: keys are fetched with https, or with http from this machine")
        client = HttpClient(concurrency=1)  # its own: copies that wait for a slow server must not delay authentication
        return LoadedKeys(source, lambda: fetch(client, url))
    path = Path(source)
    try:
        KeySet.parse(_read(path))
    except OSError as error:
        raise ValueError(f"{source} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise ValueError(f"{source}: {error}") from None
    return LoadedKeys(source, lambda: asyncio.to_thread(_read, path))


def _read(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(MAX_JWKS_BYTES)


async def fetch(client: HttpClient, url: SplitResult) -> bytes:
    """The document at a URL. Time and size are limited, and a redirect is an error: the operator named the place to trust."""
    answer = await client.get(url, {}, total_seconds=FETCH_SECONDS)
    try:
        if answer.status != 200:
            raise ValueError(f"the answer is {answer.status} {answer.reason}")
        document = b""
        while chunk := await answer.read():
            document += chunk
            if len(document) > MAX_JWKS_BYTES:
                raise ValueError("the document is too long")
        return document
    finally:
        answer.close()


def _key(row: dict[str, Any]) -> tuple[str | None, frozenset[str], PublicKey] | None:
    if row.get("use", "sig") != "sig":
        return None
    if row.get("kty") == "RSA" and _number(row["n"]).bit_length() >= _MIN_RSA_BITS:
        algorithms, key = _RSA_ALGORITHMS, _rsa_key(row)
    elif row.get("kty") == "EC" and row.get("crv") == "P-256":
        algorithms, key = _EC_ALGORITHMS, _ec_key(row)
    else:
        return None
    kid, algorithm = row.get("kid"), row.get("alg")
    return kid if isinstance(kid, str) else None, algorithms & {algorithm} if algorithm else algorithms, key


def _rsa_key(row: dict[str, Any]) -> PublicKey:
    return rsa.RSAPublicNumbers(_number(row["e"]), _number(row["n"])).public_key()


def _ec_key(row: dict[str, Any]) -> PublicKey:
    return ec.EllipticCurvePublicNumbers(_number(row["x"]), _number(row["y"]), ec.SECP256R1()).public_key()


def _number(text: str) -> int:
    try:
        return int.from_bytes(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)), "big")
    except binascii.Error:
        raise ValueError("not base64") from None


def _fits(kid: str | None, algorithms: frozenset[str], read: Jwt) -> bool:
    return read.algorithm in algorithms and (read.key_id is None or kid == read.key_id)


def _proves(key: PublicKey, read: Jwt) -> bool:
    digest = _HASHES[read.algorithm[2:]]
    try:
        if isinstance(key, rsa.RSAPublicKey):
            key.verify(read.signature, read.signed, padding.PKCS1v15(), digest)
        else:
            if len(read.signature) != 64:
                return False
            r, s = int.from_bytes(read.signature[:32], "big"), int.from_bytes(read.signature[32:], "big")
            key.verify(encode_dss_signature(r, s), read.signed, ec.ECDSA(digest))
    except InvalidSignature:
        return False
    return True
