"""Credits: which message ids a client may use next (MS-SMB2 3.3.1.1)."""

MAX_CREDITS = 8192


class CreditWindow:
    """Ids from `_low` on, below `_top`, except those in `_used`, may be used, each once. Granting credits moves the top.

    The window never gets wider than MAX_CREDITS. A client that leaves a hole in its ids gets no credits when the hole has become
    as old as the window is wide."""

    __slots__ = ("_low", "_top", "_used")

    def __init__(self) -> None:
        self._low = 0
        self._top = 1
        self._used: set[int] = set()

    def use(self, message_id: int, charge: int) -> bool:
        """False when the ids are not the client's to use: the connection has to end."""
        end = message_id + (charge or 1)
        if message_id < self._low or end > self._top:
            return False
        if message_id == self._low and not self._used:
            self._low = end
            return True
        ids = range(message_id, end)
        if not self._used.isdisjoint(ids):
            return False
        self._used.update(ids)
        while self._low in self._used:
            self._used.remove(self._low)
            self._low += 1
        return True

    def grant(self, asked: int) -> int:
        """How many credits an answer carries. One at least, so that a client can always go on, unless the window is full."""
        granted = min(asked or 1, MAX_CREDITS - (self._top - self._low))
        self._top += granted
        return granted
