"""A store that an earlier program wrote is brought up to date when it is opened."""

from pathlib import Path

import pytest

from tests.contract.stores import PostgresStore, SqliteStore, Store, opened
from verditer.core.records.container import Tombstone
from verditer.core.records.content import InlineInterval
from verditer.core.records.queue import MessageCount
from verditer.core.records.record import EVERY_KEY, span_of
from verditer.core.records.table import Entity
from verditer.partition.engine import MemberBetween

SCOPE = ("account", "table", "entities", "p")
LENGTHS = [30, 255, 256, 257, 511, 512, 4096, 32768, 65280, 65535, 65536, 65792]
LAST = b'"Last":7}'


async def test_documents_of_step_one_are_found_by_the_prefilter_after_the_others(tmp_path: Path) -> None:
    """They were bytes and are text. Those whose length was written with a NUL, which GLOB does not look past, are a byte
    longer."""
    # race D2
    store = SqliteStore(tmp_path / "store")
    documents = {f"{length:06}": b'{"Z":"%b",%b' % (b"z" * (length - 17), LAST) for length in LENGTHS}
    assert [len(document) for document in documents.values()] == LENGTHS
    async with opened(store):
        pass
    undo_step_four(store)
    store.execute("DROP INDEX entity_unsifted")
    store.insert(*[_entity(name, document) for name, document in documents.items()])
    store.set_schema_version(1)
    for _ in range(2):  # once is enough
        async with opened(store) as engine:
            found = await engine.read(
                SCOPE, lambda tx: list(tx.scan(Entity, span_of(1), conditions=[MemberBetween("Last", 7, 7)])), long=True
            )
            assert {entity.row_key: entity.properties.rstrip(b" ") for entity in found} == documents
            assert [len(entity.properties) - int(entity.row_key) for entity in found] == [
                int(length % 256 == 0 and length < 65536) for length in LENGTHS
            ]
            assert {(entity.partition_key, entity.etag) for entity in found} == {("\x01 € 𝄞", 0x0100)}


async def test_documents_are_stored_so_that_the_prefilter_finds_them(tmp_path: Path) -> None:
    entities = [_entity(f"{length:06}", b'{"Z":"%b",%b' % (b"z" * (length - 17), LAST)) for length in LENGTHS]
    async with opened(SqliteStore(tmp_path / "store")) as engine:
        await engine.write([SCOPE], lambda tx: tx.put(entities[0]))
        await engine.write([SCOPE], lambda tx: tx.put(*entities[1:]))
        found = await engine.read(SCOPE, lambda tx: list(tx.scan(Entity, span_of(1), conditions=[MemberBetween("Last", 7, 7)])))
    assert [(entity.row_key, entity.properties.rstrip(b" ")) for entity in found] == [
        (entity.row_key, entity.properties) for entity in entities
    ]


@pytest.mark.parametrize("version", [1, 2, 3])
async def test_tombstones_of_step_three_are_found_after_step_four(kept_store: Store, version: int) -> None:
    store = kept_store
    assert isinstance(store, SqliteStore | PostgresStore)
    async with opened(store) as engine:
        await engine.write([("jobs",)], lambda tx: tx.put(Tombstone(id=7)))
    undo_step_four(store)
    if version < 3 and isinstance(store, SqliteStore):
        store.execute("DROP INDEX entity_unsifted")
    store.set_schema_version(version)
    for _ in range(2):
        async with opened(store) as engine:
            assert await engine.read(("jobs",), lambda tx: tx.get(Tombstone, 7)) == Tombstone(id=7)


@pytest.mark.parametrize("count", [0, 7, 255, 256, 70_000, 2**40, -3])
async def test_counts_of_messages_of_step_four_are_records_after_step_five(kept_store: Store, count: int) -> None:
    store = kept_store
    assert isinstance(store, SqliteStore | PostgresStore)
    queue_id = 0x0102030405060708
    async with opened(store):
        pass
    store.execute("DROP TABLE message_count")
    store.set_schema_version(4)
    if isinstance(store, SqliteStore):
        store.execute("CREATE TABLE counter (key BLOB PRIMARY KEY, value BIGINT NOT NULL) WITHOUT ROWID")
        store.execute(f"INSERT INTO counter VALUES (x'{queue_id:016x}', {count})")
    else:
        store.execute("CREATE TABLE counter (key BYTEA PRIMARY KEY, value BIGINT NOT NULL)")
        for lane, part in ((3, count - 5), (60, 5)):
            store.execute(f"INSERT INTO counter VALUES ('\\x{queue_id:016x}{lane:016x}', {part})")
    for _ in range(2):
        async with opened(store) as engine:
            found = await engine.read(("jobs",), lambda tx: list(tx.scan(MessageCount, span_of(queue_id))))
            assert found == [MessageCount(queue_id=queue_id, lane=0, count=count)]


async def test_the_index_of_step_seven_loses_the_first_intervals_of_each_content(kept_store: Store) -> None:
    store = kept_store
    assert isinstance(store, SqliteStore | PostgresStore)
    starts = [0, 1, (4 << 20) - 1, 4 << 20, 5 << 40]
    index = [InlineInterval(content_id=content, start=start, length=7) for content in (3, 2**62) for start in starts]
    async with opened(store) as engine:
        await engine.write([("jobs",)], lambda tx: tx.put(*index))
    store.set_schema_version(7)
    for _ in range(2):
        async with opened(store) as engine:
            found = await engine.read(("jobs",), lambda tx: list(tx.scan(InlineInterval, EVERY_KEY)))
            assert found == [row for row in index if row.start >= 4 << 20]


def undo_step_four(store: SqliteStore | PostgresStore) -> None:
    store.execute("ALTER TABLE tombstone RENAME TO forgotten")
    if isinstance(store, SqliteStore):
        store.execute("DROP INDEX entity_large", "CREATE INDEX entity_unsifted ON entity (key)")


def _entity(name: str, document: bytes) -> Entity:
    return Entity(properties=document, table_id=1, partition_key="\x01 € 𝄞", row_key=name, etag=0x0100)
