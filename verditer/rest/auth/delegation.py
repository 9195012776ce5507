"""User delegation SAS: a service SAS that is signed with a user's delegation key instead of the account key.

The token names the key that signed it, which is enough to derive the key again (`services/delegation.py`). A valid token proves
the same and is checked in the same way as a service SAS (`sas.py`). Roles are not modelled, so its permissions are those that it
states. A token may be limited to one user (`sduoid`), who has to send a bearer token as well.
"""

from collections.abc import Awaitable, Callable

from verditer.core.dates import parse_iso, rfc1123
from verditer.core.grant import Grant
from verditer.rest.address import Address
from verditer.rest.auth import oauth, sas
from verditer.rest.auth.jwt import Claims
from verditer.rest.auth.signature import authentication_failed, matches
from verditer.rest.http.message import Request
from verditer.rest.service import Service
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


async def authenticate(
    request: Request,
    address: Address,
    service: Service,
    account: Account,
    now: int,
    trust: oauth.Trust | None,
    key_value: KeyValue | None,
) -> Grant:
    if key_value is None or not service.delegation_layouts:
        raise authentication_failed(f"User delegation signatures are not accepted for the {service.name} service.")
    fields = {name: address.query.get(name, "") for name in _FIELDS}
    layout = _checked_layout(fields, service)
    key = _key(fields, account.name, service)
    blocks = {"srh": _headers(fields["srh"], request), "srq": _parameters(fields["srq"], address)}
    resource = sas.signed_resource(address, service, fields["sr"])
    values = fields | blocks | dict(resource.fields)
    texts = [_text(layout, values | {"resource": f"/{service.name}/{name}"}) for name in resource.names]
    value = await key_value(key)
    if not any(matches((value,), text, fields["sig"]) for text in texts):
        raise authentication_failed(f"Signature did not match. String to sign used was {texts[0]}")
    if not key.start <= now < key.expiry:
        raise authentication_failed(
            f"The user delegation key is valid from [{rfc1123(key.start)}] to [{rfc1123(key.expiry)}] - Current [{rfc1123(now)}]"
        )
    token = sas.service_token(fields, service, resource)
    sas.check_circumstances(token, request, service, now)
    if fields["sduoid"]:
        if "authorization" not in request.headers:
            raise authentication_failed("This signature is for one user, whose bearer token has to come with it.")
        _check_user(fields, await oauth.claims_of(request, address, service, account, now, trust))
    return token.grant


def _checked_layout(fields: dict[str, str], service: Service) -> list[str]:
    """The fields that this version signs. A token with a field that has a meaning and is not signed is refused."""
    sas.check_form(fields)
    layouts = service.delegation_layouts
    names = next((names for first, names in reversed(layouts) if fields["sv"] >= first), None)
    if names is None:
        raise authentication_failed(f"A user delegation SAS needs sv {layouts[0][0]} or later.")
    layout = names.split()
    for name in ("skoid", "skt", "ske", "sks", "skv", "sp", "se"):
        if not fields[name]:
            raise authentication_failed(f"{name} is mandatory. Cannot be empty")
    unsigned = [name for name in ("si", *_LATER_FIELDS) if fields[name] and name not in layout]
    if unsigned:
        raise authentication_failed(f"{unsigned[0]} is not valid in a user delegation SAS of version '{fields['sv']}'.")
    sas.check_kind(fields, service)
    return layout


def _key(fields: dict[str, str], account: str, service: Service) -> DelegationKey:
    start, expiry = parse_iso(fields["skt"]), parse_iso(fields["ske"])
    if start is None or expiry is None:
        raise authentication_failed("skt and ske are not ISO 8601 times in UTC.")
    if fields["sks"] != service.letter:
        raise authentication_failed(f"sks={fields['sks']} is not a key for the {service.name} service.")
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
    """One line for each header that the token names, with its value in the request."""
    return "".join(f"{name}:{_single_line(request.headers.get(name.lower(), ''))}\n" for name in _listed(names))


def _parameters(names: str, address: Address) -> str:
    return "".join(f"\n{name}:{_single_line(address.query.get(name.lower(), ''))}" for name in _listed(names))


def _listed(names: str) -> list[str]:
    """A colon inside a name would be read as the end of the name, so a token could be used with another value."""
    if ":" in names:
        raise authentication_failed("Signature fields not well formed.")
    return names.split(",") if names else []


def _single_line(value: str) -> str:
    if "\n" in value:
        raise authentication_failed("Signature fields not well formed.")
    return value


def _text(layout: list[str], values: dict[str, str]) -> str:
    return "\n".join([values[name] for name in layout])


def _check_user(fields: dict[str, str], claims: Claims) -> None:
    """The bearer has to be the user of the token, in the tenant of the key if the key is for one tenant."""
    if claims.oid != fields["sduoid"] or (fields["skdutid"] and claims.tid != fields["skdutid"]):
        raise authentication_failed("The bearer token is not that of the user this signature is for.")
