"""Dataclasses and named tuples as plain values for JSON, and back.

A class that writes itself differently has `to_dict` and `from_dict` of its own, and these are used wherever it occurs.
"""

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

T = TypeVar("T")


def to_plain(value: Any) -> Any:
    """Return the value with only dicts, lists, strings, numbers, booleans and None in it."""
    if hasattr(value, "to_dict"):
        return value.to_dict()
    if is_dataclass(value) or hasattr(value, "_fields"):
        return {name: to_plain(getattr(value, name)) for name in _types(value.__class__)}
    if isinstance(value, Mapping):
        return {key: to_plain(part) for key, part in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [to_plain(part) for part in value]
    return value


def from_plain(kind: type[T], values: Any) -> T:
    """Return the value of this class that `to_plain` wrote; fields that were not written keep their defaults."""
    result: T = _read(kind, values)
    return result


@cache
def _types(kind: Any) -> dict[str, Any]:
    """Return the type of every field that the class is made from, by name."""
    names = getattr(kind, "_fields", None) or [field.name for field in fields(kind) if field.init]
    hints = get_type_hints(kind)
    return {name: hints[name] for name in names}


def _read(kind: Any, value: Any) -> Any:  # noqa: PLR0911  # one line for each kind of type
    origin, parts = get_origin(kind), get_args(kind)
    if value is None or kind is Any:
        return value
    if origin in (Union, UnionType):
        return _read(next(part for part in parts if part is not NoneType), value)
    if hasattr(kind, "from_dict"):
        return kind.from_dict(value)
    if is_dataclass(kind) or hasattr(kind, "_fields"):
        return kind(**{name: _read(part, value[name]) for name, part in _types(kind).items() if name in value})
    if origin is np.ndarray:
        (dtype,) = get_args(parts[1])
        return np.array(value, dtype=dtype if isinstance(dtype, type) else None)
    if origin is tuple:
        types = parts[:1] * len(value) if parts[-1] is ... else parts
        return tuple(_read(part, item) for part, item in zip(types, value, strict=True))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return {key: _read(parts[1], item) for key, item in value.items()}
    if isinstance(origin, type) and issubclass(origin, Sequence):
        return [_read(parts[0], item) for item in value]
    return value
