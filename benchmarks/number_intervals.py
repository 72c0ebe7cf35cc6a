"""Numbers, simulated: how often the 90 % intervals cover, how wide they are, and whether the promise is kept.

Three tasks: ages (0 to 100, errors alike), shares (0 to 1, errors that grow with the disagreement of the models) and
amounts (skewed, in steps of 50, with wild answers). Three models under two relations, 300 gold rows, 2,000 new texts;
fits as in a run. The promise is that at most 10 % of the accepted numbers are off by more than the tolerance. Run it
with `python -m benchmarks.number_intervals [REPETITIONS]`.
"""

import sys
import warnings
from collections.abc import Callable

import numpy as np

from pcs_annotator import PcsWarning, Votes
from pcs_annotator.core.arrays import CODE, Floats
from pcs_annotator.core.gold_codes import UNLABELLED
from pcs_annotator.core.numbers import steps_of
from pcs_annotator.judging.fit_model import fit_model
from pcs_annotator.judging.label_shape import LabelShape
from pcs_annotator.judging.solver import one_thread
from pcs_annotator.runs.learn import learning_of
from pcs_annotator.runs.settings import LearnSettings

GOLD, NEW, MODELS, RELATIONS = 300, 2_000, 3, 2
Rng = np.random.Generator
ROWS = GOLD + NEW
SHAPE = (ROWS, MODELS, RELATIONS)


def ages(rng: Rng) -> tuple[str, float, Floats, Floats]:
    truth = rng.normal(45, 15, ROWS)
    own = rng.normal(0, [4, 6, 9], (ROWS, MODELS))[:, :, np.newaxis] + rng.normal(0, 2, SHAPE)
    return "0..100", 5, truth, truth[:, np.newaxis, np.newaxis] + own + np.array([0, 2, -3])[:, np.newaxis]


def shares(rng: Rng) -> tuple[str, float, Floats, Floats]:
    truth, hard = rng.beta(2, 3, ROWS), rng.gamma(2, 0.04, ROWS)
    own = rng.normal(0, 1, (ROWS, MODELS))[:, :, np.newaxis] + rng.normal(0, 0.5, SHAPE)
    return "0..1:0.01", 0.1, truth, truth[:, np.newaxis, np.newaxis] + hard[:, np.newaxis, np.newaxis] * own


def amounts(rng: Rng) -> tuple[str, float, Floats, Floats]:
    truth = rng.lognormal(8, 0.8, ROWS)
    said = truth[:, np.newaxis, np.newaxis] * np.exp(rng.normal(0, [0.1, 0.2, 0.3], (ROWS, MODELS)))[:, :, np.newaxis]
    wild = rng.random((ROWS, MODELS)) < 0.08
    return "0..50000:50", 1000, truth, np.where(wild[:, :, np.newaxis], rng.uniform(0, 50_000, SHAPE), said)


def measure(task: Callable[[Rng], tuple[str, float, Floats, Floats]], seed: int) -> list[float]:
    """Return coverage, width of the interval, error, error of the plain mean, share accepted, promise broken or not."""
    rng = np.random.default_rng(seed)
    range_, tolerance, truth, said = task(rng)
    labels = steps_of([range_])
    values = np.array([float(label) for label in labels])
    step = values[1] - values[0]
    codes, gold = (
        np.clip(np.round((one - values[0]) / step), 0, len(values) - 1).astype(CODE) for one in (said, truth)
    )
    codes[rng.random(SHAPE) < 0.03] = -1
    votes = Votes(
        codes=codes[..., np.newaxis],
        ids=[str(row) for row in range(ROWS)],
        annotators=[f"model{one}" for one in range(MODELS)],
        relations=["original", "wording"],
        labels=labels,
    )
    known = np.where(np.arange(ROWS) < GOLD, gold, UNLABELLED).astype(CODE)
    settings = LearnSettings(max_error=0.1, tolerance=tolerance, text=False, resamples=0)
    with one_thread():
        model = fit_model(votes, known, learning_of(settings, shape=LabelShape.of("number", labels))).model
    new, right = votes.take(slice(GOLD, None)), values[gold[GOLD:]]
    judged = model.judged(new)
    more = model.details(new, judged)
    low, high = (np.array(more[name], dtype=float) for name in ("pcs_low", "pcs_high"))
    off = np.abs(values[judged.best] - right)
    plain = np.nanmean(np.where(codes[GOLD:] >= 0, values[codes[GOLD:]], np.nan), axis=(1, 2))
    assert judged.accepted is not None
    wrong = (off[judged.accepted] > tolerance + step / 100).mean() if judged.accepted.any() else 0.0
    inside, width = ((low <= right) & (right <= high)).mean(), (high - low).mean()
    sure = judged.confidence
    assert sure is not None
    figures = [inside, width, off.mean(), np.abs(plain - right).mean(), judged.accepted.mean(), wrong > 0.1]
    return [*map(float, figures), float(sure.mean() - (off <= tolerance + step / 100).mean())]


def main(repetitions: int = 200) -> None:
    for task in (ages, shares, amounts):
        found = np.array([measure(task, seed) for seed in range(repetitions)])
        cover, width, error, plain, accepted, broken, sure = found.mean(axis=0)
        print(
            f"{task.__name__}: {repetitions} repetitions, coverage {cover:.3f} (sd {found[:, 0].std():.3f}), width "
            f"{width:.3g}, mean error {error:.3g} (plain mean {plain:.3g}), accepted {accepted:.0%}, promises broken "
            f"{broken:.1%}, confidence less accuracy {100 * sure:+.1f} points",
            flush=True,
        )


if __name__ == "__main__":
    warnings.simplefilter("ignore", PcsWarning)
    main(*map(int, sys.argv[1:]))
