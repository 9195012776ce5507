"""The commands besides the server: `verditer check`, `backup`, `restore` and `copy`. Each works on a whole store (`tools`)."""

import argparse
import asyncio
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from verditer.core.errors import Code, StorageError
from verditer.flags import database_parts, extents_location, settings_file
from verditer.partition.engine import EngineUnavailable
from verditer.tools.backup import back_up, restore
from verditer.tools.check import MAX_SHOWN, check_store
from verditer.tools.copy import copy_store
from verditer.tools.copy_state import is_unfinished
from verditer.tools.extent_digests import ExtentDigests
from verditer.tools.progress import ProgressLine
from verditer.tools.stores import StoreAddress, opened

DEFAULT_LOCATION = Path("verditer-data")
DEFAULT_WORK = Path("verditer-copy")
_LOCATION = f"the folder of an embedded store (default: {DEFAULT_LOCATION})"


def check(arguments: argparse.Namespace) -> int:
    async def work() -> int:
        address = _address(arguments.location, arguments.database, arguments.extents)
        reads = arguments.read or arguments.digests is not None
        digests = ExtentDigests(arguments.digests) if reads else None
        async with opened(address, makes_store=False) as store:
            found = await check_store(store.engine, store.extents, ProgressLine(), digests)
        print(f"{found.records} records, {found.extents} extents with {found.extent_bytes} bytes")
        print(
            f"{found.released} released extents wait for the collector, {found.orphans} orphans with {found.orphan_bytes} bytes"
        )
        for complaint in found.complaints[:MAX_SHOWN]:
            print(complaint)
        if len(found.complaints) > MAX_SHOWN:
            print(f"and {len(found.complaints) - MAX_SHOWN} more")
        print("the store is sound" if found.is_sound else f"the store is damaged: {len(found.complaints)} complaints")
        if digests is not None:
            digests.save(is_sound=found.is_sound)
        return 0 if found.is_sound else 1

    return asyncio.run(work())


def backup_command(arguments: argparse.Namespace) -> int:
    manifest = back_up(arguments.location, arguments.to, ProgressLine())
    print(f"backed up {manifest.records} records and {len(manifest.extents)} extents into {arguments.to}")
    return 0


def restore_command(arguments: argparse.Namespace) -> int:
    manifest = restore(arguments.source, arguments.location, ProgressLine())
    print(f"restored {manifest.records} records and {len(manifest.extents)} extents into {arguments.location}")
    return 0


def copy(arguments: argparse.Namespace) -> int:
    async def work() -> int:
        source = _named_address(arguments.source, arguments.from_extents)
        target = _named_address(arguments.to, arguments.to_extents)
        if source == target:
            raise ValueError("the source and the target are the same store")
        if source.shares_extents_with(target):
            raise ValueError("the source and the target name the same place for extents; each store needs one of its own")
        if arguments.postgres_locks is not None:
            if target.database is None:
                raise ValueError("--postgres-locks is for a target in a database")
            target = target._replace(locks=arguments.postgres_locks)
        async with opened(source, makes_store=False) as one, opened(target) as other:
            try:
                copied = await copy_store(one, other, arguments.work, ProgressLine())
            except StorageError as error:
                if error.code is Code.InsufficientStorage:
                    raise EngineUnavailable(f"there is no space left for {target.shown}") from None
                raise
        print(
            f"copied {copied.records} records and {copied.extents} extents with {copied.extent_bytes} bytes, verified by digest"
        )
        return 0

    try:
        return asyncio.run(work())
    finally:
        if is_unfinished(arguments.work):
            print(f"{arguments.work} holds an unfinished copy: the command that began it goes on with it", file=sys.stderr)


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """The words that were not understood may be the URL of a database."""
        super().error(re.sub(r"(://[^:@/\s]*:|password=)[^@\s]+", r"\1***", message))


def command_parser() -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = _Parser(prog="verditer", description="Work on whole stores.")
    commands = parser.add_subparsers(required=True)
    one = _command(commands, "check", check, "verify that every record can be read and every extent is there")
    one.add_argument("--location", type=Path, default=DEFAULT_LOCATION, help=_LOCATION)
    one.add_argument("--database", help="a PostgreSQL URL; its nodes may be running")
    one.add_argument("--extents", help="s3://bucket/prefix")
    one.add_argument("--read", action="store_true", help="read every byte of every extent")
    one.add_argument(
        "--digests", type=Path, metavar="FILE", help="as --read; compare with the digests that the check before left in this file"
    )
    one = _command(commands, "backup", backup_command, "copy an embedded store into an empty folder; a server may be using it")
    one.add_argument("--location", type=Path, default=DEFAULT_LOCATION, help=_LOCATION)
    one.add_argument("--to", type=Path, required=True, help="a new or empty folder")
    one = _command(commands, "restore", restore_command, "make an embedded store from a backup")
    one.add_argument("--from", dest="source", type=Path, required=True, metavar="BACKUP", help="the folder of a backup")
    one.add_argument("--location", type=Path, default=DEFAULT_LOCATION, help=_LOCATION)
    one = _command(commands, "copy", copy, "copy a whole store into an empty one; may be interrupted and run again")
    one.add_argument("--from", dest="source", required=True, metavar="FROM", help="a folder, or a PostgreSQL URL")
    one.add_argument("--from-extents", help="s3://bucket/prefix, or a folder, if the source is a database")
    one.add_argument("--to", required=True, help="a folder, or a PostgreSQL URL")
    one.add_argument("--to-extents", help="s3://bucket/prefix, or a folder, if the target is a database")
    one.add_argument("--postgres-locks", choices=("advisory", "rows"), help="how writes lock in a target that is a database")
    one.add_argument(
        "--work", type=Path, default=DEFAULT_WORK, help=f"folder for the state of an unfinished copy (default: {DEFAULT_WORK})"
    )
    return parser


def _command(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]",
    name: str,
    function: Callable[[argparse.Namespace], int],
    description: str,
) -> argparse.ArgumentParser:
    one = commands.add_parser(name, help=description, description=description)
    one.set_defaults(function=function)
    return one


def run_command(arguments: list[str]) -> int:
    parsed = command_parser().parse_args(arguments)
    status: int = parsed.function(parsed)
    return status


def _address(folder: Path, database: str | None, extents: str | None) -> StoreAddress:
    if database is None:
        if extents is not None:
            raise ValueError("--extents needs --database: the embedded store keeps everything in one folder")
        return StoreAddress(folder)
    database_parts(database)
    return StoreAddress(folder, database, extents_location(extents, settings_file(None)) if extents is not None else None)


def _named_address(text: str, extents: str | None) -> StoreAddress:
    if "://" not in text and "=" not in text:
        if extents is not None:
            raise ValueError("a folder holds its extents itself")
        return StoreAddress(Path(text))
    database_parts(text)
    if extents is None:
        raise ValueError("a database needs --from-extents or --to-extents: s3://bucket/prefix, or the data folder")
    if extents.startswith("s3://"):
        return StoreAddress(DEFAULT_LOCATION, text, extents_location(extents, settings_file(None)))
    return StoreAddress(Path(extents), text)
