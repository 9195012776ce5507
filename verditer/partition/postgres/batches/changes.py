"""The changes that the bodies of one transaction make to records, and the statements that send them."""

from typing import NamedTuple

from verditer.core.records.record import Record
from verditer.partition import schema
from verditer.partition.postgres.batches.fetched import RecordCache, RecordKind
from verditer.partition.postgres.pipeline import PipelineCall
from verditer.partition.postgres.statements import batch_statements_of
from verditer.partition.postgres.wire_values import bytes_array

ChangedRecords = dict[RecordKind, dict[bytes, Record | None]]
"""By class and key: the record that was put, or None for one that was deleted."""

COMMIT = PipelineCall(b"COMMIT")
_NO_SYNC = PipelineCall(b"SET LOCAL synchronous_commit = off")


class EncodedRecord(NamedTuple):
    kind: RecordKind
    key: bytes
    body: bytes = b""
    record: Record | None = None  # None: it was deleted


def calls_of(changes: ChangedRecords) -> tuple[list[PipelineCall], list[EncodedRecord]]:
    """The statements that make the changes, table by table and key by key, so that transactions seldom wait in a circle."""
    calls: list[PipelineCall] = []
    encoded: list[EncodedRecord] = []
    for kind in sorted(changes, key=lambda kind: kind.TABLE):
        changed = changes[kind]
        if deleted := sorted([key for key, record in changed.items() if record is None]):
            calls.append(PipelineCall(batch_statements_of(kind).delete, (bytes_array(deleted),)))
            encoded += [EncodedRecord(kind, key) for key in deleted]
        if records := [record for _, record in sorted(changed.items(), key=_key) if record is not None]:
            rows = [schema.row_of(record) for record in records]
            columns = zip(*rows, strict=True)
            calls.append(PipelineCall(batch_statements_of(kind).put, tuple([bytes_array(column) for column in columns])))
            encoded += [EncodedRecord(kind, row[0], row[-1], record) for row, record in zip(rows, records, strict=True)]
    return calls, encoded


def commit_of(changes: ChangedRecords) -> list[PipelineCall]:
    """Nobody waits for the disk when only volatile records were changed."""
    is_volatile = all(kind.LIFECYCLE.volatile for kind, changed in changes.items() if changed)
    return [_NO_SYNC, COMMIT] if is_volatile else [COMMIT]


def cache_written(cache: RecordCache, encoded: list[EncodedRecord]) -> None:
    """What was just written is likely to be read next."""
    for kind, key, body, record in encoded:
        if record is None:
            cache.pop((kind, key), None)
        else:
            cache.add(kind, key, body, record)


def _key(item: tuple[bytes, Record | None]) -> bytes:
    return item[0]
