"""Times of files and directories: what each operation does to them, and FILETIME for SMB.

Times are ticks of `core/dates.py`. A FILETIME is the same unit of 100 ns, counted from 1601.
"""

from enum import Enum

import msgspec

from verditer.core.dates import MAX_TICKS

FILETIME_EPOCH = 504_911_232_000_000_000  # ticks between 0001-01-01 and 1601-01-01


class Effect(Enum):
    """What an operation does to a property that its request does not give. A request may ask for it as well."""

    NOW = "now"
    KEEP = "preserve"
    SOURCE = "source"  # the value of the file that is copied
    INHERIT = "inherit"  # only permissions


GivenTime = int | Effect


class FileTimes(msgspec.Struct, frozen=True, kw_only=True):
    creation: int
    last_write: int
    change: int


class GivenTimes(msgspec.Struct, frozen=True, kw_only=True):
    """The times that a request gives."""

    creation: GivenTime | None = None
    last_write: GivenTime | None = None
    change: GivenTime | None = None


NONE_GIVEN = GivenTimes()


class TimeOperation(Enum):
    """One row per operation: what happens to a creation, last write and change time that is not given."""

    # fmt: off
    CREATE         = "create", Effect.NOW, Effect.NOW, Effect.NOW
    SET_PROPERTIES = "set properties", Effect.KEEP, Effect.KEEP, Effect.NOW
    RENAME         = "rename", Effect.KEEP, Effect.KEEP, Effect.NOW
    COPY           = "copy", Effect.NOW, Effect.NOW, Effect.NOW
    WRITE          = "write", Effect.KEEP, Effect.NOW, Effect.NOW
    SET_METADATA   = "set metadata", Effect.KEEP, Effect.KEEP, Effect.NOW
    SET_ATTRIBUTES = "set attributes over SMB", Effect.KEEP, Effect.KEEP, Effect.NOW
    # fmt: on

    @property
    def defaults(self) -> tuple[Effect, Effect, Effect]:
        return self.value[1:]


def resolve_times(
    operation: TimeOperation,
    given: GivenTimes,
    now: int,
    *,
    previous: FileTimes | None = None,
    source: FileTimes | None = None,
    is_resized: bool = False,
) -> FileTimes:
    """The times after an operation. Where a time is kept that does not exist yet, it is `now`.

    Set File Properties with a new size moves a last write time that would be kept: the content changes.
    """

    def resolve(field: str, default: Effect) -> int:
        asked: GivenTime | None = getattr(given, field)
        effect = default if asked is None else asked
        if isinstance(effect, int):
            return effect
        if effect is Effect.KEEP and is_resized and field == "last_write":
            effect = Effect.NOW
        times = previous if effect is Effect.KEEP else source if effect is Effect.SOURCE else None
        return now if times is None else getattr(times, field)

    if previous is None and source is None and given == NONE_GIVEN:
        return FileTimes(creation=now, last_write=now, change=now)
    creation, last_write, change = operation.defaults
    return FileTimes(
        creation=resolve("creation", creation), last_write=resolve("last_write", last_write), change=resolve("change", change)
    )


def to_filetime(ticks: int) -> int:
    return ticks - FILETIME_EPOCH


def from_filetime(filetime: int) -> int:
    """The caller handles the values 0, -1 and -2, which SMB clients send for times that are not set."""
    if not 0 <= filetime <= MAX_TICKS - FILETIME_EPOCH:
        raise ValueError(f"the FILETIME {filetime} is not between the years 1601 and 9999")
    return filetime + FILETIME_EPOCH
