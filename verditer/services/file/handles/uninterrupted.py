"""Awaiting a transaction that must not be interrupted: a client that gives up must not leave a handle or a lock behind."""

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

T = TypeVar("T")


async def uninterrupted(awaitable: Awaitable[T]) -> tuple[T, bool]:
    """The result, and whether the caller was cancelled meanwhile. The caller then undoes what was done and ends as cancelled.
    What fails after the cancellation needs no undoing, and is cancelled."""
    task = asyncio.ensure_future(awaitable)
    was_cancelled = False
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError:
            was_cancelled = True
    if was_cancelled and (task.cancelled() or task.exception() is not None):
        raise asyncio.CancelledError
    return task.result(), was_cancelled
