"""Which languages a sample of texts is in, which relations can do nothing with them, and what can."""

import heapq
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b

from pcs_annotator.base.text import series
from pcs_annotator.relations.base import Relation, relations
from pcs_annotator.relations.combine import CheckedRelation, InTurn
from pcs_annotator.relations.function import NotApplicable, TextRule
from pcs_annotator.relations.language import LIMITS, NAMES, known_language

LOOKED_AT = 300
READ = 20_000  # characters of a text, at most: rules must not take minutes over one that is no ordinary text
UNCLEAR = "unclear"
# A relation that does not apply to fewer texts than this share is not worth a warning.
MANY = 0.05
MOST = 0.5
ANY_TEXT = ("order", "wording", "layout")  # relations that apply to every text in every language
FREE = ("case", "frame", "typo")  # rules
_LANGUAGES_SHOWN = 3


@dataclass(frozen=True)
class Languages:
    """The languages of a table."""

    sample: Sequence[str]  # texts that were looked at
    chosen: Sequence[Relation]

    @cached_property
    def limits(self) -> Mapping[str, int]:
        """Chosen relation → texts in the sample that it cannot change; without those that it can change all."""
        limits = {relation.name: self.ruled_out(relation) for relation in self.chosen}
        return {name: times for name, times in limits.items() if times}

    @cached_property
    def counts(self) -> dict[str, int]:
        """Language → number of texts, the most common first; texts whose language is unclear come under `unclear`."""
        counts = Counter(known_language(text) or UNCLEAR for text in self.sample)
        return dict(sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])))

    @property
    def english(self) -> bool:
        """Whether hardly any text is known to be in another language."""
        return sum(self.counts.get(name, 0) for name in ("en", UNCLEAR)) > (1 - MANY) * len(self.sample)

    @property
    def shares(self) -> str:
        """The most common languages with their shares, for people."""
        shown = [f"{_percent(times, len(self.sample))} {NAMES.get(code, code)}" for code, times in self.counts.items()]
        more = [f"{len(shown) - _LANGUAGES_SHOWN} more"] if len(shown) > _LANGUAGES_SHOWN else []
        return ", ".join([*shown[:_LANGUAGES_SHOWN], *more])

    def working_rules(self) -> Iterator[str]:
        """Yield the free rules that can do something with most of these texts."""
        most = MOST * len(self.sample)
        return (name for name in FREE if self.ruled_out(relations.create(f"rule:{name}")) < most)

    def ruled_out(self, relation: Relation) -> int:
        """Return the number of texts in the sample to which a relation does not apply."""
        return sum(ruled_out(relation, text) for text in self.sample)

    @property
    def warning(self) -> str:
        """Which relations do not apply to many texts, and what to use instead, in one line; empty if none."""
        limits = {name: times for name, times in self.limits.items() if times > MANY * len(self.sample)}
        return self.limited(limits, len(self.sample)) if limits else ""

    def limited(self, limits: Mapping[str, int], texts: int) -> str:
        """Return a sentence about relations that do not apply to some of these texts, with the remedy."""
        least, most = min(limits.values()), max(limits.values())
        share = _percent(most, texts) if least == most else f"{_percent(least, texts)} to {_percent(most, texts)}"
        limited = [name.removeprefix("rule:") for name in limits]
        instead = series([name for name in (*ANY_TEXT, *self.working_rules()) if name not in limited], "or")
        return f"{series(list(limits))} can do nothing with {share} of the texts ({self.shares}): use {instead} instead"


def ruled_out(relation: Relation, text: str) -> bool:
    """Return whether the language or script of a text keeps a relation from applying; asking rules is free."""
    if isinstance(relation, CheckedRelation):
        return ruled_out(relation.inner, text)
    if isinstance(relation, InTurn):
        return any(ruled_out(part, text) for part in relation.parts)
    result = relation.function(text) if isinstance(relation, TextRule) else None
    return isinstance(result, NotApplicable) and result.reason in LIMITS


def languages_of(texts: Iterable[str], chosen: Sequence[Relation] = ()) -> Languages:
    """Return the languages of a sample of texts, and what chosen relations can do with them."""
    distinct = {text[:READ] for text in texts if text.strip()}
    # drawn by hash, so that the order of the rows makes no difference
    lots = {blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(): text for text in distinct}
    return Languages([lots[lot] for lot in heapq.nsmallest(LOOKED_AT, lots)], chosen)


def usual_text_relation(texts: Iterable[str]) -> str:
    """Return the relation of the text to ask under by default: small letters, or what the script has instead."""
    languages = languages_of(texts)
    return next(languages.working_rules(), "layout") if languages.sample else FREE[0]


def _percent(part: int, whole: int) -> str:
    share = 100 * part / whole
    return f"{share:.0f} %" if share >= 1 or not part else "< 1 %"
