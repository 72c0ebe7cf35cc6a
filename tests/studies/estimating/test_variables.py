"""Estimates for all variables of a codebook."""

import json
from pathlib import Path

import pytest

from pcs_annotator.faces.cli.main import main
from tests.faces.review.coded import FRAMES, ONE, make_codebook
from tests.made_once import made_once
from tests.simulated import copy_run


@pytest.fixture
def run(tmp_path_factory: pytest.TempPathFactory, tmp_path: Path) -> Path:
    return copy_run(made_once(tmp_path_factory, "codebook", make_codebook) / "run", tmp_path / "run")


def test_shares_of_all_labels_and_means_of_scales_have_intervals(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["estimate", str(run), "--json", "-o", str(tmp_path / "found.csv")]) == 0
    found = json.loads(capsys.readouterr().out)
    lines = {one["name"]: one["corrected"] for one in found["shares"]["estimates"]}
    named = [f"{name}={label}" for name in ONE for label in ONE[name]] + [f"frames={frame}" for frame in FRAMES]
    assert sorted(lines) == sorted(named)
    assert sum(lines[f"topic={label}"]["value"] for label in ONE["topic"]) == pytest.approx(1)
    assert all(one["low"] < one["value"] < one["high"] for one in lines.values())
    (tone,) = found["means"]["estimates"]
    assert (tone["name"], tone["gold_rows"]) == ("tone", 40)
    shares = [lines[f"tone={label}"]["value"] for label in ONE["tone"]]
    assert tone["corrected"]["value"] == pytest.approx(sum(k * s for k, s in enumerate(shares, 1)), abs=0.05)
    assert "tone" in (tmp_path / "found-means.csv").read_text()
    assert main(["estimate", str(run), "--by", "source"]) == 0
    assert "Means of scales, numbers and counts" in capsys.readouterr().out


def test_a_variable_without_gold_is_named_and_options_for_one_are_refused(
    tmp_path: Path, run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["estimate", str(run), "--of", "economy"]) == 2
    assert f"are about one variable: name its folder, such as {run / 'variables/topic'}" in capsys.readouterr().err
    (tmp_path / "some").mkdir()
    (tmp_path / "none").mkdir()
    few = make_codebook(tmp_path / "some", rows=42, framed=0)
    assert main(["estimate", str(few)]) == 0
    assert "frames=conflict is not estimated" in capsys.readouterr().out
    assert main(["estimate", str(make_codebook(tmp_path / "none", rows=6, gold=0, framed=0))]) == 2
    assert "can be estimated: topic is not estimated: " in capsys.readouterr().err
