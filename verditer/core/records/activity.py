"""What the collector must know of every process: since when its oldest read or upload has been running."""

from verditer.core.records.lifecycle import Lifecycle, Reset, Root
from verditer.core.records.record import Record


class Horizon(Record, tag=1, frozen=True, kw_only=True):
    """Removal horizon of one process: it has no read or upload running that began before `oldest`.

    `heartbeat` changes with every announcement. A process whose heartbeat stays the same is dead (`services/activity.py`).
    """

    TABLE = "horizon"
    KEY = ("process",)
    LIFECYCLE = Lifecycle(parent=Root.STORE, extents=None, owns=(), expiry=None, reset=Reset.KEPT)

    process: str
    oldest: int
    heartbeat: int
