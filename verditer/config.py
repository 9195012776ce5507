"""Settings: one struct. Flags, environment and defaults are the ways to fill it (`cli.py`).

What Azure's control plane sets is per account, and comes from a file, `verditer.toml`, and from the environment.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import msgspec

from verditer.core.limits import KIB
from verditer.core.records.settings import SettingsChange
from verditer.services.account import Account, development_accounts
from verditer.services.fetch import Outbound
from verditer.services.settings import read_change

SETTINGS_FILE = Path("verditer.toml")  # in the working directory, unless another is named
_PREFIX = "VERDITER_"


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
    workers: int | None = None  # processes that serve together; None: two where that is of use
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
    outbound: Outbound = Outbound()  # from where copies may fetch
    inline_limit: int = 64 * KIB  # bodies up to this many bytes live beside their record
    grace_seconds: float = 10.0  # how long running requests may take to finish at shutdown
    collect_seconds: float = 30.0  # how often what nothing names any more is looked for


class SettingsFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    defaults: SettingsChange = SettingsChange()  # for every account
    accounts: dict[str, SettingsChange] = {}


def with_settings(accounts: dict[str, Account], file: SettingsFile, environment: Mapping[str, str]) -> dict[str, Account]:
    """The accounts with what is configured for each. The environment wins over the file, and an account over the defaults."""
    unknown = sorted(set(file.accounts) - set(accounts))
    if unknown:
        raise ValueError(f"there is no account {unknown[0]!r}: its key belongs into VERDITER_ACCOUNTS")
    everybody = settings_from(environment)
    configured = {}
    for name, account in accounts.items():
        own = settings_from(environment, f"__{name.upper()}")
        settings = own.over(everybody.over(file.accounts.get(name, SettingsChange()).over(file.defaults)))
        configured[name] = msgspec.structs.replace(account, settings=settings)
    return configured


def read_settings_file(path: Path) -> SettingsFile:
    import tomllib  # only who has such a file pays for it

    try:
        return msgspec.convert(tomllib.loads(path.read_text()), SettingsFile)
    except (OSError, ValueError) as error:  # msgspec.ValidationError and tomllib.TOMLDecodeError are ValueErrors
        raise ValueError(f"{path}: {error}") from None


def settings_from(environment: Mapping[str, str], suffix: str = "") -> SettingsChange:
    """`VERDITER_VERSIONING=true`, and `VERDITER_VERSIONING__NAME=true` for one account."""
    names = {field: f"{_PREFIX}{field.upper()}{suffix}" for field in SettingsChange.__struct_fields__}
    found = {field: environment[name] for field, name in names.items() if environment.get(name)}
    try:
        return read_change(found, text=True)
    except ValueError as error:
        raise ValueError(f"{', '.join(names[field] for field in found)}: {error}") from None
