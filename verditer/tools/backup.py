"""Backup and restore of the embedded store. A backup is a folder that a server could serve: a database and extents.
The store may be served meanwhile. Extents never change, so most are copied first; then SQLite copies the database in one read
transaction, the state of one commit; then the extents that this state names and that came meanwhile are copied. The collector
leaves an extent alone for a minute after its last name is gone, which is longer than the last step takes. If one is missing
nevertheless, the steps are repeated. A list of all extents with their digests is written last: a folder without it is no backup.
"""

import hashlib
import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from verditer.core.records.catalog import RECORDS
from verditer.partition import migrations, schema
from verditer.partition.engine import EngineUnavailable
from verditer.stream.local import SHARDS, sync_folder
from verditer.tools.needs import extents_needed_by
from verditer.tools.progress import ProgressLine
from verditer.tools.stores import DATABASE

EXTENTS, MANIFEST = "extents", "backup.json"
ATTEMPTS = 5
_CHUNK = 1 << 20


class ExtentEntry(msgspec.Struct, frozen=True, kw_only=True):
    size_bytes: int
    digest: str  # BLAKE2b, 32 bytes, hexadecimal


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    tick: int  # every commit before this tick is in the backup
    schema: int
    records: int
    extents: dict[str, ExtentEntry]
    format: int = 1


class NotABackup(EngineUnavailable):
    """The folder holds no complete backup, or one that was changed."""


def back_up(source: Path, target: Path, progress: ProgressLine) -> Manifest:
    if not (source / DATABASE).exists():
        raise EngineUnavailable(f"{source} holds no store")
    with _new_folder(target):
        entries: dict[str, ExtentEntry] = {}
        for _ in range(ATTEMPTS):
            _copy_extents(source, target, _stored(source), entries, progress)
            _copy_database(source, target)
            _require_schema(target / DATABASE)
            needed, records, tick = _contents(target / DATABASE)
            if _copy_extents(source, target, set(needed), entries, progress):
                break
        else:
            raise EngineUnavailable(f"extents disappeared in each of {ATTEMPTS} attempts to copy the store")
        for extent in entries.keys() - needed.keys():
            _path(target, extent).unlink()
        manifest = Manifest(
            tick=tick,
            schema=migrations.VERSION,
            records=records,
            extents={extent: entries[extent] for extent in sorted(needed)},
        )
        _write_synced(target / MANIFEST, msgspec.json.encode(manifest))
        _sync_folders(target)
    progress.finish()
    return manifest


def restore(source: Path, target: Path, progress: ProgressLine) -> Manifest:
    """Every extent is compared with its digest while it is copied. The database comes last: a folder without it is no store."""
    try:
        manifest = msgspec.json.decode((source / MANIFEST).read_bytes(), type=Manifest)
    except (OSError, msgspec.DecodeError) as error:
        raise NotABackup(f"{source} holds no complete backup: {error}") from None
    migrations.require_known(manifest.schema)
    with _new_folder(target):
        for number, (extent, entry) in enumerate(manifest.extents.items()):
            progress.show("extents", number, len(manifest.extents))
            copied = _copy_file(_path(source, extent), _path(target, extent))
            if copied != entry:
                raise NotABackup(f"extent {extent} of the backup is missing or was changed")
        _copy_database(source, target)
        if manifest.schema == migrations.VERSION:  # records of an earlier one can be read when a server has opened the store
            _require_extents(source, _contents(target / DATABASE)[0], manifest)
        _sync_folders(target)
    progress.finish()
    return manifest


def _require_extents(source: Path, needed: dict[str, int], manifest: Manifest) -> None:
    for extent, size in needed.items():
        if extent not in manifest.extents or manifest.extents[extent].size_bytes < size:
            raise NotABackup(f"{source} was written to since it was made: a record names extent {extent}. Use `verditer copy`")


def _require_schema(database: Path) -> None:
    connection = sqlite3.connect(database)
    try:
        (version,) = connection.execute(migrations.VERSION_QUERY).fetchone()
    except sqlite3.Error as error:
        raise EngineUnavailable(f"the database cannot be read: {error}. Run `verditer check`") from None
    finally:
        connection.close()
    migrations.require_known(version)
    if version < migrations.VERSION:
        raise EngineUnavailable(
            f"the store has schema version {version}: back it up with the verditer that made it, or serve it once with this one"
        )


@contextmanager
def _new_folder(folder: Path) -> Iterator[None]:
    """What fails or is interrupted leaves the folder as it was: absent or empty."""
    existed = folder.exists()
    if existed and any(folder.iterdir()):
        raise EngineUnavailable(f"{folder} is not empty: name a new folder, or remove what a killed attempt has left there")
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    try:
        yield
    except BaseException as error:
        for path in folder.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        if not existed:
            folder.rmdir()
        if isinstance(error, OSError) and error.filename is None:  # of a write, which does not say where
            raise OSError(error.errno, error.strerror, str(folder)) from error
        raise


def _stored(folder: Path) -> set[str]:
    return {path.name for shard in SHARDS for path in (folder / EXTENTS / shard).glob("*")}


def _copy_extents(source: Path, target: Path, extents: set[str], entries: dict[str, ExtentEntry], progress: ProgressLine) -> bool:
    """Copies those that were not copied yet. An extent that grows meanwhile is being written, and is copied again when it is
    named. Returns whether all of them were there."""
    missing = 0
    for number, extent in enumerate(sorted(extents)):
        progress.show("extents", number, len(extents))
        origin = _path(source, extent)
        known = entries.get(extent)
        if known is None or _size(origin) not in (None, known.size_bytes):
            copied = _copy_file(origin, _path(target, extent))
            if copied is not None:
                entries[extent] = copied
            missing += copied is None
    return not missing


def _copy_file(origin: Path, target: Path) -> ExtentEntry | None:
    """None when there is no such file."""
    digest, size = hashlib.blake2b(digest_size=32), 0
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        with origin.open("rb") as reading, target.open("wb") as writing:
            while data := reading.read(_CHUNK):
                digest.update(data)
                size += len(data)
                writing.write(data)
            writing.flush()
            os.fsync(writing.fileno())
    except FileNotFoundError:
        return None
    return ExtentEntry(size_bytes=size, digest=digest.hexdigest())


def _copy_database(source: Path, target: Path) -> None:
    """One read transaction of SQLite, whatever writes meanwhile."""
    part = target / f"{DATABASE}.part"
    part.unlink(missing_ok=True)
    origin = sqlite3.connect(f"file:{source / DATABASE}?mode=ro", uri=True)
    copy = sqlite3.connect(part)
    try:
        origin.backup(copy)
        copy.execute("PRAGMA journal_mode = DELETE")
    except sqlite3.Error as error:
        raise EngineUnavailable(f"the database cannot be copied: {error}") from None
    finally:
        copy.close()
        origin.close()
    with part.open("rb") as written:
        os.fsync(written.fileno())
    part.replace(target / DATABASE)


def _contents(database: Path) -> tuple[dict[str, int], int, int]:
    """The extents that records need, the number of records, and a tick behind every tick in the database."""
    connection = sqlite3.connect(database)
    connection.text_factory = bytes
    try:
        needed: dict[str, int] = {}
        records = 0
        for extent, size, count in _needs(connection):
            records += count
            if extent:
                needed[extent] = max(needed.get(extent, 0), size)
        (tick,) = connection.execute("SELECT max(reserved) FROM node").fetchone()
        return needed, records, int(tick)
    except (sqlite3.Error, msgspec.DecodeError) as error:
        raise EngineUnavailable(f"the database cannot be read: {error}. Run `verditer check`") from None
    finally:
        connection.close()


def _needs(connection: sqlite3.Connection) -> Iterator[tuple[str, int, int]]:
    tables = {name.decode() for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    for kind in RECORDS:
        if kind.TABLE not in tables:
            continue
        decode = schema.decoder(kind).decode
        for (body,) in connection.execute(f"SELECT body FROM {kind.TABLE}"):
            yield "", 0, 1
            if kind.LIFECYCLE.extents is not None:
                yield from ((extent, size, 0) for extent, size in extents_needed_by(decode(body)))


def _path(folder: Path, extent: str) -> Path:
    return folder / EXTENTS / extent[16:18] / extent


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return None


def _sync_folders(folder: Path) -> None:
    for path in (folder.parent, folder, *(path for path in folder.rglob("*") if path.is_dir())):
        sync_folder(path)


def _write_synced(path: Path, data: bytes) -> None:
    part = path.with_suffix(".part")
    with part.open("wb") as writing:
        writing.write(data)
        writing.flush()
        os.fsync(writing.fileno())
    part.replace(path)
