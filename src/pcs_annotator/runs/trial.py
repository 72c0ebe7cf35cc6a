"""A trial: some texts of a codebook are asked about in both ways, in one call and in a call for each variable.

One call is good enough if no variable loses more than chance explains. With gold labels, a text counts against it if
more models are right separately than together. Without, it does if more answers differ between the two ways than
between two orders of the same call. A sign test compares the texts for and against.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import comb
from random import Random
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pcs_annotator.asking.engine.progress import Tally
from pcs_annotator.asking.ledger.lock import lock_ledger
from pcs_annotator.base.concurrency import run_sync
from pcs_annotator.base.text import series
from pcs_annotator.core.variant import ORIGINAL
from pcs_annotator.core.votes import Votes
from pcs_annotator.runs import ask, ledgers, resolve_config
from pcs_annotator.runs.examples import with_gold_examples
from pcs_annotator.runs.executors import ask_job
from pcs_annotator.runs.files.runs import RunFolder
from pcs_annotator.runs.labelling.run_table import open_table
from pcs_annotator.runs.run_request import RunRequest
from pcs_annotator.tables.tables import Dataset

JOINT, ALONE = (ORIGINAL, "order"), (ORIGINAL,)  # what is asked in one call, and in a call for each variable
LEAST_GOLD = 10  # with fewer gold rows, only answers are compared
LEVEL = 0.05  # how probable it may be that a variable loses so much by chance


class Trial(NamedTuple):
    """What a trial found."""

    together: bool  # whether to ask about all variables in one call
    said: str  # what was chosen, and why
    variables: Mapping[str, Mapping[str, Any]]  # of each, the share of same answers, and of right ones in both ways
    finished: bool = True  # whether every question was answered


class _Difference(NamedTuple):
    same: float  # share of answers that are the same in both ways
    right: npt.NDArray[np.float64]  # shares of right answers together and separately; empty without enough gold
    against: npt.NDArray[np.int64]  # for every text, how many more answers are against one call than for it


def try_both(parts: Mapping[str, RunRequest], texts: int) -> Trial:
    """Ask about some texts in both ways, those with gold first, and choose one; `parts` are those asked together."""
    data = {part: open_table(one.open_data(), RunFolder(one.folder), one.config).sample for part, one in parts.items()}
    rows = _rows(list(data.values()), texts)
    found: dict[str, list[_Difference]] = {}
    joint, alone = Tally(), Tally()
    for part, request in parts.items():
        variable = part.partition("=")[0]
        # all parts share the joint call, and those of a variable share its own
        tallies = Tally() if found else joint, Tally() if variable in found else alone
        votes = [_asked(request, data[part], rows, *how) for how in zip((JOINT, ALONE), tallies, strict=True)]
        gold = [votes[0].labels.index(label) if label else -1 for label in _gold(data[part], rows)]
        codes = np.concatenate([one.codes[..., 0] for one in votes], axis=2)
        found.setdefault(variable, []).append(_difference(codes, np.array(gold)))
    tokens = [sum(n for of, n in (one.paid + one.reused).items() if "tokens" in of) for one in (joint, alone)]
    named = {name: _figures(some) for name, some in found.items()}
    lost = [name for name, some in found.items() if _loses(np.sum([one.against for one in some], axis=0))]
    least = min(named, key=lambda name: named[name]["same"])
    why = f"no variable loses more than chance explains ({_in_words(least, named[least])})"
    if lost:
        why = f"one call is worse for {series([_in_words(name, named[name]) for name in lost])}"
    price = f"one call takes {_percent(tokens[0] / len(JOINT) / max(tokens[1], 1))} of the tokens of {len(found)}"
    said = f"{'separately' if lost else 'together'}: on {len(rows)} texts asked both ways, {why}; {price}"
    return Trial(not lost, said, named, not (joint.failed or alone.failed))


def _rows(data: Sequence[Dataset], texts: int) -> list[int]:
    """Return which rows to ask about: at random, those with most gold labels first."""
    mixed = Random(0).sample(range(len(data[0].items)), len(data[0].items))
    return sorted(mixed, key=lambda row: -sum(bool(_gold(one, [row])[0]) for one in data))[:texts]


def _gold(data: Dataset, rows: Sequence[int]) -> list[str | None]:
    return [data.gold[row] if data.gold else None for row in rows]


def _asked(request: RunRequest, data: Dataset, rows: Sequence[int], relations: Sequence[str], tally: Tally) -> Votes:
    """Return the votes on some rows, of the first draw; the run will find the answers in the ledger."""
    config = resolve_config.resolve(request.config, data)
    config = replace(config, ask=replace(config.ask, together=relations is JOINT))
    config = with_gold_examples(request, config, data)
    settings = resolve_config.collect_settings_of(config, request.environment, request.own)
    how: dict[str, Any] = {"draws": 1, "questions": {}, "rewriter": None, "cluster": None, "tally": tally}
    settings = replace(settings, progress=request.progress, **how)
    job = ask.open_job(resolve_config.task_of(config), config.ask.models, relations, settings)
    ledger = ledgers.ledger_of(RunFolder(request.folder), config)
    with lock_ledger(ledger, wait=request.wait, say=request.say):
        return run_sync(lambda: ask_job(job, [data.items[row] for row in rows], ledger, settings))


def _difference(codes: npt.NDArray[np.int16], gold: npt.NDArray[np.int64]) -> _Difference:
    """Compare answers, by text, model and way to ask; gold is -1 where it is not known."""
    together, again, separately = np.moveaxis(codes, 2, 0)
    known = gold >= 0
    differ = together != separately
    if known.sum() < LEAST_GOLD:
        return _Difference(1 - differ.mean(), np.array(()), (1 * differ - (together != again)).sum(axis=1))
    right = np.array([way == gold[:, None] for way in (together, separately)])
    against = np.where(known, (1 * right[1] - right[0]).sum(axis=1), 0)
    return _Difference(1 - differ.mean(), right[:, known].mean(axis=(1, 2)), against)


def _loses(against: npt.NDArray[np.int64]) -> bool:
    """Return whether more texts are against one call than chance explains."""
    worse, better = int((against > 0).sum()), int((against < 0).sum())
    tosses = worse + better
    return sum(comb(tosses, heads) for heads in range(worse, tosses + 1)) < LEVEL * 2**tosses


def _figures(parts: Sequence[_Difference]) -> dict[str, Any]:
    right = [one.right for one in parts if len(one.right)]
    return {"same": np.mean([one.same for one in parts]), "right": np.mean(right, axis=0).tolist() if right else None}


def _in_words(name: str, figures: Mapping[str, Any]) -> str:
    right = figures["right"] and "; right {} together, {} separately".format(*map(_percent, figures["right"]))
    return f"{name}: {_percent(figures['same'])} the same{right or ''}"


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"
