"""`pcs evaluate`: all methods on the same recorded votes."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pcs_annotator.base.errors import ConfigError, GoldError, PcsWarning, TableError, UnknownNameError
from pcs_annotator.core.arrays import Codes
from pcs_annotator.core.gold import UNLABELLED, gold_codes
from pcs_annotator.core.result_table import ResultTable, number_of
from pcs_annotator.core.votes import Votes, check_known
from pcs_annotator.judging.baselines.baseline import baselines
from pcs_annotator.judging.evaluation.agreement_tables import agreement_tables
from pcs_annotator.judging.evaluation.alternative_annotator import AlternativeAnnotator, alternative_annotator
from pcs_annotator.judging.evaluation.evaluate import Evaluation, EvaluationOptions, MethodFigures, evaluate
from pcs_annotator.judging.evaluation.methods import FIGURES, MAJORITY, SCALED_LOGPROB, ZERO_SHOT, Method
from pcs_annotator.judging.metrics.metrics import Estimate
from pcs_annotator.judging.metrics.significance import BootstrapTest
from pcs_annotator.judging.weighing.optimiser import optimisers
from pcs_annotator.relations.base import relations
from pcs_annotator.relations.choose import RelationOptions, find_relation
from pcs_annotator.runs.expected import expected_labels
from pcs_annotator.runs.files import runs
from pcs_annotator.runs.learn import about_copies, counted_once, one_thread
from pcs_annotator.runs.relation_options import relation_options_of
from pcs_annotator.runs.run import Run
from pcs_annotator.runs.settings import RelationSettings
from pcs_annotator.showing import result_tables
from pcs_annotator.studies.evaluation_tables import evaluation_tables
from pcs_annotator.tables.files import atomic_path, write_json
from pcs_annotator.tables.table_files import AS_FOUND, ENDINGS, Reading
from pcs_annotator.tables.tabular import as_arrow, table_name
from pcs_annotator.tables.votes import read_vote_table
from pcs_annotator.verbs.fit_table import texts_of
from pcs_annotator.version import __version__

USUAL = ("lr", "logit", "scaling", "naive-bayes", "uniform", MAJORITY, ZERO_SHOT)
OTHERS = (ZERO_SHOT, MAJORITY, SCALED_LOGPROB)
"""Methods that are neither an optimiser on all votes nor a baseline that learns nothing."""
DUPLICATES = ("majority-vote", "zero-shot")
"""Baselines that are the same as the usual methods `majority` and `zero-shot`."""
FILE_ENDINGS = (*ENDINGS, ".md", ".tex", ".html", ".xls", ".xlsx", ".gz")
WRITERS = {".md": result_tables.to_markdown, ".csv": result_tables.to_csv, ".tex": result_tables.to_latex}


@dataclass(frozen=True, slots=True, kw_only=True)
class Splitting:
    """How rows are split and resampled; see `EvaluationOptions`."""

    folds: int = 5
    repeats: int = 3
    seed: int = 0
    resamples: int = 2000

    def how(self, rewritten: frozenset[str], order: Sequence[str] = ()) -> EvaluationOptions:
        """Return the options of the evaluation, with the relations that a model wrote and the order of the labels."""
        return EvaluationOptions(**asdict(self), rewritten=rewritten, order=order)


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluateRequest:
    """What to evaluate.

    Attributes:
        source: A table of votes with gold, or a run folder.
        optimiser: The first method, which is tested against all others.
        methods: Names of methods instead of the usual ones; the first is tested against the others.
        rewritten: Relations whose variants a model wrote; those of a run folder are known.
        splitting: Folds, seeds and resamples.
        order: The labels from the lowest to the highest; empty if they have no order, or that of a run folder.
        out: A folder for the tables as Markdown, CSV and LaTeX.
        reading: How to read the table.
    """

    source: Path
    optimiser: str = "auto"
    methods: Sequence[str] = ()
    rewritten: Sequence[str] = ()
    splitting: Splitting = field(default_factory=Splitting)
    order: Sequence[str] = ()
    out: Path | None = None
    reading: Reading = AS_FOUND


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluated:
    """Figures of all methods, as values and as tables, and the files written."""

    evaluation: Evaluation
    tables: Sequence[ResultTable]
    votes: Votes
    files: Sequence[Path] = ()


class RecordedVotes(NamedTuple):
    """Votes, gold as positions in their labels and, as far as known, what a model wrote and the order of the labels."""

    votes: Votes
    gold: Codes
    rewritten: frozenset[str] = frozenset()
    order: Sequence[str] = ()

    @classmethod
    def read(cls, source: Path, reading: Reading = AS_FOUND) -> RecordedVotes:
        """Return the votes of a table or of a run folder; no model is called, so no key is needed."""
        if not source.is_dir():
            arrow = as_arrow(source, reading)
            table = read_vote_table(arrow, name=table_name(source))
            texts = list(texts_of(arrow, table.votes).values()) or None
            return cls(table.votes, _gold_once(table.votes, table.gold, texts))
        recorded = Run.open(source)
        votes = recorded.answers
        gold = _gold_once(votes, recorded.gold.labels, recorded.texts)
        written = written_by_model(votes.relations, recorded.config.relations)
        return cls(votes, gold, written, votes.labels if recorded.config.task.ordered else ())


def _gold_once(votes: Votes, gold: Sequence[str | None], texts: Sequence[str] | None) -> Codes:
    """Return the gold of one row for every text: copies would be on both sides of a split."""
    codes = gold_codes(votes, gold)
    once = counted_once(votes, codes, texts)
    for flag in about_copies(once, votes):
        warnings.warn(flag.detail, PcsWarning, stacklevel=4)
    return np.where(once.distinct, codes, UNLABELLED).astype(np.int8)


def written_by_model(names: Sequence[str], settings: RelationSettings) -> frozenset[str]:
    """Return the relations of a run, by their names in its votes, whose variants a model wrote.

    Relations that were removed since then were made by rules, so an old run is read without them. A folder knows a
    user's functions and objects by name alone: with a rewriter they may have called it, without one they cannot.
    """
    options = relation_options_of(settings, rewriter=bool(settings.rewriter))

    def written(spec: str) -> bool:
        try:
            return _needs_model(spec, options)
        except UnknownNameError:
            return options.rewriter

    return frozenset(name for name, spec in zip(names, settings.use, strict=True) if written(spec))


def _needs_model(spec: str, options: RelationOptions) -> bool:
    parts = (part.strip() for part in spec.replace("|", "+").split("+"))
    known = (part for part in parts if part in options.own or not relations.removed(part))
    return any("rewriter" in find_relation(part, options).needs for part in known)


def evaluate_source(request: EvaluateRequest) -> Evaluated:
    """Return figures of every method on the same votes and splits; a run folder keeps them, `out` gets the tables."""
    methods = methods_named(request.methods, request.optimiser)
    if request.out is not None:
        check_folder(request.out)
    recorded = RecordedVotes.read(request.source, request.reading)
    check_known(request.rewritten, recorded.votes.relations, "relation")
    recorded = recorded._replace(rewritten=recorded.rewritten | frozenset(request.rewritten))
    if request.order:
        check_order(request.order, recorded.votes.labels)
        recorded = recorded._replace(order=request.order)
    found = evaluate_votes(recorded, methods, request.splitting, request.source.name)
    files = [] if request.out is None else [path for table in found.tables for path in write_result(table, request.out)]
    if request.source.is_dir():
        folder = runs.RunFolder(request.source)
        write_json(folder.methods, {"version": __version__, **evaluation_json(found.evaluation)})
        files.append(folder.methods)
    return replace(found, files=files)


class Replacing(NamedTuple):
    """Whether the model of a run may replace its human coders."""

    names: Sequence[str]
    test: AlternativeAnnotator


def may_replace(path: Path, epsilon: float) -> Replacing:
    """Test whether the model of a run may replace its human coders; see `alternative_annotator`.

    Its labels of gold rows come from fits that did not see them.
    """
    recorded = Run.open(path)
    votes = recorded.votes
    coders = recorded.coders
    if coders is None:
        raise GoldError(
            f"{path} has labels of fewer than two coders: add columns gold_<name> to the data, or to the file of "
            "pcs fit --gold"
        )
    known = expected_labels(votes, gold_codes(votes, recorded.gold.labels), recorded.settings, recorded.texts)
    if known is None:
        raise GoldError(f"{path} has too little gold to learn from: label more rows")
    given = np.where(votes.silent, UNLABELLED, known.held_out.argmax(axis=1)).astype(np.int8)
    return Replacing(coders.names, alternative_annotator(given, coders.codes, epsilon))


def evaluate_votes(
    recorded: RecordedVotes, methods: Sequence[Method], splitting: Splitting, name: str = "these votes"
) -> Evaluated:
    """Return figures of every method; error messages call the votes `name`."""
    if (recorded.gold < 0).all():
        raise GoldError(f"{name} has no gold labels, and figures are measured on rows that have one: label some rows")
    with one_thread():
        evaluation = evaluate(recorded.votes, recorded.gold, methods, splitting.how(recorded.rewritten, recorded.order))
    tables = [*evaluation_tables(evaluation), *agreement_tables(evaluation.against_gold)]
    return Evaluated(evaluation=evaluation, tables=tables, votes=recorded.votes)


def check_order(order: Sequence[str], labels: Sequence[str]) -> None:
    """Raise unless an order has every label once."""
    if sorted(order) != sorted(labels):
        raise ConfigError(f"--order must name every label once, from the lowest to the highest: {', '.join(labels)}")


def check_folder(out: Path) -> None:
    """Raise if a folder for results is a file, or has a name that only a file should have."""
    if (out.exists() and not out.is_dir()) or (not out.exists() and out.suffix.lower() in FILE_ENDINGS):
        raise TableError(f"{out} is a file, or would be taken for one: name a folder with --out")


def write_result(table: ResultTable, out: Path) -> list[Path]:
    """Write a table as Markdown, CSV and LaTeX into a folder, and return the files."""
    paths = []
    for ending, writer in WRITERS.items():
        path = out / f"{table.name}{ending}"
        with atomic_path(path) as temporary:
            temporary.write_text(writer(table), encoding="utf-8")
        paths.append(path)
    return paths


def all_baselines() -> list[Method]:
    """Return every published baseline, plug-ins included, and `scaled logprob`."""
    return [*(baselines.create(name) for name in baselines.names()), SCALED_LOGPROB]


def methods_named(names: Sequence[str], optimiser: str = "auto") -> list[Method]:
    """Return the methods with these names; without names, `optimiser`, the usual methods, and every baseline."""
    if names:
        return [_method(name) for name in names]
    usual = list(dict.fromkeys((optimiser, *USUAL)))
    rivals = [name for name in (*baselines.names(), SCALED_LOGPROB) if name not in DUPLICATES]
    return [_method(name) for name in (*usual, *rivals)]


def _method(name: str) -> Method:
    if name in OTHERS or name in optimisers.names():
        return name
    if name in baselines.names():
        return baselines.create(name)
    known = dict.fromkeys((*OTHERS, *optimisers.names(), *baselines.names()))
    raise UnknownNameError(f"no method is called {name!r}; known: {', '.join(known)}")


def evaluation_json(evaluation: Evaluation) -> dict[str, Any]:
    """Return an evaluation as plain values."""
    how = evaluation.how
    return {
        "n": evaluation.n,
        "folds": how.folds,
        "seeds": list(how.seeds),
        "resamples": how.resamples,
        "calibration": how.calibration,
        "rewritten": sorted(how.rewritten),
        "methods": [_method_json(one) for one in evaluation.methods],
        "missing": dict(evaluation.missing),
        "notes": list(evaluation.notes),
        "against_gold": evaluation.against_gold.to_dict(),
    }


def _method_json(one: MethodFigures) -> dict[str, Any]:
    figures = {name: figure_json(one.figures.get(name)) for name in FIGURES}
    calls = {"questions": one.calls.questions, "rewrites": one.calls.rewrites, "total": one.calls.total}
    return {
        "method": one.method,
        "calls_per_text": calls,
        "uses_log_probabilities": one.graded,
        "figures": figures,
        "against": _against_json(one),
    }


def figure_json(found: Estimate | None) -> dict[str, Any] | None:
    """Return a figure as plain values."""
    if found is None:
        return None
    low, high = map(number_of, found.interval)
    return {"value": number_of(found.value), "low": low, "high": high, "n": found.n}


def test_json(test: BootstrapTest) -> dict[str, float]:
    """Return a paired test as plain values."""
    ends = test.interval
    return {"difference": test.difference, "low": ends.low, "high": ends.high, "p_value": test.p_value}


def _against_json(one: MethodFigures) -> dict[str, Any] | None:
    if one.against is None:
        return None
    tests = {"auroc": one.against.auroc, "accuracy": one.against.accuracy}
    adjusted = {"auroc": one.against.holm, "accuracy": one.against.holm_accuracy}
    found: dict[str, Any] = {name: {**test_json(test), "p_holm": adjusted[name]} for name, test in tests.items()}
    if one.against.delong is not None:
        delong = one.against.delong
        found["delong"] = {"p_value": number_of(delong.p_value), "p_holm": one.against.holm_delong}
    return found
