"""The wire forms of an ETag: quoted in headers, without quotes in listings, and as clients send it back in conditions.

An ETag is the tick of the write that made the version (`core/etag.py`). Blob writes it as a hexadecimal number, Table as the
Timestamp of the entity.
"""

import re
from functools import lru_cache

from verditer.core.conditions import ANY, EtagCondition
from verditer.core.dates import TICKS_PER_SECOND, parse_iso
from verditer.core.edm import datetime_text
from verditer.core.etag import Etag

_OURS = re.compile(r"0x(?:0|[1-9A-F][0-9A-F]{0,15})")
_LISTED = re.compile(r'(?:[^,"]|"[^"]*"?)+')  # between commas; a comma inside quotes belongs to the ETag


def show(etag: Etag) -> str:
    """The form in headers: quoted."""
    return f'"0x{etag:X}"'


def bare(etag: Etag) -> str:
    """The form in listings: without quotes."""
    return f"0x{etag:X}"


def parse_condition(text: str) -> EtagCondition | None:
    """A list of ETags, each with or without quotes, or `*`; None when the list is empty.

    This server issues strong ETags in one spelling only. A weak `W/"…"` or any other text is in the list and equals no version.
    """
    texts = [_unquoted(part.strip()) for part in _LISTED.findall(text) if part.strip()]
    if not texts:
        return None
    return EtagCondition(tuple(int(part, 16) if _OURS.fullmatch(part) else None for part in texts), any="*" in texts)


def _unquoted(text: str) -> str:
    return text[1:-1] if len(text) >= 2 and text[0] == text[-1] == '"' else text


def show_entity(etag: Etag) -> str:
    """The ETag of an entity: its Timestamp, with the colons escaped as in a URI."""
    whole, fraction = divmod(etag, TICKS_PER_SECOND)
    return f"{_second(whole)}{f'.{fraction:07}'.rstrip('0') if fraction else ''}Z'\""


@lru_cache(maxsize=4096)
def _second(whole: int) -> str:
    """The ETag of a moment in this second, up to the fraction."""
    text = datetime_text(whole * TICKS_PER_SECOND)[:-1]
    return f"W/\"datetime'{text.replace(':', '%3A')}"


_WEAK = re.compile(r'[wW]/("[^"]*")')
_ENTITY = re.compile(r"\"datetime'([^']*)'\"")


def parse_entity_condition(text: str) -> EtagCondition | None:
    """`*`, or one weak ETag, whose colons may be escaped or not; None for anything else."""
    if text == "*":
        return ANY
    weak = _WEAK.fullmatch(text)
    return None if weak is None else EtagCondition((_entity_ticks(weak[1].replace("%3A", ":").replace("%3a", ":")),))


def _entity_ticks(quoted: str) -> Etag | None:
    """This server writes a moment in one way only. A text that is written differently equals no version."""
    moment = _ENTITY.fullmatch(quoted)
    ticks = parse_iso(moment[1]) if moment is not None else None
    return ticks if moment is not None and ticks is not None and datetime_text(ticks) == moment[1] else None
