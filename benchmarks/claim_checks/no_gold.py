"""Without gold labels nothing is accepted, and one answer never agrees; how often labels agree and are right."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.claim_checks.claim import Claim
from benchmarks.development_data import Dataset, development_sets, load
from pcs_annotator import Votes
from pcs_annotator.runs.learn import learn_if_possible
from pcs_annotator.runs.settings import LearnSettings


def check(repetitions: int) -> Iterator[Claim]:
    """Yield what is accepted and what agrees: with one answer per text, two of one model, and all of them."""
    del repetitions  # nothing is drawn: every row is judged once
    for name, (votes, _, gold) in _sets().items():
        for answers in (1, 2):
            some = votes.select(annotators=votes.annotators[:1], relations=votes.relations[:answers], draws=1)
            yield _cell(f"{name}, {answers} of 1 model", some, gold)
        yield _cell(f"{name}, all answers", votes, gold)


def _sets() -> dict[str, Dataset]:
    sets = development_sets()
    for name in ("sentiment", "gossipcop", "tweets"):
        sets[f"graded {name}"] = load(f"recorded/graded_{name}.csv.gz")
    return sets


def _cell(where: str, votes: Votes, gold: list[str | None]) -> Claim:
    model = learn_if_possible(votes, [None] * len(votes), LearnSettings()).model
    pairs = [(one, label) for one, label in zip(model.judge(votes), gold, strict=True) if label is not None]
    accepted = sum(one.decision == "accept" for one, _ in pairs)
    agreeing = [one.label == label for one, label in pairs if one.decision == "agree"]
    share = f"{100 * len(agreeing) / len(pairs):.0f} % agree"
    right = f", {100 * sum(agreeing) / len(agreeing):.0f} % of them right" if agreeing else ""
    kept = not accepted and not (agreeing and votes.codes[0].size == 1)
    return Claim("nothing is accepted without gold", where, "0 accepted", f"{accepted} accepted; {share}{right}", kept)
