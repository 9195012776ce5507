"""The well-known account and an account SAS for it. Every URL contains the same SAS, so clients sign nothing while measuring."""

import base64
import hashlib
import hmac
from datetime import UTC, datetime, timedelta
from urllib.parse import urlencode

ACCOUNT = "devstoreaccount1"
# The key of the emulator's account is public: Azure documentation, "Use the Azurite emulator".
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
VERSION = "2021-12-02"


def account_sas() -> str:
    """A query string that allows everything on every service for a day."""
    fields = {
        "sp": "rwdlacupitfx",
        "ss": "bqtf",
        "srt": "sco",
        "st": "",
        "se": f"{datetime.now(UTC) + timedelta(days=1):%Y-%m-%dT%H:%M:%SZ}",
        "sip": "",
        "spr": "",
        "sv": VERSION,
        "ses": "",
    }
    lines = "".join(f"{line}\n" for line in (ACCOUNT, *fields.values()))
    digest = hmac.digest(base64.b64decode(KEY), lines.encode(), hashlib.sha256)
    sent = {name: value for name, value in fields.items() if value}
    return urlencode({**sent, "sig": base64.b64encode(digest).decode()})


SAS = account_sas()


def target(path: str, query: str = "") -> str:
    """The request target of `path` under the account, authorized."""
    return f"/{ACCOUNT}/{path}?{query}{'&' if query else ''}{SAS}"
