"""What can be asked about the labels of a run, and the answers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from pcs_annotator.base.display import Columns, Frame
from pcs_annotator.base.errors import ConfigError
from pcs_annotator.base.fields import setting
from pcs_annotator.base.text import counted, series
from pcs_annotator.core.result_table import Figure
from pcs_annotator.core.task import MANY_LABELS
from pcs_annotator.core.weights import Interval
from pcs_annotator.estimating.corrected import CoefficientEstimate, LabelRegression, Study
from pcs_annotator.estimating.formula import parse_formula
from pcs_annotator.judging.metrics.significance import false_discovery_rate, holm
from pcs_annotator.showing.formats import label_name

TAIL = 0.025
MOST_BY, MOST_NAMED = 2, 4
METHODS = ("corrected", "gold_only", "naive")
ADJUSTED = {"holm": "p (Holm)", "bh": "p (BH)", "none": "p"}  # how p-values are adjusted → what tables call them


@dataclass(frozen=True, slots=True, kw_only=True)
class EstimateQuestion:
    """What to estimate.

    Attributes:
        label: Of a table: column of machine labels, from anywhere.
        gold: Of a table: column of true labels, in some of its rows.
        confidence: Of a table: column of numbers that are higher where the machine is surer.
        of: Label, or several joined by +, such as a+b; default: all labels, each alone.
        by: Each group of this column, and differences; two columns: combinations.
        every: With --by and a column of dates: the period.
        values: Mean of these numbers instead of shares, such as positive=1; one per label.
        formula: Regression: "hateful ~ party + log(followers)".
        link: linear, logistic or multinomial; default: by outcome.
        cluster: Rows with the same value in this column have errors in common.
        probability: Column that says how probable it was that a row got gold.
        weight: Column of survey weights: how much each row counts.
        p_adjust: How p-values are adjusted for all tests of a table.
        larger: Generalise to the population that these rows were sampled from.
    """

    label: str = setting("", "--label COLUMN")
    gold: str = setting("", "--gold COLUMN")
    confidence: str = setting("", "--confidence COLUMN")
    of: Sequence[str] = setting((), "--of LABEL")
    by: Sequence[str] | str = setting((), "--by COLUMN")
    every: str = setting("", "--every [year|month|day]")
    values: Mapping[str, float] | None = setting(None, "--values LABEL=NUMBER")
    formula: str = setting("", "--formula TEXT")
    link: str = setting("", "--link NAME")
    cluster: str = setting("", "--cluster COLUMN")
    probability: str = setting("", "--probability COLUMN")
    weight: str = setting("", "--weight COLUMN")
    p_adjust: str = setting("holm", "--p-adjust [holm|bh|none]")
    larger: bool = setting(False, "--larger")

    def __post_init__(self) -> None:
        """Take a single label as a list of it."""
        if isinstance(self.of, str):
            object.__setattr__(self, "of", (self.of,) if self.of else ())

    @property
    def is_about_table(self) -> bool:
        """Whether its columns are named, because it is about a table and no run."""
        return bool(self.label or self.gold or self.confidence)

    @property
    def columns_of_groups(self) -> Sequence[str]:
        """The columns of groups, each once."""
        columns = [*dict.fromkeys([self.by] if isinstance(self.by, str) else self.by)]
        if len(columns) > MOST_BY:
            raise ConfigError(
                f"--by is given for {len(columns)} columns ({', '.join(columns)}), {MOST_BY} are possible"
            )
        return [name for name in columns if name]

    def in_words(self, labels: Sequence[str]) -> str:
        """Return what is asked, as a title."""
        if self.formula:
            return f"Regression {self.formula}"
        wanted = self.of or labels
        names = (
            series([label_name(wanted_label) for wanted_label in wanted])
            if len(wanted) <= MOST_NAMED
            else f"{len(wanted)} labels"
        )
        label_numbers = self.values or {}
        numbers = ", ".join(f"{label} = {value:g}" for label, value in label_numbers.items())
        numbers = "the numbers" if len(label_numbers) > MANY_LABELS else numbers
        groups = f" by {series(self.columns_of_groups)}" if self.columns_of_groups else ""
        return f"{f'Mean of {numbers}' if numbers else f'Share of {names}'}{groups}"

    @property
    def columns(self) -> set[str]:
        """The names in it that may be columns of the user's table."""
        formula = parse_formula(self.formula) if self.formula else None
        named = (self.cluster, self.weight, self.label, self.gold, self.confidence)
        return {*self.columns_of_groups, *named, *(formula.names if formula else ())} - {""}


class Line(NamedTuple):
    """One quantity, estimated in three ways."""

    name: str  # what is estimated: a label, an expression of labels, or a column of a formula
    group: str  # of which rows, or which two groups are compared; empty for all
    corrected: Figure  # from machine and gold labels
    gold_only: Figure  # from gold labels alone
    naive: Figure  # from machine labels as if they were true; biased
    gold_rows: int  # how many gold rows it is based on
    tuning: float  # how much machine labels count in the corrected estimate, 0 to 1
    p_value: float | None = None  # of the hypothesis that the quantity is 0; None for shares and means
    adjusted: float | None = None  # the same, adjusted for all such hypotheses of the table

    @property
    def title(self) -> str:
        """What is estimated of which rows."""
        return f"{self.name} · {self.group}" if self.group else self.name

    def to_dict(self, adjust: str = "holm") -> dict[str, Any]:
        """Return plain values for JSON."""
        figures = {name: plain(figure) for name in METHODS if (figure := getattr(self, name)) is not None}
        rest = {"gold_rows": self.gold_rows, "tuning": self.tuning, "p_value": self.p_value}
        return {"name": self.name, "group": self.group, **figures, **rest, f"p_{adjust}": self.adjusted}


class Missing(NamedTuple):
    """A group that is not estimated."""

    group: str  # its name
    gold_rows: int  # how many gold rows it has
    reason: str  # why not; the end of a sentence


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Estimated(Frame):
    """Answers to a question; `to_pandas()` and `to_polars()` give a row per estimate and per difference."""

    kind: str  # `share`, `mean` or `regression`
    lines: Sequence[Line]  # the estimates
    differences: Sequence[Line] = ()  # between groups
    missing: Sequence[Missing] = ()  # groups with too little gold to be estimated
    rows: int = 0  # how many rows they are about
    labels: Sequence[str] = ()  # all labels
    notes: Sequence[str] = ()  # what was left out or assumed
    title: str = ""  # what was asked, in words
    data: str = ""  # the name of the data
    p_adjust: str = "holm"  # how p-values are adjusted

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "kind": self.kind,
            "rows": self.rows,
            "estimates": [line.to_dict(self.p_adjust) for line in self.lines],
            "differences": [line.to_dict(self.p_adjust) for line in self.differences],
            "not_estimated": [group._asdict() for group in self.missing],
            "notes": list(self.notes),
        }

    def _about(self) -> str:
        return f"{self.kind}, {counted(len(self.lines), 'estimate')} from {counted(self.rows, 'row')}"

    def _columns(self) -> Columns:
        lines = [*self.lines, *self.differences]
        columns: dict[str, list[object]] = {
            "what": [*["estimate"] * len(self.lines), *["difference"] * len(self.differences)],
            "name": [line.name for line in lines],
            "group": [line.group for line in lines],
        }
        for method in METHODS:
            figures = [plain(getattr(line, method)) for line in lines]
            ends = (("", "value"), ("_low", "low"), ("_high", "high"))
            columns |= {f"{method}{ending}": [figure[key] for figure in figures] for ending, key in ends}
        last = {name: [getattr(line, name) for line in lines] for name in ("gold_rows", "p_value")}
        return {**columns, **last, f"p_{self.p_adjust}": [line.adjusted for line in lines]}


def plain(figure: Figure | None) -> dict[str, float | None]:
    """Return a figure and its interval for JSON."""
    low, high = (figure and figure.interval) or (None, None)
    return {"value": figure and figure.value, "low": low, "high": high}


def in_three_ways(study: Study, target: LabelRegression, tuning: float | None = None) -> dict[str, CoefficientEstimate]:
    """Return method → its estimate; `tuning` is how much machine labels count, chosen for this target if it is None."""
    methods = study.corrected(target, tuning), study.gold_only(target), study.naive(target)
    return dict(zip(METHODS, methods, strict=True))


def line_of(  # one argument for each part
    name: str,
    group: str,
    estimates: Mapping[str, CoefficientEstimate],
    rows: int,
    *,
    bounded: bool = False,
    test: bool = False,
) -> Line:
    """Return estimates of one quantity with intervals; `bounded` if it is a share, `test` for a p-value against 0."""
    corrected, gold_only, naive = (figure_of(estimates[method], bounded=bounded) for method in METHODS)
    p_value = _p_value(estimates["corrected"]) if test else None
    return Line(name, group, corrected, gold_only, naive, rows, estimates["corrected"].tuning, p_value)


def adjusted(lines: Sequence[Line], how: str) -> list[Line]:
    """Return lines that are all tested, with p-values adjusted for their number."""
    if how not in ADJUSTED:
        raise ConfigError(f"--p-adjust is {how!r}, must be one of {', '.join(ADJUSTED)}")
    if how == "none":
        return list(lines)
    p_values = (holm if how == "holm" else false_discovery_rate)([line.p_value or 0.0 for line in lines])
    return [line._replace(adjusted=p_value) for line, p_value in zip(lines, p_values, strict=True)]


def figure_of(estimate: CoefficientEstimate, *, bounded: bool = False) -> Figure:
    """Return a figure with its 95 % interval; a share stays within 0 and 1."""
    from scipy.special import stdtrit

    value, error = estimate.value.item(), float(np.sqrt(estimate.covariance.item()))
    reach = float(stdtrit(estimate.freedom, 1 - TAIL)) * error
    ends = value, value + estimate.shift - reach, value + estimate.shift + reach
    value, low, high = (min(max(end, 0.0), 1.0) for end in ends) if bounded else ends
    return Figure(value, Interval(low, high))


def _p_value(estimate: CoefficientEstimate) -> float:
    """Return the p-value of 0, below .05 if and only if the interval is clear of zero."""
    from scipy.special import stdtr

    middle, error = estimate.value.item() + estimate.shift, float(np.sqrt(estimate.covariance.item()))
    return float(2 * stdtr(estimate.freedom, -abs(middle) / error)) if error else float(middle == 0)
