"""Accounts: their names, keys and configured settings."""

import base64
import binascii
import logging
import re

import msgspec

from verditer.core.records.settings import SettingsChange

logger = logging.getLogger("verditer")
DEVELOPMENT_ACCOUNT = "devstoreaccount1"
DEVELOPMENT_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="  # public, Azurite's


class Account(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    keys: tuple[bytes, ...]
    settings: SettingsChange = SettingsChange()  # the configured settings, applied at every start


def parse_accounts(text: str) -> dict[str, Account]:
    """`name:key1[:key2];name:key1…`, the form of AZURITE_ACCOUNTS. Keys are base64."""
    accounts = {}
    for entry in filter(None, (part.strip() for part in text.split(";"))):
        name, *keys = entry.split(":")
        if not name or not 1 <= len(keys) <= 2 or not all(keys):
            raise ValueError(f"account {name!r}: expected name:key1[:key2]")
        accounts[name] = Account(name=name, keys=tuple(_key(name, key) for key in keys))
    return accounts


def _key(name: str, text: str) -> bytes:
    """Azurite accepts keys in the alphabet of URLs and without padding, so this server does, with a warning."""
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        if re.fullmatch(r"[A-Za-z0-9+/_-]+=*", text) is None or len(text.rstrip("=")) % 4 == 1:
            raise ValueError(f"account {name!r}: a key is not base64") from None
    logger.warning("account %r: a key is not strict base64; it is read leniently", name)
    return base64.urlsafe_b64decode(text.rstrip("=").replace("+", "-").replace("/", "_") + "=" * (-len(text.rstrip("=")) % 4))


def development_accounts() -> dict[str, Account]:
    return parse_accounts(f"{DEVELOPMENT_ACCOUNT}:{DEVELOPMENT_KEY}")
