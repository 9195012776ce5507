"""What the server prints when it accepts connections: its ports, the link of the explorer, a connection string for each account.

Other tools wait for the lines of Azurite, so they are printed too, with the addresses that were bound.
"""

import base64
import ipaddress

from verditer import __version__
from verditer.app import App
from verditer.config import PORTS, Config
from verditer.flags import database_parts
from verditer.services.account import DEVELOPMENT_KEY, Account

_AZURITE = ("blob", "queue", "table")


def start_message(app: App) -> str:
    config = app.config
    lines = [f"Verditer {__version__} is serving {describe_store(config)}"]
    for row in PORTS:
        if row.name in app.servers:
            name = row.name.upper() if row.is_smb else row.name.capitalize()
            lines.append(f"  {name:7} {app.bound_url(row.name)}")
    lines += ["", f"Explorer {app.url('admin')}/?token={app.admin_token}", ""]
    lines += [_azurite_line(app, name) for name in _AZURITE if name in app.servers]
    if config.development_tls and config.cert is None:
        lines += ["", *_trust_lines(config)]
    for account in config.accounts.values():
        lines += ["", _connection_string(app, account)]
    return "\n".join(lines)


def warnings(app: App) -> list[str]:
    """What a user should know before others find out."""
    keys = {account.name for account in app.config.accounts.values() if _is_public(account)}
    open_ports = [row.name for row in PORTS if row.is_storage and row.name in app.servers and _is_reachable(app, row.name)]
    if not keys or not open_ports:
        return []
    return [
        f"other machines may reach the {', '.join(open_ports)} port, and everybody knows the key of {', '.join(sorted(keys))}; "
        "VERDITER_ACCOUNTS sets accounts with keys of your own"
    ]


def _azurite_line(app: App, name: str) -> str:
    return f"Azurite {name.capitalize()} service is successfully listening at {app.bound_url(name)}"


def _trust_lines(config: Config) -> list[str]:
    path = config.location / "tls" / "localhost.crt"
    return [f"Certificate {path.absolute()}", f"  Python and curl trust it with: export SSL_CERT_FILE={path.absolute()}"]


def _connection_string(app: App, account: Account) -> str:
    """Only the well-known key is printed: every other one is a secret."""
    key = DEVELOPMENT_KEY if _is_public(account) else "<its key>"
    served = [row.name for row in PORTS if row.is_storage and row.name in app.servers]
    endpoints = "".join(f"{name.capitalize()}Endpoint={app.url(name)}/{account.name};" for name in served)
    return f"DefaultEndpointsProtocol={_scheme(app.config)};AccountName={account.name};AccountKey={key};{endpoints}"


def _is_public(account: Account) -> bool:
    return base64.b64decode(DEVELOPMENT_KEY) in account.keys


def _is_reachable(app: App, name: str) -> bool:
    host = app.config.ports[name].host.strip("[]")
    try:
        return not ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host != "localhost"


def _scheme(config: Config) -> str:
    return "https" if config.cert or config.development_tls else "http"


def describe_store(config: Config) -> str:
    if config.database is not None:
        parts = database_parts(config.database)  # without user and password
        where = config.extents or config.location
        return f"records in PostgreSQL ({parts.get('dbname', '')} at {parts.get('host', 'localhost')}), bytes in {where}"
    return "from memory" if config.in_memory else f"from {config.location}"
