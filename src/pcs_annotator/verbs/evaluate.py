"""Methods, relations or runs side by side on recorded votes: `pcs evaluate`, `relations value` and `compare`."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from pcs_annotator.base.display import Columns, Frame
from pcs_annotator.base.errors import ConfigError, GoldError, TableError
from pcs_annotator.base.fields import setting
from pcs_annotator.base.text import counted
from pcs_annotator.core.arrays import CODE
from pcs_annotator.core.gold_codes import UNLABELLED, gold_codes, refuse_without_gold
from pcs_annotator.core.result_table import ResultTable
from pcs_annotator.core.votes import Votes
from pcs_annotator.judging import fit_model as fitting
from pcs_annotator.judging.evaluate import agreement, as_tables, harness, held_out_figures, scored
from pcs_annotator.judging.evaluate.methods import Method, methods_named
from pcs_annotator.judging.evaluate.relation_value import ADVICE, RelationValues, relation_values
from pcs_annotator.judging.evaluate.scored import Splitting
from pcs_annotator.judging.heldout import HeldOut, Splits
from pcs_annotator.judging.metrics import coefficients
from pcs_annotator.judging.metrics.coefficients import AlternativeAnnotator
from pcs_annotator.judging.metrics.figures import Estimate
from pcs_annotator.judging.model import Model
from pcs_annotator.judging.solver import one_thread
from pcs_annotator.runs.book import Book
from pcs_annotator.runs.columns import groups_of, refuse_many
from pcs_annotator.runs.learn import counted_once, learning_of
from pcs_annotator.runs.opened import Run
from pcs_annotator.runs.paths import RunFolder
from pcs_annotator.runs.recorded_votes import RecordedVotes
from pcs_annotator.runs.settings import LearnSettings
from pcs_annotator.runs.sharing import expected_labels
from pcs_annotator.showing import result_tables
from pcs_annotator.studies.compare.comparison import Comparison, compare_sides
from pcs_annotator.studies.compare.sides import open_sides
from pcs_annotator.tables.files import write_json
from pcs_annotator.tables.source_files import AS_FOUND, ENDINGS, Reading
from pcs_annotator.tables.write import OutputPolicy
from pcs_annotator.verbs.fit import open_run
from pcs_annotator.version import __version__

__all__ = ["ADVICE", "RecordedVotes", "RelationValues", "Splitting", "methods_named"]

FILE_ENDINGS = (*ENDINGS, ".md", ".tex", ".html", ".xls", ".xlsx", ".gz")
Replacing = tuple[Sequence[str], AlternativeAnnotator, Mapping[str, AlternativeAnnotator | None], Mapping[float, int]]
Numbers = tuple[Mapping[str, Mapping[str, Estimate]], ResultTable, Sequence[Path]]
WRITERS = {".md": result_tables.to_markdown, ".csv": result_tables.to_csv, ".tex": result_tables.to_latex}


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluateRequest:
    """What to evaluate.

    Attributes:
        optimiser: How PCS learns; the other methods are tested against it. Of a run, as --folds and --seed: its own.
        methods: Methods, the first tested against the others; default: all.
        rewritten: Relation rewritten by a model, at one call per text; not needed for run folders.
        order: Labels from the lowest to the highest, for weighted κ and ordinal α.
        out: Folder for the tables as Markdown, CSV and LaTeX.
    """

    source: Path  # a table of votes with gold, or a run folder
    optimiser: str = setting("auto", "--optimiser NAME")
    methods: Sequence[str] = setting((), "--methods A,B")
    rewritten: Sequence[str] = setting((), "--rewritten RELATION")
    order: Sequence[str] = setting((), "--order A,B")
    out: Path | None = setting(None, "-o --out FOLDER")
    splitting: Splitting = field(default_factory=Splitting)
    reading: Reading = AS_FOUND
    policy: OutputPolicy = field(default_factory=OutputPolicy)  # whether files in the way are kept aside


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Evaluated(Frame):
    """Figures of all methods, as values and as tables, and the files written; `to_pandas()` gives a row per method."""

    evaluation: harness.Evaluation
    tables: Sequence[ResultTable]
    votes: Votes
    files: Sequence[Path] = ()

    def _about(self) -> str:
        return f"{counted(len(self.evaluation.methods), 'method')} on {counted(self.evaluation.n, 'gold row')}"

    def _columns(self) -> Columns:
        methods = self.evaluation.methods
        columns: dict[str, list[object]] = {
            "method": [each.method for each in methods],
            "calls_per_text": [each.calls.total for each in methods],
        }
        for name in ("accuracy", *(each for each in scored.FIGURES if each != "accuracy")):
            estimates = [each.figures.get(name) for each in methods]
            columns[name] = [each and each.value for each in estimates]
            columns[f"{name}_low"] = [each and each.interval.low for each in estimates]
            columns[f"{name}_high"] = [each and each.interval.high for each in estimates]
        return {**columns, "p_holm": [each.holm for each in methods]}


def evaluate_source(request: EvaluateRequest) -> Evaluated:
    """Return figures of every method on the same votes and splits; a run folder keeps them, `out` gets the tables."""
    methods = methods_named(request.methods, request.optimiser)
    if request.out is not None:
        check_folder(request.out)
    recorded = RecordedVotes.read(request.source, request.reading).plus(request.rewritten, request.order)
    evaluated = evaluate_votes(recorded, methods, request.splitting, request.source.name)
    files = write_results(evaluated.tables, request.out, request.policy)
    if request.source.is_dir():
        folder = RunFolder.find(request.source)
        write_json(folder.methods, {"version": __version__, **evaluated.evaluation.to_dict()})
        files.append(folder.methods)
    return replace(evaluated, files=files)


def fitted_with(source: Path) -> LearnSettings | None:
    """Return the settings of the last fit of a run, of the first of its variables; None for a table."""
    return Run.of(next(iter(Book.open(source).parts.values()))).settings if source.is_dir() else None


def evaluate_votes(
    recorded: RecordedVotes, methods: Sequence[Method], splitting: Splitting, name: str = "these votes"
) -> Evaluated:
    """Return figures of every method; error messages call the votes `name`."""
    refuse_without_gold(recorded.gold, name, "figures")
    if recorded.votes.silent[recorded.gold != UNLABELLED].all():
        raise GoldError(f"{name}: no model answered about a gold row: look at the answers, or label other rows")
    evaluation = harness.evaluate(recorded.votes, recorded.gold, methods, recorded.how(splitting))
    tables = [*as_tables.evaluation_tables(evaluation), *as_tables.agreement_tables(evaluation.against_gold)]
    return Evaluated(evaluation=evaluation, tables=tables, votes=recorded.votes)


def check_folder(out: Path) -> None:
    """Raise if a folder for results is a file, or has a name that only a file should have."""
    if (out.exists() and not out.is_dir()) or (not out.exists() and out.suffix.lower() in FILE_ENDINGS):
        raise TableError(f"{out} is a file, or would be taken for one: name a folder with --out")


def write_results(tables: Iterable[ResultTable], out: Path | None, policy: OutputPolicy) -> list[Path]:
    """Write tables as Markdown, CSV and LaTeX into a folder, if one is named."""
    if out is None:
        return []
    pages = {out / f"{table.name}{ending}": write(table) for table in tables for ending, write in WRITERS.items()}
    for path in pages:
        policy.check(path, tuple(WRITERS))
    return [policy.write_page(path, text) for path, text in pages.items()]


def may_replace(path: Path, epsilon: float, by: str = "") -> Replacing:
    """Return the coders of a run, and the test whether its model may replace them, for all rows and for parts of them.

    Last, how many rows two coders must label for an interval of κ or α of so much on both sides.
    """
    recorded = Run.open(path)
    votes, coders = recorded.votes, recorded.coders
    if coders is None:
        raise GoldError(
            f"{path} has labels of fewer than two coders: name their columns with pcs run --coders, add columns "
            "gold_<name> to the file of pcs fit --gold, or let two people label the same rows blind in pcs review"
        )
    codes = gold_codes(votes, recorded.gold.labels)
    expected = expected_labels(votes, codes, recorded.settings, recorded.texts, recorded.shape)
    if expected is None:
        raise GoldError(f"{path} has too little gold to learn from: label more rows")
    labels = np.where(votes.silent, UNLABELLED, expected.held_out.argmax(axis=1)).astype(CODE)
    test = coefficients.alternative_annotator(labels, coders.codes, epsilon)
    parts = {f"model says {label}": labels == code for code, label in enumerate(votes.labels)}
    if by:
        groups = _groups(recorded, by)
        parts |= {f"{by} {name}": np.array(groups) == name for name in sorted({*groups})}
    rows_for = {width: coefficients.rows_for_interval(coders.codes, width) for width in (0.05, 0.1, 0.15)}
    return coders.names, test, coefficients.alternative_in_parts(labels, coders.codes, parts, epsilon), rows_for


def figures_of_groups(path: Path, by: str) -> held_out_figures.FiguresByGroup:
    """Return accuracy, confidence and acceptance for the groups of a column, whatever the promise is made for."""
    recorded = Run.open(path)
    votes, settings, groups = recorded.votes, recorded.settings, _groups(recorded, by)
    model, trial, rows = _tried(recorded, settings)
    how = scored.EvaluationOptions(folds=settings.folds, seed=settings.seed, calibration=settings.calibration)
    best = harness.scored_run(rows, trial.gold, settings.optimiser, how, model.shape).best
    votes, right = replace(votes, text_log_probs=model.read(votes)), best == trial.gold
    return held_out_figures.figures_by_group(by, groups, votes, rows, model, trial, right=right)


def _groups(recorded: Run, by: str) -> list[str]:
    groups = groups_of(by, recorded.dataset.table, recorded.texts, recorded.dataset.name) or []
    refuse_many(by, groups)
    return groups


def _tried(recorded: Run, settings: LearnSettings) -> tuple[Model, HeldOut, Votes]:
    """Return the model of a run with these settings, its gold rows as judged by fits without them, and their votes."""
    votes, gold = recorded.to_learn(settings), recorded.gold
    codes = gold_codes(votes, gold.labels)
    how = learning_of(settings, recorded.looked(settings), recorded.shape)
    once = counted_once(votes, codes, recorded.texts, gold.random_sample, gold.undecided)
    with one_thread():
        model, trial = fitting.fit_model(
            votes, codes, replace(how, resamples=0), random_sample=once.drawn, distinct=once.distinct
        )
    if trial is None:
        raise GoldError(f"{recorded.folder.home} has too little gold for these figures: label more rows")
    with_texts = replace(votes, text_log_probs=model.read(votes))
    return model, trial, fitting.labelled_rows(with_texts.take(once.distinct), codes[once.distinct])[0]


def evaluate_numbers(request: EvaluateRequest) -> Numbers | None:
    """Return how far numbers of a run are off, and of simpler methods, with a table and its files; None for labels."""
    if not request.source.is_dir() or (recorded := Run.open(request.source)).config.task.kind != "number":
        return None
    if request.methods:
        raise ConfigError("--methods compares labels: numbers are compared with the models and their median")
    if request.out is not None:
        check_folder(request.out)
    how = request.splitting
    settings = replace(recorded.settings, optimiser=request.optimiser, folds=how.folds, seed=how.seed, max_error=None)
    _, trial, rows = _tried(recorded, settings)
    splits = Splits(folds=how.folds, seed=how.seed)
    figures = held_out_figures.compare_numbers(
        rows, trial, splits, agreement.Resampling(how.resamples, how.seed), request.optimiser
    )
    if request.optimiser not in figures:
        raise GoldError(f"all rows of {request.source} that have an answer and gold have the same number: label more")
    table = held_out_figures.numbers_table(figures)
    return figures, table, write_results([table], request.out, request.policy)


def value_of_votes(
    recorded: RecordedVotes, splitting: Splitting, optimiser: str = "auto", name: str = "these votes"
) -> RelationValues:
    """Return what each relation adds; error messages call the votes `name`."""
    return relation_values(recorded.votes, recorded.gold, recorded.how(splitting), optimiser, name)


def compare(first: str, second: str, splitting: Splitting | None = None) -> Comparison:
    """Compare two runs, or parts of runs, on the rows that they have in common; no model is called."""
    sides = open_sides(first, second, open_run)
    learn = sides[0].run.config.learn
    return compare_sides(*sides, splitting or Splitting(folds=learn.folds, seed=learn.seed))
