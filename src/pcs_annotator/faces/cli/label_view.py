"""What `pcs label` shows, and `pcs plan` about labelling."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from pcs_annotator.faces.cli.fit_view import print_notes
from pcs_annotator.faces.cli.promise_view import print_promise, promise_json
from pcs_annotator.faces.cli.run_view import plan_json, print_plan
from pcs_annotator.pipeline.labelling import Labelled, LabelPlan


def labelled_json(labelled: Labelled, notes: Sequence[str]) -> dict[str, Any]:
    """Return everything that `print_labelled` shows as plain values."""
    tally = labelled.tally
    return {
        "rows": len(labelled.outcomes),
        "rows_without_label": labelled.unlabelled,
        "label_counts": dict(_counts(labelled)),
        "decisions": dict(Counter(one.decision for one in labelled.outcomes if one.decision is not None)),
        "calls": tally.calls,
        "known_already": tally.from_ledger,
        "questions": tally.questions,
        "questions_spared": tally.spared,
        **promise_json(labelled.model),
        "warnings": list(notes),
        "out": str(labelled.out),
    }


def print_labelled(labelled: Labelled, notes: Sequence[str], console: Console | None = None) -> None:
    """Print what came of labelling for a person."""
    console = console or Console(highlight=False)
    for name, count in _counts(labelled).most_common():
        console.print(Text(f"{count:>8,}  {name}"))
    tally = labelled.tally
    console.print(f"{tally.calls:,} calls, {tally.from_ledger:,} known already")
    if labelled.frugal is not None and tally.spared:
        share = tally.spared / (tally.spared + tally.questions)
        console.print(
            f"{tally.spared:,} questions ({100 * share:.0f} %) were not asked, because the label was settled; "
            "[dim]--ask-all asks everything[/]"
        )
    print_promise(labelled.model, len(labelled.outcomes), console)
    print_notes(notes, labelled.unlabelled, console)
    console.print(Text(f"\nlabels  {labelled.out}", style="bold"))


def label_plan_json(plan: LabelPlan) -> dict[str, Any]:
    """Return a plan both ways as plain values."""
    return {
        **plan_json(plan.everything),
        "adaptive": None if plan.frugal is None else plan_json(plan.frugal),
        "share_asked": None if plan.spending is None else plan.spending._asdict(),
    }


def print_label_plan(plan: LabelPlan, console: Console | None = None) -> None:
    """Print what labelling takes, both ways."""
    console = console or Console(highlight=False)
    console.print("[bold]asking everything[/]")
    print_plan(plan.everything, console)
    if plan.frugal is None or plan.spending is None:
        console.print("\nnothing was learned in that run that could tell when a label is settled: everything is asked")
        return
    console.print(
        f"\n[bold]asking until the label is settled[/], about {100 * plan.spending.questions:.0f} % of the questions"
    )
    print_plan(plan.frugal, console)


def _counts(labelled: Labelled) -> Counter[str]:
    return Counter(outcome.label for outcome in labelled.outcomes if outcome.label is not None)
