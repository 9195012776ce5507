"""Patterns of directory queries, compared with a plain recursive definition of what each character matches."""

import time

from hypothesis import given
from hypothesis import strategies as st

from verditer.smb.info.wildcards import literal_prefix, matcher

PATTERNS = st.text(alphabet='AB.*?<>"', max_size=7)
NAMES = st.text(alphabet="AB.", min_size=1, max_size=7)


def matches(pattern: str, name: str) -> bool:
    """The definition, one character of the pattern at a time, trying everything."""

    def rest_may_be_empty(at: int) -> bool:
        return all(character in '*<>"' for character in pattern[at:])

    def match(at: int, position: int) -> bool:
        if at == len(pattern):
            return position == len(name)
        wanted, here = pattern[at], name[position : position + 1]
        if wanted == "*":
            return any(match(at + 1, later) for later in range(position, len(name) + 1))
        if wanted == "<":
            last_dot = name.rfind(".")
            for later in range(position, len(name)):
                if match(at + 1, later):
                    return True
                if later == last_dot:
                    return match(at + 1, later + 1)
            return match(at + 1, len(name))
        if wanted == ">" and here in (".", ""):
            return match(at + 1, position) if here else rest_may_be_empty(at)
        if wanted == '"' and not here:
            return rest_may_be_empty(at)
        if not here:
            return False
        return (wanted in "?>" or here == ("." if wanted == '"' else wanted)) and match(at + 1, position + 1)

    return match(0, 0)


@given(PATTERNS.filter(bool), NAMES)
def test_every_pattern_matches_what_its_definition_says(pattern: str, name: str) -> None:
    assert matcher(pattern)(name) is matches(pattern, name)


def test_case_does_not_matter_and_a_literal_pattern_is_exact() -> None:
    assert matcher("*.Txt")("NOTE.TXT")
    assert matcher("note.txt")("NOTE.TXT")
    assert not matcher("note.txt")("NOTE.TXTX")


def test_dos_forms_of_common_patterns() -> None:
    everything = matcher('<"*')  # what clients make of *.*
    assert everything("README")
    assert everything("A.TAR.GZ")
    assert matcher("<.TXT")("A.B.TXT")
    assert matcher('????????">>>')("ABCDEFGH.TX")
    assert not matcher(">>>.TXT")("ABCD.TXT")


def test_a_hostile_pattern_takes_little_time() -> None:
    name = "A" * 255
    started = time.process_time()
    assert not matcher("*A" * 120 + "*B")(name)
    assert not matcher("<A" * 120 + "<B")(name)
    assert time.process_time() - started < 2


def test_a_listing_needs_to_read_names_with_the_literal_prefix_only() -> None:
    assert literal_prefix("ab*c") == "AB"
    assert literal_prefix("*") == ""
    assert literal_prefix("abc") == "ABC"
