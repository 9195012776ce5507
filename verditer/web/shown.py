"""How states of the store look in JSON: times as ISO 8601, ETags as in headers. JavaScript's numbers are too short for ticks."""

from typing import Any

import msgspec

from verditer.core.dates import MAX_TICKS, iso
from verditer.rest.codecs.etag import show, show_entity
from verditer.services.inspection import Inspection

_TIMES = frozenset({"now", "ends", "id", "expires", "opened", "inserted", "receipt_issued", "reappears"})


def show_inspection(inspection: Inspection) -> dict[str, Any]:
    document: dict[str, Any] = _shown(msgspec.to_builtins(inspection))
    if inspection.etag is not None:
        document["changed"] = iso(inspection.etag)
        if inspection.kind == "entity":
            document["etag"] = show_entity(inspection.etag)
    return document


def _shown(value: Any, name: str = "") -> Any:
    if isinstance(value, dict):
        return {key: _shown(item, key) for key, item in value.items()}
    if isinstance(value, list):
        return [_shown(item, name) for item in value]
    if name == "etag" and isinstance(value, int):
        return show(value)
    if name in _TIMES and isinstance(value, int):
        return "" if value >= MAX_TICKS else iso(value)
    return value
