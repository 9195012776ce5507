"""Nodes of two releases on one database, as during a rolling upgrade: the newer one has prepared the store, the older one serves
on."""

import asyncio

import pytest

from tests.contract.stores import Job, Note, PostgresStore, opened
from verditer.core.records.lifecycle import Lifecycle, Reset, Root
from verditer.core.records.record import Record, span_of
from verditer.partition import schema
from verditer.partition.engine import EngineUnavailable, Transaction

SCOPE = ("account", "blob", "container", "blob")
OLDER: tuple[type[Record], ...] = (*schema.RECORDS, Note)


class NextNote(Record, frozen=True, kw_only=True, tag=1):
    """As `Note`, with the field that a release added."""

    TABLE = "test_note"
    KEY = ("space", "name")
    LIFECYCLE = Lifecycle(parent=Root.STORE, extents=None, owns=(), expiry=None, reset=Reset.KEPT)
    DOCUMENT = "data"

    data: bytes = b""
    space: int
    name: str
    value: int = 0
    colour: str = "none"


NEWER: tuple[type[Record], ...] = (*schema.RECORDS, NextNote, Job)


async def test_releases_with_different_fields_and_records_serve_side_by_side(postgres: PostgresStore) -> None:
    def increment_older(tx: Transaction) -> None:
        note = tx.get(Note, 1, "counter")
        tx.put(Note(space=1, name="counter", value=note.value + 1 if note is not None else 1))

    def increment_newer(tx: Transaction) -> None:
        note = tx.get(NextNote, 1, "counter")
        tx.put(NextNote(space=1, name="counter", value=note.value + 1 if note is not None else 1, colour="red"))

    async with opened(postgres, OLDER) as older, opened(postgres, NEWER) as newer:
        writes = [
            engine.write([SCOPE], body)
            for engine, body in ((older, increment_older), (newer, increment_newer))
            for _ in range(20)
        ]
        await asyncio.gather(*writes)
        await newer.write([SCOPE], increment_newer)
        await newer.write([SCOPE], lambda tx: tx.put(Job(queue="q", id=1, due=1)))
        read_by_older = await older.read(SCOPE, lambda tx: list(tx.scan(Note, span_of(1))))
        assert read_by_older == [Note(space=1, name="counter", value=41)]
        await older.write([SCOPE], increment_older)  # what it does not know, it does not keep
        read_by_newer = await newer.read(SCOPE, lambda tx: list(tx.scan(NextNote, span_of(1))))
        assert read_by_newer == [NextNote(space=1, name="counter", value=42)]


async def test_an_older_release_serves_on_after_a_schema_step_and_does_not_start_again(postgres: PostgresStore) -> None:
    async with opened(postgres) as older:
        postgres.set_schema_version(99)
        await older.write([SCOPE], lambda tx: tx.put(Note(space=1, name="n", value=7)))
        assert await older.read(SCOPE, lambda tx: tx.get(Note, 1, "n")) == Note(space=1, name="n", value=7)
        with pytest.raises(EngineUnavailable, match="schema version 99"):
            await postgres.build().open()
