"""Rivals of the scoreboard from other packages, each at its best honest use; those that are not installed are left out.

They need `pip install crowd-kit cleanlab snorkel` (snorkel needs torch), and are no dependency of this project. All see
every cell (a model under a question) as an observer, and gold labels of the gold rows; CROWDLAB reads the texts, too.
Wawa of crowd-kit 1.4 is left out: it does not run with scikit-learn 1.8.
"""

from collections.abc import Callable, Mapping
from contextlib import redirect_stderr, redirect_stdout
from importlib.util import find_spec
from io import StringIO
from typing import Any, NamedTuple

import numpy as np

from pcs_annotator.core.arrays import Codes, Floats
from pcs_annotator.core.gold_codes import UNLABELLED

GOLD = "gold"


class Observed(NamedTuple):
    """What a rival may know: votes `[row, cell]` and gold (both −1 where there is none), and what texts tell."""

    votes: Codes
    gold: Codes
    labels: int
    text_probabilities: Floats | None  # `[row, label]`, of gold rows left out

    @property
    def known(self) -> Any:
        """Which rows have gold."""
        return self.gold != UNLABELLED

    def as_table(self, *, with_gold: bool = False) -> Any:
        """Return one line per vote, as crowd-kit reads them; gold is one more observer."""
        import pandas as pd

        votes = np.column_stack([self.votes, self.gold]) if with_gold else self.votes
        rows, cells = np.nonzero(votes >= 0)
        names = [*map(str, range(self.votes.shape[1])), GOLD]
        return pd.DataFrame(
            {"task": rows, "worker": [names[cell] for cell in cells.tolist()], "label": votes[rows, cells]}
        )

    def probabilities(self, by_task: Any) -> Floats:
        """Return `[row, label]` of a crowd-kit table with a line per task; rows without votes are even."""
        wide = by_task.reindex(index=range(len(self.votes)), columns=range(self.labels)).to_numpy(float)
        return np.where(np.isnan(wide).all(axis=1, keepdims=True), 1 / self.labels, np.nan_to_num(wide))


def crowd_kit_dawid_skene(observed: Observed) -> Floats:
    """Dawid–Skene with gold labels of the gold rows held fixed."""
    import pandas as pd
    from crowdkit.aggregation import DawidSkene

    gold = pd.Series(observed.gold[observed.known], index=np.flatnonzero(observed.known))
    fitted = DawidSkene(n_iter=100).fit(observed.as_table(), true_labels=gold)
    return observed.probabilities(fitted.probas_)


def crowd_kit_glad(observed: Observed) -> Floats:
    """GLAD (Whitehill 2009): ability of observers, difficulty of texts; gold is one more observer."""
    from crowdkit.aggregation import GLAD

    return observed.probabilities(GLAD(n_iter=10).fit_predict_proba(observed.as_table(with_gold=True)))


def crowd_kit_mace(observed: Observed) -> Floats:
    """MACE (Hovy 2013): observers guess or know; gold is one more observer."""
    from crowdkit.aggregation import MACE

    mace = MACE(n_restarts=1, random_state=0)
    return observed.probabilities(mace.fit_predict_proba(observed.as_table(with_gold=True)))


def cleanlab_crowdlab(observed: Observed) -> Floats:
    """CROWDLAB (Goh 2022), with a classifier of the texts that learned from gold; without texts it cannot be used."""
    from cleanlab.multiannotator import get_label_quality_multiannotator

    assert observed.text_probabilities is not None
    votes = np.where(observed.votes >= 0, observed.votes, np.nan).astype(float)
    asked = ~np.isnan(votes).all(axis=1)
    found = get_label_quality_multiannotator(
        votes[asked], observed.text_probabilities[asked], verbose=False, return_detailed_quality=False
    )["label_quality"]
    values = np.zeros((len(votes), observed.labels))
    values[np.flatnonzero(asked), found["consensus_label"].to_numpy(int)] = found["consensus_quality_score"]
    return np.where(asked[:, np.newaxis], values, observed.text_probabilities)


def snorkel_label_model(observed: Observed) -> Floats:
    """Snorkel's label model, told how common labels are in gold."""
    from snorkel.labeling.model import LabelModel

    shares = np.bincount(observed.gold[observed.known], minlength=observed.labels) + 0.5
    model = LabelModel(cardinality=observed.labels, verbose=False)
    model.fit(observed.votes.astype(int), class_balance=shares / shares.sum(), n_epochs=500, seed=0, progress_bar=False)
    return np.asarray(model.predict_proba(observed.votes.astype(int)))


PACKAGES: Mapping[str, tuple[str, Callable[[Observed], Floats]]] = {
    "Dawid–Skene with gold (crowd-kit)": ("crowdkit", crowd_kit_dawid_skene),
    "GLAD (crowd-kit)": ("crowdkit", crowd_kit_glad),
    "MACE (crowd-kit)": ("crowdkit", crowd_kit_mace),
    "CROWDLAB (cleanlab)": ("cleanlab", cleanlab_crowdlab),
    "Snorkel": ("snorkel", snorkel_label_model),
}


def package_rivals(observed: Observed) -> Mapping[str, Floats]:
    """Return what the installed packages make of the votes, `[row, label]`."""
    found = {}
    for title, (package, combine) in PACKAGES.items():
        needs_texts = combine is cleanlab_crowdlab and observed.text_probabilities is None
        too_few = combine is snorkel_label_model and observed.votes.shape[1] < 3  # it needs three observers
        if find_spec(package) and not needs_texts and not too_few:
            with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
                found[title] = combine(observed)
    return found
