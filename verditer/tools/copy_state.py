"""What an unfinished copy has done: a file with a line for each extent that the target has completely.

A killed copy may leave half a line. Lines that cannot be read do not count: their extents are copied again.
"""

import contextlib
from pathlib import Path

import msgspec

from verditer.partition.engine import EngineUnavailable

_FILE = "copied.jsonl"


class CopyOfStore(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    source: str
    target: str


class CopiedExtent(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    extent: str
    length: int
    digest: str  # BLAKE2b, 32 bytes, hexadecimal


_decoder = msgspec.json.Decoder(CopyOfStore | CopiedExtent)


def is_unfinished(folder: Path) -> bool:
    return (folder / _FILE).exists()


class StoreCopyState:
    """Raises EngineUnavailable when the folder holds the state of another copy."""

    def __init__(self, folder: Path, source: str, target: str) -> None:
        self.extents: dict[str, CopiedExtent] = {}
        self._path = folder / _FILE
        wanted = CopyOfStore(source=source, target=target)
        found = self._read()
        if found not in (None, wanted):
            raise EngineUnavailable(
                f"{folder} holds the state of another copy: from {found.source} to {found.target}. Finish that one, remove the"
                " folder to give it up, or name another folder with --work"
            )
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._file = self._path.open("ab", buffering=0)
        self._file.write(b"\n")  # behind what may be half a line
        if found is None:
            self._append(wanted)

    def add(self, copied: CopiedExtent) -> None:
        self.extents[copied.extent] = copied
        self._append(copied)

    def close(self) -> None:
        self._file.close()

    def remove(self) -> None:
        """The copy is complete: the next one between the same stores begins anew."""
        self._path.unlink()
        with contextlib.suppress(OSError):  # the operator may keep something else there
            self._path.parent.rmdir()

    def _append(self, line: CopyOfStore | CopiedExtent) -> None:
        self._file.write(msgspec.json.encode(line) + b"\n")

    def _read(self) -> CopyOfStore | None:
        found = None
        lines = self._path.read_bytes().split(b"\n") if self._path.exists() else []
        for line in lines:
            try:
                entry = _decoder.decode(line)
            except msgspec.DecodeError:
                continue
            if isinstance(entry, CopiedExtent):
                self.extents[entry.extent] = entry
            else:
                found = entry
        return found
