import re
from dataclasses import replace
from pathlib import Path

import numpy as np

from pcs_annotator.core.gold_codes import Coders
from pcs_annotator.judging.evaluate.agreement import Resampling, against_gold, among_coders
from pcs_annotator.showing.report.page import render
from tests.builders import the
from tests.showing.report.reading import section
from tests.showing.report.results import Made, made_run

FEW = Resampling(resamples=30)


def cells(html: str) -> list[list[str]]:
    """Return the confusion matrix as rows of cells, without marks."""
    found = the(re.search(r'<table class="heat confusion[^>]*>(.*?)</table>', html, re.S))
    rows = re.findall(r"<tr[^>]*>(.*?)</tr>", found[1], re.S)
    return [
        [re.sub(r"<small>.*?</small>|<[^>]+>", "", cell) for cell in re.findall(r"<t[hd].*?</t[hd]>", row, re.S)]
        for row in rows
    ]


def test_the_confusion_matrix_has_every_count(tmp_path: Path) -> None:
    result = made_run(tmp_path, Made())
    found = the(result.learned.against_gold)
    head, *lines, total = cells(render(result))
    assert head[1:] == [*found.labels, "all"]
    assert [line[0] for line in lines] == list(found.labels)
    assert [[int(cell) for cell in line[1:-1]] for line in lines] == found.table[:-1].tolist()
    assert total[1:] == [*map(str, found.table.sum(axis=0)), str(found.n)]


def test_many_labels_with_markup_are_numbered_and_rows_without_a_label_are_listed(tmp_path: Path) -> None:
    labels = tuple(f"<b>a rather long label & its number {number}</b>" for number in range(20))
    gold = (np.arange(200) % 20).astype(np.int8)
    given = np.where(np.arange(200) < 5, -1, gold).astype(np.int8)
    result = made_run(tmp_path)
    found = against_gold(given, gold, labels, FEW)
    html = render(replace(result, learned=replace(result.learned, against_gold=found)))
    assert "<b>a rather" not in html
    head, *lines, _ = cells(html)
    assert head[1:-1] == [str(number) for number in range(1, 21)]
    assert lines[-1][0] == "(no label)"
    assert lines[0][1:3] == ["9", "·"]
    assert "5 rows without a label count as wrong" in section(html, "quality")


def test_coders_are_listed_two_by_two_and_with_the_model(tmp_path: Path) -> None:
    codes = np.array([[0, 1, 2, 0, 1, 2, 0, 1], [0, 1, 2, 0, 1, 1, -1, 1]], dtype=np.int8)
    coders = Coders(names=("<i>Anna</i>", "Ben"), codes=codes)
    found = among_coders(coders, codes[0], 3, FEW, ordered=True)
    result = made_run(tmp_path)
    text = section(render(replace(result, learned=replace(result.learned, among_coders=found))), "quality")
    for part in ("2 coders", "<i>Anna</i> – Ben", "model – Ben", "majority of the coders", "1 of 7 rows"):
        assert part in text
