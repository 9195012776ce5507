"""Opportunistic locks: what a handle may cache, when a lock is granted, and what breaks it.

The levels are those of MS-SMB2 2.2.13. A break from EXCLUSIVE or BATCH takes effect when its holder acknowledges it; a break from
LEVEL_II takes effect at once. For REST requests the rules are those of the page "Managing file locks in Azure Files".
"""

from collections.abc import Iterable, Sequence
from enum import Enum, IntEnum
from typing import NamedTuple, Protocol

from verditer.core.dates import seconds


class OplockLevel(IntEnum):
    NONE = 0
    LEVEL_II = 1  # the holder may cache what it reads
    EXCLUSIVE = 8  # and what it writes
    BATCH = 9  # and that the file is open


NONE, LEVEL_II, EXCLUSIVE, BATCH = OplockLevel

BREAK_TICKS = seconds(35)  # a holder that has not acknowledged for so long loses its oplock, as on Windows
REST_WAIT_TICKS = seconds(30)  # that a REST request waits for a break


class OplockEffect(Enum):
    """What an operation means to the oplocks of other handles."""

    NOTHING = "it sees and changes no content"
    READS = "what the holder has written must be seen"
    WRITES = "nothing that was read may be cached"
    CLOSES = "the holder may have closed the file without telling so"


# The level that each level goes back to. Levels that are not named stay.
_AFTER: dict[OplockEffect, dict[int, OplockLevel]] = {
    OplockEffect.NOTHING: {},
    OplockEffect.READS: {EXCLUSIVE: LEVEL_II, BATCH: LEVEL_II},
    OplockEffect.WRITES: {LEVEL_II: NONE, EXCLUSIVE: NONE, BATCH: NONE},
    OplockEffect.CLOSES: {BATCH: LEVEL_II},
}


class OplockHolder(Protocol):
    @property
    def handle_id(self) -> int: ...

    @property
    def access(self) -> int: ...

    @property
    def oplock(self) -> int: ...

    @property
    def breaks_to(self) -> int | None: ...


class Break(NamedTuple):
    """An oplock that has to go back to a level. `waits`: the holder has to acknowledge."""

    handle_id: int
    level: OplockLevel
    waits: bool


def breaks_of(effect: OplockEffect, handles: Iterable[OplockHolder], *, own: int | None = None) -> tuple[Break, ...]:
    """What an operation through the handle `own`, or through none, has to break first. Level II of the handle itself is broken,
    too: SMB clients expect a break when they write."""
    table = _AFTER[effect]
    found = ((handle, table.get(handle.oplock)) for handle in handles if handle.oplock)
    return tuple(
        Break(handle.handle_id, level, handle.oplock != LEVEL_II)
        for handle, level in found
        if level is not None and (handle.handle_id != own or handle.oplock == LEVEL_II)
    )


def granted_oplock(
    wanted: OplockLevel, others: Sequence[OplockHolder], *, is_directory: bool, only_looks: bool, has_locks: bool
) -> OplockLevel:
    """The level that a new open gets. `others` are the other handles on the file, after all breaks. `only_looks`: the open has no
    access to the content of a file that was there."""
    if wanted is NONE or is_directory or only_looks or has_locks:
        return NONE
    if any(handle.oplock >= EXCLUSIVE for handle in others):
        return NONE
    return LEVEL_II if any(handle.access or handle.oplock for handle in others) else wanted


def acknowledged_level(holder: OplockHolder, level: OplockLevel) -> OplockLevel | None:
    """The level of a holder that acknowledges a break. None: it has nothing to acknowledge, or not with this level."""
    if holder.breaks_to is None or level not in (NONE, LEVEL_II):
        return None
    return OplockLevel(min(level, holder.breaks_to))
