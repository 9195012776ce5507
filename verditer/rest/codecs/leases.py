"""Lease headers: the request of a lease operation, and the lease id that other operations carry."""

import re
from collections.abc import Container, Mapping

from verditer.core.lease import INFINITE, LeaseAction, LeaseRequest, LeaseState
from verditer.core.limits import BREAK_SECONDS, LEASE_SECONDS
from verditer.rest.wire_errors import invalid_header, missing_header

# The headers that each action requires. Break ignores a lease id; an acquire without a proposed id gets a new one.
_REQUIRED = {
    LeaseAction.ACQUIRE: ("x-ms-lease-duration",),
    LeaseAction.RENEW: ("x-ms-lease-id",),
    LeaseAction.CHANGE: ("x-ms-lease-id", "x-ms-proposed-lease-id"),
    LeaseAction.RELEASE: ("x-ms-lease-id",),
    LeaseAction.BREAK: (),
}
_ACTIONS = {action.value: action for action in LeaseAction}
_DURATIONS = frozenset({INFINITE, *LEASE_SECONDS})


def parse_lease_request(headers: Mapping[str, str]) -> LeaseRequest:
    """A lease operation from lower-case headers."""
    action = _action(headers)
    for name in _REQUIRED[action]:
        if name not in headers:
            raise missing_header(name)
    return LeaseRequest(
        action=action,
        lease_id=parse_lease_id(headers),
        proposed_id=parse_lease_id(headers, "x-ms-proposed-lease-id"),
        duration=_whole_number(headers, "x-ms-lease-duration", _DURATIONS),
        break_period=_whole_number(headers, "x-ms-lease-break-period", BREAK_SECONDS),
    )


def parse_lease_id(headers: Mapping[str, str], name: str = "x-ms-lease-id") -> str | None:
    text = headers.get(name)
    if text is None:
        return None
    guid = parse_guid(text)
    if guid is None:
        raise invalid_header(name, text)
    return guid


def _action(headers: Mapping[str, str]) -> LeaseAction:
    text = headers.get("x-ms-lease-action")
    if text is None:
        raise missing_header("x-ms-lease-action")
    action = _ACTIONS.get(text.strip().lower())
    if action is None:
        raise invalid_header("x-ms-lease-action", text)
    return action


def _whole_number(headers: Mapping[str, str], name: str, allowed: Container[int]) -> int | None:
    text = headers.get(name)
    if text is None:
        return None
    if re.fullmatch(r"-?[0-9]{1,9}", text.strip()) is None or int(text) not in allowed:
        raise invalid_header(name, text)
    return int(text)


def lease_status(state: LeaseState) -> str:
    return "locked" if state.is_locked else "unlocked"


_PLAIN = re.compile(
    r"[0-9a-f]{32}"
    r"|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
    r"|\{[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\}"
    r"|\([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\)"
)
_HEXADECIMAL = re.compile(
    r"\{0x([0-9a-f]{1,8}),0x([0-9a-f]{1,4}),0x([0-9a-f]{1,4}),\{" + ",".join([r"0x([0-9a-f]{1,2})"] * 8) + r"\}\}"
)
_WIDTHS = (8, 4, 4, *[2] * 8)


def parse_guid(text: str) -> str | None:
    """Any .NET Guid format (N, D, B, P, X), as lower-case dashed digits."""
    text = text.strip().lower()
    if _PLAIN.fullmatch(text):
        digits = re.sub(r"[^0-9a-f]", "", text)
    elif groups := _HEXADECIMAL.fullmatch(re.sub(r"\s", "", text)):
        digits = "".join(group.rjust(width, "0") for group, width in zip(groups.groups(), _WIDTHS, strict=True))
    else:
        return None
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"
