"""A linearizability checker after Wing and Gong, for one blob: is there a sequential order that explains all results?

A call takes effect at one instant between its invocation and its return. `linearization` looks for such instants by trying
the calls that may come first, and remembers the (calls done, state) pairs without a solution. A call without a response may
have happened at any time after its invocation, or never; a read without a response is ignored.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

ANY = "any"  # the ETag of a write whose response was lost


class State(NamedTuple):
    """The state of a blob as clients see it; None if it does not exist."""

    etag: str
    value: str


@dataclass(frozen=True, kw_only=True)
class Call:
    """`do`: put, set (metadata), get or delete. `outcome` is status and code, "" if the response was lost.

    `value` was written or read; `etag` is that of the response.
    """

    do: str
    invoked: float
    returned: float = math.inf
    if_match: str | None = None
    if_none: bool = False
    value: str = ""
    etag: str = ANY
    outcome: str = ""


def linearization(history: list[Call], start: State | None = None) -> list[Call] | None:
    """One order that explains every response, or None."""
    calls = sorted((call for call in history if call.outcome or call.do != "get"), key=lambda call: call.invoked)
    everything = sum(1 << number for number, call in enumerate(calls) if call.outcome)
    failed: set[tuple[int, State | None]] = set()
    path: list[Call] = []
    # (done, state, numbers to try); an explicit stack, because histories exceed the recursion limit
    stack = [(0, start, _may_come_next(calls, 0))]
    while stack:
        done, state, candidates = stack[-1]
        if done & everything == everything:
            return path
        if not candidates:
            failed.add((done, state))
            stack.pop()
            if path:
                path.pop()
            continue
        number = candidates.pop()
        for after in effects(calls[number], state):
            step = (done | 1 << number, after)
            if step not in failed:
                stack.append((*step, _may_come_next(calls, step[0])))
                path.append(calls[number])
                break
    return None


def _may_come_next(calls: list[Call], done: int) -> list[int]:
    """Calls invoked before any waiting call has returned; the ones that returned first are tried first. They are in the
    order of their invocations, so the search stops at the first one that is too late."""
    ready: list[int] = []
    horizon = math.inf
    waiting = (1 << len(calls)) - 1 & ~done
    while waiting:
        number = (waiting & -waiting).bit_length() - 1
        if calls[number].invoked > horizon:
            break
        ready.append(number)
        horizon = min(horizon, calls[number].returned)
        waiting &= waiting - 1
    return sorted(ready, key=lambda number: calls[number].returned, reverse=True)


def effects(call: Call, state: State | None) -> list[State | None]:
    """The state after the call if it can have happened here with this outcome: one state or none."""
    expected = _expected(call, state)
    if call.outcome and expected is not None and call.outcome != expected:
        return []
    outcome = call.outcome or expected
    match call.do, outcome:
        case "put", "201":
            return [State(call.etag, call.value)]
        case "set", "200":
            assert state is not None
            return [State(call.etag, f"{state.value.partition('/')[0]}/{call.value}")]
        case "delete", "202":
            return [None]
        case "get", "200":
            assert state is not None
            same = state.value == call.value and state.etag in (ANY, call.etag)
            return [State(call.etag, state.value)] if same else []
    return [state]


def _expected(call: Call, state: State | None) -> str | None:
    """The required response; None if it depends on the lost ETag of an earlier write."""
    if call.if_none and state is not None:
        return "409 BlobAlreadyExists"
    if state is None and call.do != "put":
        return "404 BlobNotFound"
    if call.if_match is not None:
        if state is None:
            return "412 ConditionNotMet"
        if state.etag == ANY:
            return None if call.outcome in (SUCCESS[call.do], "412 ConditionNotMet") else SUCCESS[call.do]
        if state.etag != call.if_match:
            return "412 ConditionNotMet"
    return SUCCESS[call.do]


SUCCESS = {"put": "201", "set": "200", "get": "200", "delete": "202"}
