import warnings
from pathlib import Path

import pyarrow as pa
from pyarrow.parquet import write_table

from pcs_annotator import PcsWarning
from pcs_annotator.judging.evaluate.scored import Splitting
from pcs_annotator.verbs.evaluate import EvaluateRequest, evaluate_source
from tests.builders import simulated_votes


def test_copies_of_a_text_are_evaluated_once(tmp_path: Path) -> None:
    votes, gold = simulated_votes([0.8, 0.6], items=40)
    gold[30:] = gold[:10]
    table = votes.to_table().append_column("gold", pa.array(gold))
    table = table.append_column("text", pa.array([f"Text {row % 30}" for row in range(40)]))
    write_table(table, tmp_path / "votes.parquet")
    request = EvaluateRequest(
        source=tmp_path / "votes.parquet", methods=["lr"], splitting=Splitting(folds=2, resamples=5)
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", PcsWarning)
        found = evaluate_source(request)
    assert any("10 gold rows repeat a text and count once" in str(one.message) for one in caught)
    assert found.evaluation.n == 30
