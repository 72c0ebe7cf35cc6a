"""All checks of a rewrite, in their order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from pcs_annotator.core.variant import Expectation, Verdict
from pcs_annotator.relations.base import AskRewriter
from pcs_annotator.relations.checks.base import Check, Rewrite
from pcs_annotator.relations.checks.judge import judge
from pcs_annotator.relations.checks.names import names
from pcs_annotator.relations.checks.negation import negation
from pcs_annotator.relations.checks.reading import without_typos
from pcs_annotator.relations.checks.roles import in_order, roles
from pcs_annotator.relations.checks.surface import certainty, language, length, numbers, unchanged
from pcs_annotator.relations.parse import Parser

CHECKS: Mapping[str, Check] = MappingProxyType(
    {
        "unchanged": unchanged,
        "length": length,
        "language": language,
        "numbers": numbers,
        "negation": negation,
        "names": names,
        "certainty": certainty,
        "roles": roles,
    }
)
"""Every check that is always made, by name; `roles` looks deeper when the rewrite comes with parses."""

# Beyond this many characters, a parse costs more than the rewrite is worth.
LONGEST_PARSED = 20_000


def run_checks(rewrite: Rewrite) -> tuple[Verdict, ...]:
    """Return a verdict of every check."""
    meant = replace(rewrite, text=without_typos(rewrite)) if rewrite.expects.misspells else rewrite
    verdicts = []
    for name, check in CHECKS.items():
        complaint = check(rewrite if name == "unchanged" else meant)
        verdicts.append(Verdict(name, not complaint, complaint))
    return tuple(verdicts)


async def check_rewrite(
    source: str, text: str, expects: Expectation, parser: Parser | None, ask_judge: AskRewriter | None = None
) -> tuple[Verdict, ...]:
    """Return a verdict from every check.

    Only a rewrite that passed the cheap checks is parsed, and only one that passed all others goes to the judge.
    """
    rewrite = Rewrite(source, text, expects)
    verdicts = run_checks(rewrite)
    if not _all_passed(verdicts):
        return verdicts
    if parser is not None and _worth_parsing(rewrite, parser):
        source_doc, text_doc = await parser.parse(source), await parser.parse(text)
        verdicts = _with_roles(verdicts, replace(rewrite, source_doc=source_doc, text_doc=text_doc))
    if ask_judge is None or not _all_passed(verdicts):
        return verdicts
    verdict = await judge(rewrite, ask_judge)
    return verdicts if verdict is None else (*verdicts, verdict)


def verdicts(source: str, text: str, expects: Expectation, parser: Parser | None = None) -> tuple[Verdict, ...]:
    """Return a verdict of every check that needs no model, for code that cannot wait."""
    rewrite = Rewrite(source, text, expects)
    found = run_checks(rewrite)
    if parser is None or not _all_passed(found) or not _worth_parsing(rewrite, parser):
        return found
    source_doc, text_doc = parser.parse_many([source, text])
    return _with_roles(found, replace(rewrite, source_doc=source_doc, text_doc=text_doc))


def _all_passed(found: Sequence[Verdict]) -> bool:
    return all(verdict.passed for verdict in found)


def _worth_parsing(rewrite: Rewrite, parser: Parser) -> bool:
    if in_order(rewrite.source, rewrite.text):
        return False
    short = max(len(rewrite.source), len(rewrite.text)) <= LONGEST_PARSED
    # A text with slips of the finger parses as something else.
    return short and not rewrite.expects.misspells and parser.available


def _with_roles(found: tuple[Verdict, ...], rewrite: Rewrite) -> tuple[Verdict, ...]:
    complaint = roles(rewrite)
    return tuple(Verdict(old.check, not complaint, complaint) if old.check == "roles" else old for old in found)
