"""How flags become a Config (`flag_parser.py` lists them). A wrong value raises ValueError with a message for the user."""

import argparse
import importlib.util
import ipaddress
import math
import os
import re
import sys
from pathlib import Path
from typing import Any

from verditer.config import (
    PORTS,
    SETTINGS_FILE,
    STORAGE,
    AdminPort,
    Config,
    OAuth,
    Outbound,
    SettingsFile,
    read_settings_file,
    with_settings,
)
from verditer.core.clock import NODES
from verditer.core.limits import MIB
from verditer.services.account import Account, development_accounts, parse_accounts
from verditer.serving.sockets import ListenAddress, is_ip_address
from verditer.stream.s3_location import S3Location, s3_location

MIN_TOKEN = 16  # characters
_NO_LIMIT = -1  # of Azurite's --extentMemoryLimit
AZURITE_FILES = ("__azurite_db_blob__.json", "__azurite_db_queue__.json", "__azurite_db_table__.json")


def config_from(flags: argparse.Namespace) -> Config:
    given = vars(flags)
    _say_what_has_no_effect(given)
    _check_location(given)
    _check_combinations(given)
    _check_workers(given)
    file = settings_file(given.get("config"))
    settings: dict[str, Any] = {
        "in_memory": given.get("inMemoryPersistence", False),
        "memory_limit": _memory_limit(given.get("extentMemoryLimit", _NO_LIMIT)),
        "password": given.get("pwd"),
        "drain_seconds": _drain_seconds(given.get("drainSeconds", 0.0)),
        "product_style": "disableProductStyleUrl" not in given,
        "outbound": _outbound(given),
        "admin": _admin(given),
        "tls_names": _tls_names(given),
        "keep_alive_seconds": _keep_alive(given),
        "seed": file.seed,
        "accounts": with_settings(_accounts(), file, os.environ),
        "extents": extents_location(given["extents"], file) if "extents" in given else None,
    }
    settings |= {name: given[name] for name in _SAME if name in given}
    ports = _ports(given)
    return Config(**settings, ports=ports, oauth=_oauth(given, ports))


# Flags that are fields of the Config.
_SAME = (
    "location",
    "database",
    "postgres_locks",
    "cert",
    "key",
    "development_tls",
    "silent",
    "debug",
    "log_format",
    "test_control",
    "workers",
    "smb_encryption",
)


def _say_what_has_no_effect(given: dict[str, Any]) -> None:
    if "loose" in given:
        _say("--loose has no effect: headers that are not supported are ignored, and wrong ones are always refused")
    if os.environ.get("AZURITE_DB"):
        _say("AZURITE_DB has no effect; --database names a PostgreSQL database")


def _say(text: str) -> None:
    print(f"verditer: {text}", file=sys.stderr)


def _check_combinations(given: dict[str, Any]) -> None:
    if "extentMemoryLimit" in given and "inMemoryPersistence" not in given:
        raise ValueError("--extentMemoryLimit needs --inMemoryPersistence")
    if ("key" in given or "pwd" in given) and "cert" not in given:
        raise ValueError("--key and --pwd need --cert")
    if "database" in given and "inMemoryPersistence" in given:
        raise ValueError("--database and --inMemoryPersistence exclude each other")
    if "database" in given:
        database_parts(given["database"])
    if "extents" in given and "database" not in given:
        raise ValueError("--extents needs --database: the embedded store keeps everything in one folder")
    if "postgres_locks" in given and "database" not in given:
        raise ValueError("--postgres-locks needs --database")


def _memory_limit(megabytes: float) -> int | None:
    if megabytes == _NO_LIMIT:
        return None
    if not 0 <= megabytes < math.inf:
        raise ValueError(f"--extentMemoryLimit {megabytes:g}: a number of megabytes, from 0 on, or -1 for no limit")
    return int(megabytes * MIB)


def _drain_seconds(seconds: float) -> float:
    if not 0 <= seconds <= 3600:
        raise ValueError(f"--drainSeconds {seconds:g}: a number from 0 to 3600")
    return seconds


def _check_location(given: dict[str, Any]) -> None:
    """What would start and not be what the user meant."""
    location = given.get("location")
    if location is None:
        if _has_azurite_files(Path()):
            _say("this folder has data of Azurite, which is not read; data goes to verditer-data, or where --location says")
        return
    if not location.strip():
        raise ValueError("--location is empty; it names the folder for data")
    folder = given["location"] = Path(location)
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"--location {folder}: this is a file, and the data needs a folder")
    if _has_azurite_files(folder) and not (folder / "verditer.db").exists():
        raise ValueError(
            f"--location {folder} has data of Azurite, which cannot be read. Choose another folder, start both servers, and copy "
            "what you need with AzCopy"
        )


def _has_azurite_files(folder: Path) -> bool:
    return any((folder / name).exists() for name in AZURITE_FILES)


def _keep_alive(given: dict[str, Any]) -> dict[str, float]:
    found = {row.name: given[f"{row.name}KeepAliveTimeout"] for row in PORTS if f"{row.name}KeepAliveTimeout" in given}
    for name, seconds in found.items():
        if not 0 < seconds <= 86400:
            raise ValueError(f"--{name}KeepAliveTimeout {seconds:g}: seconds, more than 0 and at most a day")
    return found


def _check_workers(given: dict[str, Any]) -> None:
    workers = given.get("workers", 1)
    if not 1 <= workers <= NODES:
        raise ValueError(f"--workers {workers}: the number of workers is from 1 to {NODES}")
    if workers > 1 and "inMemoryPersistence" in given:
        raise ValueError("--workers needs a folder or a database: with --inMemoryPersistence there is one process")


def _outbound(given: dict[str, Any]) -> Outbound:
    hosts = tuple(filter(None, (host.strip() for host in given.get("copy_hosts", "").split(","))))
    if "no_outbound" in given and "copy_hosts" in given:
        raise ValueError("--no-outbound and --copy-hosts exclude each other")
    if "copy_hosts" in given and not hosts:
        raise ValueError("--copy-hosts names no host; to forbid every host, use --no-outbound")
    return Outbound(allowed="no_outbound" not in given, hosts=hosts)


def _admin(given: dict[str, Any]) -> AdminPort:
    token = given.get("adminToken") or os.environ.get("VERDITER_ADMIN_TOKEN", "")
    if token and (len(token) < MIN_TOKEN or not re.fullmatch(r"[A-Za-z0-9._~-]+", token)):
        raise ValueError(f"--adminToken: at least {MIN_TOKEN} letters, digits or . _ ~ -")
    names = tuple(filter(None, (name.strip() for name in given.get("adminNames", "").split(","))))
    return AdminPort(token=token, names=names, read_only="adminReadOnly" in given)


def _tls_names(given: dict[str, Any]) -> tuple[str, ...]:
    names = tuple(filter(None, (name.strip() for name in given.get("tls_names", "").split(","))))
    if "tls_names" in given and ("development_tls" not in given or "cert" in given):
        raise ValueError("--tls-names needs --development-tls: a certificate of --cert has its own names")
    for name in names:
        if re.fullmatch(r"(\*\.)?[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*", name) is None and not is_ip_address(name):
            raise ValueError(f"--tls-names {name}: this is no host name and no IP address")
    return names


def _oauth(given: dict[str, Any], ports: dict[str, ListenAddress]) -> OAuth | None:
    mode, issuers, jwks = given.get("oauth"), tuple(given.get("oauth_issuer", ())), given.get("oauth_jwks", "")
    if mode is None and not issuers:
        if any(name.startswith("oauth") for name in given):
            raise ValueError("--oauth-jwks, --oauth-audience and --oauth-allow-http need --oauth or --oauth-issuer")
        return None
    if mode is not None and (issuers or jwks):
        raise ValueError("--oauth and --oauth-issuer exclude each other")
    if issuers and not jwks:
        raise ValueError("--oauth-issuer needs --oauth-jwks: without the keys of the issuer no token can be verified")
    private = "cert" in given or "development_tls" in given or all(_is_loopback(address.host) for address in ports.values())
    if mode == "basic" and not private:
        raise ValueError("--oauth basic accepts every token: it needs TLS, or ports that only this machine can reach")
    return OAuth(
        mode=mode or "issuer",
        issuers=issuers,
        jwks=jwks,
        audiences=tuple(given.get("oauth_audience", ())),
        allow_http="oauth_allow_http" in given,
    )


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


def database_parts(url: str) -> dict[str, Any]:
    if importlib.util.find_spec("psycopg") is None:
        raise ValueError("--database needs the PostgreSQL extra: pip install 'verditer[postgres]'")
    from psycopg import ProgrammingError
    from psycopg.conninfo import conninfo_to_dict

    try:
        return conninfo_to_dict(url)
    except ProgrammingError:  # its text may repeat the password
        raise ValueError("--database: not a PostgreSQL URL, such as postgresql://user@host/database") from None


def extents_location(url: str, file: SettingsFile) -> S3Location:
    if importlib.util.find_spec("obstore") is None:
        raise ValueError("--extents needs the S3 extra: pip install 'verditer[s3]'")
    defaults = {"AWS_ENDPOINT_URL": file.s3.endpoint, "AWS_REGION": file.s3.region}
    given = {name: value for name, value in os.environ.items() if value}
    if {"AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT"} & given.keys():
        del defaults["AWS_ENDPOINT_URL"]
    if "AWS_DEFAULT_REGION" in given:
        del defaults["AWS_REGION"]
    try:
        return s3_location(url, defaults | given)
    except ValueError as error:
        raise ValueError(f"--extents: {error}") from None


def _services(given: dict[str, Any]) -> set[str]:
    if "services" not in given:
        return set(STORAGE)
    named = {name.strip().lower() for name in given["services"].split(",") if name.strip()}
    if not named or not named <= set(STORAGE):
        raise ValueError(f"--services {given['services']}: the services are {', '.join(STORAGE)}")
    return named


def _ports(given: dict[str, Any]) -> dict[str, ListenAddress]:
    ports = {}
    served = _services(given)
    for row in PORTS:
        asked_for = {f"{row.name}Host", f"{row.name}Port"} & given.keys()
        if (row.is_storage and row.name not in served) or (row.part_of and row.part_of not in served and not asked_for):
            continue
        host, port = given.get(f"{row.name}Host", "127.0.0.1"), given.get(f"{row.name}Port", row.port)
        if not 0 <= port <= 65535:
            raise ValueError(f"--{row.name}Port {port}: a port is a number from 0 to 65535")
        any_if_taken = row.is_optional and f"{row.name}Port" not in given
        ports[row.name] = ListenAddress(host=host, port=port, any_if_taken=any_if_taken)
    return ports


def _accounts() -> dict[str, Account]:
    for variable in ("VERDITER_ACCOUNTS", "AZURITE_ACCOUNTS"):
        if os.environ.get(variable):
            try:
                accounts = parse_accounts(os.environ[variable])
            except ValueError as error:
                raise ValueError(f"{variable}: {error}") from None
            if not accounts:
                raise ValueError(f"{variable} names no account")
            return accounts
    return development_accounts()


def settings_file(given: Path | None) -> SettingsFile:
    path = given or Path(os.environ.get("VERDITER_CONFIG") or SETTINGS_FILE)
    if path == SETTINGS_FILE and not path.exists():
        return SettingsFile()
    return read_settings_file(path)
