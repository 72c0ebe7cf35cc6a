"""Which key means which label, and the keys for everything else."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, repeat

from pcs_annotator.base.errors import ConfigError

COMMANDS = (
    ("Enter", "give the proposed label"),
    ("S", "skip this row"),
    ("U", "undo your last verdict, and the one before, …"),
    ("Ctrl Z", "undo, too"),
    ("Shift ←", "back to the row before"),
    ("Shift →", "forward again"),
    ("V", "show or hide what every model answered"),
    ("N", "write a note; Enter returns to the row"),
    ("/", "search texts"),
    ("G", "go to a row by its ID"),
    ("?", "show all keys"),
    ("Esc", "close this, or leave a field"),
)
"""Keys and what they do, for people."""
TAKEN = "sugnv/?"
FOR_LABELS = "123456789" + "".join(letter for letter in "abcdefghijklmnopqrstuvwxyz" if letter not in TAKEN)


def keys_of(labels: Sequence[str], given: str = "") -> dict[str, str]:
    """Return label → key: those given, in the order of the labels, else 1 to 9 and letters; empty beyond them.

    A label keeps its key however probable it is, so that fingers can learn it.

    >>> keys_of(["yes", "no"])
    {'yes': '1', 'no': '2'}
    >>> keys_of(["yes", "no"], "YX")
    {'yes': 'y', 'no': 'x'}
    """
    if not given:
        return dict(zip(labels, chain(FOR_LABELS, repeat("")), strict=False))
    keys = given.lower()
    _check(keys, labels)
    return dict(zip(labels, keys, strict=True))


def _check(keys: str, labels: Sequence[str]) -> None:
    if len(keys) != len(labels):
        order = ", ".join(labels)
        raise ConfigError(f"--keys {keys!r} has {len(keys)} keys for {len(labels)} labels: one for each of {order}")
    if len(set(keys)) < len(keys):
        raise ConfigError(f"--keys {keys!r} has a key twice: every label needs its own")
    unusable = [key for key in keys if key in TAKEN or not key.isprintable() or key.isspace()]
    if unusable:
        raise ConfigError(f"--keys: {unusable[0]!r} is used by the page itself: choose another key for that label")
