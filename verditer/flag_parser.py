"""The flags of the command line, in the groups in which `--help` shows them. Azurite's flags are among them."""

import argparse
import difflib
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from verditer import __version__
from verditer.config import PORTS

COMMANDS = {
    "check": "verify a store",
    "backup": "copy the data folder of a running server",
    "restore": "make a data folder from a backup",
    "copy": "move a store between a data folder and PostgreSQL with S3",
}
"""Words that the command line may begin with instead of flags, each with a `--help` of its own."""

Add = Callable[..., Any]


class _Parser(argparse.ArgumentParser):
    """A mistake is one line, with the flag or command that was probably meant."""

    def error(self, message: str) -> NoReturn:
        unknown = re.search(r"unrecognized arguments: ([^ =]+)", message)
        if unknown is not None:
            message = self._about(unknown[1])
        message = re.sub(r"^argument (\S+): invalid (?:int|float) value: (.*)$", r"\1 \2: this is not a number", message)
        self.exit(2, f"{self.prog}: {message} ({self.prog} --help lists all flags)\n")

    def _about(self, word: str) -> str:
        is_flag = word.startswith("-")
        known = {name.lower(): name for name in (self._option_string_actions if is_flag else COMMANDS)}
        near = difflib.get_close_matches(word.lower(), known, n=1)
        return f"there is no {'flag' if is_flag else 'command'} {word}" + (f"; did you mean {known[near[0]]}?" if near else "")


def parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="verditer",
        usage="verditer [flags]\n       verditer " + " | ".join(COMMANDS) + " [flags]",
        description="An Azure-Storage-compatible server. Without arguments: Azurite's ports and account, data in ./verditer-data",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        argument_default=argparse.SUPPRESS,
        epilog="commands that work on whole stores, each with --help:\n"
        + "\n".join(f"  {name:<22}{purpose}" for name, purpose in COMMANDS.items()),
    )
    parser.add_argument("-v", "--version", action="version", version=f"verditer {__version__}")
    for title, add_flags in _GROUPS.items():
        add_flags(parser.add_argument_group(title).add_argument)
    return parser


def _data(add: Add) -> None:
    add("-l", "--location", metavar="FOLDER", help="folder for data (default: verditer-data)")
    add(
        "--config",
        metavar="FILE",
        type=Path,
        help="file with the settings of accounts (default: verditer.toml, when there is one)",
    )
    add("--database", metavar="URL", help="a PostgreSQL URL to keep records in, instead of the embedded store")
    add("--postgres-locks", choices=("advisory", "rows"), help="with a new --database: how writes lock (default: advisory)")
    add(
        "--extents",
        metavar="URL",
        help="where to keep large bodies instead of in the data folder: s3://bucket/prefix; needs --database",
    )
    add("--inMemoryPersistence", action="store_true", help="keep everything in memory, until the server ends")
    add(
        "--extentMemoryLimit",
        metavar="MB",
        type=float,
        help="with --inMemoryPersistence: how many megabytes large bodies may occupy",
    )
    add(
        "--workers",
        metavar="N",
        type=int,
        help="processes that serve the same ports (default: 2 with the embedded store on disk, else 1)",
    )
    add(
        "--drainSeconds",
        metavar="SECONDS",
        type=float,
        help="serve on for so long after a signal to stop, while /health/ready answers 503 (default: 0)",
    )


def _ports(add: Add) -> None:
    add("--services", metavar="NAMES", help="the services to serve, separated by commas (default: all of them)")
    for row in PORTS:
        add(f"--{row.name}Host", metavar="ADDRESS", help=f"address the {row.name} port listens on (default: 127.0.0.1)")
        add(f"--{row.name}Port", metavar="PORT", type=int, help=f"{row.name} port, 0 for any free one (default: {row.port})")
        if row.is_storage:
            idle = "how long an idle connection is kept (default: 120)"
            add(f"--{row.name}KeepAliveTimeout", metavar="SECONDS", type=float, help=idle)


def _admin(add: Add) -> None:
    add(
        "--adminToken",
        metavar="TOKEN",
        help="token of the admin port (default: a new one for each start; also VERDITER_ADMIN_TOKEN)",
    )
    add(
        "--adminNames",
        metavar="NAMES",
        help="host names of the admin port besides localhost and IP addresses, separated by commas",
    )
    add("--adminReadOnly", action="store_true", help="the explorer and the control requests change nothing")
    add(
        "--test-control",
        action="store_true",
        help="let the admin port move the clock, empty accounts, change their settings and inject faults",
    )


def _encryption(add: Add) -> None:
    add("--cert", metavar="FILE", help="TLS certificate, PEM or PFX")
    add("--key", metavar="FILE", help="key of a PEM certificate")
    add("--pwd", metavar="PASSWORD", help="password of the PFX file or PEM key")
    add(
        "--development-tls",
        action="store_true",
        help="serve HTTPS with a self-signed certificate, which is made in the data folder",
    )
    add(
        "--tls-names",
        metavar="NAMES",
        help="with --development-tls: further host names and IP addresses of the certificate, separated by commas",
    )
    add("--smb-encryption", action="store_true", help="refuse SMB sessions that are not encrypted")


def _logs(add: Add) -> None:
    add("-s", "--silent", action="store_true", help="print no line for each request")
    add("-d", "--debug", metavar="FILE", type=Path, help="write a detailed log to this file, without bodies and secrets")
    add("--log-format", choices=("plain", "json"), help="format of the line for each request (default: plain)")


def _requests(add: Add) -> None:
    add("--disableProductStyleUrl", action="store_true", help="the account is always in the path, never in the host name")
    add("--no-outbound", action="store_true", help="copies read from this server only, never from a URL elsewhere")
    add(
        "--copy-hosts",
        metavar="HOSTS",
        help="hosts that copies may read from, separated by commas; *.domain and host:port are understood",
    )


def _bearer_tokens(add: Add) -> None:
    add(
        "--oauth",
        choices=("development", "basic"),
        help="accept bearer tokens: signed by this server (development), or with any signature (basic)",
    )
    add("--oauth-issuer", metavar="URL", action="append", help="accept bearer tokens of this issuer; may be given more than once")
    add("--oauth-jwks", metavar="FILE", help="file or URL with the keys of that issuer")
    add(
        "--oauth-audience",
        metavar="AUDIENCE",
        action="append",
        help="an audience to accept in addition to Azure's own; may be given more than once",
    )
    add("--oauth-allow-http", action="store_true", help="accept bearer tokens over plain HTTP too, from this machine only")


def _azurite(add: Add) -> None:
    for flags, reason in (
        (("-L", "--loose"), "what Azure refuses is refused"),
        (("--skipApiVersionCheck",), "every version is served"),
        (("--disableTelemetry",), "there is no telemetry"),
    ):
        add(*flags, action="store_true", help=f"accepted for compatibility with Azurite, has no effect: {reason}")


_GROUPS = {
    "data": _data,
    "ports": _ports,
    "admin port": _admin,
    "encryption": _encryption,
    "logs": _logs,
    "requests": _requests,
    "bearer tokens": _bearer_tokens,
    "compatibility with Azurite": _azurite,
}
