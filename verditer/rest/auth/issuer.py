"""The development issuer: it signs tokens that this server trusts, so that a test needs no identity provider.

Its key is in the data folder, readable by its owner alone, or in the database that several servers share. The admin port issues
tokens (`POST /control/token`, with `--test-control`) and publishes the public key (`GET /oauth/jwks`).
"""

import base64
import contextlib
import hashlib
import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key

from verditer.core.dates import TICKS_PER_SECOND, UNIX_EPOCH
from verditer.rest.auth.jwks import FixedKeys, KeySet
from verditer.rest.auth.oauth import RESOURCE, Trust, authorization_uri_of

TENANT = "7e4d17e4-0000-4000-8000-000000000001"
USER = "7e4d17e4-0000-4000-8000-000000000002"
ISSUER = f"https://verditer.invalid/{TENANT}"


class DevelopmentIssuer:
    def __init__(self, folder: Path | None = None, *, private_key: bytes | None = None) -> None:
        """Without a folder the key is the given one, or a new one."""
        self._key = _stored_key(folder / "development.key") if folder is not None else _loaded(private_key or new_private_key())
        numbers = self._key.public_key().public_numbers()
        public = {
            "crv": "P-256",
            "kty": "EC",
            "x": _text(numbers.x.to_bytes(32, "big")),
            "y": _text(numbers.y.to_bytes(32, "big")),
        }
        self._key_id = _text(hashlib.sha256(_json(public)).digest())  # its thumbprint, RFC 7638
        self.jwks: dict[str, list[dict[str, str]]] = {"keys": [public | {"kid": self._key_id, "use": "sig", "alg": "ES256"}]}

    def trust(self, audiences: frozenset[str] = frozenset()) -> Trust:
        """Plain HTTP from this machine is allowed: a process that can listen there can also read the key."""
        return Trust(
            keys=FixedKeys(KeySet.parse(_json(self.jwks))),
            issuers=(ISSUER,),
            audiences=audiences,
            authorization_uri=authorization_uri_of(ISSUER),
            allow_http=True,
        )

    def token(self, now: int, *, oid: str = USER, tid: str = TENANT, audience: str = RESOURCE, seconds: float = 3600) -> str:
        issued = (now - UNIX_EPOCH) // TICKS_PER_SECOND
        times = {"iat": issued, "nbf": min(issued, issued + int(seconds)), "exp": issued + int(seconds)}
        claims = {"iss": ISSUER, "aud": audience, "oid": oid, "sub": oid, "tid": tid, "ver": "1.0", **times}
        header = {"typ": "JWT", "alg": "ES256", "kid": self._key_id}
        signed = f"{_text(_json(header))}.{_text(_json(claims))}"
        r, s = decode_dss_signature(self._key.sign(signed.encode(), ec.ECDSA(hashes.SHA256())))
        return f"{signed}.{_text(r.to_bytes(32, 'big') + s.to_bytes(32, 'big'))}"


def _stored_key(path: Path) -> ec.EllipticCurvePrivateKey:
    """The stored key, made when it is missing. Two processes that start at once use the key of the first."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent) as file:  # mode 0600
            file.write(new_private_key())
            file.flush()
            os.fsync(file.fileno())
            with contextlib.suppress(FileExistsError):
                os.link(file.name, path)
    try:
        return _loaded(path.read_bytes())
    except (ValueError, TypeError):
        raise ValueError(f"{path} is not the key of a development issuer; remove it to get a new one") from None


def new_private_key() -> bytes:
    """A new key in PEM."""
    return ec.generate_private_key(ec.SECP256R1()).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def _loaded(pem: bytes) -> ec.EllipticCurvePrivateKey:
    key = load_pem_private_key(pem, None)
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise ValueError("not a key on an elliptic curve")
    return key


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _json(document: Mapping[str, object]) -> bytes:
    return json.dumps(document, separators=(",", ":")).encode()
