"""Copies a whole store: from a folder to PostgreSQL and S3, back, or between two of a kind.
The records of the source are read in one transaction (`spool.py`). Then the extents they name are copied under the same ids, and
then the records. At the end both are read back from the target and compared by digest. Interrupted, the copy goes on where it
was, with the records it has read: an extent that is complete is not sent again (`copy_state.py`); the records are put from the
first one on. Nothing may serve the target meanwhile. What runs only, such as open handles of SMB clients, is not copied.
"""

import asyncio
import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from verditer.core.dates import iso
from verditer.core.errors import StorageError
from verditer.core.records.record import EVERY_KEY, Record, Span
from verditer.partition import schema
from verditer.partition.engine import Engine, EngineUnavailable
from verditer.services.activity import ANNOUNCE_SECONDS, Activity
from verditer.stream.extents import ExtentMissing, ExtentStore
from verditer.tools.copy_state import CopiedExtent, StoreCopyState
from verditer.tools.needs import extents_needed_by
from verditer.tools.progress import ProgressLine
from verditer.tools.spool import KINDS, Spool, SpoolIndex, TableDigest
from verditer.tools.stores import OpenStore, naming_damage

PAGE = 200  # records of one transaction


class CopiedAmounts(NamedTuple):
    records: int
    extents: int
    extent_bytes: int


async def copy_store(source: OpenStore, target: OpenStore, work: Path, progress: ProgressLine) -> CopiedAmounts:
    """`work` is a folder for the spool and the state of the copy, which are removed when it is complete."""
    spool = Spool(work / "spool")
    unfinished = spool.index
    if unfinished is None:
        await _require_empty(target)
    else:
        progress.say(f"going on with the records of {iso(unfinished.tick)}; what was written later is not copied")
    state = StoreCopyState(work, source.address.shown, target.address.shown)
    try:
        copied = await _copy(source, target, state, spool, progress)
    finally:
        state.close()
    spool.remove()
    state.remove()
    progress.finish()
    return copied


async def _copy(
    source: OpenStore, target: OpenStore, state: StoreCopyState, spool: Spool, progress: ProgressLine
) -> CopiedAmounts:
    async with _announced(source.engine):
        index = spool.index
        if index is None:
            with naming_damage(source.address):
                index = await source.engine.read((), spool.fill, long=True)
        needed = _needed(spool, index)
        await _copy_extents(source, target, needed, state, progress)
    await _load_records(target.engine, spool, index, progress)
    await _verify_records(target.engine, index, progress)
    await _verify_extents(target.extents, needed, state, progress)
    await _catch_up(target.engine, index.tick)
    return CopiedAmounts(index.records, len(needed), sum(needed.values()))


@asynccontextmanager
async def _announced(engine: Engine) -> AsyncIterator[None]:
    """The collectors of the source keep what the copy reads, as for any running read. A copy that fails leaves its announcement,
    which counts for another ten minutes: it may be run again."""
    activity = Activity()
    with activity.begin(engine.now()):
        await activity.announce(engine)
        announcing = asyncio.create_task(_announce_on(activity, engine))
        try:
            yield
        finally:
            announcing.cancel()
            await asyncio.gather(announcing, return_exceptions=True)
    await activity.withdraw(engine)


async def _announce_on(activity: Activity, engine: Engine) -> None:
    """Collectors do not count a process that has been silent for ten minutes."""
    while True:
        await asyncio.sleep(ANNOUNCE_SECONDS)
        with suppress(StorageError):  # the next announcement is soon enough
            await activity.announce(engine)


async def _require_empty(target: OpenStore) -> None:
    for kind in KINDS.values():
        if await target.engine.read((), lambda tx, kind=kind: next(tx.scan(kind, EVERY_KEY, limit=1), None), long=True):  # type: ignore[misc]
            raise EngineUnavailable(f"the target holds records already (table {kind.TABLE})")
    async for extent, _ in target.extents.list():
        raise EngineUnavailable(f"the target holds extents already, such as {extent}. They may belong to another store")


def _needed(spool: Spool, index: SpoolIndex) -> dict[str, int]:
    needed: dict[str, int] = {}
    for table in index.tables:
        if KINDS[table].LIFECYCLE.extents is not None:
            for record in spool.records(table):
                for extent, size in extents_needed_by(record):
                    needed[extent] = max(needed.get(extent, 0), size)
    return needed


async def _copy_extents(
    source: OpenStore, target: OpenStore, needed: dict[str, int], state: StoreCopyState, progress: ProgressLine
) -> None:
    """An extent is copied as far as records need it: what is behind was never named."""
    sizes = {extent: size async for extent, size in source.extents.list() if extent in needed}
    for number, extent in enumerate(sorted(needed.keys() - state.extents.keys())):
        progress.show("extents", number + len(state.extents), len(needed))
        length = sizes.get(extent, 0)
        if length < needed[extent]:
            raise _missing_in_source(extent)
        state.add(await _copy_extent(source.extents, target, extent, length))


def _missing_in_source(extent: str) -> EngineUnavailable:
    return EngineUnavailable(
        f"extent {extent} of the source is missing or too short. If the copy was interrupted and the source served on, "
        "it may have deleted that: empty the target, remove the work folder and begin anew. Else run `verditer check`"
    )


async def _copy_extent(source: ExtentStore, target: OpenStore, extent: str, length: int) -> CopiedExtent:
    await target.extents.delete(extent)  # what an interrupted copy has left
    target.extent_id = extent
    writer = target.extents.new()
    target.extent_id = None
    digest = hashlib.blake2b(digest_size=32)
    try:
        async for piece in source.read(extent, 0, length):
            digest.update(piece)
            await writer.write(piece)
        await writer.commit()
    except BaseException as error:
        await writer.abort()
        if isinstance(error, ExtentMissing):
            raise _missing_in_source(extent) from None
        raise
    return CopiedExtent(extent=extent, length=length, digest=digest.hexdigest())


async def _load_records(engine: Engine, spool: Spool, index: SpoolIndex, progress: ProgressLine) -> None:
    """Records that are there already are put again: the target has no others."""
    done = 0
    for table in index.tables:
        page: list[Record] = []
        for record in spool.records(table):
            page.append(record)
            if len(page) == PAGE:
                await _put(engine, page)
                done, page = done + len(page), []
                progress.show("records", done, index.records)
        if page:
            await _put(engine, page)
            done += len(page)
            progress.show("records", done, index.records)


async def _put(engine: Engine, page: list[Record]) -> None:
    await engine.write([()], lambda tx: tx.put(*page))


async def _verify_records(engine: Engine, index: SpoolIndex, progress: ProgressLine) -> None:
    for table, expected in index.tables.items():
        digest = TableDigest()
        async for record in _all_records(engine, KINDS[table]):
            digest.add(schema.encode(record))
        progress.show("tables verified", list(index.tables).index(table), len(index.tables))
        if digest.entry != expected:
            raise EngineUnavailable(f"table {table} of the target differs from the source: {digest.entry} is not {expected}")


async def _all_records(engine: Engine, kind: type[Record]) -> AsyncIterator[Record]:
    span: Span | None = EVERY_KEY
    while span is not None:
        here = span
        page = await engine.read((), lambda tx, here=here: list(tx.scan(kind, here, limit=PAGE)), long=True)  # type: ignore[misc]
        for record in page:
            yield record
        span = here.after(page[-1].key()) if len(page) == PAGE else None


async def _verify_extents(extents: ExtentStore, needed: dict[str, int], state: StoreCopyState, progress: ProgressLine) -> None:
    for number, extent in enumerate(needed):
        progress.show("extents verified", number, len(needed))
        expected = state.extents[extent]
        digest = hashlib.blake2b(digest_size=32)
        try:
            async for piece in extents.read(extent, 0, expected.length):
                digest.update(piece)
        except ExtentMissing:
            raise EngineUnavailable(f"extent {extent} is missing in the target") from None
        if digest.hexdigest() != expected.digest:
            raise EngineUnavailable(f"extent {extent} of the target differs from the source")


async def _catch_up(engine: Engine, tick: int) -> None:
    """The clock of the target must not be behind the source's: ETags and versions are times."""
    behind = tick - await engine.read((), lambda tx: tx.now)
    if behind > 0:
        await engine.move_clock(behind)
