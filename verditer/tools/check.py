"""Verifies a store: every record can be read, every extent that a record names is there and long enough, orphans are counted.
The store may be in use if it is one of several nodes' (PostgreSQL): what seems to be missing is looked for a second time. With
`digests`, every named extent is read as far as records need it (`extent_digests.py`).
"""

import sqlite3
from dataclasses import dataclass, field

import msgspec

from verditer.core.records.catalog import RECORDS
from verditer.core.records.record import EVERY_KEY, Record, Span
from verditer.partition.engine import Engine, Transaction
from verditer.stream.extents import ExtentStore
from verditer.tools.extent_digests import ExtentDigests
from verditer.tools.needs import extents_needed_by, releases
from verditer.tools.progress import ProgressLine

PAGE = 1000  # records of one transaction
MAX_SHOWN = 20  # of each complaint


@dataclass
class Findings:
    records: int = 0
    extents: int = 0  # that records name
    extent_bytes: int = 0
    released: int = 0  # waiting for the collector
    orphans: int = 0
    orphan_bytes: int = 0
    complaints: list[str] = field(default_factory=list)

    @property
    def is_sound(self) -> bool:
        return not self.complaints


async def check_store(
    engine: Engine, extents: ExtentStore, progress: ProgressLine, digests: ExtentDigests | None = None
) -> Findings:
    findings = Findings()
    needed, released = await _scan_records(engine, findings, progress)
    stored = {extent: size async for extent, size in extents.list()}
    suspects = [extent for extent, size in needed.items() if stored.get(extent, -1) < size]
    if suspects:  # they may have been removed with their records meanwhile
        again, _ = await _scan_records(engine, Findings(), progress)
        stored |= {extent: size async for extent, size in extents.list()}
        for extent in suspects:
            if extent in again and stored.get(extent, -1) < again[extent]:
                findings.complaints.append(_missing(extent, again[extent], stored.get(extent)))
    _count_extents(findings, needed, released, stored)
    if digests is not None:
        whole = {extent: size for extent, size in needed.items() if extent not in suspects}
        complaints = await digests.read_all(extents, whole, progress)
        if complaints:  # nodes may have removed some with their records meanwhile
            again, _ = await _scan_records(engine, Findings(), progress)
            findings.complaints += [complaint for extent, complaint in complaints.items() if extent in again]
    progress.finish()
    return findings


async def _scan_records(engine: Engine, findings: Findings, progress: ProgressLine) -> tuple[dict[str, int], set[str]]:
    """The bytes that are needed of each extent, and the extents that are released."""
    needed: dict[str, int] = {}
    released: set[str] = set()
    for kind in RECORDS:
        span: Span | None = EVERY_KEY
        while span is not None:
            try:
                page, span, complaint = await engine.read((), _PageReader(kind, span), long=True)
            except sqlite3.DatabaseError as error:
                page, span, complaint = [], None, f"table {kind.TABLE} cannot be read: {error}"
            if complaint:
                findings.complaints.append(complaint)
            for record in page:
                for extent, size in extents_needed_by(record):
                    needed[extent] = max(needed.get(extent, 0), size)
                released.update(releases(record))
            findings.records += len(page)
            progress.show("records", findings.records)
    return needed, released


class _PageReader:
    """A transaction body."""

    def __init__(self, kind: type[Record], span: Span) -> None:
        self._kind = kind
        self._span = span

    def __call__(self, tx: Transaction) -> tuple[list[Record], Span | None, str]:
        """Records, the rest of the span, and what is wrong. Behind a record that cannot be decoded its table is not read
        further."""
        page: list[Record] = []
        try:
            for record in tx.scan(self._kind, self._span, limit=PAGE):
                page.append(record)
        except (msgspec.DecodeError, msgspec.ValidationError) as error:
            place = f"behind {page[-1].key().hex()}" if page else f"from {self._span.low.hex() or 'the start'} on"
            return page, None, f"table {self._kind.TABLE}: a record {place} cannot be read: {error}"
        return page, self._span.after(page[-1].key()) if len(page) == PAGE else None, ""


def _missing(extent: str, needed: int, stored: int | None) -> str:
    if stored is None:
        return f"extent {extent} is missing; records need {needed} bytes of it"
    return f"extent {extent} has {stored} bytes; records need {needed}"


def _count_extents(findings: Findings, needed: dict[str, int], released: set[str], stored: dict[str, int]) -> None:
    findings.extents = len(needed)
    findings.released = len(released - needed.keys())
    for extent, size in stored.items():
        if extent in needed:
            findings.extent_bytes += size
        elif extent not in released:
            findings.orphans += 1
            findings.orphan_bytes += size
