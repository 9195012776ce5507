"""The combinations of the matrix, and how an operation is tried with each: send, compare the response, check the effect."""

from collections.abc import Mapping
from dataclasses import astuple, dataclass
from itertools import product
from typing import get_args

from tests.rest import expectations
from tests.rest.client import Box, Reply
from tests.rest.expectations import Asked, Family, Refusal, Sent, State, Truth
from tests.rest.matrix_rows import After, Row, Stage, Start

TRUTHS: tuple[Truth | None, ...] = (None, "met", "unmet")
STARS: tuple[Truth | None, ...] = (None, "met", "unmet", "star")
TAGGED_ASKED = [Asked(*values, tags) for values in product(TRUTHS, TRUTHS, (None,), (None,)) for tags in ("met", "unmet")]
EVERY_ASKED = [Asked(*values, None) for values in product(STARS, STARS, TRUTHS, TRUTHS)] + TAGGED_ASKED


def number_of(asked: Asked) -> int:
    return sum(value is not None for value in astuple(asked))


LONE_ASKED = [asked for asked in EVERY_ASKED if number_of(asked) <= 1]
PAIRS_ASKED = [asked for asked in EVERY_ASKED if number_of(asked) <= 2] + [Asked("met", "met", "met")]
FEW_ASKED = [Asked(), Asked("unmet"), Asked(None, "star"), Asked(None, None, "unmet"), Asked("met", None, "met"), Asked("met")]


@dataclass(frozen=True)
class Grid:
    """The combinations of conditions for an operation."""

    mixtures: bool  # for an object without a lease
    absent: list[Asked]  # for a missing object
    leased: list[tuple[Sent, Asked]]  # for a leased object

    def asked_of(self, family: Family) -> list[Asked]:
        """Any combination for reads, one or two conditions for writes, and one at a time for conditions that are ignored."""
        if not self.mixtures:
            return LONE_ASKED
        if family == "read":
            return EVERY_ASKED
        return PAIRS_ASKED if len(expectations.HEEDS[family]) > 1 else [*LONE_ASKED, Asked("unmet", "unmet", "unmet", "unmet")]

    def leased_by(self, row: Row) -> list[tuple[Sent, Asked]]:
        """The id of a lease operation is one of its parameters: see test_leases.py."""
        return [case for case in self.leased if case[0] == "nothing" or "x-ms-lease-action" not in row.headers]


WHOLE = Grid(mixtures=True, absent=LONE_ASKED, leased=list(product(get_args(Sent), FEW_ASKED)))
REDUCED = Grid(
    mixtures=False,
    absent=[Asked(), Asked("met"), Asked(None, "star")],
    leased=[("holder", Asked()), ("other", Asked("unmet")), ("nothing", Asked("unmet")), ("nothing", Asked())],
)


def headers_of(box: Box, asked: Asked, etag: str, prefix: str = "") -> dict[str, str]:
    past, future = box.client.date(-3600), box.client.date(3600)
    tags = "x-ms-source-if-tags" if prefix == "x-ms-source-" else "x-ms-if-tags"
    spelled: dict[str, dict[Truth, str]] = {
        prefix + "If-Match": {"met": etag, "unmet": '"0x8D00000000"', "star": "*"},
        prefix + "If-None-Match": {"met": '"0x8D00000000"', "unmet": etag, "star": "*"},
        prefix + "If-Modified-Since": {"met": past, "unmet": future},
        prefix + "If-Unmodified-Since": {"met": future, "unmet": past},
        tags: {"met": "k = 'v'", "unmet": "k = 'w'"},
    }
    return {name: spelled[name][truth] for name, truth in zip(spelled, astuple(asked), strict=True) if truth is not None}


VOLATILE = ("Date", "x-ms-request-id")


class Trial:
    """A refused request changes nothing, so one blob serves many requests; after a change, a new one is created."""

    def __init__(self, stage: Stage, row: Row, state: State = "available") -> None:
        self.stage, self.row, self.state = stage, row, state
        self.wrong: list[tuple[Asked, Mapping[str, str], str]] = []
        self._start: Start | None = None

    def send(self, asked: Asked, expected: Refusal | None, headers: Mapping[str, str] | None = None) -> None:
        """Send the request of the row with these conditions and further headers, and record deviations in `wrong`."""
        if self._start is None:
            self._start = self.row.prepare(self.stage, self.state)
            self._before = self._start.look()
        more = dict(headers or {})
        reply = self.row.send(self.stage, self._start, headers_of(self.stage, asked, self._start.etag, self.row.prefix) | more)
        problem = self._problem(self._start, reply, expected)
        if problem:
            self.wrong.append((asked, more, problem))
        if problem or (expected is None and self.row.after != "same"):
            self._start = None

    def _problem(self, start: Start, reply: Reply, expected: Refusal | None) -> str | None:
        row = self.row
        if reply.answer != (expected or (row.success, None)):
            return f"answered {reply.answer}, expected {expected or row.success}"
        if expected is None and ("ETag" in reply) != row.etag:
            return f"ETag in the answer: {reply.header('ETag')}"
        if expected is None and row.after == "gone":
            again = row.send(self.stage, start, {})
            return None if again.status == 404 else f"it is still there: {again.answer}"
        now = start.look()
        problem = self._changed(now, "same" if expected else row.after)
        if problem is None and expected is None and row.etag and reply["ETag"] != now["ETag"]:
            return "another ETag was answered than it has"
        return problem

    def _changed(self, now: Reply, allowed: After) -> str | None:
        before, after = (dict(pair for pair in look.headers if pair[0] not in VOLATILE) for look in (self._before, now))
        if allowed == "same":
            return None if before == after else f"changed: {before.items() ^ after.items()}"
        if allowed == "marked" and before == after:
            return "nothing changed"
        if (before["ETag"] != after["ETag"]) != (allowed == "written"):
            return f"the ETag was {before['ETag']} and is {after['ETag']}"
        # A write without an id resets an ended lease (reference 3.4); a container keeps it.
        kept = self.state if self.row.noun == "Container" or self.state in ("leased", "breaking") else "available"
        if allowed == "written" and after["x-ms-lease-state"] != kept:
            return f"the lease is {after['x-ms-lease-state']}"
        return None
