"""A store that an earlier program wrote is brought up to date when it is opened."""

from pathlib import Path

from tests.contract.stores import SqliteStore, opened
from verditer.core.records.record import span_of
from verditer.core.records.table import Entity
from verditer.partition.engine import Mark, Transaction

SCOPE = ("account", "table", "entities", "p")
LENGTHS = [30, 255, 256, 257, 511, 512, 4096, 32768, 65280, 65535, 65536, 65792]
LAST = b'"Last":7}'


async def test_documents_of_step_one_are_found_by_a_sieve_after_the_others(tmp_path: Path) -> None:
    """They were bytes and are text. Those whose length was written with a NUL, which a sieve does not look past, are a byte
    longer."""
    store = SqliteStore(tmp_path / "store")
    documents = {f"{length:06}": b'{"Z":"%b",%b' % (b"z" * (length - 17), LAST) for length in LENGTHS}
    assert [len(document) for document in documents.values()] == LENGTHS
    async with opened(store) as engine:
        await engine.write(SCOPE, lambda tx: _store(tx, documents))
    store.execute("DROP INDEX entity_unsifted", "UPDATE entity SET body = CAST(body AS BLOB)")
    store.set_schema_version(1)
    for _ in range(2):  # once is enough
        async with opened(store) as engine:
            found = await engine.scan(
                SCOPE, lambda tx: list(tx.scan(Entity, span_of(1), sieve=[Mark(b'"Last":', values=(b"7",))]))
            )
            assert {entity.row_key: entity.properties.rstrip(b" ") for entity in found} == documents
            assert [len(entity.properties) - int(entity.row_key) for entity in found] == [
                int(length % 256 == 0 and length < 65536) for length in LENGTHS
            ]
            assert {(entity.partition_key, entity.etag) for entity in found} == {("\x01 € 𝄞", 0x0100)}


def _store(tx: Transaction, documents: dict[str, bytes]) -> None:
    for name, document in documents.items():
        tx.put(Entity(properties=document, table_id=1, partition_key="\x01 € 𝄞", row_key=name, etag=0x0100))
