"""The hybrid clock: wall time that never runs backwards and never issues the same tick twice.

One clock makes ETags, Last-Modified, snapshots and receipts (invariant 4). Several processes may share a store. Each has a node
number and issues only ticks that are congruent to it modulo NODES, so no two processes ever issue the same tick.
"""

import threading
from collections.abc import Callable

NODES = 64  # ticks are 100 ns, so each node may issue one tick per 6.4 µs of wall time and may run ahead in a burst


class HybridClock:
    """Each engine owns one. `source` gives the wall time, which tests move. `floor` is the highest tick that may have been issued
    before."""

    def __init__(self, source: Callable[[], int], node: int = 0, floor: int = 0) -> None:
        assert 0 <= node < NODES
        self._source = source
        self._node = node
        self._last = floor - floor % NODES + node
        self._lock = threading.Lock()  # the writer thread issues ticks while the event loop does
        self._latest_now = 0

    def now(self) -> int:
        """Wall time that never goes backwards and is never before an issued tick: no record has a time in the future."""
        now = self._source()
        if now < self._last:
            now = self._last
        if now > self._latest_now:
            self._latest_now = now
        return self._latest_now

    @property
    def last(self) -> int:
        """The highest tick issued so far."""
        return self._last

    def tick(self, after: int = 0) -> int:
        """A unique tick greater than `after` and than every tick issued before."""
        with self._lock:
            wanted = max(self._source(), after + 1, self._last + 1)
            self._last = wanted + (self._node - wanted) % NODES
            return self._last
