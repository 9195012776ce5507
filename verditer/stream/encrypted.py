"""Extents that are encrypted under a key of the client: AES-256 in counter mode, so that any range can be read.

A key stream is used once: its nonce is derived from the id of the extent, which is never issued twice. The key is not stored
anywhere. Counter mode does not detect changed bytes; the digests of blobs and of requests do.
"""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Sequence

from verditer.core.records.lifecycle import ExtentId
from verditer.stream.extents import ExtentFile, ExtentStore, ExtentWriter

BLOCK_BYTES = 16
NONCE_BYTES = 12  # the other four count blocks: enough for an extent of 64 GiB
INLINE_BYTES = 64 << 10  # a shorter piece is encrypted on the event loop: it takes less time than a switch between threads


class KeyStream:
    """The key stream of one extent from an offset on. Encryption and decryption are the same."""

    def __init__(self, key: bytes, extent: str, offset: int = 0) -> None:
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes  # importing takes 30 ms

        nonce = hashlib.sha256(f"verditer extent {extent}".encode()).digest()[:NONCE_BYTES]
        counter = (offset // BLOCK_BYTES).to_bytes(BLOCK_BYTES - NONCE_BYTES, "big")
        self._cipher = Cipher(algorithms.AES(key), modes.CTR(nonce + counter)).encryptor()
        self._cipher.update(bytes(offset % BLOCK_BYTES))

    async def apply(self, data: bytes | bytearray) -> bytes:
        if len(data) <= INLINE_BYTES:
            return self._cipher.update(data)
        return await asyncio.get_running_loop().run_in_executor(None, self._cipher.update, data)


class EncryptedWriter:
    def __init__(self, writer: ExtentWriter, key: bytes) -> None:
        self._writer = writer
        self._stream = KeyStream(key, writer.id)

    @property
    def id(self) -> ExtentId:
        return self._writer.id

    async def write(self, pieces: Sequence[bytes | bytearray] | bytes) -> None:
        if isinstance(pieces, bytes):
            await self._writer.write(await self._stream.apply(pieces))
        else:
            await self._writer.write([await self._stream.apply(piece) for piece in pieces])

    async def commit(self) -> None:
        await self._writer.commit()

    async def abort(self) -> None:
        await self._writer.abort()


class EncryptedExtents:
    """An extent store whose extents are written and read under one key. The store below is opened and closed by its owner."""

    def __init__(self, store: ExtentStore, key: bytes) -> None:
        self._store = store
        self._key = key
        self.is_remote = store.is_remote

    async def open(self) -> None:
        await self._store.open()

    async def close(self) -> None:
        await self._store.close()

    async def probe(self) -> None:
        await self._store.probe()

    def new(self) -> EncryptedWriter:
        return EncryptedWriter(self._store.new(), self._key)

    async def read(self, extent: str, offset: int, length: int) -> AsyncIterator[bytes]:
        stream = KeyStream(self._key, extent, offset)
        async for piece in self._store.read(extent, offset, length):
            yield await stream.apply(piece)

    def read_now(self, extent: str, offset: int, length: int) -> bytes | None:
        """Decrypting takes time."""
        return None

    def file(self, extent: str, offset: int, length: int) -> ExtentFile | None:
        """The kernel cannot decrypt."""
        return None

    async def delete(self, extent: str) -> None:
        await self._store.delete(extent)

    def list(self) -> AsyncIterator[tuple[str, int]]:
        return self._store.list()

    def is_writing(self, extent: str) -> bool:
        return self._store.is_writing(extent)
