import numpy as np
import pytest

from pcs_annotator.core.result_table import number_of
from pcs_annotator.judging.evaluate.agreement import AgainstGold, Resampling, against_gold, among_coders
from pcs_annotator.judging.evaluate.as_tables import (
    ABOUT_F1,
    NO_LABEL,
    agreement_tables,
    coders_table,
    shown,
    tidy_table,
)
from pcs_annotator.judging.evaluate.held_out_figures import numbers_against_gold
from tests.judging.evaluate.test_agreement import coders

FEW = Resampling(resamples=50)


def found(labels: tuple[str, ...], *, silent: int = 0, rows: int = 60) -> AgainstGold:
    rng = np.random.default_rng(0)
    gold = rng.integers(len(labels), size=rows).astype(np.int8)
    given = np.where(rng.random(rows) < 0.7, gold, 0).astype(np.int8)
    given[:silent] = -1
    return against_gold(given, gold, labels, FEW)


def test_a_confusion_matrix_has_counts_shares_and_sums() -> None:
    *_, confusion = agreement_tables(found(("Label", "all", "c")))
    assert confusion.columns == ("Label", "gold Label", "gold all", "c", "all")
    assert [row[0] for row in confusion.rows] == ["Label", "all", "c", "all"]
    counts = [[int(str(cell).split(" ")[0]) for cell in row[1:]] for row in confusion.rows]
    assert [sum(column) for column in zip(*counts[:-1], strict=True)] == counts[-1]
    assert all(row[-1] == sum(row[:-1]) for row in counts)
    assert confusion.rows[1][2] == f"{counts[1][1]} ({100 * counts[1][1] / counts[-1][1]:.0f} %)"


def test_many_labels_are_numbered_and_have_counts_only() -> None:
    *_, confusion = agreement_tables(found(tuple("abcdefgh")))
    assert confusion.columns == ("Label", *"12345678", "all")
    assert [row[0] for row in confusion.rows][:2] == ["1 a", "2 b"]
    assert all(isinstance(cell, int) for row in confusion.rows for cell in row[1:])


def test_rows_without_a_label_have_a_line_and_a_note() -> None:
    results, _, confusion = agreement_tables(found(("a", "b"), silent=7))
    assert confusion.rows[2][0] == NO_LABEL
    assert any("7 rows without a label count as wrong" in note for note in results.notes)


def test_numbers_have_neither_kappa_nor_a_confusion_matrix_and_rows_without_one_are_left_out() -> None:
    labels, gold = tuple(map(str, range(11))), np.arange(60, dtype=np.int8) % 11
    given = np.where(np.arange(60) < 7, -1, gold).astype(np.int8)
    (results,) = agreement_tables(numbers_against_gold(given, gold, labels, FEW))
    assert results.title == "Labels against gold on 53 held-out rows"
    assert results.notes[-1] == "Rows without a number, which are left out: 7."
    assert not any("κ" in note for note in results.notes)


def test_a_rare_label_has_a_note_instead_of_an_f1() -> None:
    gold = np.array([0, 1] * 20 + [2], dtype=np.int8)
    _, by_label, _ = agreement_tables(against_gold(gold, gold, ("a", "b", "rare", "no gold"), FEW))
    assert [number_of(row[3]) is None for row in by_label.rows] == [False, False, True, True]
    assert ABOUT_F1 in by_label.notes


def test_coders_have_a_line_for_every_pair() -> None:
    several = among_coders(coders("01010101", "01010110"), None, 2, FEW)
    table = coders_table(several)
    assert [row[:2] for row in table.rows] == [["a", "b"]]
    assert shown(several.alpha["alpha"]) in " ".join(table.notes)
    rows = tidy_table(found(("x", "y", "never given"), silent=3), several).rows
    assert ["pair_agreement", "a", "b"] in [row[:3] for row in rows]
    assert ["count", NO_LABEL, "x"] in [row[:3] for row in rows]
    counts = [row[3] for row in rows if row[0] == "count"]
    assert sum(int(number_of(one) or 0) for one in counts) == 60
    assert tidy_table(found(("x", "y")), None).rows


def test_an_order_given_later_only_adds_figures() -> None:
    plain = found(("low", "high", "middle"), silent=4)
    ordered = plain.in_order(("low", "middle", "high"), FEW)
    assert ordered.labels == ("low", "middle", "high")
    assert ordered.figures.keys() - plain.figures.keys() == {"mae", "kappa_linear", "kappa_quadratic", "alpha_ordinal"}
    for name, one in plain.figures.items():
        assert ordered.figures[name].value == pytest.approx(one.value)
    assert ordered.table[1].tolist() == plain.table[2, [0, 2, 1]].tolist()
    assert ordered.table[-1].sum() == 4
