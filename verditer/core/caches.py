"""Bounded caches for values that clients send. The number of entries and the length of a key are limited, so that clients cannot
fill the memory."""

from collections.abc import Callable, Hashable
from typing import TypeVar

K = TypeVar("K", bound=Hashable)
S = TypeVar("S", str, bytes)
T = TypeVar("T")


class BoundedCache(dict[K, T]):
    """A dictionary with a maximum number of entries. When it is full it is cleared; frequent keys are soon back."""

    def __init__(self, entries: int) -> None:
        super().__init__()
        self._entries = entries

    def keep(self, key: K, value: T) -> None:
        if len(self) >= self._entries:
            self.clear()
        self[key] = value


class AnswerCache(BoundedCache[K, T]):
    """The answers of a function: reading an entry that is missing computes it. `size` is how many characters a key holds."""

    def __init__(self, function: Callable[[K], T], entries: int, longest: int, size: Callable[[K], int]) -> None:
        super().__init__(entries)
        self._function: Callable[[K], T] = function
        self._longest = longest
        self._size: Callable[[K], int] = size

    def __missing__(self, key: K) -> T:
        answer = self._function(key)
        if self._size(key) <= self._longest:
            self.keep(key, answer)
        return answer


def bounded_cache(entries: int, longest: int) -> Callable[[Callable[[S], T]], Callable[[S], T]]:
    """For functions of a text on the path of every request: a cached answer costs one look into a dictionary and no call."""
    return lambda function: AnswerCache(function, entries, longest, len).__getitem__
