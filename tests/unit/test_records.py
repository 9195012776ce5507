"""Every record class declares its life completely, and its declaration agrees with its fields."""

import types
import typing
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest

from verditer.core.records.blob import Blob, BlobType
from verditer.core.records.catalog import CHILDREN, EXPIRING, RECORDS, REMOVED_BY_RESET
from verditer.core.records.container import Container, DeletedContainer
from verditer.core.records.content import ExtentReferences, Slice
from verditer.core.records.lifecycle import Expiry, ExtentId, ExtentNames, Lifecycle, Owned, Reset, Root
from verditer.core.records.record import Record
from verditer.partition import schema
from verditer.services.content.content import ContentState
from verditer.services.removal import REMOVE_OWNED

CONTENT_FIELDS = ContentState.__struct_fields__
every_record = pytest.mark.parametrize("kind", RECORDS, ids=lambda kind: kind.__name__)


def extent_paths(kind: object) -> Iterator[str]:
    """The paths of attributes that lead from a type to extent ids. Elements of tuples add nothing to a path."""
    if kind is ExtentId:
        yield ""
    elif isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        for name, field in typing.get_type_hints(kind).items():
            if typing.get_origin(field) is not typing.ClassVar:
                yield from (f"{name}.{path}".rstrip(".") for path in extent_paths(field))
    else:
        for argument in typing.get_args(kind):
            yield from extent_paths(argument)


def fields_named_extent_of_another_type(kind: object) -> Iterator[str]:
    """Fields that hold an extent id by their name, and that their type hides from `extent_paths`."""
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        for name, field in typing.get_type_hints(kind).items():
            if typing.get_origin(field) is typing.ClassVar:
                continue
            if "extent" in name and not list(extent_paths(field)):
                yield name
            yield from fields_named_extent_of_another_type(field)
    else:
        for argument in typing.get_args(kind):
            yield from fields_named_extent_of_another_type(argument)


def mistakes(kind: type[Record]) -> list[str]:
    """What is wrong with a declaration."""
    life = kind.LIFECYCLE
    found = [message for check in CHECKS for message in check(kind, life)]
    return [f"{kind.__name__}: {message}" for message in found]


def _key_fields(kind: type[Record], life: Lifecycle) -> Iterator[str]:
    fields = kind.__struct_fields__
    if not kind.KEY or not set(kind.KEY) | set(kind.RANK) <= set(fields):
        yield "key and rank are made of its fields"


def _extents(kind: type[Record], life: Lifecycle) -> Iterator[str]:
    declared = {life.extents.path} if life.extents is not None else set()
    if set(extent_paths(kind)) != declared:
        yield f"it declares the extents {declared or None}, and its fields name {set(extent_paths(kind)) or None}"
    yield from (f"the type of {name} is not ExtentId" for name in fields_named_extent_of_another_type(kind))
    if life.extents is None:
        return
    if life.extents.released is not None and kind.KEY[0] != life.extents.released:
        yield "the sweep finds released extents by the first field of the key"
    counted_in = life.extents.counted_in
    if counted_in is not None and (
        counted_in.LIFECYCLE.extents is None
        or counted_in.LIFECYCLE.extents.counted_in is not None
        or counted_in.LIFECYCLE.parent is not life.parent
    ):
        yield f"{counted_in.__name__} does not name the extents for it"


def _parent(kind: type[Record], life: Lifecycle) -> Iterator[str]:
    first = typing.get_type_hints(kind)[kind.KEY[0]]
    if isinstance(life.parent, type):
        if first is not int or typing.get_type_hints(life.parent).get("id") is not int:
            yield "its key begins with the id of its parent"
        if life.reset is not life.parent.LIFECYCLE.reset:
            yield "it is removed with its parent"
    elif life.parent is Root.ACCOUNT and kind.KEY[0] != "account":
        yield "its key begins with the account"
    elif life.parent is Root.CONTENT and kind.KEY[0] != "content_id":
        yield "its key begins with the id of a content"
    if (life.parent is Root.STORE) != (life.reset is Reset.KEPT):
        yield "a reset removes what belongs to an account, and nothing else"


def _owns(kind: type[Record], life: Lifecycle) -> Iterator[str]:
    is_content = all(hasattr(kind, name) for name in CONTENT_FIELDS)
    if bool({Owned.CONTENT, Owned.FORMER_CONTENT} & set(life.owns)) != is_content:
        yield "it owns a content if it has the fields of one"
    if "content_id" in kind.__struct_fields__ and life.parent is not Root.CONTENT and not life.owns:
        yield "nobody removes what is stored under its content_id"


def _expiry(kind: type[Record], life: Lifecycle) -> Iterator[str]:
    if (life.expiry is not None) != ("expires" in kind.__struct_fields__):
        yield "it expires if it has the field"
    if life.expiry is not None and ((life.expiry.tick,) != kind.RANK or not hasattr(kind, life.expiry.scope)):
        yield "the collector finds what is due by its rank, and removes it in its scope"


Check = Callable[[type[Record], Lifecycle], Iterator[str]]
CHECKS: tuple[Check, ...] = (_key_fields, _extents, _parent, _owns, _expiry)


@every_record
def test_the_declaration_of_a_record_class_agrees_with_its_fields(kind: type[Record]) -> None:
    assert mistakes(kind) == []


@every_record
def test_a_record_class_is_documented(kind: type[Record]) -> None:
    assert kind.__doc__


def test_every_record_class_has_a_table_of_its_own() -> None:
    tables = [kind.TABLE for kind in RECORDS]
    assert len(set(tables)) == len(tables) == len(RECORDS) >= 33


def test_a_record_class_without_a_declaration_cannot_be_defined() -> None:
    with pytest.raises(TypeError, match="Forgetful declares no LIFECYCLE"):
        types.new_class("Forgetful", (Record,))
    with pytest.raises(TypeError, match="ForgetfulBlob declares no LIFECYCLE"):
        types.new_class("ForgetfulBlob", (Blob,))  # none is inherited


def test_a_declaration_has_no_defaults() -> None:
    for missing in ("parent", "extents", "owns", "expiry", "reset"):
        given = {"parent": Root.STORE, "extents": None, "owns": (), "expiry": None, "reset": Reset.KEPT}
        with pytest.raises(TypeError, match=missing):
            Lifecycle(**{name: value for name, value in given.items() if name != missing})  # type: ignore[arg-type]


def record_class(annotations: dict[str, object], life: Lifecycle) -> type[Record]:
    """A record class of its own, whose key is its first field."""
    body = {"TABLE": "wrong", "KEY": (next(iter(annotations)),), "LIFECYCLE": life, "__annotations__": annotations}
    return types.new_class("Wrong", (Record,), {"tag": 1, "frozen": True, "kw_only": True}, lambda space: space.update(body))


COUNTED = ExtentNames("extent", counted_in=ExtentReferences)
EXPIRES = Expiry("expires", "scope")


def life(
    parent: type[Record] | Root = Root.CONTENT,
    extents: ExtentNames | None = None,
    owns: tuple[Owned, ...] = (),
    expiry: Expiry | None = None,
    reset: Reset = Reset.REMOVED,
) -> Lifecycle:
    return Lifecycle(parent=parent, extents=extents, owns=owns, expiry=expiry, reset=reset)


ROW: dict[str, object] = {"content_id": int}
CHILD: dict[str, object] = {"container_id": int}
CONTENT: dict[str, object] = {"content_id": int, "size": int, "inline": bool, "shared": bool, "intervals": int}


# fmt: off
WRONG: list[tuple[dict[str, object], Lifecycle, str]] = [
    (ROW | {"extent": ExtentId},                  life(),                                       "its fields name {'extent'}"),
    (ROW | {"extent": ExtentId | None},           life(),                                       "its fields name {'extent'}"),
    (ROW | {"slices": tuple[Slice, ...]},         life(),                                       "name {'slices.extent'}"),
    (ROW | {"runs": dict[str, list[Slice]]},      life(),                                       "name {'runs.extent'}"),
    (ROW | {"extent": ExtentId, "old": ExtentId}, life(extents=ExtentNames("extent")),          "its fields name {"),
    (ROW,                                         life(extents=ExtentNames("extent")),          "its fields name None"),
    (ROW | {"extent": str},                       life(),                                       "not ExtentId"),
    (ROW | {"extents": tuple[str, ...]},          life(),                                       "not ExtentId"),
    (ROW | {"extent": ExtentId, "since": int},    life(extents=ExtentNames("extent", "since")), "the first field of the key"),
    (CHILD | {"extent": ExtentId},                life(Container, COUNTED),                     "does not name the extents"),
    ({"name": str},                               life(Container),                              "the id of its parent"),
    (CHILD,                                       life(Container, reset=Reset.KEPT),            "removed with its parent"),
    ({"name": str},                               life(Root.ACCOUNT),                           "begins with the account"),
    ({"name": str},                               life(),                                       "the id of a content"),
    ({"account": str},                            life(Root.ACCOUNT, reset=Reset.KEPT),         "a reset removes"),
    ({"name": str},                               life(Root.STORE),                             "a reset removes"),
    (CHILD | CONTENT,                             life(Container),                              "it owns a content"),
    (CHILD,                                       life(Container, owns=(Owned.CONTENT,)),       "it owns a content"),
    (CHILD | {"content_id": int},                 life(Container),                              "nobody removes"),
    (CHILD | {"expires": int},                    life(Container),                              "it expires"),
    (CHILD | {"expires": int},                    life(Container, expiry=EXPIRES),              "by its rank"),
]
# fmt: on


@pytest.mark.parametrize(("annotations", "life", "message"), WRONG)
def test_a_wrong_declaration_is_found(annotations: dict[str, object], life: Lifecycle, message: str) -> None:
    found = mistakes(record_class(annotations, life))
    assert any(message in mistake for mistake in found), found


def test_each_thing_that_a_record_may_own_has_its_removal() -> None:
    assert set(REMOVE_OWNED) == set(Owned)


def test_what_is_derived_from_the_declarations() -> None:
    names = {kind.__name__ for kind in RECORDS if kind.IS_PARENT}
    assert names == {"Container", "DeletedContainer", "Queue", "Table", "Share", "DeletedShare"}
    assert {kind.__name__ for kind in REMOVED_BY_RESET} == names | {"ServiceProperties", "AccountSettings"}
    assert {kind.__name__ for kind in EXPIRING} == {
        "BlobExpiry",
        "DeletedBlob",
        "DeletedSnapshot",
        "DeletedVersion",
        "DeletedContainer",
        "DeletedShare",
    }
    assert Blob in CHILDREN
    assert DeletedContainer not in CHILDREN


def test_the_path_of_extents_is_followed_through_tuples_and_absent_values() -> None:
    layout = next(kind for kind in RECORDS if kind.TABLE == "layout")
    block = next(kind for kind in RECORDS if kind.TABLE == "block")
    slices = (Slice(ExtentId("a"), 0, 1), Slice(ExtentId("b"), 0, 1))
    row = layout(content_id=1, start=0, slices=slices)
    inline = block(container_id=1, name="n", block_id=b"1", size=1, content_id=1, extent=None)
    assert layout.LIFECYCLE.extents is not None
    assert block.LIFECYCLE.extents is not None
    assert list(layout.LIFECYCLE.extents.of(row)) == ["a", "b"]
    assert list(block.LIFECYCLE.extents.of(inline)) == []


def test_rows_that_lack_added_fields_are_upgraded_when_they_are_read() -> None:
    """As an earlier program wrote them: the tag before, and no added fields."""
    upgraded = [kind for kind in RECORDS if kind.ADDED]
    assert {kind.__name__ for kind in upgraded} == {
        "Snapshot", "DeletedBlob", "DeletedSnapshot", "DeletedVersion", "DeletedContainer"
    }  # fmt: skip
    for kind in upgraded:
        given = {name: value for name, value in SOME.items() if name in kind.__struct_fields__}
        record = kind(**given)
        assert schema.decoder(kind).decode(schema.encode(record)) == record
        tag, *values = msgspec.msgpack.decode(schema.encode(record))
        old = [value for name, value in zip(kind.__struct_fields__, values, strict=True) if name not in kind.ADDED]
        assert schema.decoder(kind).decode(msgspec.msgpack.encode([tag - 1, *old])) == record
        with pytest.raises(msgspec.ValidationError):
            schema.decoder(kind).decode(msgspec.msgpack.encode([tag - 2, *old]))


SOME: dict[str, Any] = {
    "account": "a", "container_id": 1, "id": 7, "name": "n", "etag": 2, "created": 3, "blob_type": BlobType.BLOCK, "size": 4,
    "content_id": 5, "inline": True, "content_md5": b"0123456789abcdef", "snapshot": 6, "deleted": 8, "expires": 9,
    "scope": ("a", "b"), "version": 10, "version_id": 11,
}  # fmt: skip
