"""What is kept of things that clients send: few of them, and none that is long, so nobody can fill the memory with it."""

from collections.abc import Callable, Hashable
from typing import TypeVar

K = TypeVar("K", bound=Hashable)
S = TypeVar("S", str, bytes)
T = TypeVar("T")


class Kept(dict[K, T]):
    """A dictionary of so many entries at most. One that is full begins anew: what is asked for often is soon back."""

    def __init__(self, entries: int) -> None:
        super().__init__()
        self._entries = entries

    def keep(self, key: K, value: T) -> None:
        if len(self) >= self._entries:
            self.clear()
        self[key] = value


class _Answers(Kept[S, T]):
    """Asks for what it does not know."""

    def __init__(self, function: Callable[[S], T], entries: int, longest: int) -> None:
        super().__init__(entries)
        self._function: Callable[[S], T] = function
        self._longest = longest

    def __missing__(self, text: S) -> T:
        answer = self._function(text)
        if len(text) <= self._longest:
            self.keep(text, answer)
        return answer


def remember(entries: int, longest: int) -> Callable[[Callable[[S], T]], Callable[[S], T]]:
    """For functions on the path of every request: what is known costs a look into a dictionary, and no call."""
    return lambda function: _Answers(function, entries, longest).__getitem__
