import numpy as np
import pyarrow as pa
import pytest

from pcs_annotator import PcsWarning, Weights
from pcs_annotator.core.events import Reviewed, Verdict
from pcs_annotator.core.outcome import result_names
from pcs_annotator.judging.model import Model, Predictions
from pcs_annotator.runs.columns import result_columns, result_schema, with_columns
from tests.builders import votes_of

FAKE, REAL, NONE = [0, 0, 0, 1], [1, 1, 1, 0], [-1] * 4


def labelled(
    mine: dict[str, list[object]] | pa.Table,
    answers: list[list[int]],
    people: tuple[Reviewed | None, ...] = (),
    gold: tuple[str | None, ...] = (),
) -> pa.Table:
    """Return a table with the labels of these answers, a list per row."""
    votes = votes_of([[row] for row in answers])
    model = Model(weights=Weights.uniform(votes), calibrator=None)
    table = mine if isinstance(mine, pa.Table) else pa.table(mine)
    return with_columns(
        table, result_columns(model, votes, model.judged(votes), people, gold), result_names(votes.labels)
    )


def test_users_columns_come_first_and_in_their_order() -> None:
    table = labelled({"z": [1, 2], "id": ["a", "b"]}, [FAKE, NONE])
    ours = ["pcs_label", "pcs_confidence", "pcs_decision", "pcs_reason", "score_fake", "score_real"]
    assert table.column_names == ["z", "id", *ours]
    first = table.to_pylist()[0]
    assert first.pop("pcs_reason")
    assert first == {
        "z": 1,
        "id": "a",
        "pcs_label": "fake",
        "pcs_confidence": None,
        "pcs_decision": None,
        "score_fake": 0.75,
        "score_real": 0.25,
    }
    assert table["pcs_decision"].to_pylist() == [None, "review"]


def test_a_users_column_with_a_name_of_ours_gets_another_name_and_a_note() -> None:
    mine: dict[str, list[object]] = {"pcs_label": ["mine"], "input_pcs_label": ["too"], "pcs_verdict": ["old"]}
    with pytest.warns(PcsWarning, match="'pcs_label' is now 'input_pcs_label_2', 'pcs_verdict' is now 'input_pcs_ver"):
        table = labelled({**mine, "score_fake": [1]}, [FAKE])
    assert table.column_names[:4] == ["input_pcs_label_2", "input_pcs_label", "input_pcs_verdict", "input_score_fake"]
    assert table["input_pcs_label_2"].to_pylist() == ["mine"]
    assert table["pcs_label"].to_pylist() == ["fake"]
    assert table["score_fake"].to_pylist() == [0.75]


def test_columns_of_labels_never_collide() -> None:
    votes = votes_of([[[0]], [[-1]]], ("x", "p_x", "label"))
    model = Model(weights=Weights.uniform(votes), calibrator=None)
    sure = np.array([[0.523456789, 0.3, 0.176543211], [0.2, 0.3, 0.5]])
    judged = Predictions(scores=sure, best=np.array([0, 2], dtype=np.int8), probabilities=sure, accepted=None)
    with pytest.warns(PcsWarning, match="'p_x' is now 'input_p_x'"):
        table = with_columns(
            pa.table({"p_x": ["mine", "too"]}), result_columns(model, votes, judged), result_names(votes.labels)
        )
    assert table.column_names[-6:] == ["score_x", "score_p_x", "score_label", "p_x", "p_p_x", "p_label"]
    assert table["p_x"].to_pylist() == table["pcs_confidence"].to_pylist() == [0.523457, None]
    assert [table[name][0].as_py() for name in ("p_p_x", "p_label")] == [0.3, 0.176543]
    added = pa.table(result_columns(model, votes, judged)).schema
    assert result_schema(votes.labels, probable=True, sets=False) == added


def reviewed(label: str | None, reviewer: str, *more: str) -> Reviewed:
    given = [(label, reviewer), *((other, f"{reviewer}{place}") for place, other in enumerate(more))]
    verdicts = (
        Verdict(number=number, id="a", text_hash="h", label=one, reviewer=who, at="", queue="learn")
        for number, (one, who) in enumerate(given)
    )
    return Reviewed.of(verdicts)


def test_verdicts_of_people_are_kept_apart_from_the_labels_of_models() -> None:
    people = (reviewed("real", "anna"), None, reviewed(None, "anna"), reviewed("real", "anna", "fake"))
    table = labelled({"id": list("abcd")}, [FAKE, FAKE, FAKE, NONE], people)
    assert table.column_names[-3:] == ["pcs_verdict", "pcs_reviewer", "pcs_final_label"]
    assert table["pcs_label"].to_pylist() == ["fake", "fake", "fake", None]
    assert table["pcs_verdict"].to_pylist() == ["real", None, None, None]
    assert table["pcs_reviewer"].to_pylist() == ["anna", None, None, None]
    assert table["pcs_final_label"].to_pylist() == ["real", "fake", "fake", None]


def test_the_final_label_is_the_verdict_else_gold_as_the_task_spells_it_else_that_of_the_models() -> None:
    people = (reviewed("real", "anna"), None, reviewed("real", "anna", "fake"), None)
    table = labelled({"id": list("abcd")}, [FAKE] * 4, people, ("fake", "REAL", "real", None))
    assert table["pcs_final_label"].to_pylist() == ["real", "real", "real", "fake"]
