"""Delays after wrong keys: a client that guesses keys has to wait longer with every guess."""

from time import monotonic
from typing import NamedTuple

_MAX_ADDRESSES = 10_000
_FORGET_SECONDS = 600.0
_LONGEST_SECONDS = 60.0


class _Failures(NamedTuple):
    number: int = 0
    last: float = 0.0
    answered: float = 0.0  # when the last of them is answered


class FailureDelays:
    """Counts failed logins by the address of the client. The oldest addresses are forgotten when there are too many. Guesses of
    one address are answered one after the other, so that many at once are no quicker."""

    def __init__(self, first_seconds: float, most_seconds: float) -> None:
        self._first_seconds = first_seconds
        self._most_seconds = most_seconds
        self._failures: dict[str, _Failures] = {}

    def failed(self, host: str) -> float:
        """Count a failure. The seconds that its answer has to wait."""
        known = self._failures.pop(host, _Failures())
        now = monotonic()
        count = known.number if now - known.last <= _FORGET_SECONDS else 0
        if len(self._failures) >= _MAX_ADDRESSES:
            self._failures.pop(next(iter(self._failures)))
        answered = max(known.answered, now) + min(self._first_seconds * 2.0 ** min(count, 30), self._most_seconds)
        answered = min(answered, now + _LONGEST_SECONDS)
        self._failures[host] = _Failures(count + 1, now, answered)
        return answered - now

    def succeeded(self, host: str) -> None:
        self._failures.pop(host, None)
