"""Turns what a user writes, such as `case+typo` or `wording:2`, into relations."""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import prod

from pcs_annotator.base.concurrency import off_loop
from pcs_annotator.base.errors import ConfigError, UnknownNameError
from pcs_annotator.core.task import Phrasing
from pcs_annotator.core.variant import ORIGINAL, CheckResult, Expectation, Status, Variant
from pcs_annotator.relations.base import Context, MadeOf, Original, QuestionRelation, Relation, relations, rephrased
from pcs_annotator.relations.check_words import Rewrite
from pcs_annotator.relations.checks import run_checks
from pcs_annotator.relations.function import FunctionRelation, Rewriting
from pcs_annotator.relations.question import LabelOrder, Suggestion, WithExamples, Wording


@dataclass(frozen=True, slots=True)
class InTurn(MadeOf):
    """`a+b`: each part changes the result of the one before; all must apply."""

    name: str
    parts: tuple[Relation, ...]

    @property
    def expects(self) -> Expectation:
        """What all parts together may do."""
        parts = [part.expects for part in self.parts]
        return Expectation(
            negations="doubled" if any(part.negations == "doubled" for part in parts) else "kept",
            shortest=prod(part.shortest for part in parts),
            longest=prod(part.longest for part in parts),
            misspells=any(part.misspells for part in parts),
        )

    def rephrase(self, question: Phrasing) -> Phrasing:
        """Return the question after all parts that change it."""
        for part in self.parts:
            question = rephrased(part, question)
        return question

    async def rewrite(self, text: str, context: Context) -> Variant:
        """Return the text after all parts, or not applicable if one part fails."""
        current = text
        status: Status = "original"
        checks: tuple[CheckResult, ...] = ()
        for part in self.parts:
            step = await part.rewrite(current, context)
            if step.text is None:
                reason = f"{part.name}: {step.reason}"
                return Variant(relation=self.name, status="not_applicable", reason=reason, source=text)
            current, checks = step.text, checks + step.checks
            if step.status != "original":
                status = step.status
        return Variant(relation=self.name, status=status, text=current, source=text, checks=checks)


@dataclass(frozen=True, slots=True)
class CheckedRelation(MadeOf):
    """A relation under the name that the user wrote, with every rewrite checked."""

    inner: Relation  # the relation that rewrites
    name: str  # as it appears in tables

    @property
    def parts(self) -> tuple[Relation, ...]:
        """The relation that rewrites."""
        return (self.inner,)

    @property
    def expects(self) -> Expectation:
        """What its rewrites may do to a text."""
        return self.inner.expects

    def calls(self, text: str) -> float:
        """Return the most calls: a rejected rewrite is followed by another."""
        return self.inner.calls(text) * (1 if self.inner.deterministic else 2)

    async def rewrite(self, text: str, context: Context) -> Variant:
        """Return the rewrite if it passes; a rejected one is tried once more, with the reason in the prompt."""
        first = await self._attempt(text, context)
        if first.status != "rejected" or self.inner.deterministic:
            return first
        second = await self._attempt(text, replace(context, hint=first.reason))
        return second if second.status == "changed" else first

    async def _attempt(self, text: str, context: Context) -> Variant:
        variant = replace(await self.inner.rewrite(text, context), relation=self.name)
        if variant.status != "changed" or variant.text is None:
            return variant
        rewrite = Rewrite(text, variant.text, self.expects)
        verdicts = await off_loop(len(text), partial(run_checks, rewrite))
        reason = "; ".join(verdict.detail for verdict in verdicts if not verdict.passed)
        if not reason:
            return replace(variant, checks=verdicts)
        return replace(variant, status="rejected", text=None, refused=variant.text, reason=reason, checks=verdicts)


def text_parts(relation: Relation) -> tuple[Relation, ...]:
    """Return the relations that a relation applies to texts, in order; none if it leaves texts as they are."""
    if isinstance(relation, InTurn):
        return tuple(part for part in relation.parts if text_parts(part))
    return () if isinstance(relation, QuestionRelation | Original) else (relation,)


_NUMBERED = re.compile(r"(order|wording|examples|suggestion):([1-9]\d{0,2})")


@dataclass(frozen=True, slots=True, kw_only=True)
class RelationOptions:
    """How names become relations.

    Attributes:
        rewriter: Whether there is a model that rewrites.
        own: The user's relations by name; they take precedence over all others. A function is a relation, too.
        checked: Whether rewrites are checked.
    """

    rewriter: bool = False
    own: Mapping[str, Relation | Rewriting] = field(default_factory=dict)
    checked: bool = True


def choose_relations(specs: Sequence[str | Relation], options: RelationOptions) -> list[Relation]:
    """Return the relations of these names, in order; relations may be given as well."""
    chosen = [_in_turn(spec, options) if isinstance(spec, str) else _ready(spec, spec.name, options) for spec in specs]
    twice = [name for name, count in Counter(relation.name for relation in chosen).items() if count > 1]
    if twice:
        raise ConfigError(f"relation {twice[0]!r} is named twice: name each relation once")
    return chosen


def known_relations(own: Mapping[str, Relation] | None = None) -> list[Relation]:
    """Return every known relation: built in, from plug-ins, and the user's own."""
    own = own or {}
    return [*(relations.create(name) for name in relations.names() if name not in own), *own.values()]


def _in_turn(spec: str, options: RelationOptions) -> Relation:
    names = [name.strip() for name in spec.split("+")]
    if len(names) > 1 and ORIGINAL in names:
        raise ConfigError(f"relation {spec!r}: {ORIGINAL!r} changes nothing, so it cannot be combined: leave it out")
    parts = [_ready(find_relation(name, options), name, options) for name in names]
    return parts[0] if len(parts) == 1 else InTurn("+".join(names), tuple(parts))


def _ready(relation: Relation, name: str, options: RelationOptions) -> Relation:
    if relation.name == ORIGINAL or not options.checked:
        return relation
    if isinstance(relation, CheckedRelation | InTurn | QuestionRelation):
        return relation
    return CheckedRelation(relation, name)


def find_relation(name: str, options: RelationOptions) -> Relation:
    """Return the relation of that name; a bare name such as `voice` or `case` means `llm:voice` or `rule:case`."""
    if name in options.own:
        mine = options.own[name]
        return mine if hasattr(mine, "rewrite") else FunctionRelation(name, mine)  # type: ignore[return-value]  # it is one
    names = relations.names()
    if name not in names:
        name = next((full for full in (f"llm:{name}", f"rule:{name}") if full in names), name)
    if name not in names and (numbered := _NUMBERED.fullmatch(name)):
        return _numbered(numbered[1], int(numbered[2]))
    if name not in names and name.isidentifier():
        raise UnknownNameError(
            f"{relations.unknown(name)}; a function is not kept in a run folder: pass it again, load_run(folder, "
            "relations=[…])"
        )
    relation = relations.create(name)
    if "rewriter" in relation.needs and not options.rewriter:
        raise ConfigError(
            f"relation {name!r} needs a model that rewrites: name it as rewriter (--rewriter MODEL, textmutator in PCS)"
        )
    return relation


def _numbered(family: str, number: int) -> Relation:
    name = f"{family}:{number}"
    if number == 1:
        raise ConfigError(f"relation {name!r} is called {family!r}: numbers start at 2")
    numbered: dict[str, Callable[[str, int], Relation]] = {
        "order": LabelOrder,
        "wording": Wording,
        "suggestion": Suggestion,
    }
    return numbered.get(family, WithExamples)(name, number)
