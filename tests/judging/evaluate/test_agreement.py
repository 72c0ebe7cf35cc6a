import json

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, cohen_kappa_score, mean_absolute_error, precision_recall_fscore_support

from pcs_annotator.base.errors import UndefinedMetric
from pcs_annotator.base.plain import from_plain, to_plain
from pcs_annotator.core.arrays import Codes
from pcs_annotator.core.gold_codes import Coders
from pcs_annotator.judging.evaluate import scored
from pcs_annotator.judging.evaluate.agreement import (
    MAJORITY,
    MODEL,
    AgainstGold,
    AmongCoders,
    Resampling,
    against_gold,
    among_coders,
)
from pcs_annotator.judging.metrics.coefficients import krippendorffs_alpha
from pcs_annotator.judging.metrics.figures import exact_interval
from pcs_annotator.judging.metrics.significance import WIDENING

FEW = Resampling(resamples=200)
LABELS = ("low", "middle", "high", "never")


def labelled(rows: int, labels: int = 3, right: float = 0.7, seed: int = 0) -> tuple[Codes, Codes]:
    """Return labels that are right as often as said, and gold."""
    rng = np.random.default_rng(seed)
    gold = rng.integers(labels, size=rows)
    given = np.where(rng.random(rows) < right, gold, rng.integers(labels, size=rows))
    return given.astype(np.int8), gold.astype(np.int8)


@pytest.mark.parametrize("rows", [40, 150])
def test_figures_are_those_of_scikit_learn(rows: int) -> None:
    given, gold = labelled(rows)
    found = against_gold(given, gold, LABELS, FEW, ordered=True)
    assert found.n == rows
    expected = {
        "accuracy": accuracy_score(gold, given),
        "mae": mean_absolute_error(gold, given),
        "kappa": cohen_kappa_score(gold, given),
        "kappa_linear": cohen_kappa_score(gold, given, weights="linear", labels=range(4)),
        "kappa_quadratic": cohen_kappa_score(gold, given, weights="quadratic", labels=range(4)),
        "alpha": krippendorffs_alpha(np.stack([given, gold])).value,
        "alpha_ordinal": krippendorffs_alpha(np.stack([given, gold]), "ordinal").value,
    }
    for ending, average in (("", "macro"), ("_weighted", "weighted")):
        means = precision_recall_fscore_support(gold, given, average=average, zero_division=0)[:3]
        expected |= {f"{name}{ending}": mean for name, mean in zip(("precision", "recall", "f1"), means, strict=True)}
    assert {name: one.value for name, one in found.figures.items()} == pytest.approx(expected, abs=1e-9)
    each = precision_recall_fscore_support(gold, given, labels=range(3), zero_division=0)[:3]
    for name, values in zip(("precision", "recall", "f1"), each, strict=True):
        assert [found.by_label[label][name].value for label in LABELS[:3]] == pytest.approx(list(values), abs=1e-9)
    assert found.by_label["never"] == {}
    for one in (*found.figures.values(), *(one for label in LABELS for one in found.by_label[label].values())):
        assert one.interval.low <= one.value <= one.interval.high
        assert one.interval.low < one.interval.high


def test_a_share_of_a_label_has_an_exact_interval() -> None:
    given, gold = np.array([0, 0, 0, 1, 1, 1, 1, 2], dtype=np.int8), np.array([0, 0, 1, 1, 1, 1, 0, 1], dtype=np.int8)
    found = against_gold(given, gold, ("a", "b", "c"), FEW)
    assert found.by_label["a"]["precision"] == (2 / 3, exact_interval(2, 3), 3)
    assert found.by_label["b"]["recall"] == (3 / 5, exact_interval(3, 5), 5)
    assert found.by_label["c"].keys() == {"precision"}  # no gold row, and too few rows for an F1
    assert found.table.tolist() == [[2, 1, 0], [1, 3, 0], [0, 1, 0], [0, 0, 0]]


def test_a_row_without_a_label_is_wrong_but_no_disagreement() -> None:
    given, gold = labelled(60)
    silent = given.copy()
    silent[:12] = -1
    found = against_gold(silent, gold, LABELS, FEW)
    assert found.table[-1].sum() == 12
    assert found.figures["accuracy"].value == pytest.approx((silent == gold).mean())
    assert found.figures["accuracy"].n == 60
    assert found.figures["kappa"].value == pytest.approx(cohen_kappa_score(gold[12:], given[12:]))
    assert found.figures["kappa"].n == found.figures["alpha"].n == 48


def test_without_any_label_there_is_no_kappa() -> None:
    gold = np.array([0, 1] * 10, dtype=np.int8)
    found = against_gold(np.full(20, -1, dtype=np.int8), gold, ("a", "b"), FEW, ordered=True)
    assert not any(name.startswith(("kappa", "alpha")) for name in found.figures)
    assert found.figures["accuracy"].value == 0


def test_gold_of_one_label_supports_no_figures() -> None:
    with pytest.raises(UndefinedMetric, match="too few for a bootstrap interval: label more rows"):
        against_gold(np.zeros(9, dtype=np.int8), np.zeros(9, dtype=np.int8), ("a", "b"), FEW)


def coders(*labels: str) -> Coders:
    """Return coders named a, b, c, … with labels 0, 1, …; a dot is a missing one."""
    codes = [[-1 if one == "." else int(one) for one in row] for row in labels]
    return Coders(names=tuple("abcdef"[: len(labels)]), codes=np.array(codes, dtype=np.int8).reshape(len(labels), -1))


def test_people_are_compared_two_by_two_and_the_model_with_each() -> None:
    several = coders("012012012012", "012012012210", "01201.......")
    model = np.array([0, 1, 2] * 4, dtype=np.int8)
    found = among_coders(several, model, 3, FEW, ordered=True)
    assert [(one.first, one.second) for one in found.pairs] == [
        ("a", "b"),
        ("a", "c"),
        ("b", "c"),
        *((MODEL, name) for name in ("a", "b", "c", MAJORITY)),
    ]
    first = found.pairs[0].figures
    assert first.keys() == {"agreement", "kappa", "kappa_linear", "kappa_quadratic"}
    assert first["kappa"].value == pytest.approx(cohen_kappa_score(*several.codes[:2]))
    assert first["agreement"].value == pytest.approx(10 / 12)
    assert first["agreement"].n == 12
    assert found.pairs[3].figures["kappa"].value == 1
    assert (found.rows, found.tied) == (12, 2)
    assert found.alpha["alpha"].value == pytest.approx(krippendorffs_alpha(several.codes).value)
    assert found.alpha["alpha_ordinal"].value == pytest.approx(krippendorffs_alpha(several.codes, "ordinal").value)


def test_intervals_among_people_are_not_widened() -> None:
    first, second = labelled(200)
    several = Coders(names=("a", "b"), codes=np.stack([first, second]))
    found = among_coders(several, first, 4, FEW)
    people, model = found.pairs[0].figures["kappa"].interval, found.pairs[2].figures["kappa"].interval
    assert model.high - model.low == pytest.approx(WIDENING * (people.high - people.low))


@pytest.mark.parametrize("labels", [("....", "...."), ("0000", "0000"), ("01..", "..01")])
def test_people_without_rows_to_compare_have_no_figures(labels: tuple[str, ...]) -> None:
    found = among_coders(coders(*labels), None, 2, FEW)
    assert found.alpha == found.pairs[0].figures == {}


def test_one_coder_has_no_majority() -> None:
    found = among_coders(coders("0101"), np.array([0, 1, 1, 1], dtype=np.int8), 2, FEW)
    assert [(one.first, one.second) for one in found.pairs] == [(MODEL, "a")]
    assert found.rows == 0


def test_many_labels_and_resamples_are_counted_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    given, gold = labelled(40)
    whole = against_gold(given, gold, LABELS, FEW)
    monkeypatch.setattr(scored, "MOST_CELLS", 100)
    assert against_gold(given, gold, LABELS, FEW).figures == whole.figures


def test_what_was_written_is_read_back() -> None:
    given, gold = labelled(30)
    found = against_gold(given, gold, LABELS, FEW, ordered=True)
    again = AgainstGold.from_dict(json.loads(json.dumps(found.to_dict())))
    assert again.to_dict() == found.to_dict()
    assert (again.table == found.table).all()
    people = among_coders(coders("0101", "0110"), given[:4], 3, FEW)
    assert from_plain(AmongCoders, json.loads(json.dumps(to_plain(people)))) == people
