"""A trial: some texts of a codebook are asked about in both ways, in one call and in a call for each variable.

One call is good enough if no variable loses more than chance explains. With gold labels, a text counts against it if
more models are right separately than together. Without, it does if more answers differ between the two ways than
between two orders of the same question. A sign test compares the texts for and against.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import comb
from random import Random
from typing import Any

import numpy as np
import numpy.typing as npt

from pcs_annotator.asking.engine.progress import Tally
from pcs_annotator.asking.ledger.lock import lock_ledger
from pcs_annotator.base.concurrency import run_sync
from pcs_annotator.base.text import series
from pcs_annotator.core.task import label_code
from pcs_annotator.core.variant import ORIGINAL
from pcs_annotator.core.votes import Votes
from pcs_annotator.runs import ask, ledgers, resolve_config
from pcs_annotator.runs.examples import with_gold_examples
from pcs_annotator.runs.executors import ask_job
from pcs_annotator.runs.files.runs import RunFolder
from pcs_annotator.runs.labelling.run_table import open_table
from pcs_annotator.runs.run_request import RunRequest
from pcs_annotator.tables.tables import Dataset

AGAIN = (ORIGINAL, "order")  # asked about a variable without gold, in a call of its own
LEAST_GOLD = 10  # with fewer gold rows, only answers are compared
Floats = npt.NDArray[np.float64]
LEVEL = 0.05  # how probable it may be that a variable loses so much by chance


def try_both(parts: Mapping[str, RunRequest], texts: int) -> dict[str, Any]:
    """Ask about some texts in both ways, those with gold first, and choose one; `parts` are those asked together.

    Returns whether to ask `together`, why that is `said`, whether every question was answered (`finished`), and for all
    `variables` the shares of same answers and, with gold, of right ones in both ways.
    """
    data = {part: open_table(one.open_data(), RunFolder(one.folder), one.config).sample for part, one in parts.items()}
    known = {part: one.gold or [None] * len(one.items) for part, one in data.items()}
    rows = [*range(min(len(one.items) for one in data.values()))]
    Random(0).shuffle(rows)
    rows = sorted(rows, key=lambda row: -sum(bool(one[row]) for one in known.values()))[:texts]
    found: dict[str, list[tuple[Floats, Floats]]] = {}
    joint, all_alone, tokens = Tally(), Tally(), 0.0
    for part, request in parts.items():
        variable, given = part.partition("=")[0], [known[part][row] for row in rows]
        ways, alone = (ORIGINAL,) if sum(map(bool, given)) >= LEAST_GOLD else AGAIN, Tally()
        together = _asked(request, data[part], rows, (ORIGINAL,), Tally() if found else joint, together=True)
        separately = _asked(request, data[part], rows, ways, alone, together=False)
        all_alone.add(alone)
        tokens += 0 if variable in found else _tokens(alone) / len(ways)  # the parts of a variable share its call
        gold = [label_code(label, together.labels, part) if label else -1 for label in given]
        codes = np.concatenate([one.codes[..., 0] for one in (together, separately)], axis=2)
        found.setdefault(variable, []).append(compared(codes, np.array(gold)))
    price = f"{100 * _tokens(joint) / max(tokens, 1):.0f} % of the tokens of {len(found)}"
    chosen = _chosen(found, f"on {len(rows)} texts asked both ways ({joint.calls + all_alone.calls} calls)", price)
    return {**chosen, "finished": not (joint.failed or all_alone.failed)}


def _tokens(tally: Tally) -> int:
    return sum(number for of, number in (tally.paid + tally.reused).items() if "tokens" in of)


def _chosen(found: Mapping[str, Sequence[tuple[Floats, Floats]]], where: str, price: str) -> dict[str, Any]:
    shares = {name: np.mean([one for one, _ in some], axis=0) for name, some in found.items()}
    lost = [name for name, some in found.items() if loses(np.sum([against for _, against in some], axis=0))]
    worst = lost or [min(shares, key=lambda name: float(shares[name][0]))]
    listed = series([_in_words(name, shares) for name in worst])
    why = f"no variable loses more than chance explains ({listed}); one call takes {price}"
    said = f"separately: {where}, one call is worse for {listed}" if lost else f"together: {where}, {why}"
    figures = {name: [*map(float, some[~np.isnan(some)])] for name, some in shares.items()}
    return {"together": not lost, "said": said, "variables": figures}


def _asked(
    request: RunRequest, data: Dataset, rows: Sequence[int], relations: Sequence[str], tally: Tally, *, together: bool
) -> Votes:
    """Return the votes on some rows, of the first draw; the run will find the answers in the ledger."""
    config = resolve_config.resolve(request.config, data)
    config = replace(config, ask=replace(config.ask, together=together))
    config = with_gold_examples(request, config, data)
    settings = replace(request.how_to_ask(config), draws=1, questions={}, rewriter=None, cluster=None, tally=tally)
    job = ask.open_job(resolve_config.task_of(config), config.ask.models, relations, settings)
    ledger = ledgers.ledger_of(RunFolder(request.folder), config)
    with lock_ledger(ledger, wait=request.wait, say=request.say):
        votes = run_sync(lambda: ask_job(job, [data.items[row] for row in rows], ledger, settings))
    request.paid.add(tally)
    return votes


def compared(codes: npt.NDArray[np.int16], gold: npt.NDArray[np.int64]) -> tuple[Floats, Floats]:
    """Return the shares of same answers and of right ones, and how many answers to each text are against one call.

    Codes are by text, model and way: together, separately and, without enough gold, so again; unknown gold is -1.
    """
    together, separately, *again = np.moveaxis(codes, 2, 0)
    known, same = gold >= 0, together == separately
    if again:
        return np.array([same.mean(), np.nan, np.nan]), ((separately == again[0]) * 1.0 - same).sum(axis=1)
    right = np.array([way == gold[:, None] for way in (together, separately)]) * 1.0
    against = np.where(known, (right[1] - right[0]).sum(axis=1), 0.0)
    return np.array([same.mean(), *right[:, known].mean(axis=(1, 2))]), against


def loses(against: Floats) -> bool:
    """Return whether more texts are against one call than chance explains."""
    worse, better = int((against > 0).sum()), int((against < 0).sum())
    tosses = worse + better
    return sum(comb(tosses, heads) for heads in range(worse, tosses + 1)) < LEVEL * 2**tosses


def _in_words(name: str, shares: Mapping[str, Floats]) -> str:
    same, joint, alone = 100 * shares[name]
    right = f"; right {joint:.0f} % together, {alone:.0f} % separately" if alone >= 0 else ""
    return f"{name}: {same:.0f} % the same{right}"
