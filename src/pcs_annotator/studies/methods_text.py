"""What a paper says about how a run labelled its texts: the paragraph about methods."""

from collections.abc import Iterator
from datetime import UTC, datetime

from pcs_annotator.base.errors import LedgerError, warn_user
from pcs_annotator.base.text import capital, counted, series
from pcs_annotator.core.gold_codes import UNLABELLED, gold_codes
from pcs_annotator.core.task import MANY_LABELS
from pcs_annotator.judging.evaluate.as_tables import shown
from pcs_annotator.runs.certificate_text import promised
from pcs_annotator.runs.gold_in_prompts import about_definitions, about_examples
from pcs_annotator.runs.learn import counted_once
from pcs_annotator.runs.ledgers import existing_ledger, ledger_of
from pcs_annotator.runs.paths import read_origin
from pcs_annotator.runs.resolve_config import task_of
from pcs_annotator.runs.run_result import RunResult
from pcs_annotator.showing.formats import PRICE_UNKNOWN, total_cost

CITATION = (
    "Perceived Confidence Score: Salimian et al., IEEE Transactions on Software Engineering; software: "
    "perceived-confidence, version {version}."
)


def methods_of(result: RunResult) -> str:
    """Return what a reader of a paper needs to know about a run, as a paragraph."""
    return " ".join(_sentences(result))


def _sentences(result: RunResult) -> Iterator[str]:
    config, task, version = result.config, task_of(result.config), read_origin(result.folder).version
    models = config.ask.models or result.votes.annotators
    labels = series(task.labels) if len(task.labels) <= MANY_LABELS else f"one of {len(task.labels):,} labels"
    yield (
        f"{counted(result.counts.rows, 'text')} ({result.dataset.name}) were labelled as {labels} by "
        f"{counted(len(models), 'language model')} ({series(models)}) with perceived-confidence {version}, which "
        "computes the Perceived Confidence Score (Salimian et al., IEEE Transactions on Software Engineering)."
    )
    if config.ask.models:
        yield f"The models were asked {_when(result)}."
        yield f"The instruction was: “{' '.join(task.instruction.split())}”"
    else:
        yield "The answers of the models were collected with other software."
    if candidates := result.candidates:
        yield candidates
    elif task.meanings:
        yield f"Labels were explained: {'; '.join(f'{label}: {text}' for label, text in task.meanings.items())}."
    if task.together is not None and len(task.together.parts) > 1:
        names = [repr(part.name) for part in task.together.parts if part.name != task.together.name]
        yield f"Where a model can answer several questions at once, this one shared its prompt with {series(names)}."
    yield from filter(None, (about_examples(config), about_definitions(config)))
    relations = result.votes.relations
    rewriter = f"; rewrites by a model are of {config.relations.rewriter}" if config.relations.rewriter else ""
    draws = f", {config.ask.draws} times each" if config.ask.draws > 1 else ""
    ways = f"in up to {len(relations)} ways" if len(relations) > 1 else "in one way"
    yield f"Each text was asked about {ways} ({series(relations)}){draws}{rewriter}."
    yield from _about_gold(result)
    yield from _about_promise(result)
    cost = total_cost([bill.usd for bill in result.bills])
    cost = "of unknown price" if cost == PRICE_UNKNOWN else f"at a cost of {cost}"
    if config.ask.models:
        yield f"{counted(sum(bill.calls for bill in result.bills), 'call')} were made, {cost}."
    yield f"To cite: {CITATION.format(version=version)}"


def _when(result: RunResult) -> str:
    """Return the days of the first and the last call."""
    try:
        with existing_ledger(ledger_of(result.folder, result.config)) as ledger:
            between = ledger.asked_between()
    except LedgerError as error:
        warn_user(f"the days of the calls are not known: {error}")
        between = None
    if between is None:
        return "on days that are not recorded"
    first, last = (datetime.fromtimestamp(time, UTC).date().isoformat() for time in between)
    shared = ", counting all calls in the ledger that this run shares" if result.config.ask.ledger else ""
    return f"{f'on {first}' if first == last else f'from {first} to {last}'}{shared}"


def _about_gold(result: RunResult) -> Iterator[str]:
    learned, codes = result.learned, gold_codes(result.votes, result.gold)
    with_gold = codes != UNLABELLED
    once = with_gold & counted_once(result.votes, codes, result.texts, result.random_sample).distinct
    at_random = once if result.random_sample is None else once & result.random_sample
    assumed = at_random if result.assumed is None else at_random & result.assumed
    coders = learned.among_coders
    parts = {
        "came with the data and are assumed to be drawn at random": assumed,
        "were drawn at random": at_random & ~assumed,
        "were chosen otherwise": once & ~at_random,
        "repeat a text and were not counted again": with_gold & ~once,
    }
    drawn = series([f"{rows.sum():,} {how}" for how, rows in parts.items() if rows.any()])
    if coders is not None:
        alpha = f" (Krippendorff's α {shown(coders.alpha['alpha'])})" if "alpha" in coders.alpha else ""
        yield (
            f"{counted(len(coders.names), 'coder')} ({series(coders.names)}) labelled rows; {coders.rows:,} rows have "
            f"labels of two coders or more{alpha}."
        )
    source = result.dataset.columns
    where = (
        "" if source.gold or not source.coders else ", the majority of the coders (rows on which they tie have none)"
    )
    yield f"{counted(int(with_gold.sum()), 'row')} had a gold label{where}; {drawn}."
    folds = result.config.learn.folds
    how = learned.model.weights.diagnostics.optimiser or result.config.learn.optimiser
    if learned.model.text is not None:
        yield "A classifier of the texts, learned from the gold rows, helped to decide."
    yield (
        f"Weights ({how}) and calibration were learned from the gold rows, and all figures come from {folds}-fold "
        "cross-validation: every row was labelled by fits that had not seen its gold label."
    )
    if chosen := int((once & ~at_random).sum()):
        yield (
            f"Figures include the {counted(chosen, 'row')} that {'was' if chosen == 1 else 'were'} chosen otherwise, "
            "so they describe the gold rows, and not all texts."
        )


def _about_promise(result: RunResult) -> Iterator[str]:
    certificate, counts = result.learned.model.certificate, result.counts
    if certificate is None:
        return
    text = promised(certificate)
    yield f"{capital(text.headline.rstrip('.'))}."
    if certificate.holds:
        promise = certificate.promise
        certainty = f", δ = {promise.delta:g}" if promise.tested else ""
        accepted = counts.decisions.get("accept", 0)
        yield (
            f"(α = {promise.max_error:g}{certainty}; {accepted:,} of {counts.rows:,} labels accepted, the others for "
            f"review.) {capital(text.details[0].rstrip('.'))}."
        )
