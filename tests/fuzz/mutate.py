"""Damage to bytes and JSON values, the same for the same seed."""

import json
import random
from typing import Any

TOKENS = [
    *(b"\0", b"\xff\xfe", b"\xef\xbb\xbf", b"\xed\xa0\x80", b"\r\n", b"\n", b'"', b"'", b",", b"\t", b";", b"[", b"]"),
    *(b"{", b"}", b"null", b"NaN", b"-1", b"1e999", b"9" * 400, b"true", b"\\u0000", b"\\ud800", b"=1+1", b"%s"),
    *(b"[" * 500, b'{"a":' * 300, b"\xe2\x80\xae", b"\xf0\x9f\x91\x8d", b"A" * 5000, b"]]>", b"&x;", b"../", b" "),
]
VALUES: list[Any] = [
    *(None, True, False, 0, -1, 2**63, 2**64, 10**300, 0.5, -0.0, 1e308, "", " ", "a", "\0", "\ud800", "\u202e", "=1"),
    *([], [[]], {}, {"a": []}, ["good"], [None], "good", "x" * 3000, {"data": {}}, [0, "0"]),
]


def bytes_like(data: bytes, chance: random.Random) -> bytes:
    """Return the data with one to eight changes."""
    found = bytearray(data)
    for _ in range(chance.randint(1, 8)):
        place = chance.randrange(len(found) + 1)
        end = min(len(found), place + chance.randint(1, 40))
        what = chance.randrange(6)
        if what == 0 and found:
            found[place % len(found)] ^= 1 << chance.randrange(8)
        elif what == 1:
            found[place:place] = chance.choice(TOKENS)
        elif what == 2:
            del found[place:end]
        elif what == 3:
            found[place:place] = found[place:end]
        elif what == 4:
            found[place:end] = chance.choice(TOKENS)
        else:
            del found[max(place, len(found) // 8) :]
    return bytes(found)


def json_like(value: Any, chance: random.Random, depth: int = 0) -> Any:
    """Return a JSON value like this one, in which something is missing, of another type, or too much."""
    if depth > 6 or chance.random() < 0.12:
        return chance.choice(VALUES)
    if isinstance(value, dict):
        kept = {key: json_like(one, chance, depth + 1) for key, one in value.items() if chance.random() > 0.05}
        if chance.random() < 0.05:
            kept[str(chance.choice(VALUES))] = chance.choice(VALUES)
        return kept
    if isinstance(value, list):
        return [json_like(one, chance, depth + 1) for one in value for _ in range(chance.choice([0, 1, 1, 1, 1, 2]))]
    return value


def as_json(value: Any) -> bytes:
    """Return a value as JSON; half characters are written as escapes."""
    return json.dumps(value).encode()


def either(value: Any, chance: random.Random) -> bytes:
    """Return the JSON of a changed value, or changed JSON of the value."""
    return as_json(json_like(value, chance)) if chance.random() < 0.6 else bytes_like(as_json(value), chance)
