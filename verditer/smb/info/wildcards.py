"""Patterns of QUERY_DIRECTORY (MS-FSA 2.1.4.4): `*` and `?`, and the three that stand for how DOS treated them.

`<` matches up to the last dot, `>` matches one character or nothing at a dot or at the end, `"` matches a dot or the end. Names
are compared in their folded form. Matching takes time proportional to the product of both lengths at most, whatever the pattern.
"""

import re
from collections.abc import Callable
from functools import lru_cache

from verditer.core.files.names import fold

Matcher = Callable[[str], bool]
_WILD = frozenset('*?<>"')
_DOS = frozenset('<>"')


def is_wild(pattern: str) -> bool:
    return not _WILD.isdisjoint(pattern)


def literal_prefix(pattern: str) -> str:
    """What every matching name begins with, folded: a listing need not look elsewhere."""
    for position, character in enumerate(pattern):
        if character in _WILD:
            return fold(pattern[:position])
    return fold(pattern)


@lru_cache(maxsize=256)
def matcher(pattern: str) -> Matcher:
    """A function that tells whether a folded name matches."""
    folded = fold(pattern)
    if folded in ("*", ""):
        return lambda name: True
    if not is_wild(folded):
        return lambda name: name == folded
    if _DOS.isdisjoint(folded):
        compiled = _expression(folded)
        return lambda name: compiled.fullmatch(name) is not None
    return lambda name: _matches(folded, name)


def _expression(pattern: str) -> re.Pattern[str]:
    """The text between two stars matches at the first place where it can; the atomic group keeps the rest from trying others."""

    def fixed(part: str) -> str:
        return "".join("." if character == "?" else re.escape(character) for character in part)

    first, *rest = re.sub(r"\*+", "*", pattern).split("*")
    expression = fixed(first)
    if rest:
        expression += "".join(f"(?>.*?{fixed(part)})" for part in rest[:-1]) + f".*{fixed(rest[-1])}"
    return re.compile(expression, re.DOTALL)


def _matches(pattern: str, name: str) -> bool:
    """Runs all ways to match at once: `states` are the positions in the pattern that the name so far can have led to."""
    last_dot = name.rfind(".")
    states = {0}
    for position, character in enumerate(name):
        states = _closure(pattern, states, is_end=False, is_dot=character == ".")
        states = {after for state in states for after in _steps(pattern, state, character, position == last_dot)}
        if not states:
            return False
    return len(pattern) in _closure(pattern, states, is_end=True, is_dot=False)


def _closure(pattern: str, states: set[int], *, is_end: bool, is_dot: bool) -> set[int]:
    """The states that are reached without taking a character."""
    reached = set(states)
    for state in states:
        while state < len(pattern) and (
            pattern[state] in "*<" or (pattern[state] == ">" and (is_end or is_dot)) or (pattern[state] == '"' and is_end)
        ):
            state += 1
            reached.add(state)
    return reached


def _steps(pattern: str, state: int, character: str, is_last_dot: bool) -> tuple[int, ...]:
    """The states after taking a character."""
    if state == len(pattern):
        return ()
    wanted = pattern[state]
    if wanted == "*":
        return (state,)
    if wanted == "<":
        return (state + 1,) if is_last_dot else (state,)
    if wanted == "?" or (wanted == ">" and character != "."):
        return (state + 1,)
    if character == ("." if wanted == '"' else wanted):
        return (state + 1,)
    return ()
