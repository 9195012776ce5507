"""What the collector must know of every process: how far back its running reads and uploads reach."""

from verditer.core.records.record import Record


class Horizon(Record, tag=1, frozen=True, kw_only=True):
    """Process `process` has no read or upload running that began before `oldest`; it said so at `seen`."""

    TABLE = "horizon"
    KEY = ("process",)

    process: str
    oldest: int
    seen: int
