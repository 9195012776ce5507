"""Whether a client goes on: one that does not log in, does not finish a frame or takes no answers is cut off."""

from time import monotonic

from verditer.smb.limits import SmbLimits


class ClientProgress:
    """Of one connection. `unsent` is how many bytes of its answers the client has not taken."""

    def __init__(self) -> None:
        self._made = self._received = monotonic()
        self._stalled: float | None = None  # since when the client takes none of the answers that wait for it
        self._unsent = 0  # when it was looked at last

    @property
    def is_stalled(self) -> bool:
        return self._stalled is not None

    def received(self) -> None:
        self._received = monotonic()

    def stall(self) -> None:
        self._stalled = monotonic()

    def resume(self) -> None:
        self._stalled = None

    def is_too_slow(self, limits: SmbLimits, now: float, *, has_login: bool, is_receiving: bool, unsent: int) -> bool:
        """A client that takes its answers slowly is not one that takes none."""
        if self._stalled is not None:
            if unsent < self._unsent:
                self._stalled = now
            self._unsent = unsent
        return (
            (not has_login and now - self._made > limits.login_seconds)
            or (is_receiving and now - self._received > limits.frame_seconds)
            or (self._stalled is not None and now - self._stalled > limits.write_stall_seconds)
        )
