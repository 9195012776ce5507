"""A cache of answers about texts that clients send: few of them, and none that is long, so nobody can fill the memory with it."""

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import TypeVar

S = TypeVar("S", str, bytes)
T = TypeVar("T")


def remember(entries: int, longest: int) -> Callable[[Callable[[S], T]], Callable[[S], T]]:
    def decorate(function: Callable[[S], T]) -> Callable[[S], T]:
        remembered = lru_cache(maxsize=entries)(function)

        @wraps(function)
        def answer(text: S) -> T:
            return remembered(text) if len(text) <= longest else function(text)

        return answer

    return decorate
