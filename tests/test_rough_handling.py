"""Files that are moved, locked, edited and made read-only, clocks that jump, and people who work at the same time."""

import asyncio
import json
import os
import shutil
import sqlite3
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime
from pathlib import Path

import pyarrow.parquet
import pytest
import xlsxwriter

from benchmarks.review_speed import make_run
from pcs_annotator.faces.cli.main import main
from pcs_annotator.reviewing.session import Review
from pcs_annotator.reviewing.values import ReviewOptions
from pcs_annotator.runs.draw_registry import read_events
from pcs_annotator.runs.paths import RunFolder
from tests.faces.serve.running import running
from tests.reviewing.reviewing import judge
from tests.simulated import move_run, read_csv, simulated_models, write_texts

pytestmark = pytest.mark.system

SCRIPTED = ["--labels", "good,bad", "--model", "scripted:hash", "--relations", "original", "-q"]
TEXTS = [f"Case {row} looks good." for row in range(2000, 2010)]


@pytest.fixture
def run(promising_run: Path, tmp_path: Path) -> Iterator[Path]:
    with simulated_models():
        yield move_run(promising_run, tmp_path / "run")


def test_a_ledger_removed_or_replaced_while_serving_is_said_and_nothing_is_paid_for(run: Path) -> None:
    ledger, aside = RunFolder(run).ledger, run.parent / "aside.db"

    async def served() -> None:
        async with running(run) as one:
            assert (await one.classify(TEXTS[0]))[0] == 200
            calls = one.service.tracker.calls
            ledger.rename(aside)
            for content in (None, b""):
                if content is not None:
                    ledger.write_bytes(content)
                status, answer = await one.classify(TEXTS[1])
                assert status == 503, answer
                assert (await one.ask("GET", "/ready"))[0] == 503
            assert one.service.tracker.calls == calls
            os.replace(aside, ledger)
            assert (await one.classify(TEXTS[1]))[0] == 200
            assert (await one.ask("GET", "/ready"))[0] == 200

    asyncio.run(served())


def test_a_ledger_locked_while_serving_is_said_and_works_again(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pcs_annotator.asking.ledger.sqlite.BUSY_SECONDS", 0.1)

    async def served() -> None:
        async with running(run) as one:
            with closing(sqlite3.connect(RunFolder(run).ledger)) as other:
                other.execute("BEGIN IMMEDIATE")
                status, answer = await one.classify(TEXTS[2])
                assert status == 503, answer
            assert (await one.classify(TEXTS[2]))[0] == 200

    asyncio.run(served())


@pytest.mark.parametrize("days", [-4000, -1, 1, 4000])
def test_a_clock_that_jumps_while_serving_changes_no_label(
    days: int, run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def served() -> None:
        async with running(run) as one:
            _, before = await one.classify(TEXTS)
            real = time.time
            monkeypatch.setattr(time, "time", lambda: real() + 86_400 * days)
            status, after = await one.classify(TEXTS)
            assert status == 200
            assert [item["label"] for item in after["data"]] == [item["label"] for item in before["data"]]
            assert after["usage"]["calls"] == 0
            assert (await one.classify("Case 3000 looks bad."))[0] == 200

    asyncio.run(served())


def test_a_review_whose_clock_jumps_keeps_every_verdict(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = time.time
    with Review.open(run, ReviewOptions(refit_every=0)) as review:
        for days in (0, -30, 30, 0):
            monkeypatch.setattr(time, "time", lambda days=days: real() + 86_400 * days)
            judge(review, "random", "good")
    monkeypatch.setattr(time, "time", real)
    with Review.open(run, ReviewOptions(refit_every=0)) as review:
        assert review.progress("ann").verdicts == 4
    assert main(["fit", str(run), "-q"]) == 0


@pytest.mark.slow
def test_two_people_at_once_on_a_hundred_thousand_rows_see_different_rows(tmp_path: Path) -> None:
    make_run(tmp_path / "run", 100_000)
    seen: dict[str, list[str]] = {"ann": [], "bob": []}
    one_at_a_time = threading.Lock()  # the page answers in one thread
    with Review.open(tmp_path / "run", ReviewOptions(refit_every=0)) as review:

        def work(name: str) -> None:
            for _ in range(100):
                with one_at_a_time:
                    shown = judge(review, "random", lambda row: review.rows.run.votes.labels[0], name)
                seen[name].append(shown.id)

        people = [threading.Thread(target=work, args=[name]) for name in seen]
        for person in people:
            person.start()
        for person in people:
            person.join()
    verdicts = [event for event in read_events(RunFolder(tmp_path / "run").draws) if type(event).__name__ == "Verdict"]
    assert len(verdicts) == 200
    assert len({*seen["ann"], *seen["bob"]}) == 200


def test_a_second_review_of_the_same_folder_is_refused(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Review.open(run, ReviewOptions(refit_every=0)):
        assert main(["review", str(run), "--no-browser", "--port", "0"]) == 2
    assert "Traceback" not in capsys.readouterr().err


def workbook(path: Path) -> Path:
    """Write a sheet with cells of every kind."""
    with xlsxwriter.Workbook(path) as book:
        sheet = book.add_worksheet("data")
        sheet.write_row(0, 0, ["id", "text", "gold"])
        sheet.write_column(1, 0, ["formula", "error", "date", "true", "huge", "long", "command", "escape", "digits"])
        sheet.write_formula(1, 1, '=CONCATENATE("Good"," day")', value="Good day")
        sheet.write_formula(2, 1, "=1/0", value="#DIV/0!")
        sheet.write_datetime(3, 1, datetime(2026, 1, 2), book.add_format({"num_format": "yyyy-mm-dd"}))
        sheet.write_boolean(4, 1, True)
        sheet.write_number(5, 1, 1e300)
        sheet.write_string(6, 1, "x" * 32_767)
        sheet.write_string(7, 1, "=cmd|' /C calc'!A1")
        sheet.write_string(8, 1, "_x0041_ and a \u202e turn")
        sheet.write_number(9, 1, 12_345_678_901_234_567)
        sheet.write_column(1, 2, ["good", "bad"])
        sheet.write_formula(9, 2, "=NA()", value="#N/A")
    return path


def test_cells_of_a_workbook_are_read_as_they_are_shown_or_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    workbook(tmp_path / "data.xlsx")
    code = main(["run", "data.xlsx", *SCRIPTED, "-o", "run"])
    error = capsys.readouterr().err
    assert "Traceback" not in error
    assert code == 0, error
    texts = {row["id"]: row["text"] for row in read_csv(tmp_path / "run" / "labels.csv")}
    assert texts["formula"] == "Good day"
    assert texts["date"].startswith("2026-01-02")
    assert len(texts["long"]) == 32_767
    assert "cmd" in texts["command"]
    assert main(["label", "data.xlsx", "--run", "run", "-o", "new.xlsx", "-q"]) == 0
    with pyarrow.OSFile("new.xlsx") as made:
        assert made.size()
    from python_calamine import CalamineWorkbook

    rows = CalamineWorkbook.from_path("new.xlsx").get_sheet_by_index(0).to_python()
    assert any("=cmd" in str(cell) for row in rows for cell in row)  # a text, not a formula


@pytest.mark.parametrize("column", ["label", "annotator", "relation", "id"])
def test_votes_edited_by_hand_void_the_promise_or_are_read_from_the_ledger_again(column: str, run: Path) -> None:
    new, out = write_texts(run.parent / "new.csv", range(3000, 3010)), run.parent / "out.csv"
    assert main(["label", str(new), "--run", str(run), "-o", str(out), "-q"]) == 0
    before = [row["pcs_decision"] for row in read_csv(out)]
    assert "accept" in before
    path = RunFolder(run).votes
    table = pyarrow.parquet.read_table(path)
    field, values = table.schema.field(column), table[column].to_pylist()
    values[0] = next(value for value in values if value != values[0])
    edited = table.set_column(table.column_names.index(column), field, [pyarrow.array(values, field.type)])
    pyarrow.parquet.write_table(edited.replace_schema_metadata(table.schema.metadata), path)
    assert main(["label", str(new), "--run", str(run), "-o", str(out), "-q", "--replace"]) == 0
    # another label is not noticed by its form; a vote in another place leaves a hole, which the ledger fills
    assert [row["pcs_decision"] for row in read_csv(out)] == (["review"] * 10 if column == "label" else before)


def test_an_answer_edited_in_the_ledger_is_refused_with_its_file(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with closing(sqlite3.connect(RunFolder(run).ledger)) as ledger, ledger:
        ledger.execute("UPDATE calls SET reply = x'ff00', finish = 'never'")
    new = write_texts(run.parent / "new.csv", range(10))  # texts of the run, so that answers are looked up
    assert main(["label", str(new), "--run", str(run), "-o", str(run.parent / "out.csv"), "-q"]) == 2
    error = capsys.readouterr().err
    assert "ledger.db: somebody has changed an answer in it" in error
    assert "Traceback" not in error


def test_a_moved_run_is_as_good_as_before(run: Path) -> None:
    moved = run.rename(run.parent / "elsewhere")
    new = write_texts(run.parent / "new.csv", range(3000, 3010))
    for command in (["label", str(new), "--run", str(moved), "-o", str(run.parent / "out.csv")], ["fit", str(moved)]):
        assert main([*command, "-q"]) == 0
    assert "accept" in {row["pcs_decision"] for row in read_csv(run.parent / "out.csv")}


OBEYING = [] if os.geteuid() else ["setpriv", "--bounding-set=-dac_override,-dac_read_search"]
"""Root may write everywhere; without these rights it is held to permissions, as other users are."""


@pytest.mark.skipif(bool(OBEYING) and shutil.which("setpriv") is None, reason="root may write everywhere")
@pytest.mark.parametrize("command", ["fit", "report", "review", "serve", "label"])
def test_a_folder_that_cannot_be_written_is_said_in_a_sentence(command: str, run: Path, tmp_path: Path) -> None:
    new = write_texts(tmp_path / "new.csv", range(3000, 3010))
    given = {"review": [str(run), "--no-browser", "--port", "0"], "serve": [str(run), "--port", "0"]}
    given["label"] = [str(new), "--run", str(run), "-o", str(tmp_path / "out.csv")]
    for path in (run, *run.rglob("*")):
        path.chmod(0o555 if path.is_dir() else 0o444)
    program = [*OBEYING, sys.executable, "-m", "pcs_annotator", command, *given.get(command, [str(run)])]
    done = subprocess.run(program, capture_output=True, text=True, timeout=120, check=False)
    run.chmod(0o755)
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    assert "error:" in done.stderr


def run_with(model: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    (folder / "texts.csv").write_text("text,gold\nOne.,good\nTwo.,bad\n")
    options = ["--labels", "good,bad", "--relations", "original", "--answers", "hard", "-q", "-o", "run"]
    command = [sys.executable, "-m", "pcs_annotator", "run", "texts.csv", "--model", model, *options]
    own = {name: value for name, value in os.environ.items() if "proxy" not in name.lower()}
    return subprocess.run(
        command, cwd=folder, env=own | environment, capture_output=True, text=True, timeout=300, check=False
    )


def test_a_name_that_does_not_resolve_is_an_error_with_a_sentence(tmp_path: Path) -> None:
    done = run_with("http://nowhere.invalid/v1#m", tmp_path)
    assert done.returncode == 2
    assert "check the URL and the network" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_proxy_that_is_not_there_is_an_error_with_a_sentence(tmp_path: Path) -> None:
    done = run_with("http://nowhere.invalid/v1#m", tmp_path, http_proxy="http://127.0.0.1:9")
    assert done.returncode == 2
    assert "127.0.0.1:9" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificate")
@pytest.mark.parametrize(
    ("holder", "trusted", "said"),
    [
        ("IP:127.0.0.1", False, "self-signed certificate"),
        ("DNS:elsewhere.example", True, "not valid for '127.0.0.1'"),
        ("IP:127.0.0.1", True, ""),
    ],
)
def test_a_certificate_that_nobody_vouches_for_is_refused(
    holder: str, trusted: bool, said: str, tmp_path: Path
) -> None:
    make = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "key.pem", "-out", "own.pem"]
    name = ["-days", "2", "-subj", "/CN=127.0.0.1", "-addext", f"subjectAltName={holder}"]
    subprocess.run([*make, *name], cwd=tmp_path, check=True, capture_output=True)
    own = {"SSL_CERT_FILE": str(tmp_path / "own.pem")} if trusted else {}
    tried, asked = [], []

    async def served() -> subprocess.CompletedProcess[str]:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(tmp_path / "own.pem", tmp_path / "key.pem")
        context.sni_callback = lambda *_: tried.append(1)
        asyncio.get_running_loop().set_exception_handler(lambda *_: None)  # handshakes that the client ends

        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            asked.append(await reader.read(100))
            writer.write(b"HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n")
            await writer.drain()
            writer.close()

        async with await asyncio.start_server(answer, "127.0.0.1", 0, ssl=context) as server:
            port = server.sockets[0].getsockname()[1]
            return await asyncio.to_thread(run_with, f"https://127.0.0.1:{port}/v1#m", tmp_path, **own)

    done = asyncio.run(served())
    assert done.returncode == 2
    assert len(tried) <= 2  # there are two texts, and no text is tried again
    assert bool(asked) == (not said)  # else no key and no text has been sent
    if said:
        assert "nothing was sent to https://127.0.0.1" in done.stderr
        assert said in done.stderr
        assert "set SSL_CERT_FILE" in done.stderr


def test_run_json_edited_by_hand_is_refused_with_its_file(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = RunFolder(run).book
    given: list[object] = [7, [], {"version": 1}, None]
    for value in given:
        values = json.loads(path.read_text())
        values["variables"]["label"] |= {"config": value}
        path.write_text(json.dumps(values))
        assert main(["report", str(run)]) in (0, 2)
        assert "Traceback" not in capsys.readouterr().err
