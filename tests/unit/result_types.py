"""Types read at run time: which type an attribute of a result has, and whether a parameter accepts a type."""

import inspect
import types
from collections.abc import Callable
from enum import Enum
from functools import reduce
from operator import or_
from typing import Any, Union, get_args, get_origin, get_type_hints

Kind = object
"""A class, or an annotation such as `int | None` or `list[Message]`."""


def parameter_types(function: Callable[..., object]) -> list[Kind]:
    hints = get_type_hints(function)
    return [hints[name] for name in inspect.signature(function).parameters]


def attribute_type(kind: Kind, path: str) -> Kind:
    """The type of `a.b.c`. AttributeError where a step does not exist on every type that its object may have."""
    for name in path.split("."):
        found: list[Any] = [_attribute(member, name) for member in members_of(kind)]
        kind = reduce(or_, found[1:], found[0])
    return kind


def members_of(kind: Kind) -> tuple[Kind, ...]:
    """The alternatives of a union, with names of types replaced by the types."""
    kind = getattr(kind, "__supertype__", kind)
    return get_args(kind) if get_origin(kind) in (Union, types.UnionType) else (kind,)


def _attribute(kind: Kind, name: str) -> Kind:
    if not isinstance(kind, type):
        raise AttributeError(f"{kind} has no attribute {name}")
    if issubclass(kind, Enum) and name == "value":
        return type(next(iter(kind)).value)
    hints = get_type_hints(kind)
    if name in hints:
        return hints[name]
    found = inspect.getattr_static(kind, name)
    assert isinstance(found, property)
    return get_type_hints(found.fget)["return"]


def accepts(parameter: Kind, given: Kind) -> bool:
    """Whether every value of the given type may be passed."""
    return all(any(_accepts(wanted, member) for wanted in members_of(parameter)) for member in members_of(given))


def _accepts(parameter: Kind, given: Kind) -> bool:
    parameter, given = (getattr(kind, "__supertype__", kind) for kind in (parameter, given))
    parameter, given = (type(None) if kind is None else kind for kind in (parameter, given))
    if parameter is object:
        return True
    if get_origin(parameter) is not None or get_origin(given) is not None:
        pairs = zip(get_args(parameter), get_args(given), strict=True)
        return get_origin(parameter) is get_origin(given) and all(a is b or accepts(a, b) for a, b in pairs)
    assert isinstance(parameter, type)
    assert isinstance(given, type)
    if not getattr(parameter, "_is_protocol", False):
        return issubclass(given, parameter)
    names = [name for name, member in inspect.getmembers_static(parameter) if isinstance(member, property)]
    try:
        return bool(names) and all(accepts(attribute_type(parameter, name), attribute_type(given, name)) for name in names)
    except AttributeError:
        return False
