"""A setting: a field of a dataclass with a docstring, and perhaps with an option of the command line and bounds."""

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import MISSING, field, fields
from functools import cache
from inspect import getdoc
from numbers import Integral, Real
from types import NoneType, UnionType
from typing import Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

from pcs_annotator.base.errors import ConfigError

LARGEST = 1e100
TABLES = {"tables": True}  # metadata of a field that has tables of its own in `pcs.toml`


def setting(  # noqa: PLR0913  # what is known of a setting, one argument each
    default: Any,
    option: str = "",
    *,
    name: str = "",
    least: float | None = None,
    above: float | None = None,
    most: float | None = None,
    below: float | None = None,
    secret: bool = False,
    off: str = "",
) -> Any:
    """Return a field.

    Args:
        default: The default, or a function that makes it.
        option: The option of the command line, with what it takes, such as `--draws N`; empty if there is none.
        name: What Python and the command line call it, if not like the field.
        least: The smallest value.
        above: A bound below all values.
        most: The largest value.
        below: A bound above all values.
        secret: Whether it may have a password, and is not printed.
        off: What an option does that turns it off.
    """
    bounds = {"least": least, "above": above, "most": most, "below": below}
    more = {"option": option, "other_name": name, "off": off, **bounds}
    if callable(default):
        return field(default_factory=default, metadata=more)
    return field(default=default, metadata=more, repr=not secret)


class Problem(NamedTuple):
    """What is wrong with a value, and at which of its keys, if it is a table."""

    what: str
    keys: tuple[str, ...] = ()


class Setting(NamedTuple):
    """A field, with what `setting` and the docstring of its class say of it."""

    key: str  # its name in the dataclass, and in `pcs.toml`
    kind: Any  # its type, without None
    optional: bool  # whether it may be None
    default: Any
    meaning: str
    option: str = ""
    other_name: str = ""
    least: float | None = None
    above: float | None = None
    most: float | None = None
    below: float | None = None
    off: str = ""

    @property
    def name(self) -> str:
        """What Python and the command line call it."""
        return self.other_name or self.key

    @property
    def help(self) -> str:
        """What it means, and its default if that says something."""
        if self.default in (None, "", (), {}) or isinstance(self.default, bool) or "default: " in self.meaning:
            return self.meaning
        return f"{self.meaning.removesuffix('.')}; default: {self.default}."

    def problem(self, value: Any) -> Problem | None:
        """Return what is wrong with a value; None if it is fine."""
        if value is None and self.optional:
            return None
        if problem := _type_problem(self.kind, value):
            return problem
        bounds = {
            "at least": (self.least, operator.ge),
            "more than": (self.above, operator.gt),
            "at most": (self.most, operator.le),
            "less than": (self.below, operator.lt),
        }
        broken = [f"{how} {end:g}" for how, (end, fits) in bounds.items() if end is not None and not fits(value, end)]
        return Problem(f"is {value}, must be {broken[0]}") if broken else None


@cache
def settings_in(section: type) -> tuple[Setting, ...]:
    """Return the fields of a dataclass, in order, without those that have tables of their own in `pcs.toml`."""
    hints, settings = get_type_hints(section), []
    meanings = dict(re.findall(r"^    (\w+): (.*(?:\n {8}.*)*)", getdoc(section) or "", re.MULTILINE))
    for entry in fields(section):
        if "tables" in entry.metadata:
            continue
        hint = hints[entry.name]
        optional = get_origin(hint) in (Union, UnionType)
        kind = next(part for part in get_args(hint) if part is not NoneType) if optional else hint
        default = entry.default if entry.default_factory is MISSING else entry.default_factory()
        meaning = " ".join(meanings.get(entry.name, "").split())
        settings.append(Setting(entry.name, kind, optional, default, meaning, **entry.metadata))
    return tuple(settings)


class SettingsSection:
    """A dataclass of settings: its values are checked, and lists become tuples, however they were given."""

    __slots__ = ()

    def __post_init__(self) -> None:
        """Check every value."""
        section: type = type(self)
        for entry in settings_in(section):
            value = getattr(self, entry.key)
            if problem := entry.problem(value):
                raise ConfigError(f"{'.'.join((entry.key, *problem.keys))} {problem.what}")
            object.__setattr__(self, entry.key, _as_kind(entry.kind, value))


def _as_kind(kind: Any, value: Any) -> Any:
    """Return a value with tuples instead of lists, and floats instead of whole numbers where there may be fractions."""
    if isinstance(value, Mapping):
        return {key: _as_kind(get_args(kind)[1], entry) for key, entry in value.items()}
    if isinstance(value, list):
        return tuple(value)
    return float(value) if kind is float and value is not None else value


def _type_problem(kind: Any, value: Any) -> Problem | None:
    origin, inner = get_origin(kind) or kind, get_args(kind)
    if origin is Mapping and isinstance(value, Mapping):
        problems = ((key, _type_problem(inner[1], entry)) for key, entry in value.items())
        return next(
            (Problem(problem.what, (key, *problem.keys)) for key, problem in problems if problem is not None), None
        )
    fits, wanted = _FITS[origin](value, inner)
    return None if fits else Problem(f"is {value!r}, must be {wanted}")


def _is_number(value: Any) -> bool:
    is_real = isinstance(value, Real) and not isinstance(value, bool)
    return is_real and abs(value) < LARGEST


def _fits_tuple(value: Any, inner: tuple[Any, ...]) -> tuple[bool, str]:
    listed = isinstance(value, list | tuple)
    if get_origin(inner[0]) is Mapping:
        fits = listed and all(
            isinstance(entry, Mapping) and all(isinstance(cell, str) for cell in entry.values()) for entry in value
        )
        return fits, "a list of tables with texts in quotes"
    if inner[-1] is Ellipsis:
        return listed and all(isinstance(entry, str) for entry in value), "a list of names"
    return listed and len(value) == len(inner) and all(map(_is_number, value)), f"a list of {len(inner)} numbers"


_FITS: Mapping[Any, Callable[[Any, tuple[Any, ...]], tuple[bool, str]]] = {
    str: lambda value, inner: (isinstance(value, str), "a text in quotes"),
    bool: lambda value, inner: (isinstance(value, bool), "true or false"),
    int: lambda value, inner: (isinstance(value, Integral) and not isinstance(value, bool), "a whole number"),
    float: lambda value, inner: (_is_number(value), "a number"),
    tuple: _fits_tuple,
    Mapping: lambda value, inner: (False, "a table of its own, under its name in brackets"),
    Literal: lambda value, inner: (value in inner, f"one of {', '.join(map(repr, inner))}"),
}
"""Type of a setting → whether a value fits it, and a description of the values that do."""
