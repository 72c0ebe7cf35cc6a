import csv
import re
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

import pcs_annotator as pcs
from pcs_annotator.showing import answer, to_terminal
from pcs_annotator.showing.report.page import right_of


def silent(question: str) -> str:
    return "I cannot say."


def test_nothing_is_said_of_labels_that_no_row_has(tmp_path: Path) -> None:
    """The texts tell the labels of gold rows, but a text gets no label without an answer."""
    rows = [(f"Case {row}: {('good', 'bad')[row % 2]} indeed", ("good", "bad")[row % 2]) for row in range(60)]
    with (tmp_path / "data.csv").open("w") as file:
        csv.writer(file).writerows([("text", "gold"), *rows])
    with pytest.warns(pcs.PcsWarning):
        result = pcs.run(
            tmp_path / "data.csv", labels=["good", "bad"], models=[silent], relations=["original"], out=tmp_path / "run"
        )
    assert not result.learned.figures  # rows without an answer say nothing of quality
    assert dict(answer.of_run(result).lines)["quality"] == "unknown: no row has a label"
    assert right_of({"tone": result}) == {}


WORDS = {"good": "glad proud warm", "bad": "sad cruel cold", "mixed": "torn odd even"}


def labelled_by_words(question: str) -> str:
    *_, text = question.split("\n\n")
    return next((label for label, words in WORDS.items() if any(word in text for word in words.split())), "mixed")


def first(question: str) -> str:
    return labelled_by_words(question)


def second(question: str) -> str:
    return "bad" if "7" in question else labelled_by_words(question)


@pytest.mark.filterwarnings("ignore::pcs_annotator.PcsWarning")
@pytest.mark.parametrize("gold_rows", [0, 220])
def test_a_run_and_a_fit_end_with_an_answer_of_at_most_15_lines(gold_rows: int, tmp_path: Path) -> None:
    rows = []
    for row in range(260):
        label = [*WORDS][row % 3]
        rows.append((f"Case {row}: {WORDS[label]}", label if row < gold_rows else ""))
    with (tmp_path / "data.csv").open("w") as file:
        csv.writer(file).writerows([("text", "gold"), *rows])
    asked: dict[str, Any] = {"labels": [*WORDS], "models": [first, second], "relations": ["original", "order"]}
    result = pcs.run(tmp_path / "data.csv", tmp_path / "run", gold_sample="random", **asked)
    printed = StringIO()
    notes = ["something was odd: " + "words " * 60, "and more"]
    to_terminal.show(answer.of_run(result, notes), console=Console(width=80, file=printed))
    lines = printed.getvalue().splitlines()
    said = [line.split()[0] for line in lines if not line.startswith(" ")]
    assert len(lines) <= 15
    assert said[:3] == ["labelled", "quality", "use"]
    assert said[-1] == "next"
    assert ("promise" in said, "gold" in said) == ((True, False) if gold_rows else (False, True))
    if gold_rows:
        assert "tests so far used 0 % of the 10 % risk" in re.sub(r"\s+", " ", printed.getvalue())
