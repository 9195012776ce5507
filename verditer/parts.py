"""The parts of a server that a Config chooses: engine, store of large bodies, TLS context, whose bearer tokens are trusted.

What only some configurations need is imported where it is needed: extras may not be installed, and imports take time.
"""

import secrets
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from verditer.config import Config
from verditer.partition.engine import Engine
from verditer.partition.sqlite.engine import SqliteEngine
from verditer.partition.sqlite.shared import SharedStore
from verditer.rest.address import SECONDARY
from verditer.rest.auth.oauth import Trust, authorization_uri_of, basic_trust
from verditer.rest.http.server import HttpLimits
from verditer.services.context import Context
from verditer.services.secret import stored_secret
from verditer.serving.workers import Worker
from verditer.stream.extents import ExtentStore
from verditer.stream.local import LocalExtents
from verditer.stream.memory import MemoryExtents

if TYPE_CHECKING:
    from verditer.rest.auth.issuer import DevelopmentIssuer


def limits_of(config: Config, name: str) -> HttpLimits:
    seconds = config.keep_alive_seconds.get(name)
    return HttpLimits() if seconds is None else HttpLimits(idle_seconds=seconds)


def engine_of(config: Config, worker: Worker | None, store: SharedStore | None) -> Engine:
    if config.database is not None:
        from verditer.partition.postgres.engine import PostgresEngine  # an extra: psycopg may not be installed

        return PostgresEngine(config.database, locks=config.postgres_locks)
    if worker is not None:
        return SqliteEngine(config.location, shared=store, worker=worker.number)
    return SqliteEngine(None if config.in_memory else config.location)


def extents_of(config: Config, now: Callable[[], int]) -> ExtentStore:
    def new_id() -> str:
        return f"{now():016x}{secrets.token_hex(8)}"

    if config.extents is not None:
        from verditer.stream.s3 import S3Extents  # an extra: obstore may not be installed

        return S3Extents(config.extents, new_id)
    if config.in_memory:
        return MemoryExtents(new_id, config.memory_limit)
    return LocalExtents(config.location / "extents", new_id)


def tls_of(config: Config) -> ssl.SSLContext | None:
    if config.cert is None and not config.development_tls:
        return None
    from verditer.serving.tls import development_certificate, server_context  # importing takes 30 ms: only where it is needed

    if config.cert is not None:
        return server_context(config.cert, config.key, config.password)
    own = (f"{name}{suffix}.localhost" for name in config.accounts if name.isascii() for suffix in ("", SECONDARY))
    return server_context(*development_certificate(Path(config.location) / "tls", (*own, *config.tls_names)))


async def trust_of(config: Config, ctx: Context) -> tuple[Trust | None, "DevelopmentIssuer | None"]:
    """Whose bearer tokens are accepted, and the issuer when this server signs them itself."""
    oauth = config.oauth
    if oauth is None:
        return None, None
    from verditer.rest.auth.issuer import DevelopmentIssuer, new_private_key  # imports cryptography, as TLS does
    from verditer.rest.auth.jwks import keys_from

    audiences = frozenset(oauth.audiences)
    if oauth.mode == "development":
        if config.database is not None:  # every node signs with the same key
            issuer = DevelopmentIssuer(private_key=await stored_secret(ctx, "development issuer", new_private_key))
        else:
            issuer = DevelopmentIssuer(None if config.in_memory else config.location / "oauth")
        return issuer.trust(audiences), issuer
    if oauth.mode == "basic":
        return basic_trust(audiences, allow_http=oauth.allow_http), None
    trust = Trust(
        keys=keys_from(oauth.jwks),
        issuers=oauth.issuers,
        audiences=audiences,
        authorization_uri=authorization_uri_of(oauth.issuers[0]),
        allow_http=oauth.allow_http,
    )
    return trust, None
