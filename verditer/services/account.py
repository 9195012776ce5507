"""Accounts: their names and keys, from configuration; and what an account has set for a service."""

import base64
import binascii

import msgspec

from verditer.core.records.settings import SettingsChange

DEVELOPMENT_ACCOUNT = "devstoreaccount1"
DEVELOPMENT_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="  # public, Azurite's


class Account(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    keys: tuple[bytes, ...]
    settings: SettingsChange = SettingsChange()  # what is configured: it holds from every start on

    def __hash__(self) -> int:
        return hash(self.name)  # asked for with every request, and the settings are many


def parse_accounts(text: str) -> dict[str, Account]:
    """`name:key1[:key2];name:key1…`, as AZURITE_ACCOUNTS has it. Keys are base64."""
    accounts = {}
    for entry in filter(None, (part.strip() for part in text.split(";"))):
        name, *keys = entry.split(":")
        if not name or not 1 <= len(keys) <= 2 or not all(keys):
            raise ValueError(f"account {name!r}: expected name:key1[:key2]")
        try:
            decoded = tuple(base64.b64decode(key, validate=True) for key in keys)
        except binascii.Error:
            raise ValueError(f"account {name!r}: a key is not base64") from None
        accounts[name] = Account(name=name, keys=decoded)
    return accounts


def development_accounts() -> dict[str, Account]:
    return parse_accounts(f"{DEVELOPMENT_ACCOUNT}:{DEVELOPMENT_KEY}")
