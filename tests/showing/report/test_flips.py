from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from pcs_annotator.showing.report.page import render
from pcs_annotator.showing.report.sections.questions import flips
from pcs_annotator.showing.report.view import view_of
from pcs_annotator.showing.to_html import html_of
from tests.showing.report.reading import Page
from tests.showing.report.results import Made, made_run

TWO = Made(rows=10, labels=("no", "yes"), skills=(0.9,), relations=("original", "voice"), gold=False)


def shown(made: Made, tmp_path: Path, codes: np.ndarray | None = None) -> Page:
    result = made_run(tmp_path, made)
    if codes is not None:
        result = replace(result, votes=replace(result.votes, codes=codes.astype(np.int8)))
    return Page(html_of(flips(view_of(result))))


def test_counts_and_shares_are_shown_by_original_and_rewritten_label(tmp_path: Path) -> None:
    codes = np.zeros((10, 1, 2, 1))
    codes[:3, :, 1] = 1
    codes[8:] = 1
    page = shown(TWO, tmp_path, codes)
    assert "voice 30 % 3 of 10" in page.text
    assert page.text.endswith("Original → asked otherwise answers share no → yes 3 38 %")


def test_answers_without_a_label_are_not_compared(tmp_path: Path) -> None:
    codes = np.full((10, 1, 2, 1), -1)
    page = shown(TWO, tmp_path, codes)
    assert page.text == ""
    codes[0] = 0
    assert "voice 0 % 0 of 1" in shown(TWO, tmp_path, codes).text


def test_a_model_that_never_answered_has_a_dash(tmp_path: Path) -> None:
    codes = np.zeros((10, 2, 2, 1))
    codes[:, 1] = -1
    page = shown(replace(TWO, skills=(0.9, 0.9)), tmp_path, codes)
    assert "voice 0 % 0 of 10 –" in page.text


def test_of_many_labels_only_the_most_frequent_changes_are_listed(tmp_path: Path) -> None:
    labels = tuple(f"label-{number}" for number in range(30))
    codes = np.zeros((10, 1, 2, 1))
    codes[:4, :, 1] = 7
    codes[4:5, :, 1] = 9
    page = shown(replace(TWO, labels=labels), tmp_path, codes)
    assert "label-0 → label-7 4 40 % label-0 → label-9 1 10 %" in page.text
    assert len(page.of("td")) < 10
    assert "asked otherwise" not in shown(replace(TWO, labels=labels), tmp_path, codes * 0).text


def test_without_rewrites_there_is_nothing_to_compare(tmp_path: Path) -> None:
    page = Page(render(made_run(tmp_path, Made(skills=(0.8,), relations=("original",)))))
    assert "Which labels changed" not in page.text
