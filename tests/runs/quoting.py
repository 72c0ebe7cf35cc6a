"""Invented texts with people and places in them, and models that quote these as well as they can."""

import json
import random
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

PEOPLE = ("Anna Berg", "Tom Reed", "Li Wei", "Rosa Cruz", "Omar Haddad", "Eva Lind", "Jon Vik", "Mia Sato")
PLACES = ("Oslo", "Lima", "Cairo", "Kyoto", "Bergen", "Quito", "Porto", "Turin")
DOINGS = (
    "walked along the quiet river before noon",
    "sold a small wooden boat",
    "spoke about the weather",
    "lost a blue notebook",
    "waited for the late train",
)
SETTINGS = """
[variables.entities]
kind = "passages"
labels = ["person", "place"]

[learn]
max_error = 0.2
resamples = 0
"""
_TEXT = re.compile(r"\[text (\w+)\]\n(?:\[text \1\]\n)?(.*?)\n\[text \1\]", re.DOTALL)


def text_with_gold(seed: int, sentences: int = 0) -> tuple[str, list[dict[str, Any]]]:
    """Return a text, and where people and places are in it."""
    rng, text, gold = random.Random(seed), "", list[dict[str, Any]]()

    def add(words: str, type_: str = "") -> None:
        nonlocal text
        if type_:
            gold.append({"start": len(text), "end": len(text) + len(words), "type": type_})
        text += words

    for _ in range(sentences or rng.randint(1, 4)):
        add(rng.choice(PEOPLE), "person")
        add(f" {rng.choice(DOINGS)}")
        if rng.random() < 0.7:
            add(" in ")
            add(rng.choice(PLACES), "place")
        add(". ")
    return text.rstrip(), gold


def write_texts(path: Path, texts: int = 60, labelled: int = 45) -> list[dict[str, Any]]:
    """Write texts as JSON Lines, some with gold, and return the rows."""
    rows = []
    for number in range(texts):
        text, gold = text_with_gold(number)
        rows.append({"id": f"t{number}", "text": text, "entities": gold if number < labelled else None})
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return rows


def text_in(prompt: object) -> str:
    """Return the text that a prompt asks about."""
    match = _TEXT.search(str(prompt))
    assert match is not None
    return match[2]


def quoting(skill: float, name: str, calls: list[str] | None = None) -> Callable[[str], str]:
    """Return a model that finds a share of what it is asked for, sometimes half of a name, and sometimes invents."""

    def answer(prompt: str) -> str:
        asked, text = str(prompt), text_in(prompt)
        if calls is not None:
            calls.append(text)
        rng, rows = random.Random(f"{name} {len(asked)} {text}"), list[Mapping[str, str]]()
        for person in PEOPLE:
            if person in text and rng.random() < skill:
                rows.append({"type": "person", "quotation": person if rng.random() < 0.8 else person.split()[0]})
        for place in PLACES:
            if place in text and rng.random() < skill:
                rows.append({"type": "place" if rng.random() < skill else "person", "quotation": place})
        if rng.random() > skill:
            rows.append({"type": "place", "quotation": rng.choice(("quiet river", "late train", "Atlantis"))})
        return json.dumps(rows)

    answer.__name__ = name
    return answer
