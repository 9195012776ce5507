"""Fills the folder of a stopped server with thousands of blobs per transaction: the same records that requests would create.

`python benchmarks/filling.py FOLDER COUNT` runs as a file in a process of its own, so that it uses the package of the
measured server. Container `bench` gets COUNT blobs named by number in seven digits. Container `tree` gets COUNT tagged blobs
below one folder, a hundred to each value of the tag `group`, and a few blobs around that folder.
"""

import asyncio
import hashlib
import sys
from collections.abc import Iterator
from functools import partial
from itertools import islice
from pathlib import Path

from verditer.core.records.container import Container
from verditer.partition.engine import Transaction
from verditer.partition.sqlite.engine import SqliteEngine
from verditer.services.blob.kinds.block import NewBlobProperties, block_blob
from verditer.services.blob.tags import index_tags
from verditer.services.content.layout import put_inline

ACCOUNT = "devstoreaccount1"
BODY = b"v" * 128
MD5 = hashlib.md5(BODY, usedforsecurity=False).digest()
BATCH = 5_000
AROUND = 50  # blobs before the folder, and as many after it

Named = tuple[str, NewBlobProperties]
PLAIN = NewBlobProperties()


async def fill(folder: Path, count: int) -> None:
    engine = SqliteEngine(folder)
    await engine.open()
    try:
        await store(engine, "bench", ((f"{number:07d}", PLAIN) for number in range(count)))
        await store(engine, "tree", tree(count))
    finally:
        await engine.close()


def tree(count: int) -> Iterator[Named]:
    """In the order of their names, which is the key order of the table."""
    yield from ((f"a-{number:02d}", PLAIN) for number in range(AROUND))
    for group in range(0, count, 100):
        tagged = NewBlobProperties(tags={"group": f"{group // 100:05d}"})
        yield from ((f"folder/{number:07d}", tagged) for number in range(group, min(group + 100, count)))
    yield from ((f"z-{number:02d}", PLAIN) for number in range(AROUND))


async def store(engine: SqliteEngine, name: str, blobs: Iterator[Named]) -> None:
    scope = (ACCOUNT, "blob", name)

    def create(tx: Transaction) -> int:
        tick = tx.tick()
        tx.put(Container(account=ACCOUNT, name=name, id=tick, etag=tick))
        return tick

    container_id = await engine.write([scope], create)
    while batch := list(islice(blobs, BATCH)):
        await engine.write([scope], partial(put_all, container_id=container_id, batch=batch))


def put_all(tx: Transaction, *, container_id: int, batch: list[Named]) -> None:
    for name, headers in batch:
        tick = tx.tick()
        put_inline(tx, tick, BODY)
        blob = block_blob(container_id, name, headers, tick, size=len(BODY), inline=True, md5=MD5)
        index_tags(tx, None, blob)
        tx.put(blob)


if __name__ == "__main__":
    asyncio.run(fill(Path(sys.argv[1]), int(sys.argv[2])))
