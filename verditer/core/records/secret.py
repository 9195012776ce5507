"""Secrets of the store, shared by all its processes."""

from verditer.core.records.lifecycle import Lifecycle, Reset, Root
from verditer.core.records.record import Record


class Secret(Record, tag=1, frozen=True, kw_only=True):
    """Random bytes from which the server derives keys, such as the keys of user delegation SAS."""

    TABLE = "secret"
    KEY = ("name",)
    LIFECYCLE = Lifecycle(parent=Root.STORE, extents=None, owns=(), expiry=None, reset=Reset.KEPT)

    name: str
    value: bytes
