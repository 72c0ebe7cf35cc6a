"""How many of very many labels each text is asked about, in words."""

from collections.abc import Sequence

from pcs_annotator.core.ngrams import recall_of, text_key
from pcs_annotator.judging.metrics.metrics import exact_interval
from pcs_annotator.runs.resolve_config import asked_alone, task_of
from pcs_annotator.runs.settings import Config

ENOUGH = 0.9
"""Candidates that have the right label less often are a reason to do something."""


def about_candidates(config: Config, texts: Sequence[str], gold: Sequence[str | None]) -> str:
    """Return how many labels each text is asked about, and how often that is known to be enough; empty for all."""
    task, labels = config.task, {label.casefold(): label for label in config.task.labels}
    if not asked_alone(task) or task.kind == "number":
        return ""
    rows = {text_key(text): (text, labels[label.casefold()]) for text, label in zip(texts, gold, strict=False) if label}
    asked = f"Each text is asked about {task.candidates} of {len(labels):,} labels"
    if not rows:
        return f"{asked}; gold rows would tell how often the right one is among them."
    share = recall_of(task_of(config), *zip(*rows.values(), strict=True))
    low, high = exact_interval(round(share * len(rows)), len(rows)).rounded(2)
    among = f"the right one is among them for {share:.0%} of {len(rows):,} gold rows [{low:.0%}, {high:.0%}]"
    remedy = "" if low >= ENOUGH else "; say what labels mean, label more rows before the run, or set more candidates"
    return f"{asked}: {among}, and no more labels can be right{remedy}."
