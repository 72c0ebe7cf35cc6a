"""Names of the columns that results have in tables: always the same, whatever the user's columns are called."""

from collections.abc import Collection, Sequence

from pcs_annotator.core.task import MANY_LABELS

LABEL, CONFIDENCE, DECISION, REASON = "pcs_label", "pcs_confidence", "pcs_decision", "pcs_reason"
LABEL_SET, ERROR, VERSION = "pcs_set", "pcs_error", "pcs_version"
WITHIN_ONE, LOW, HIGH, LEVEL = "pcs_within_one", "pcs_low", "pcs_high", "pcs_level"
VERDICT, REVIEWER, FINAL_LABEL = "pcs_verdict", "pcs_reviewer", "pcs_final_label"


def score_name(label: str) -> str:
    """Return the column of a label's score."""
    return f"score_{label}"


def probability_name(label: str) -> str:
    """Return the column of a label's calibrated probability."""
    return f"p_{label}"


def with_columns(labels: Sequence[str]) -> Sequence[str]:
    """Return the labels that have columns of their own: all, unless there are very many."""
    return labels if len(labels) <= MANY_LABELS else ()


def result_names(labels: Sequence[str]) -> frozenset[str]:
    """Return all names that columns of results can have."""
    fixed = (LABEL, CONFIDENCE, DECISION, REASON, LABEL_SET, ERROR, VERSION, VERDICT, REVIEWER, FINAL_LABEL)
    shaped = (WITHIN_ONE, LOW, HIGH, LEVEL)
    with_numbers = with_columns(labels)
    return frozenset(fixed + shaped).union(*((score_name(label), probability_name(label)) for label in with_numbers))


def input_names(names: Collection[str], ours: Collection[str]) -> dict[str, str]:
    """Return what the user's columns are called beside ours: `input_<name>` for one of our names."""
    used = {*names, *ours}
    names_now = {}
    for name in names:
        free, number = name, 1
        while name in ours and free in used:
            free, number = f"input_{name}" + (f"_{number}" if number > 1 else ""), number + 1
        used.add(free)
        names_now[name] = free
    return names_now
