"""Reads every extent that records name, and compares it with its digest if one is known.

Records hold no digest of an extent. An extent never changes, so the digest of the first check holds for all later ones: a file
keeps them from check to check.
"""

import hashlib
from pathlib import Path

import msgspec

from verditer.stream.extents import ExtentMissing, ExtentStore
from verditer.tools.backup import ExtentEntry
from verditer.tools.progress import ProgressLine


class ExtentDigests:
    """Without a file, nothing is known and nothing is kept."""

    def __init__(self, file: Path | None = None) -> None:
        self._file = file
        self._known: dict[str, ExtentEntry] = {}
        self._kept: dict[str, ExtentEntry] = {}
        if file is not None and file.exists():
            try:
                self._known = msgspec.json.decode(file.read_bytes(), type=dict[str, ExtentEntry])
            except msgspec.DecodeError as error:
                raise ValueError(f"{file} is no list of digests: {error}") from None

    async def read_all(self, extents: ExtentStore, needed: dict[str, int], progress: ProgressLine) -> dict[str, str]:
        """What is wrong, by extent."""
        complaints = {}
        for number, (extent, size) in enumerate(needed.items()):
            progress.show("extents read", number, len(needed))
            complaint = await self._read(extents, extent, size)
            if complaint:
                complaints[extent] = complaint
        return complaints

    def save(self, *, is_sound: bool) -> None:
        """The digests of the extents that were read. Of a damaged one, that of before. Of a store that is not sound, also those
        of extents that were not read: they may be missing, and be brought back."""
        if self._file is not None:
            part = self._file.with_name(f"{self._file.name}.part")
            part.write_bytes(msgspec.json.encode(self._kept if is_sound else self._known | self._kept))
            part.replace(self._file)

    async def _read(self, extents: ExtentStore, extent: str, size: int) -> str:
        known = self._known.get(extent)
        digested = known.size_bytes if known is not None else size
        digest, read = hashlib.blake2b(digest_size=32), 0
        try:
            async for piece in extents.read(extent, 0, max(size, digested)):
                digest.update(piece[: max(0, digested - read)])
                read += len(piece)
        except ExtentMissing:
            read = -1
        found = ExtentEntry(size_bytes=digested, digest=digest.hexdigest())
        self._kept[extent] = known or found
        if read != max(size, digested):
            return f"extent {extent} cannot be read as far as byte {max(size, digested)}"
        return f"extent {extent} was changed since the digest was taken" if known not in (None, found) else ""
