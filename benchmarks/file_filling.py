"""Fills one directory of a stopped server with thousands of files per transaction: the same records that requests would create.

`python benchmarks/file_filling.py FOLDER COUNT` runs as a file in a process of its own, so that it uses the package of the
measured server. The directory `folder` of share `bench` exists; it gets COUNT files named by number in seven digits.
"""

import asyncio
import sys
from functools import partial
from pathlib import Path

import msgspec

from verditer.core.files.names import fold
from verditer.core.names import FilePath
from verditer.partition.engine import Transaction
from verditer.partition.sqlite.engine import SqliteEngine
from verditer.services.content.intervals import write_interval
from verditer.services.file.current import locate
from verditer.services.file.files import new_content
from verditer.services.file.usage import add_usage
from verditer.stream.intake import Received

BODY = b"v" * 128
BATCH = 5_000
DIRECTORY = FilePath("devstoreaccount1", "bench", ("folder",), (fold("folder"),))


async def fill(folder: Path, count: int) -> None:
    engine = SqliteEngine(folder)
    await engine.open()
    try:
        for start in range(0, count, BATCH):
            numbers = range(start, min(start + BATCH, count))
            await engine.write([DIRECTORY.share_name.scope], partial(put_all, numbers=numbers))
    finally:
        await engine.close()


def put_all(tx: Transaction, *, numbers: range) -> None:
    located = locate(tx, DIRECTORY)
    directory = located.entry
    assert directory is not None
    received = Received(size=len(BODY), md5=b"", crc64=b"", inline=BODY)
    for number in numbers:
        tick = tx.tick()
        entry = msgspec.structs.replace(
            directory,
            parent_id=directory.node_id,
            folded=f"{number:07d}",
            name=f"{number:07d}",
            node_id=tick,
            is_directory=False,
            etag=tick,
            size=len(BODY),
            content_id=tick,
            intervals=new_content(tx, located.share, tick),
        )
        intervals = write_interval(tx, entry, 0, received)
        located.tree.put(tx, msgspec.structs.replace(entry, intervals=intervals), None)
    add_usage(tx, located.share.id, len(BODY) * len(numbers))


if __name__ == "__main__":
    asyncio.run(fill(Path(sys.argv[1]), int(sys.argv[2])))
