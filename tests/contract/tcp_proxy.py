"""A TCP proxy between a server and its database: a network whose faults a test decides. Bytes can be held back, as if packets
were dropped, delayed, or the connections cut."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from pathlib import Path


class TcpProxy:
    def __init__(self, target: tuple[str, int] | Path) -> None:
        self._target = target
        self._passing = asyncio.Event()
        self._passing.set()
        self._tasks: set[asyncio.Task[None]] = set()
        self.delay_seconds = 0.0  # of each piece that passes
        self.watch: Callable[[bytes], object] = _nothing  # is shown each piece that passes
        self.port = 0

    async def start(self, port: int = 0) -> None:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        self._server.close()
        self.cut()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def drop(self) -> None:
        """From now on nothing passes, in either direction, and nobody is told."""
        self._passing.clear()

    def restore(self) -> None:
        self._passing.set()

    def cut(self) -> None:
        """End every connection."""
        for task in self._tasks:
            task.cancel()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        with contextlib.suppress(OSError, asyncio.CancelledError):
            await self._passing.wait()
            if isinstance(self._target, Path):
                back, forth = await asyncio.open_unix_connection(str(self._target))
            else:
                back, forth = await asyncio.open_connection(*self._target)
            await self._join(reader, writer, back, forth)
        writer.close()

    async def _join(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        back: asyncio.StreamReader,
        forth: asyncio.StreamWriter,
    ) -> None:
        """When either side ends, both do."""
        ways = [asyncio.ensure_future(self._pass(reader, forth)), asyncio.ensure_future(self._pass(back, writer))]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            forth.close()

    async def _pass(self, source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        while data := await source.read(1 << 16):
            if self.delay_seconds:
                await asyncio.sleep(self.delay_seconds)
            await self._passing.wait()
            self.watch(data)
            target.write(data)
            await target.drain()


def _nothing(data: bytes) -> None: ...


@contextlib.asynccontextmanager
async def running_proxy(target: tuple[str, int] | Path) -> AsyncIterator[TcpProxy]:
    proxy = TcpProxy(target)
    await proxy.start()
    try:
        yield proxy
    finally:
        await proxy.stop()
