"""The configuration of a server: one struct, and the table of listening ports. `flags.py` fills it from the command line.

Settings that Azure has in its control plane are per account. They come from a file, `verditer.toml`, and from the environment.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import msgspec

from verditer.core.limits import KIB
from verditer.core.records.settings import SettingsChange
from verditer.services.account import Account, development_accounts
from verditer.services.settings import read_change
from verditer.serving.sockets import ListenAddress
from verditer.stream.s3_location import S3Location

SETTINGS_FILE = Path("verditer.toml")  # in the working directory, unless --config names another
_PREFIX = "VERDITER_"


class PortRow(msgspec.Struct, frozen=True, kw_only=True):
    """A listening port. The flags `--<name>Host` and `--<name>Port` change where it listens."""

    name: str
    port: int  # unless a flag says otherwise
    is_storage: bool = True  # a service of the accounts: part of the connection string
    is_smb: bool = False  # the shares of the File service over SMB: no HTTP, no part of the connection string
    is_encrypted: bool = True  # when there is a certificate
    part_of: str = ""  # the storage service without which the port is not served
    is_optional: bool = False  # Azurite has no such port: when it is taken and was not asked for, any free one is used


# Every listening port. Flags, sockets, servers and the start message are derived from this table.
PORTS = (
    PortRow(name="blob", port=10000),
    PortRow(name="queue", port=10001),
    PortRow(name="table", port=10002),
    PortRow(name="file", port=10003, is_optional=True),
    PortRow(name="website", port=10008, is_storage=False, part_of="blob", is_optional=True),
    PortRow(name="smb", port=10445, is_storage=False, part_of="file", is_smb=True, is_encrypted=False, is_optional=True),
    PortRow(name="admin", port=10009, is_storage=False, is_encrypted=False, is_optional=True),
)


def default_ports() -> dict[str, ListenAddress]:
    return {row.name: ListenAddress(port=row.port, any_if_taken=row.is_optional) for row in PORTS}


STORAGE = tuple(row.name for row in PORTS if row.is_storage)


class OAuth(msgspec.Struct, frozen=True, kw_only=True):
    """Whose bearer tokens are accepted. `docs/decisions/bearer-tokens.md` says what each mode means."""

    mode: Literal["issuer", "development", "basic"]
    issuers: tuple[str, ...] = ()  # with mode "issuer"
    jwks: str = ""  # with mode "issuer": the file or URL of their keys
    audiences: tuple[str, ...] = ()  # in addition to Azure's own
    allow_http: bool = False  # from this machine; mode "development" always allows it


class Outbound(msgspec.Struct, frozen=True, kw_only=True):
    """Which hosts copies may read from. `hosts` are names, `*.domain` or either with `:port`; empty means any host."""

    allowed: bool = True
    hosts: tuple[str, ...] = ()


class AdminPort(msgspec.Struct, frozen=True, kw_only=True):
    """What the admin port accepts. `docs/admin.md` says how requests prove that they are allowed."""

    token: str = ""  # empty: a new one for every start
    names: tuple[str, ...] = ()  # host names of the admin port, besides localhost and IP addresses
    read_only: bool = False


class Seed(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What an account has at the start. What exists already is left as it is."""

    containers: tuple[str, ...] = ()
    queues: tuple[str, ...] = ()
    tables: tuple[str, ...] = ()
    shares: tuple[str, ...] = ()
    folder: str = ""  # with blob/<container>/…, file/<share>/…, queue/<queue>.json and table/<table>.json below it


class Config(msgspec.Struct, frozen=True, kw_only=True):
    location: Path = Path("verditer-data")
    in_memory: bool = False
    workers: int | None = None  # processes that serve the same ports; None: two when that helps
    memory_limit: int | None = None  # bytes of large bodies, with in_memory
    database: str | None = None  # a PostgreSQL URL; None: the embedded store in `location`
    postgres_locks: Literal["advisory", "rows"] | None = None  # of a new store; None: what the store has
    extents: S3Location | None = None  # None: large bodies are files in `location`
    ports: dict[str, ListenAddress] = msgspec.field(
        default_factory=default_ports
    )  # by name of the row of PORTS; a service without one is not served
    accounts: dict[str, Account] = msgspec.field(default_factory=development_accounts)
    cert: str | None = None
    key: str | None = None
    password: str | None = None
    development_tls: bool = False
    tls_names: tuple[str, ...] = ()  # of the development certificate, besides those of this machine
    oauth: OAuth | None = None
    keep_alive_seconds: dict[str, float] = {}  # by name of the port, where it differs from the default
    silent: bool = False
    debug: Path | None = None
    log_format: str = "plain"  # or "json"
    test_control: bool = False
    admin: AdminPort = AdminPort()
    smb_encryption: bool = False  # every SMB session has to be encrypted
    product_style: bool = True
    outbound: Outbound = Outbound()
    seed: dict[str, Seed] = {}  # by account
    inline_limit: int = 64 * KIB  # bodies up to this many bytes live beside their record
    drain_seconds: float = 0.0  # how long the server serves on after a signal to stop and reports that it is not ready
    grace_seconds: float = 10.0  # how long running requests may take to finish at shutdown
    collect_seconds: float = 30.0  # between two rounds of the collector


class S3Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where the store of `--extents` is, unless the environment says so. Credentials are never in this file."""

    endpoint: str = ""
    region: str = ""


class SettingsFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    defaults: SettingsChange = SettingsChange()  # for every account
    accounts: dict[str, SettingsChange] = {}
    s3: S3Settings = S3Settings()
    seed: dict[str, Seed] = {}  # by account


def with_settings(accounts: dict[str, Account], file: SettingsFile, environment: Mapping[str, str]) -> dict[str, Account]:
    """The accounts with their configured settings. The environment overrides the file, and an account overrides the defaults."""
    unknown = sorted(set(file.accounts) - set(accounts))
    if unknown:
        raise ValueError(f"there is no account {unknown[0]!r}: its key belongs into VERDITER_ACCOUNTS")
    unknown = sorted(set(file.seed) - set(accounts))
    if unknown:
        raise ValueError(f"[seed.{unknown[0]}]: there is no such account")
    for_all = settings_from(environment)
    configured = {}
    for name, account in accounts.items():
        own = settings_from(environment, f"__{name.upper()}")
        settings = own.over(for_all.over(file.accounts.get(name, SettingsChange()).over(file.defaults)))
        configured[name] = msgspec.structs.replace(account, settings=settings)
    return configured


def read_settings_file(path: Path) -> SettingsFile:
    import tomllib  # only when there is such a file: the import takes time

    try:
        file = msgspec.convert(tomllib.loads(path.read_text()), SettingsFile)
        return msgspec.structs.replace(file, seed={name: _beside(path, seed) for name, seed in file.seed.items()})
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {(error.strerror or str(error)).lower()}") from None
    except ValueError as error:  # msgspec.ValidationError and tomllib.TOMLDecodeError are ValueErrors
        raise ValueError(f"{path}: {error}") from None


def _beside(path: Path, seed: Seed) -> Seed:
    """A relative folder is meant relative to the file that names it."""
    return msgspec.structs.replace(seed, folder=str(path.parent / seed.folder)) if seed.folder else seed


def settings_from(environment: Mapping[str, str], suffix: str = "") -> SettingsChange:
    """`VERDITER_VERSIONING=true`, and `VERDITER_VERSIONING__NAME=true` for one account."""
    names = {field: f"{_PREFIX}{field.upper()}{suffix}" for field in SettingsChange.__struct_fields__}
    found = {field: environment[name] for field, name in names.items() if environment.get(name)}
    try:
        return read_change(found, text=True)
    except ValueError as error:
        raise ValueError(f"{', '.join(names[field] for field in found)}: {error}") from None
