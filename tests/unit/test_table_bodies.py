"""Bodies of the Table service: the fast readers and writers agree with the general ones for every input."""

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from verditer.core.errors import Code, StorageError
from verditer.core.grant import Grant, Scheme
from verditer.core.guard import NO_GUARD
from verditer.core.names import TableName
from verditer.core.records.table import Entity
from verditer.rest.address import Address
from verditer.rest.codecs.multipart import cut, render_changeset, split_parts
from verditer.rest.codecs.table import json as bodies
from verditer.rest.codecs.table.entities import brief_answer, render_inserted, render_updated
from verditer.rest.codecs.table.odata import accept_created
from verditer.rest.http.message import Request, Response
from verditer.rest.operations.table import OPERATIONS
from verditer.rest.stages import LATEST_VERSION, Authorized, Decoded
from verditer.services.table.entities import StoredEntity

# --- JSON -------------------------------------------------------------------------------------------------------------------

texts = st.text(st.one_of(st.sampled_from('"\\/:{},\n\u2028é𝄞\ud800 a'), st.characters()), max_size=8)
numbers = st.one_of(st.integers(), st.floats(allow_nan=False, allow_infinity=False))
scalars = st.one_of(texts, numbers, st.booleans(), st.none())
values = st.recursive(scalars, lambda inner: st.lists(inner, max_size=2), max_leaves=3)
names = st.one_of(st.sampled_from(["A", "B", "A@odata.type"]), texts)


@st.composite
def objects(draw: st.DrawFn) -> bytes:
    """A JSON object as clients may write it: any white space, optional escapes, sometimes a duplicate name."""
    ascii_only, space = draw(st.booleans()), draw(st.sampled_from(["", " ", "\r\n "]))
    pairs = draw(st.lists(st.tuples(names, values), max_size=5))
    members = [f"{json.dumps(n, ensure_ascii=ascii_only)}:{space}{json.dumps(v, ensure_ascii=ascii_only)}" for n, v in pairs]
    return f"{{{space}{f',{space}'.join(members)}}}{space}".encode("utf-8", "surrogatepass")


def outcome(read: object, document: bytes) -> object:
    try:
        found = read(document)  # type: ignore[operator]
    except StorageError as error:
        return error.code
    return [(name, type(value), repr(value)) for name, value in found.items()]


def read_carefully(document: bytes) -> dict[str, object]:
    """The same with a reader that returns each member."""
    try:
        pairs: list[tuple[str, object]] = json.loads(document.decode(), object_pairs_hook=list)
        for name, value in pairs:
            f"{name} {json.dumps(value, ensure_ascii=False)}".encode()
    except ValueError:  # including unpaired surrogates, in nested values too
        raise StorageError(Code.InvalidInput) from None
    if len(dict(pairs)) < len(pairs):
        raise StorageError(Code.DuplicatePropertiesSpecified)
    return {name: bodies.NESTED if isinstance(value, list) else value for name, value in pairs}


@settings(max_examples=400)
@given(objects())
def test_the_quick_reader_gives_what_a_careful_one_gives(document: bytes) -> None:
    assert outcome(bodies._sent, document) == outcome(read_carefully, document)


def test_a_mark_of_byte_order_is_overlooked() -> None:
    assert bodies._sent(b'\xef\xbb\xbf{"A":1}') == {"A": 1}


@pytest.mark.parametrize("value", ["null", "1", "[]"])
def test_no_more_members_are_looked_at_than_an_entity_can_have(value: str) -> None:  # T430
    members = ",".join(f'"A{number}":{value}' for number in range(bodies.MAX_MEMBERS + 1))
    assert outcome(bodies._sent, f"{{{members}}}".encode()) is Code.TooManyProperties


def test_nobody_looks_into_what_is_nested() -> None:  # T419
    sent = bodies._sent(b'{"odata.x":[%b],"__metadata":{"type":"x \\" y"},"A":"\\"1"}' % b",".join([b'{"":0}'] * 10_000))
    assert sent == {"odata.x": bodies.NESTED, "__metadata": bodies.NESTED, "A": '"1'}


@pytest.mark.parametrize(
    "document", [b'{"A":1,"A":2}', b'{"A":"\\"","\\u0041":"x"}', b'{"A":1,"A":"\\\\"}', b'{"B":{"A":1},"A":1,"A":1}']
)
def test_a_name_twice_is_seen_however_it_is_spelled(document: bytes) -> None:  # T417
    assert outcome(bodies._sent, document) is Code.DuplicatePropertiesSpecified


@pytest.mark.parametrize(
    "document", [b"", b"[]", b"5", b'{"A":NaN}', b'{"A":1', b'{"A":01}', b"\xff", b"{" * 100_000, b'{"A":' * 100_000]
)
def test_what_is_no_object_is_refused(document: bytes) -> None:
    assert outcome(bodies._sent, document) is Code.InvalidInput


# --- multipart --------------------------------------------------------------------------------------------------------------


def split_by_lines(body: bytes, boundary: str) -> list[bytes]:
    """The same, with a regular expression."""
    line = re.compile(rb"^--" + re.escape(boundary.encode()) + rb"(--)?[ \t\r]*$", re.MULTILINE)
    boundaries, parts = list(line.finditer(body)), []
    for index, found in enumerate(boundaries):
        if found[1]:
            break
        end = boundaries[index + 1].start() if index + 1 < len(boundaries) else len(body)
        parts.append(body[found.end() : end].removesuffix(b"\n").lstrip(b"\r\n").removesuffix(b"\r"))
    return [part for part in parts if part]


lines = st.sampled_from([b"--b", b"--b--", b"--bb", b"--b ", b"-b", b"x --b", b"text", b"", b"--b\t--", b"--", b"{}"])


@settings(max_examples=400)
@given(st.lists(st.tuples(lines, st.sampled_from([b"\n", b"\r\n"])), max_size=12), st.booleans())
def test_parts_are_what_stands_between_lines_that_are_boundaries(text: list[tuple[bytes, bytes]], open_end: bool) -> None:
    body = b"".join(line + end for line, end in text)
    body = body.rstrip(b"\r\n") if open_end else body
    assert split_parts(body, "b") == split_by_lines(body, "b")


@given(st.lists(st.sampled_from([b"\r", b"\n", b"\r\n", b"a", b"bc"]), max_size=8).map(b"".join))
def test_a_head_ends_at_the_first_blank_line(text: bytes) -> None:
    match = re.search(rb"\n\r?\n", text)
    assert cut(text) == ((text[: match.start()], text[match.end() :]) if match is not None else (text, b""))


# --- answers ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("render", [render_updated, render_inserted])
@pytest.mark.parametrize("keys", [("p", "r"), ("", "it's é 𝄞"), ("a+b&c", "100 %")])
def test_the_prepared_answers_of_a_batch_are_the_usual_ones(render: Callable[..., Response], keys: tuple[str, str]) -> None:
    one = exchange(prefer="return-no-content")
    brief = brief_answer(render, one)
    assert brief is not None
    entity = Entity(properties=b"{}", table_id=1, partition_key=keys[0], row_key=keys[1], etag=5 * 10**17)
    stored = StoredEntity(table="t", entity=entity)
    assert render_changeset([brief(stored)], "guid") == render_changeset([render(stored, one)], "guid")


def test_an_insert_that_is_answered_with_content_is_not_prepared() -> None:
    assert brief_answer(render_inserted, exchange()) is None


def exchange(**headers: str) -> Decoded:
    named = {"host": "h:1", "accept": "application/json", "content-length": "2", **headers}
    nothing: Any = None
    request = Request(method="POST", target="/", headers=named, raw_headers=[], body=nothing, peer="", secure=True)
    address = Address(account="acc", secondary=False, path_style=True, path="/", segments=(), query={})
    authorized = Authorized(
        request=request,
        request_id="",
        address=address,
        version=LATEST_VERSION,
        op=next(op for op in OPERATIONS if op.name == "InsertEntity"),
        target=TableName("acc", "t"),
        grant=Grant(scheme=Scheme.KEY),
        create_only=False,
    )
    known = {name: getattr(authorized, name) for name in authorized.__struct_fields__}
    return Decoded(**known, guard=NO_GUARD, format=accept_created(authorized))
