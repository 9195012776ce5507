"""How much metadata a JSON answer of the Table service carries, and which properties of an entity it annotates."""

import msgspec

MINIMAL, NONE, FULL = "minimalmetadata", "nometadata", "fullmetadata"


class JsonFormat(msgspec.Struct, frozen=True, kw_only=True):
    level: str
    select: tuple[str, ...] | None = None  # None: every property
    select_text: str | None = None  # as the context of the answer repeats it
    content: bool = True  # the answer to an insert contains the entity


PLAIN = JsonFormat(level=MINIMAL)
