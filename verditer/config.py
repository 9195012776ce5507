"""Settings: one struct. Flags, environment and defaults are the ways to fill it (`cli.py`)."""

from pathlib import Path
from typing import Literal

import msgspec

from verditer.core.limits import KIB
from verditer.services.account import Account, development_accounts


class Listen(msgspec.Struct, frozen=True, kw_only=True):
    host: str = "127.0.0.1"
    port: int


class OAuth(msgspec.Struct, frozen=True, kw_only=True):
    """Whose bearer tokens are accepted. `docs/decisions/bearer.md` says what each mode means."""

    mode: Literal["issuer", "development", "basic"]
    issuers: tuple[str, ...] = ()  # with mode "issuer"
    jwks: str = ""  # with mode "issuer": the file or URL of their keys
    audiences: tuple[str, ...] = ()  # beside Azure's own
    allow_http: bool = False  # from this machine; mode "development" always does


class Config(msgspec.Struct, frozen=True, kw_only=True):
    location: Path = Path("verditer-data")
    in_memory: bool = False
    memory_limit: int | None = None  # bytes of large bodies kept in memory, with in_memory
    database: str | None = None  # a PostgreSQL URL; None is the embedded store in `location`
    blob: Listen = Listen(port=10000)
    queue: Listen = Listen(port=10001)
    table: Listen = Listen(port=10002)
    file: Listen = Listen(port=10003)
    admin: Listen = Listen(port=10009)
    accounts: dict[str, Account] = msgspec.field(default_factory=development_accounts)
    cert: str | None = None
    key: str | None = None
    password: str | None = None
    development_tls: bool = False
    oauth: OAuth | None = None
    silent: bool = False
    debug: Path | None = None
    log_format: str = "plain"  # or "json"
    test_control: bool = False
    product_style: bool = True
    inline_limit: int = 64 * KIB  # bodies up to this many bytes live beside their record
    grace_seconds: float = 10.0  # how long running requests may take to finish at shutdown
    collect_seconds: float = 30.0  # how often what nothing names any more is looked for
