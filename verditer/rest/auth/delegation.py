"""User delegation SAS: a service SAS that is signed with a user's delegation key instead of the account key.

The token names the key it was signed with, and that is enough to derive it again (`services/delegation.py`). What it then
proves, and what is checked at each request, is a service SAS's (`sas.py`); its rights are those it states, as roles are not
modelled. A token may be limited to one user (`sduoid`), who then has to show a bearer token as well.
"""

from collections.abc import Awaitable, Callable

from verditer.core.dates import parse_iso, rfc1123
from verditer.core.grant import Grant
from verditer.rest.address import Address
from verditer.rest.auth import oauth, sas
from verditer.rest.auth.jwt import Claims
from verditer.rest.auth.signature import authentication_failed, matches
from verditer.rest.message import Request
from verditer.services.account import Account
from verditer.services.delegation import DelegationKey

KeyValue = Callable[[DelegationKey], Awaitable[bytes]]

_LATER_FIELDS = ("saoid", "suoid", "scid", "skdutid", "sduoid", "srh", "srq", "ses")
_FIELDS = (
    *("sv", "sp", "st", "se", "si", "sip", "spr", "sr", "sig"),
    *("rscc", "rscd", "rsce", "rscl", "rsct"),
    *("skoid", "sktid", "skt", "ske", "sks", "skv"),
    *_LATER_FIELDS,
)
# (first version, what is signed), as in sas.py. "srh" and "srq" stand for the headers and parameters they name.
# All begin with _KEYED, and those for blobs end with the response headers.
# fmt: off
_KEYED     = "sp st se resource skoid sktid skt ske sks skv"
_RESPONSES = "rscc rscd rsce rscl rsct"
_LAYOUTS = (
    ("2018-11-09", "                                  sip spr sv sr snapshot            "),
    ("2020-02-10", "saoid suoid scid                  sip spr sv sr snapshot            "),
    ("2020-12-06", "saoid suoid scid                  sip spr sv sr snapshot ses        "),
    ("2025-07-05", "saoid suoid scid skdutid sduoid   sip spr sv sr snapshot ses        "),
    ("2026-04-06", "saoid suoid scid skdutid sduoid   sip spr sv sr snapshot ses srh srq"),
)
_QUEUE_LAYOUTS = (
    ("2026-02-06", "                 skdutid sduoid   sip spr sv"),
)
# fmt: on


async def authenticate(
    request: Request,
    address: Address,
    service: str,
    account: Account,
    now: int,
    trust: oauth.Trust | None,
    key_value: KeyValue | None,
) -> Grant:
    if key_value is None or service not in ("blob", "queue"):
        raise authentication_failed(f"User delegation signatures are not accepted for the {service} service.")
    fields = {name: address.query.get(name, "") for name in _FIELDS}
    layout = _checked_layout(fields, service)
    key = _key(fields, account.name, service)
    blocks = {"srh": _headers(fields["srh"], request), "srq": _parameters(fields["srq"], address)}
    target = sas.signed_target(address, service, fields["sr"])
    texts = [_text(layout, fields | blocks, f"/{service}/{resource}", target.snapshot) for resource in target.resources]
    value = await key_value(key)
    if not any(matches((value,), text, fields["sig"]) for text in texts):
        raise authentication_failed(f"Signature did not match. String to sign used was {texts[0]}")
    if not key.start <= now < key.expiry:
        raise authentication_failed(
            f"The user delegation key is valid from [{rfc1123(key.start)}] to [{rfc1123(key.expiry)}] - Current [{rfc1123(now)}]"
        )
    token = sas.service_token(fields, service)
    sas.check_circumstances(token, request, service, now)
    if fields["sduoid"]:
        if "authorization" not in request.headers:
            raise authentication_failed("This signature is for one user, whose bearer token has to come with it.")
        _check_user(fields, await oauth.claims_of(request, address, service, account, now, trust))
    return token.grant


def _checked_layout(fields: dict[str, str], service: str) -> list[str]:
    """What this version signs. A field that would say something and is not signed makes the token suspect."""
    sas.check_form(fields)
    layouts, responses = (_LAYOUTS, _RESPONSES) if service == "blob" else (_QUEUE_LAYOUTS, "")
    names = next((names for first, names in reversed(layouts) if fields["sv"] >= first), None)
    if names is None:
        raise authentication_failed(f"A user delegation SAS needs sv {layouts[0][0]} or later.")
    layout = f"{_KEYED} {names} {responses}".split()
    for name in ("skoid", "skt", "ske", "sks", "skv", "sp", "se"):
        if not fields[name]:
            raise authentication_failed(f"{name} is mandatory. Cannot be empty")
    unsigned = [name for name in ("si", *_LATER_FIELDS) if fields[name] and name not in layout]
    if unsigned:
        raise authentication_failed(f"{unsigned[0]} is not valid in a user delegation SAS of version '{fields['sv']}'.")
    if service == "blob" and fields["sr"] == "d" and fields["sv"] < "2020-02-10":
        raise authentication_failed(f"sr=d is not valid in version '{fields['sv']}'.")
    return layout


def _key(fields: dict[str, str], account: str, service: str) -> DelegationKey:
    start, expiry = parse_iso(fields["skt"]), parse_iso(fields["ske"])
    if start is None or expiry is None:
        raise authentication_failed("skt and ske are not ISO 8601 times in UTC.")
    if fields["sks"] != service[:1]:
        raise authentication_failed(f"sks={fields['sks']} is not a key for the {service} service.")
    return DelegationKey(
        account=account,
        oid=fields["skoid"],
        tid=fields["sktid"],
        start=start,
        expiry=expiry,
        service=fields["sks"],
        version=fields["skv"],
        delegated_tid=fields["skdutid"],
    )


def _headers(names: str, request: Request) -> str:
    """A line for each header the token names, with the value the request has."""
    return "".join(f"{name}:{_single_line(request.headers.get(name.lower(), ''))}\n" for name in _listed(names))


def _parameters(names: str, address: Address) -> str:
    return "".join(f"\n{name}:{_single_line(address.query.get(name.lower(), ''))}" for name in _listed(names))


def _listed(names: str) -> list[str]:
    """A colon would make the end of a name the beginning of its value, and so free what the token ties down."""
    if ":" in names:
        raise authentication_failed("Signature fields not well formed.")
    return names.split(",") if names else []


def _single_line(value: str) -> str:
    if "\n" in value:
        raise authentication_failed("Signature fields not well formed.")
    return value


def _text(layout: list[str], fields: dict[str, str], resource: str, snapshot: str) -> str:
    values = fields | {"resource": resource, "snapshot": snapshot}
    return "\n".join([values[name] for name in layout])


def _check_user(fields: dict[str, str], claims: Claims) -> None:
    """The bearer is the one the token is for; in the tenant the key was made for, when it was made for one."""
    if claims.oid != fields["sduoid"] or (fields["skdutid"] and claims.tid != fields["skdutid"]):
        raise authentication_failed("The bearer token is not that of the user this signature is for.")
