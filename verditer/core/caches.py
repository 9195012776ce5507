"""A cache of answers about texts that clients send: few of them, and none that is long, so nobody can fill the memory with it."""

from collections.abc import Callable
from typing import TypeVar

S = TypeVar("S", str, bytes)
T = TypeVar("T")


class _Answers(dict[S, T]):
    """A dictionary that asks for what it does not know. One that is full begins anew: what is asked often is soon back."""

    def __init__(self, function: Callable[[S], T], entries: int, longest: int) -> None:
        super().__init__()
        self._function: Callable[[S], T] = function
        self._entries = entries
        self._longest = longest

    def __missing__(self, text: S) -> T:
        answer = self._function(text)
        if len(text) <= self._longest:
            if len(self) >= self._entries:
                self.clear()
            self[text] = answer
        return answer


def remember(entries: int, longest: int) -> Callable[[Callable[[S], T]], Callable[[S], T]]:
    """For functions on the path of every request: what is known costs a look into a dictionary, and no call."""
    return lambda function: _Answers(function, entries, longest).__getitem__
