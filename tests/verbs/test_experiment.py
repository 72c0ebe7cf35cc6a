from __future__ import annotations

import re
from dataclasses import replace
from importlib.metadata import requires
from pathlib import Path

import numpy as np
import pytest

from pcs_annotator import NOT_ASKED, Votes
from pcs_annotator.base.errors import ConfigError, TableError
from pcs_annotator.studies.paper.sources import find_sources, with_elicited
from pcs_annotator.verbs.experiment import PACKAGES

pytestmark = pytest.mark.system


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_versions_are_recorded_of_packages_that_everybody_has() -> None:
    required = {
        re.split(r"\W", one.replace("-", "_"))[0]
        for one in requires("perceived-confidence") or ()
        if "extra" not in one
    }
    assert set(PACKAGES) <= required


def test_the_kind_of_a_source_follows_from_its_columns() -> None:
    Path("wide.csv").write_text("id,gold,a|original\n1,x,x\n", encoding="utf-8")
    Path("long.v2.csv").write_text("id,annotator,relation,label,gold\n1,a,original,x,x\n", encoding="utf-8")
    Path("graded.csv").write_text("id,annotator,relation,p_x,p_y\n1,a,original,1,0\n", encoding="utf-8")
    Path("texts.jsonl").write_text('{"text": "A day."}\n', encoding="utf-8")
    Path("runs").mkdir()
    found = find_sources(
        ["wide.csv", "long.v2.csv", "graded.csv", "texts.jsonl", "runs", "fakenewsnet:data/politifact"]
    )
    assert [(source.name, source.kind) for source in found] == [
        ("wide", "votes"),
        ("long.v2", "votes"),
        ("graded", "votes"),
        ("texts", "texts"),
        ("runs", "run"),
        ("politifact", "texts"),
    ]


def test_a_source_has_the_name_of_its_file_or_the_one_given_before_it() -> None:
    Path("a=b.csv").write_text("text\nA day.\n", encoding="utf-8")
    (renamed, own) = find_sources(["news=a=b.csv", "a=b.csv"])
    assert (renamed.name, renamed.path) == ("news", Path("a=b.csv"))
    assert (own.name, own.path) == ("a=b", Path("a=b.csv"))
    with pytest.raises(ConfigError, match=r"'a=b'.*NAME=PATH"):
        find_sources(["a=b.csv", "a=b.csv"])
    with pytest.raises(TableError, match=r"nowhere\.csv"):
        find_sources(["nowhere.csv"])


def votes_of(annotators: list[str], relations: list[str], code: int, stated: float | None = None) -> Votes:
    shape = (2, len(annotators), len(relations), 1)
    return Votes(
        codes=np.full(shape, code, dtype=np.int8),
        ids=["x", "y"],
        annotators=annotators,
        relations=relations,
        labels=["fake", "real"],
        stated=None if stated is None else np.full((*shape, 2), stated),
    )


def test_elicited_answers_are_added_on_the_original_text() -> None:
    plain = votes_of(["m"], ["voice", "original"], 0)
    found = with_elicited(plain, votes_of(["m", "m/ling-1s"], ["original"], 1, stated=0.5))
    assert found.annotators == ("m", "m/ling-1s")
    assert found.codes[0, :, :, 0].tolist() == [[0, 0], [NOT_ASKED, 1]]
    assert found.stated is not None
    assert np.isfinite(found.stated[0, :, :, 0]).all(axis=-1).tolist() == [[False, False], [False, True]]


def test_an_elicited_annotator_that_was_asked_everything_is_kept_as_it_is() -> None:
    both = votes_of(["m", "m/ling-1s"], ["original", "voice"], 0, stated=0.5)
    found = with_elicited(both, votes_of(["m", "m/ling-1s"], ["original"], 1))
    assert found.annotators == ("m", "m/ling-1s")
    assert (found.codes[:, 1] == 0).all()
    assert found.stated is not None
    assert np.isnan(found.stated[:, 2]).all()


def graded(votes: Votes, sure: float) -> Votes:
    grades = np.full((*votes.codes.shape, 2), [sure, 1 - sure], dtype=np.float32)
    return replace(votes, grades=grades)


@pytest.mark.parametrize("which", [{"plain"}, {"elicited"}, {"plain", "elicited"}, set()])
def test_grades_are_kept_when_elicited_answers_are_added(which: set[str]) -> None:
    plain, elicited = votes_of(["m"], ["voice", "original"], 0), votes_of(["m/ling-1s"], ["original"], 1, stated=0.5)
    found = with_elicited(
        graded(plain, 0.75) if "plain" in which else plain, graded(elicited, 0.25) if "elicited" in which else elicited
    )
    if not which:
        assert found.grades is None
        return
    assert found.grades is not None
    expected = np.full((2, 2), np.nan)
    expected[0] = 0.75 if "plain" in which else np.nan
    expected[1, 1] = 0.25 if "elicited" in which else np.nan
    np.testing.assert_array_equal(found.grades[0, :, :, 0, 0], expected)
    assert found.grades.dtype == np.float32
