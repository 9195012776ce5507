"""Makes shared access signatures, by the same layouts by which `sas.py` checks them. The explorer hands them out."""

from urllib.parse import quote, urlencode

import msgspec

from verditer.core.dates import iso
from verditer.core.errors import Code, StorageError
from verditer.rest.address import Address
from verditer.rest.auth.sas import account_text, check_form, service_texts, signed_resource
from verditer.rest.auth.signature import sign
from verditer.rest.service import Service
from verditer.rest.services import SERVICES
from verditer.services.account import Account

VERSION = "2022-11-02"
_LETTERS = frozenset("racwdxyltfmeopiu")
_FIELDS = ("sv", "sp", "st", "se", "si", "sip", "spr", "sr", "ses", "ss", "srt", "sig", "rscc", "rscd", "rsce", "rscl", "rsct")


class NewSas(msgspec.Struct, frozen=True, kw_only=True):
    """A token for one resource of a service, or for the whole account when there is no `path`."""

    permissions: str
    expires: int  # ticks
    path: str = ""  # container, container/blob, queue, table, share or share/file
    https_only: bool = False


def make_sas(service: Service, account: Account, wanted: NewSas) -> str:
    """The query string. Whether the resource exists does not matter."""
    if not wanted.permissions or not set(wanted.permissions) <= _LETTERS:
        raise StorageError(Code.InvalidQueryParameterValue, reason="permissions are letters such as rl")
    given = {"sv": VERSION, "se": iso(wanted.expires)[:19] + "Z", "sp": wanted.permissions}
    if wanted.https_only:
        given["spr"] = "https"
    if not wanted.path:
        given |= {"ss": "".join(each.letter for each in SERVICES), "srt": "sco"}
        text = account_text(_all(given), account.name)
    elif service.service_sas is None:
        raise StorageError(Code.InvalidInput)
    else:
        given |= service.service_sas.fields_of_path(wanted.path)
        text = _service_text(service, account, wanted.path, given)
    return urlencode(given | {"sig": sign(account.keys[0], text).decode()})


def _service_text(service: Service, account: Account, path: str, given: dict[str, str]) -> str:
    address = Address(
        account=account.name,
        secondary=False,
        path_style=True,
        path=f"/{account.name}/{quote(path)}",
        segments=tuple(path.split("/", 1)),
        query=given,
    )
    fields = _all(given)
    check_form(fields)
    return service_texts(fields, signed_resource(address, service, given.get("sr", "")), service)[0]


def _all(given: dict[str, str]) -> dict[str, str]:
    return dict.fromkeys(_FIELDS, "") | given
