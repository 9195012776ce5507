"""The command line: `verditer`. Azurite's flags are accepted, so it can stand where `azurite` stood."""

import argparse
import asyncio
import base64
import contextlib
import ctypes
import gc
import importlib.util
import ipaddress
import logging
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import uvloop

from verditer import __version__
from verditer.app import App, run
from verditer.config import SETTINGS_FILE, Config, Listen, OAuth, SettingsFile, read_settings_file, with_settings
from verditer.core.clock import NODES
from verditer.core.errors import StorageError
from verditer.core.limits import MIB
from verditer.services.account import DEVELOPMENT_KEY, Account, development_accounts, parse_accounts
from verditer.services.fetch import Outbound
from verditer.workers import Seat, Workers

_PORTS = {"blob": 10000, "queue": 10001, "table": 10002, "file": 10003, "admin": 10009}


def main(arguments: list[str] | None = None) -> int:
    flags = _parser().parse_args(arguments)
    try:
        config = _config(flags)
    except ValueError as error:
        return _complain(str(error))
    _start_logging(config)
    _keep_freed_memory()
    count = config.workers or _usual_workers(config)
    if count == 1:
        return _ending(lambda: uvloop.run(_serve(config)))
    return _ending(lambda: Workers(config, count, lambda seat: _ending(lambda: uvloop.run(_work(config, seat)))).run())


def _ending(serve: Callable[[], int | None]) -> int:
    """The status of the process: whatever keeps it from serving is said in one line."""
    try:
        return serve() or 0
    except (OSError, ValueError, StorageError) as error:
        return _complain(getattr(error, "reason", None) or getattr(error, "message", None) or str(error))
    except (KeyboardInterrupt, asyncio.CancelledError):  # stopped before it served
        return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="verditer",
        description="An Azure-Storage-compatible server. Without arguments: Azurite's ports and account, data in ./verditer-data",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
        argument_default=argparse.SUPPRESS,
    )
    add = parser.add_argument
    add("-v", "--version", action="version", version=f"verditer {__version__}")
    add("-l", "--location", type=Path, help="folder for data (default: verditer-data)")
    add("--config", type=Path, help="file with the settings of accounts (default: verditer.toml, when there is one)")
    add("--database", help="a PostgreSQL URL to keep records in, instead of the embedded store")
    add("--inMemoryPersistence", action="store_true", help="keep everything in memory and forget it at the end")
    add("--extentMemoryLimit", type=float, help="megabytes of large bodies to keep with --inMemoryPersistence")
    add("--workers", type=int, help="processes that serve together (default: 2 with the embedded store on disk, else 1)")
    for name, port in _PORTS.items():
        add(f"--{name}Host", help=f"address the {name} port listens on (default: 127.0.0.1)")
        add(f"--{name}Port", type=int, help=f"{name} port, 0 for any free one (default: {port})")
    add("--cert", help="TLS certificate, PEM or PFX")
    add("--key", help="key of a PEM certificate")
    add("--pwd", help="password of the PFX file or PEM key")
    add("--development-tls", action="store_true", help="serve HTTPS with a self-made certificate kept in the data folder")
    add("-s", "--silent", action="store_true", help="no line per request")
    add("-d", "--debug", type=Path, help="also write detailed logs to this file")
    add("--log-format", choices=("plain", "json"), help="form of the line per request (default: plain)")
    add("--test-control", action="store_true", help="let the admin port move the clock, empty accounts and change their settings")
    add("--disableProductStyleUrl", action="store_true", help="the account is always in the path, never in the host name")
    add("--no-outbound", action="store_true", help="copies read from this server only, never from a URL elsewhere")
    add("--copy-hosts", help="hosts that copies may read from, separated by commas; *.domain and host:port are understood")
    add("-L", "--loose", action="store_true", help="accepted for Azurite's sake: nothing that Azure refuses is let through")
    add("--skipApiVersionCheck", action="store_true", help="accepted for Azurite's sake: every version is served anyway")
    add("--disableTelemetry", action="store_true", help="accepted for Azurite's sake: there is no telemetry")
    add("--oauth", choices=("development", "basic"), help="bearer tokens: signed by this server itself, or (basic) by anybody")
    add("--oauth-issuer", action="append", help="bearer tokens: the issuer to trust; may be given more than once")
    add("--oauth-jwks", help="file or URL with the keys of that issuer")
    add("--oauth-audience", action="append", help="an audience to accept beside Azure's own; may be given more than once")
    add("--oauth-allow-http", action="store_true", help="bearer tokens also over plain HTTP, from this machine only")
    return parser


def _config(flags: argparse.Namespace) -> Config:
    given = vars(flags)
    if "loose" in given:
        print("verditer: --loose has no effect: unsupported headers are never refused, wrong ones always are", file=sys.stderr)
    if "extentMemoryLimit" in given and "inMemoryPersistence" not in given:
        raise ValueError("--extentMemoryLimit goes with --inMemoryPersistence")
    if ("key" in given or "pwd" in given) and "cert" not in given:
        raise ValueError("--key and --pwd go with --cert")
    if "database" in given and "inMemoryPersistence" in given:
        raise ValueError("--database and --inMemoryPersistence exclude each other")
    if "database" in given:
        _database_parts(given["database"])
    _check_workers(given)
    settings: dict[str, Any] = {
        "in_memory": given.get("inMemoryPersistence", False),
        "memory_limit": int(given["extentMemoryLimit"] * MIB) if "extentMemoryLimit" in given else None,
        "password": given.get("pwd"),
        "product_style": "disableProductStyleUrl" not in given,
        "outbound": _outbound(given),
        "accounts": with_settings(_accounts(), _settings_file(given.get("config")), os.environ),
    }
    same = ("location", "database", "cert", "key", "development_tls", "silent", "debug", "log_format", "test_control", "workers")
    settings |= {name: given[name] for name in same if name in given}
    listens = _listens(given)
    return Config(**settings, **listens, oauth=_oauth(given, listens))


def _check_workers(given: dict[str, Any]) -> None:
    workers = given.get("workers", 1)
    if not 1 <= workers <= NODES:
        raise ValueError(f"--workers {workers}: from 1 to {NODES}")
    if workers > 1 and "inMemoryPersistence" in given:
        raise ValueError("--workers needs a folder or a database: with --inMemoryPersistence there is one process")


def _usual_workers(config: Config) -> int:
    return 1 if config.in_memory or config.database is not None or (os.cpu_count() or 1) < 2 else 2


def _outbound(given: dict[str, Any]) -> Outbound:
    hosts = tuple(filter(None, (host.strip() for host in given.get("copy_hosts", "").split(","))))
    if "no_outbound" in given and "copy_hosts" in given:
        raise ValueError("--no-outbound and --copy-hosts exclude each other")
    if "copy_hosts" in given and not hosts:
        raise ValueError("--copy-hosts names no host; --no-outbound means none")
    return Outbound(allowed="no_outbound" not in given, hosts=hosts)


def _oauth(given: dict[str, Any], listens: dict[str, Listen]) -> OAuth | None:
    mode, issuers, jwks = given.get("oauth"), tuple(given.get("oauth_issuer", ())), given.get("oauth_jwks", "")
    if mode is None and not issuers:
        if any(name.startswith("oauth") for name in given):
            raise ValueError("--oauth-jwks, --oauth-audience and --oauth-allow-http go with --oauth or --oauth-issuer")
        return None
    if mode is not None and (issuers or jwks):
        raise ValueError("--oauth and --oauth-issuer exclude each other")
    if issuers and not jwks:
        raise ValueError("--oauth-issuer goes with --oauth-jwks: without its keys no token can be verified")
    private = "cert" in given or "development_tls" in given or all(_is_loopback(listen.host) for listen in listens.values())
    if mode == "basic" and not private:
        raise ValueError("--oauth basic believes every token: it needs TLS, or ports that only this machine reaches")
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


def _database_parts(url: str) -> dict[str, Any]:
    if importlib.util.find_spec("psycopg") is None:
        raise ValueError("--database needs the PostgreSQL extra: pip install 'verditer[postgres]'")
    from psycopg import ProgrammingError
    from psycopg.conninfo import conninfo_to_dict

    try:
        return conninfo_to_dict(url)
    except ProgrammingError:  # its text may repeat the password
        raise ValueError("--database: not a PostgreSQL URL, such as postgresql://user@host/database") from None


def _listens(given: dict[str, Any]) -> dict[str, Any]:
    listens = {}
    for name, port in _PORTS.items():
        asked = int(str(given.get(f"{name}Port", port)))
        if not 0 <= asked <= 65535:
            raise ValueError(f"--{name}Port {asked}: a port is a number from 0 to 65535")
        listens[name] = Listen(host=str(given.get(f"{name}Host", "127.0.0.1")), port=asked)
    return listens


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


def _settings_file(given: Path | None) -> SettingsFile:
    path = given or Path(os.environ.get("VERDITER_CONFIG") or SETTINGS_FILE)
    if path == SETTINGS_FILE and not path.exists():
        return SettingsFile()
    return read_settings_file(path)


def _start_logging(config: Config) -> None:
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", stream=sys.stderr)
    if config.debug is not None:
        handler = logging.FileHandler(config.debug)
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s %(message)s"))
        logging.getLogger().addHandler(handler)
        logging.getLogger("verditer").setLevel(logging.DEBUG)


def _keep_freed_memory() -> None:
    """Let glibc keep up to 64 MiB it has freed: giving pages back and faulting them in again costs an upload a sixth."""
    with contextlib.suppress(OSError, AttributeError):
        libc = ctypes.CDLL("libc.so.6")
        libc.mallopt(-1, 64 * MIB)  # M_TRIM_THRESHOLD
        libc.mallopt(-3, 32 * MIB)  # M_MMAP_THRESHOLD


async def _serve(config: Config) -> None:
    task = asyncio.current_task()
    assert task is not None
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, task.cancel)
    await run(config, _welcome)


async def _work(config: Config, seat: Seat) -> None:
    """The same as one of several. They start one after another, so the last one speaks for all."""
    task = asyncio.current_task()
    assert task is not None
    seat.obey(task.cancel)
    last = seat.is_last and not seat.worker.again

    def started(app: App) -> None:
        if last:
            _welcome(app)
        else:
            _settle_memory()
        seat.say_ready()

    await run(config, started, seat.worker)


def _welcome(app: App) -> None:
    print(_banner(app), flush=True)
    _settle_memory()


def _settle_memory() -> None:
    """What is there after the start stays: the garbage collector need not look at it again and again, nor so often."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)


def _banner(app: App) -> str:
    """What to paste into a client, ready made."""
    config = app.config
    scheme = "https" if config.cert or config.development_tls else "http"
    lines = [f"Verditer {__version__} is serving {_store(config)}"]
    for name, server in app.servers.items():
        listen: Listen = getattr(config, name)
        protocol = "http" if name == "admin" else scheme
        lines.append(f"  {name.capitalize():6} {protocol}://{_host(listen.host)}:{server.port}")
    for account in config.accounts.values():
        endpoints = "".join(
            f"{name.capitalize()}Endpoint={scheme}://{_host(getattr(config, name).host)}:{server.port}/{account.name};"
            for name, server in app.servers.items()
            if name != "admin"
        )
        key = DEVELOPMENT_KEY if account.keys[0] == base64.b64decode(DEVELOPMENT_KEY) else "<its key>"
        lines.append("")
        lines.append(f"DefaultEndpointsProtocol={scheme};AccountName={account.name};AccountKey={key};{endpoints}")
    return "\n".join(lines)


def _store(config: Config) -> str:
    if config.database is not None:
        parts = _database_parts(config.database)  # without user and password
        return (
            f"records in PostgreSQL ({parts.get('dbname', '')} at {parts.get('host', 'localhost')}), bytes in {config.location}"
        )
    return "from memory" if config.in_memory else f"from {config.location}"


def _host(host: str) -> str:
    host = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, host)
    return f"[{host}]" if ":" in host and not host.startswith("[") else host


def _complain(text: str) -> int:
    print(f"verditer: {text}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
