"""What the store keeps to itself: random bytes from which keys are derived. All processes of a store share them."""

from verditer.core.records.record import Record


class Secret(Record, tag=1, frozen=True, kw_only=True):
    TABLE = "secret"
    KEY = ("name",)

    name: str
    value: bytes
