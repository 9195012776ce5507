"""Extent stores of tests."""

import asyncio
from collections.abc import Awaitable, Callable

from verditer.stream.extents import ExtentStore


def run(store: ExtentStore, scenario: Callable[[], Awaitable[None]]) -> None:
    """Run a scenario while the store is open."""

    async def whole() -> None:
        await store.open()
        try:
            await scenario()
        finally:
            await store.close()

    asyncio.run(whole())
