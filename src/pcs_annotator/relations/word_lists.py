"""Lists of words and patterns that rules and checks share, from `words.toml`."""

import re
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files


@cache
def word_tables() -> Mapping[str, Mapping[str, str]]:
    """Return the tables of `words.toml`."""
    return tomllib.loads(files(__package__).joinpath("words.toml").read_text(encoding="utf-8"))


def listed(table: str, name: str) -> frozenset[str]:
    """Return the words of a list in `words.toml`."""
    return frozenset(word_tables()[table][name].split())


def pattern(name: str, flags: re.RegexFlag = re.NOFLAG) -> re.Pattern[str]:
    """Return a regular expression of `words.toml`."""
    return re.compile(word_tables()["patterns"][name], flags | re.VERBOSE)


SMALL = listed("names", "small")  # words that say little by themselves and are never names
LOUD = listed("names", "loud")  # words that people capitalise although they are not names
