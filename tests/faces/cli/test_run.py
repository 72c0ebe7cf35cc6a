import csv
import gzip
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from pcs_annotator import RunResult, run
from pcs_annotator.faces.cli.main import main
from tests.command_line import Pcs
from tests.simulated import read_csv
from tests.stub import Behaviour, stub_process

pytestmark = pytest.mark.system  # whole runs, one after the other

ROWS = [
    ("a", "The city bought five old buses on Monday.", "good"),
    ("b", "The train was late again.", "bad"),
    ("c", "The minister opened the new bridge.", ""),
    ("d", "Nobody likes the new timetable.", "bad"),
]
LABELS = ["--labels", "good,bad"]
SCRIPTED = [*LABELS, "--model", "scripted:hash"]


@pytest.fixture
def data() -> str:
    with open("data.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "text", "gold"])
        writer.writerows(ROWS)
    return "data.csv"


def test_run_labels_every_row_and_keeps_the_user_s_columns_and_order(
    data: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", data, *SCRIPTED, "--optimiser", "lr"]) == 0
    rows = read_csv(Path("runs/data/labels.csv"))
    assert [(row["id"], row["text"], row["gold"]) for row in rows] == ROWS
    assert all(row["pcs_label"] in ("good", "bad") for row in rows)
    assert all(float(row["score_good"]) + float(row["score_bad"]) == pytest.approx(1.0) for row in rows)
    text = capsys.readouterr().out
    assert "runs/data/report.html" in text
    for name in (
        "book.json",
        "items.parquet",
        "variables/label/variants.parquet",
        "variables/label/votes.parquet",
        "variables/label/model.json",
        "variables/label/evaluation.json",
    ):
        assert Path("runs/data", name).exists()
    assert "<html" in Path("runs/data/report.html").read_text(encoding="utf-8")


def test_rows_with_an_empty_text_get_no_label_a_note_and_exit_code_0(
    pcs: Pcs, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("data.csv").write_text('text\nThe bus is new.\n  \n"\u200b"\nThe bus is old.\n', encoding="utf-8")
    run_it = ["run", "data.csv", *SCRIPTED, "--relations", "original"]
    assert "2 rows have no label (the text is empty)" in pcs(*run_it)
    assert pcs.json(*run_it)["rows_without_label"] == 2
    assert main(["fit", "runs/data"]) == 0
    capsys.readouterr()
    assert "2 rows have no label (the text is empty)" in pcs("label", "data.csv", "--run", "runs/data")


def test_fresh_keeps_the_paid_calls_and_moves_them_only_when_the_run_may_begin(data: str, pcs: Pcs) -> None:
    first = pcs.json("run", data, *SCRIPTED)
    assert main(["run", data, *LABELS, "--model", "openai:gpt-4o-mini", "--fresh"]) == 2
    assert list(Path("runs/data").glob("ledger*.db")) == [Path("runs/data/ledger.db")]
    fresh = pcs.json("run", data, *SCRIPTED, "--fresh")
    assert fresh["calls"] == first["calls"]
    assert f"'calls': {2 * int(str(first['calls']))}" in str(fresh["bills"])  # the folder has paid for both
    (kept,) = Path("runs/data").glob("ledger-*.db")
    assert str(kept) in str(fresh["warnings"])
    assert f"'calls': {first['calls']}" in str(pcs.json("ledger", "size", kept)["models"])


def test_gold_called_label_stays_apart_from_the_result_which_the_output_names(data: str, pcs: Pcs) -> None:
    named = Path(data).read_text(encoding="utf-8").replace("id,text,gold", "id,text,label")
    Path(data).write_text(named, encoding="utf-8")
    assert "labels.csv (column pcs_final_label)" in pcs.out("run", data, *SCRIPTED)
    rows = read_csv(Path("runs/data/labels.csv"))
    assert [row["label"] for row in rows] == [gold for _, _, gold in ROWS]
    assert {row["pcs_label"] for row in rows} <= {"good", "bad"}
    assert all(row["pcs_label"] for row in rows)
    assert "new.csv (column pcs_final_label)" in pcs.out("label", data, "--run", "runs/data", "-o", "new.csv")
    assert pcs.json("label", data, "--run", "runs/data", "-o", "again.csv")["label_column"] == "pcs_final_label"


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("none", "'none' may mean that there is no label: empty such cells"),
        ("good;bad", "'good;bad' looks like several labels in one cell"),
        ("7.5", "'7.5' looks like a measurement"),
    ],
)
def test_gold_that_is_probably_no_label_is_refused_unless_the_user_names_it(
    value: str, why: str, data: str, pcs: Pcs
) -> None:
    text = Path(data).read_text(encoding="utf-8")
    Path(data).write_text(text.replace("bridge.,", f"bridge.,{value}"), encoding="utf-8")
    problem = pcs.refused("run", data, "--model", "scripted:hash")
    assert f"data.csv, id 'c', column gold: {why}" in problem
    assert "or name all labels with --labels, or each with --label" in problem
    assert f"{value!r} is not one of the labels" in pcs.refused("run", data, *SCRIPTED)
    named = [part for name in ("good", "bad", value) for part in ("--label", name)]
    assert pcs.json("run", data, "--model", "scripted:hash", *named)["labels"] == ["good", "bad", value]


def test_labels_of_a_run_are_no_gold_of_the_next(data: str, pcs: Pcs) -> None:
    without = "".join(f"{name},{text}\n" for name, text, _ in [("id", "text", ""), *ROWS])
    Path("plain.csv").write_text(without, encoding="utf-8")
    assert main(["run", "plain.csv", *SCRIPTED, "-o", "first", "-q"]) == 0
    again = pcs.json("run", "first/labels.csv", *SCRIPTED, "-o", "second")
    assert again["gold_rows"] == 0
    assert any("'pcs_label' is now 'input_pcs_label'" in str(note) for note in again["warnings"])
    assert [row["input_pcs_label"] for row in read_csv(Path("second/labels.csv"))] == [
        row["pcs_label"] for row in read_csv(Path("first/labels.csv"))
    ]


def test_settings_come_from_pcs_toml_and_the_command_line_wins(data: str, pcs: Pcs) -> None:
    assert main(["init", data]) == 0
    text = Path("pcs.toml").read_text(encoding="utf-8")
    assert 'labels = ["bad", "good"]' in text
    assert 'gold_column = "gold"' in text
    assert "auto combines votes and texts" in text
    Path("pcs.toml").write_text(text.replace('embedded:smollm2"]', 'scripted:hash"]'), encoding="utf-8")
    found = pcs.json("run", data, "--relations", "original")
    weights = found["weights"]
    assert isinstance(weights, dict)
    assert list(weights["by_annotator"]) == ["scripted:hash"]
    assert list(weights["by_relation"]) == ["original"]
    assert "--replace" in pcs.refused("init", data)
    assert main(["init", data, "--replace", "--json"]) == 0


def test_the_encoding_in_pcs_toml_is_used_unless_the_command_line_names_another() -> None:
    Path("data.csv").write_bytes("text,gold\nGrün ist schön.,good\nGrau ist öde.,bad\n".encode("windows-1252"))
    Path("pcs.toml").write_text('[data]\nencoding = "cp437"\n', encoding="utf-8")
    for options, first in (([], "Grⁿn"), (["--encoding", "windows-1252", "--replace"], "Grün")):
        assert main(["run", "data.csv", *SCRIPTED, *options, "-q"]) in (0, 1)
        assert read_csv(Path("runs/data/labels.csv"))[0]["text"].startswith(first)


def test_a_table_may_be_in_many_parts(data: str, pcs: Pcs) -> None:
    header, *rows = Path(data).read_text(encoding="utf-8").splitlines()
    Path("parts").mkdir()
    for part in (0, 2):
        lines = [header, *rows[part : part + 2], ""]
        Path(f"parts/{part}.csv.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
    assert pcs.json("run", data, *SCRIPTED)["rows"] == len(ROWS)
    for spec in ("parts", "parts/*.csv.gz"):
        assert pcs.json("run", spec, *SCRIPTED)["rows"] == len(ROWS)
    assert Path("runs/parts/labels.csv").read_bytes() == Path("runs/data/labels.csv").read_bytes()


def test_plan_calls_no_model(data: str, pcs: Pcs) -> None:
    with stub_process(Behaviour()) as stub:
        planned = pcs.json("plan", data, *LABELS, "--model", f"{stub.url}#m", "--relations", "original,frame")
        assert stub.stats().requests == 0
    assert (planned["rows"], planned["calls"], planned["usd"]) == (4, 8, None)
    text = pcs.out("plan", data, *SCRIPTED)
    assert "scripted:hash" in text
    assert "4 rows" in text


def test_a_run_over_real_http_is_fitted_again_and_labels_new_texts(
    data: str, pcs: Pcs, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("new.csv").write_text("text\nThe bus is new.\nThe city bought five old buses on Monday.\n", encoding="utf-8")
    with stub_process(Behaviour()) as stub:
        options = [*LABELS, "--model", f"{stub.url}#m", "--rewriter", f"{stub.url}#r"]
        first = pcs.json("run", data, *options)
        again = pcs.json("fit", "runs/data", "--optimiser", "uniform")
        assert again["rows"] == first["rows"] == 4
        assert again["optimiser"] == "uniform"
        labelled = pcs.json("label", "new.csv", "--run", "runs/data")
        assert labelled["rows"] == 2
        assert labelled["known_already"]
        assert main(["label", "new.csv", "--run", "runs/data", "-o", "out.csv"]) == 0
    assert [row["text"] for row in read_csv(Path("new-labels.csv"))] == [
        row["text"] for row in read_csv(Path("out.csv"))
    ]
    assert main(["fit", "runs/data", "-q"]) == 0
    assert main(["report", "runs/data", "-o", "page.html"]) == 0
    assert "<html" in Path("page.html").read_text(encoding="utf-8")
    assert main(["report", "runs/data", "-o", "page.pdf"]) == 2
    Path("page.html").write_text("mine", encoding="utf-8")
    assert main(["report", "runs/data", "-o", "page.html"]) == 2
    assert Path("page.html").read_text(encoding="utf-8") == "mine"
    assert main(["report", "runs/data", "-o", "page.html", "--replace"]) == 0
    assert [kept.read_text(encoding="utf-8") for kept in Path().glob("page-*.html")] == ["mine"]
    capsys.readouterr()
    assert pcs.json("report", "runs/data")["report"] == "runs/data/report.html"


def test_two_runs_in_one_folder_pay_once_and_agree(data: str, capsys: pytest.CaptureFixture[str]) -> None:
    with stub_process(Behaviour(latency_s=0.2)) as stub:
        options: dict[str, Any] = {"labels": ["good", "bad"], "models": [f"{stub.url}#m"], "relations": ["original"]}
        found: list[RunResult] = []
        place = Path.cwd()  # a thread may outlive a test that fails
        runs = [
            threading.Thread(target=lambda: found.append(run(place / data, place / "here", **options)))
            for _ in range(2)
        ]
        for one in runs:
            one.start()
        while not Path("here/ledger.db-holder").exists():
            time.sleep(0.01)
        arguments = ["run", data, *LABELS, "--model", f"{stub.url}#m", "-o", "here", "--no-wait"]
        assert main(arguments) == 2
        for one in runs:
            one.join()
        assert stub.stats().requests == len(ROWS)
    assert "here/ledger.db is in use by" in capsys.readouterr().err
    assert sorted(one.tally.calls for one in found) == [0, len(ROWS)]
    assert found[0].outcomes == found[1].outcomes


def test_a_spent_budget_is_code_3_and_what_was_paid_for_is_kept(data: str, pcs: Pcs) -> None:
    Path("pcs.toml").write_text('[ask.prices]\n"scripted:hash" = [1000, 1000]\n', encoding="utf-8")
    found = pcs.json("run", data, *SCRIPTED, "--budget", "0.3", code=3)
    assert found["unanswered"]["budget reached"]
    # a budget is for the folder: the same command has nothing left to spend, a larger budget goes on
    assert pcs.json("run", data, *SCRIPTED, "--budget", "0.3", code=3)["calls"] == 0
    assert "0 calls" in (text := pcs.out("run", data, *SCRIPTED, "--budget-per-day", "0.3", code=3))
    labelled = len(ROWS) - found["rows_without_label"]
    assert f"{len(ROWS)} rows: {labelled} bad; {found['rows_without_label']} rows have no label" in " ".join(
        text.split()
    )
    assert "run again with a higher --budget, --budget-per-day, --max-calls or --max-tokens" in " ".join(text.split())
    assert pcs.json("run", data, *SCRIPTED, "--budget", "100")["known_already"] == found["calls"]


def test_prices_and_limits_come_from_the_command_line(data: str, pcs: Pcs, capsys: pytest.CaptureFixture[str]) -> None:
    with stub_process(Behaviour()) as stub:
        url = f"{stub.url}#m"
        arguments = ["run", data, *LABELS, "--model", url, "--relations", "original", "--budget", "1"]
        assert f"--price {url}=IN,OUT" in pcs.refused(*arguments)
        assert "must be MODEL=IN,OUT" in pcs.refused(*arguments, "--price", f"{url}=1")
        assert main([*arguments, "--price", f"{url}=1,2", "--max-calls", "1", "--json"]) == 3
        assert stub.stats().requests == 1
        (bill,) = json.loads(capsys.readouterr().out)["bills"]
        assert bill["usd"] == pytest.approx((bill["input_tokens"] + 2 * bill["output_tokens"]) / 1e6)
        assert main([*arguments, "--price", f"{url}=1,2", "--max-tokens", "10", "-q"]) == 3
        assert stub.stats().requests == 1
        assert main(["run", data, *LABELS, "--model", url, "-o", "two", "--max-calls", "2", "-q"]) == 3
        assert stub.stats().requests == 3  # also if one call is to find out what the model can do
        assert pcs.json("plan", data, *LABELS, "--model", url, "--price", f"{url}=1,2")["usd"]
        assert main(["label", data, "--run", "runs/data", "--max-tokens", "10", "--budget-per-day", "1", "-q"]) == 3
        assert stub.stats().requests == 3


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["--labels", "good", "--model", "scripted:hash"], "'bad'"),
        (["--labels", "good,Good", "--model", "scripted:hash"], "'Good'"),
        (["--labels", ",".join(map(str, range(5_001))), "--model", "scripted:hash"], "5,000"),
        (["--labels", "good,bad"], "--model"),
        (["--labels", "good,bad", "--model", "nobody:knows"], "nobody:knows"),
        (["--labels", "good,bad", "--model", "groq:llama-3.1-8b-instant"], "GROQ_API_KEY"),
        (["--labels", "good,bad", "--model", "scripted:hash", "--relations", "voise"], "voise"),
        (["--labels", "good,bad", "--model", "http://127.0.0.1:9/v1#m"], "127.0.0.1:9"),
        (["--labels", "good,bad", "--model", "scripted:hash", "-o", "data.csv"], "data.csv"),
    ],
)
def test_settings_that_cannot_work_are_one_sentence_and_code_2(
    options: list[str], complaint: str, data: str, pcs: Pcs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GROQ_API_KEY", raising=False)
    error = pcs.refused("run", data, *options)
    assert complaint in error
    assert "Traceback" not in error


def test_a_folder_that_is_not_a_run_is_refused(data: str, pcs: Pcs) -> None:
    Path("empty").mkdir()
    for arguments in (["report", "empty"], ["fit", "empty"], ["label", data, "--run", "empty"]):
        error = pcs.refused(*arguments)
        assert "empty" in error
        assert "run folder" in error


@pytest.mark.parametrize("command", ["plan", "run"])
def test_an_unknown_optimiser_is_refused_before_anything_is_asked(command: str, data: str, pcs: Pcs) -> None:
    assert "no optimiser is called 'nosuch'; known: auto" in pcs.refused(
        command, data, *LABELS, "--model", "scripted:hash", "--optimiser", "nosuch"
    )
    assert not Path("runs").exists()


def test_a_timeout_that_lets_no_model_answer_is_refused(pcs: Pcs) -> None:
    Path("data.csv").write_text("text\nA text.\n", encoding="utf-8")
    Path("pcs.toml").write_text("[ask]\ntimeout = 0\n", encoding="utf-8")
    assert "ask.timeout is 0, must be more than 0" in pcs.refused(
        "run", "data.csv", *LABELS, "--model", "scripted:hash"
    )


def test_ctrl_c_is_code_130_and_the_next_run_resumes(pcs: Pcs) -> None:
    Path("data.csv").write_text("text\n" + "".join(f"Text {row}.\n" for row in range(3000)), encoding="utf-8")
    with stub_process(Behaviour(latency_s=0.2)) as stub:
        options = [
            "run",
            "data.csv",
            *LABELS,
            "--model",
            f"{stub.url}#m",
            "--relations",
            "original",
            "--concurrency",
            "8",
        ]
        process = subprocess.Popen(
            [sys.executable, "-m", "pcs_annotator", *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )
        while stub.stats().answered < 20 and process.poll() is None:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, error = process.communicate(timeout=120)
        assert process.returncode == 130
        assert "resumes" in error
        assert "Traceback" not in error
        found = pcs.json(*options, "--limit", "40")
    assert found["known_already"]
