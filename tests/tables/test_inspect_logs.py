import json
import struct
import zipfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pcs_annotator import PcsWarning
from pcs_annotator.base.errors import TableError
from pcs_annotator.faces.cli.main import main
from pcs_annotator.tables import inspect_logs
from pcs_annotator.tables.tabular import as_arrow
from pcs_annotator.tables.votes import read_vote_table


def sample(number: int, epoch: int = 1, **more: Any) -> dict[str, Any]:
    """A sample as Inspect AI 0.3 writes it, with the fields that are read."""
    return {
        "id": f"q{number}",
        "epoch": epoch,
        "input": f"Is {number} even?",
        "target": "yes",
        "output": {"model": "m", "choices": [], "completion": f"Answer {number}."},
        "scores": {"judge_a": {"value": "C", "answer": "x"}, "judge_b": {"value": "I" if number % 3 else "C"}},
        "metadata": {"gold": "C"},
        **more,
    }


def write_log(path: Path, samples: list[object]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as log:
        log.writestr("header.json", json.dumps({"version": 2, "status": "success"}))
        for number, one in enumerate(samples):
            log.writestr(f"samples/{number}.json", json.dumps(one))
    return path


def write_zstandard(path: Path, name: str, contents: bytes) -> Path:
    """Write an archive whose only file is compressed by a method that Python learns in version 3.14."""
    packed = pa.compress(contents, "zstd", asbytes=True)
    encoded = name.encode()
    start = b"PK\x03\x04" + struct.pack("<HHHHHIIIHH", 20, 0, 93, 0, 0, 0, len(packed), len(contents), len(encoded), 0)
    directory = b"PK\x01\x02" + struct.pack(
        "<HHHHHHIIIHHHHHII", 20, 20, 0, 93, 0, 0, 0, len(packed), len(contents), len(encoded), 0, 0, 0, 0, 0, 0
    )
    at = len(start) + len(encoded) + len(packed)
    size = len(directory) + len(encoded)
    end = b"PK\x05\x06" + struct.pack("<HHHHIIH", 0, 0, 1, 1, size, at, 0)
    path.write_bytes(start + encoded + packed + directory + encoded + end)
    return path


def test_scorers_are_judges(tmp_path: Path) -> None:
    path = write_log(tmp_path / "log.eval", [sample(number) for number in range(4)])
    found = read_vote_table(path)
    assert found.votes.annotators == ("judge_a", "judge_b")
    assert found.votes.ids == ("q0", "q1", "q2", "q3")
    assert found.votes.codes[:, 1, 0, 0].tolist() == [0, 1, 1, 0]
    assert found.gold == ("C",) * 4
    assert as_arrow(path)["text"][0].as_py() == "Is 0 even?\n\nAnswer 0."


def test_an_epoch_is_an_item_of_its_own(tmp_path: Path) -> None:
    path = write_log(tmp_path / "log.eval", [sample(1, epoch) for epoch in (1, 2)])
    assert as_arrow(path)["id"].to_pylist() == ["q1, epoch 1", "q1, epoch 2"]


def test_values_become_labels(tmp_path: Path) -> None:
    values: list[object] = [True, 3, 0.5, float("nan"), None, "N"]
    logged: list[object] = [sample(row, scores={"j|1": {"value": value}}) for row, value in enumerate(values)]
    found = as_arrow(write_log(tmp_path / "log.eval", logged))
    assert found["j/1|original"].to_pylist() == ["True", "3", "0.5", None, None, "N"]


def test_messages_and_attachments_are_texts(tmp_path: Path) -> None:
    parts = [{"type": "text", "text": "attachment://12ab"}, {"type": "image", "image": "x"}]
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": parts}]
    one = sample(0, input=messages, attachments={"12ab": "A long text."}, output=None, metadata=None)
    found = as_arrow(write_log(tmp_path / "log.eval", [one]))
    assert found["text"].to_pylist() == ["Be brief.\n\nA long text."]
    assert found["gold"].to_pylist() == [None]


def test_a_scorer_with_several_values_is_left_out(tmp_path: Path) -> None:
    path = write_log(tmp_path / "log.eval", [sample(0, scores={"a": {"value": "C"}, "b": {"value": {"x": 1}}})])
    with pytest.warns(PcsWarning, match=r"several values per sample are left out: b\|original"):
        assert as_arrow(path).column_names == ["id", "text", "gold", "a|original"]


def test_zstandard_is_read_whatever_the_version_of_python(tmp_path: Path) -> None:
    contents = json.dumps(sample(5)).encode()
    path = write_zstandard(tmp_path / "log.eval", "samples/q5_epoch_1.json", contents)
    assert as_arrow(path)["id"].to_pylist() == ["q5"]


@pytest.mark.parametrize(
    ("samples", "words"),
    [
        ([], "has no scores"),
        ([sample(0, scores={})], "has no scores"),
        ([[1]], "cannot be read"),
        ([{"epoch": 1}], "cannot be read"),
        ([sample(0, scores=[1])], "cannot be read"),
    ],
)
def test_a_log_without_scores_is_refused(tmp_path: Path, samples: list[object], words: str) -> None:
    with pytest.raises(TableError, match=words):
        as_arrow(write_log(tmp_path / "log.eval", samples))


def test_a_huge_sample_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inspect_logs, "LARGEST_SAMPLE", 100)
    with pytest.raises(TableError, match="larger than 100 bytes"):
        as_arrow(write_log(tmp_path / "log.eval", [sample(0)]))


def test_fit_reads_a_log_and_refuses_another_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_log(tmp_path / "log.eval", [sample(number) for number in range(6)])
    out = tmp_path / "labels.csv"
    assert main(["fit", str(path), "-o", str(out), "--model-out", str(tmp_path / "model.json")]) in (0, 3)
    assert out.read_text(encoding="utf-8").startswith("id,text,gold,judge_a|original")
    broken = tmp_path / "broken.eval"
    broken.write_bytes(path.read_bytes()[:40])
    assert main(["fit", str(broken)]) == 2
    assert "broken.eval cannot be read as a log of Inspect AI" in capsys.readouterr().err
