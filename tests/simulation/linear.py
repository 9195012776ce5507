"""A linearizability checker for one blob: is there a sequential order that explains all results?

A call takes effect at one instant between its invocation and its return. `unexplained` follows the history in the order of time
and keeps every possibility of what has taken effect so far (Lowe, "Testing for linearizability"): a waiting call is tried only
when a response has to be explained. A call without a response is lost: it may have happened at any time after its invocation, or
never; a lost read is ignored. The values that are written differ from each other.
"""

import math
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

ANY = "any"  # the ETag in a response that has none, or of a call whose response was lost
UNSEEN = "unseen"  # the ETag of a lost write that nobody has read: no condition can name it


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


class Possibility(NamedTuple):
    """The state of the blob, and which of the calls that wait for a response have taken effect."""

    state: State | None
    answered: frozenset[int]  # of those whose response comes later
    lost: frozenset[int]  # of those that never get one and have no If-Match: what an If-Match names exists only once


def unexplained(history: list[Call], start: State | None = None) -> Call | None:
    """The first call whose response no order explains, or None if an order explains all of them."""
    calls = _with_what_was_read([call for call in history if call.outcome or call.do != "get"])
    invocations = [(call.invoked, 0, number) for number, call in enumerate(calls)]
    returns = [(call.returned, 1, number) for number, call in enumerate(calls) if call.outcome]
    possibilities = [Possibility(start, frozenset(), frozenset())]
    waiting: dict[int, Call] = {}
    for _, returned, number in sorted(invocations + returns):
        if not returned:
            waiting[number] = calls[number]
            continue
        possibilities = _with(number, possibilities, waiting)
        del waiting[number]
        if not possibilities:
            return calls[number]
    return None


def _with_what_was_read(calls: list[Call]) -> list[Call]:
    """Give each lost write the ETag that a read has shown. Those that nobody has read become equal, since no response tells one
    from another."""
    read = [call for call in calls if call.do == "get" and call.outcome == "200"]
    blobs, bodies = {call.value: call.etag for call in read}, {call.value.partition("/")[0] for call in read}
    metadata = {call.value.partition("/")[2]: call.etag for call in read}

    def lost(call: Call) -> Call:
        etags, seen = (blobs, call.value in bodies) if call.do == "put" else (metadata, call.value in metadata)
        return replace(call, value=call.value if seen else "", etag=etags.get(call.value, UNSEEN))

    return [call if call.outcome else lost(call) for call in calls]


def _with(number: int, possibilities: list[Possibility], waiting: dict[int, Call]) -> list[Possibility]:
    """What is possible when this call has taken effect: other calls that wait may have done so before it."""
    found = _Fewest()
    tried = _Fewest()
    queue = deque(possibilities)
    while queue:
        possibility = queue.popleft()
        if number in possibility.answered:
            found.add(possibility._replace(answered=possibility.answered - {number}))
        elif tried.add(possibility):
            queue.extend(_one_more(possibility, waiting))
    return found.all()


def _one_more(possibility: Possibility, waiting: dict[int, Call]) -> Iterator[Possibility]:
    """One waiting call takes effect. Of equal lost calls only the first is tried."""
    state, answered, lost = possibility
    tried = set()
    for number, call in waiting.items():
        if number in answered or number in lost:
            continue
        if not call.outcome:
            kind = (call.do, call.value, call.if_match, call.if_none)
            if kind in tried:
                continue
            tried.add(kind)
        for after in effects(call, state):
            if call.outcome:
                yield Possibility(after, answered | {number}, lost)
            elif after != state:
                yield Possibility(after, answered, lost if call.if_match else lost | {number})


class _Fewest:
    """Possibilities without those that differ from another one only in that more lost calls have taken effect: whatever they
    explain later, the other one explains too."""

    def __init__(self) -> None:
        self._lost: dict[tuple[State | None, frozenset[int]], list[frozenset[int]]] = {}

    def add(self, possibility: Possibility) -> bool:
        """False if there is one with fewer already, or the same."""
        state, answered, lost = possibility
        known = self._lost.setdefault((state, answered), [])
        if any(other <= lost for other in known):
            return False
        known[:] = [other for other in known if not lost <= other]
        known.append(lost)
        return True

    def all(self) -> list[Possibility]:
        return [Possibility(state, answered, lost) for (state, answered), known in self._lost.items() for lost in known]


def effects(call: Call, state: State | None) -> list[State | None]:
    """The state after the call if it can have happened here with this outcome: one state or none."""
    expected = _expected(call, state)
    if call.outcome and call.outcome != expected:
        return []
    match call.do, expected:
        case "put", "201":
            return [State(call.etag, call.value)]
        case "set", "200":
            assert state is not None
            return [State(call.etag, f"{state.value.partition('/')[0]}/{call.value}")]
        case "delete", "202":
            return [None]
        case "get", "200":
            assert state is not None
            return [state] if (state.etag, state.value) == (call.etag, call.value) else []
    return [state]


def _expected(call: Call, state: State | None) -> str:
    if call.if_none and state is not None:
        return "409 BlobAlreadyExists"
    if state is None and call.do != "put":
        return "404 BlobNotFound"
    if call.if_match is not None and (state is None or state.etag != call.if_match):
        return "412 ConditionNotMet"
    return SUCCESS[call.do]


SUCCESS = {"put": "201", "set": "200", "get": "200", "delete": "202"}
