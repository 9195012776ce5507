"""The hybrid clock: wall time that never runs backwards and never gives the same tick twice.

One clock makes ETags, Last-Modified, snapshots and receipts (invariant 4). Several processes may share a store: each has a
node number, and issues only ticks congruent to it, so no two processes can ever issue the same tick.
"""

import threading
from collections.abc import Callable

NODES = 64  # ticks are 100 ns, so each node may issue one tick per 6.4 µs of wall time and may run ahead in a burst


class HybridClock:
    """Engines own one; `source` is wall time (moved by tests), `floor` the highest tick known to be issued before."""

    def __init__(self, source: Callable[[], int], node: int = 0, floor: int = 0) -> None:
        assert 0 <= node < NODES
        self._source = source
        self._node = node
        self._last = floor - floor % NODES + node
        self._lock = threading.Lock()  # the writer thread makes ETags while the loop asks for the time
        self._shown = 0

    def now(self) -> int:
        """Wall time that never goes backwards, at or after every tick already issued: what is written is never in the future."""
        now = self._source()
        if now < self._last:
            now = self._last
        if now > self._shown:
            self._shown = now
        return self._shown

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
