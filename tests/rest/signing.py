"""Shared Key and shared access signatures of a client, implemented independently of the code that verifies them."""

import base64
import hashlib
import hmac
from urllib.parse import unquote, urlencode

SIGNED = (
    *("Content-Encoding", "Content-Language", "Content-Length", "Content-MD5", "Content-Type", "Date"),
    *("If-Modified-Since", "If-Match", "If-None-Match", "If-Unmodified-Since", "Range"),
)
SAS_VERSION = "2021-08-06"


def signature(key: str, text: str) -> str:
    return base64.b64encode(hmac.new(base64.b64decode(key), text.encode(), hashlib.sha256).digest()).decode()


def shared_key(account: str, key: str, method: str, path: str, query: str, headers: list[tuple[str, str]]) -> str:
    """The Authorization header for a request whose path and query are already percent-encoded."""
    merged: dict[str, str] = {}
    for name, value in headers:
        lower = name.lower()
        merged[lower] = f"{merged[lower]},{value.strip()}" if lower in merged else value.strip()
    plain = ["" if name == "Content-Length" and value == "0" else value for name, value in _plain(merged)]
    ms = [f"{name}:{merged[name]}" for name in sorted(merged) if name.startswith("x-ms-")]
    text = "\n".join([method, *plain, *ms, f"/{account}{path}{_canonical(query)}"])
    return f"SharedKey {account}:{signature(key, text)}"


def _plain(headers: dict[str, str]) -> list[tuple[str, str]]:
    return [(name, headers.get(name.lower(), "")) for name in SIGNED]


def _canonical(query: str) -> str:
    values: dict[str, list[str]] = {}
    for pair in filter(None, query.split("&")):
        name, _, value = pair.partition("=")
        values.setdefault(unquote(name).lower(), []).append(unquote(value))
    return "".join(f"\n{name}:{','.join(sorted(values[name]))}" for name in sorted(values))


def service_sas(account: str, key: str, container: str, blob: str = "", **fields: str) -> str:
    """A query string for one blob, or for a container; `fields` are the parameters by their short names."""
    fields.setdefault("sv", SAS_VERSION)
    fields.setdefault("sr", "b" if blob else "c")
    resource = f"/blob/{account}/{container}" + (f"/{blob}" if blob else "")
    snapshot = fields.pop("snapshot", "")
    order = ("sp", "st", "se", "", "si", "sip", "spr", "sv", "sr", "snapshot", "ses", "rscc", "rscd", "rsce", "rscl", "rsct")
    given = fields | {"": resource, "snapshot": snapshot}
    text = "\n".join(given.get(name, "") for name in order)
    return urlencode(fields | {"sig": signature(key, text)})


def account_sas(account: str, key: str, **fields: str) -> str:
    fields = {"sv": SAS_VERSION, "ss": "b", "srt": "sco"} | fields
    order = ("sp", "ss", "srt", "st", "se", "sip", "spr", "sv", "ses")
    text = "".join(f"{line}\n" for line in (account, *(fields.get(name, "") for name in order)))
    return urlencode(fields | {"sig": signature(key, text)})
