"""Whatever a file holds, a command ends with its result or with a sentence, never as a bug."""

import gzip
import json
import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from pcs_annotator.faces.cli.main import main
from tests.command_line import Pcs
from tests.simulated import simulated_models, simulated_run

pytestmark = pytest.mark.system

PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(range(256))
DEEP = "[" * 100_000
SURROGATE = r'{"text": "half \ud83d", "gold": "good", "\udc00": 1}'
SCRIPTED = ["--labels", "good,bad", "--model", "scripted:hash", "--relations", "original", "-q"]


@pytest.fixture(autouse=True)
def without_tracebacks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PCS_DEBUG", raising=False)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    simulated_run(folder, rows=24, gold_rows=16)
    return folder


def ends(arguments: list[str], capsys: pytest.CaptureFixture[str], codes: tuple[int, ...] = (0, 2)) -> str:
    capsys.readouterr()
    code = main(arguments)
    error = capsys.readouterr().err
    assert code in codes, error
    assert "Traceback" not in error
    return error


def nested(path: Path) -> None:
    parquet.write_table(pa.table({"text": [["a"], ["b"]], "id": [{"x": 1}, {"x": 2}]}), path)


def other_bytes(path: Path) -> None:
    parquet.write_table(pa.table({"text": [b"\xff\xfe", b"x"]}), path)


def wide(path: Path) -> None:
    path.write_text(",".join(f"m|r{column}" for column in range(30_000)) + "\n", encoding="utf-8")


def bomb(path: Path) -> None:
    with gzip.open(path, "wb") as file:
        file.write(b"text\n" + b"spam and eggs\n" * 200_000)


def damaged_gzip(path: Path) -> None:
    packed = bytearray(gzip.compress(b"text\n" + bytes(range(32, 127)) * 1000))
    packed[40:60] = b"x" * 20
    path.write_bytes(packed)


DATA: Mapping[str, bytes | str | Callable[[Path], None]] = {
    "png.csv": PNG,
    "png.parquet": PNG,
    "png.json": PNG,
    "empty.csv": "",
    "latin.csv": "text\ncaf\xe9\n".encode("latin-1"),
    "quote.csv": 'text\n"never closed\n',
    "blank.csv": "\n\n\n",
    "object.json": '{"text": ["a", "b"]}',
    "number.json": "1" * 5000,
    "digits.jsonl": '{"text": "a", "id": ' + "1" * 5000 + "}",
    "deep.json": DEEP,
    "deep.jsonl": '{"text": ' + DEEP + "]" * 100_000 + "}",
    "surrogate.jsonl": SURROGATE,
    "surrogate.json": f"[{SURROGATE}]",
    "list.jsonl": "[1, 2]",
    "folder.csv": Path.mkdir,
    "nested.parquet": nested,
    "bytes.parquet": other_bytes,
    "cut.parquet": b"PAR1" + PNG,
    "wide.csv": wide,
    "damaged.csv.gz": damaged_gzip,
    "not.csv.gz": "text\nplain\n",
}


@pytest.mark.parametrize("name", DATA)
def test_data_of_any_kind_is_read_or_refused(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    content, path = DATA[name], Path(name)
    if callable(content):
        content(path)
    else:
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    for command in (["run", name, *SCRIPTED, "-o", "run"], ["fit", name, "-q"], ["init", name, "--replace"]):
        error = ends(command, capsys)
        assert not error or path.name in error or error.startswith("error: column"), error


def test_texts_with_half_a_character_are_labelled(pcs: Pcs) -> None:
    Path("data.jsonl").write_text(SURROGATE + '\n{"text": "one\u2028line", "gold": "bad"}', encoding="utf-8")
    assert "lone surrogates" in pcs.out("run", "data.jsonl", *SCRIPTED[:-1])
    labels = Path("runs/data/labels.csv").read_text(encoding="utf-8")
    assert "half \ufffd" in labels
    assert "one\u2028line" in labels


def test_a_long_cell_is_read(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    Path("data.csv").write_text(f'text,gold\n"{"long " * 1_000_000}",good\nshort,bad\n', encoding="utf-8")
    assert "PCS_MAX_TEXT_MB=5" in ends(["run", "data.csv", *SCRIPTED], capsys, (2,))
    monkeypatch.setenv("PCS_MAX_TEXT_MB", "5")
    assert not ends(["run", "data.csv", *SCRIPTED], capsys, (0,))
    Path("header.csv").write_text(f'text,"{"long " * 1_000_000}"\na,b\n', encoding="utf-8")
    assert "header.csv" in ends(["run", "header.csv", *SCRIPTED], capsys, (2,))


def test_compressed_data_that_is_read_at_once_has_a_limit(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    bomb(Path("data.csv.gz"))
    parquet.write_table(pa.table({"text": [f"{row} {row}" for row in range(100_000)]}), "data.parquet")
    for limit in (1_000, 1_000_000):  # noticed in the header, and in the rows
        monkeypatch.setattr("pcs_annotator.tables.source_files.MOST_BYTES_UNPACKED", limit)
        for name in ("data.csv.gz", "data.parquet"):
            assert f"{name} is larger than" in ends(["init", name, "--replace"], capsys, (2,))


COMMANDS = (
    ["fit", "run", "-q"],
    ["report", "run"],
    ["evaluate", "run", "--methods", "lr,uniform", "--resamples", "20", "--folds", "2", "--repeats", "1", "-q"],
    ["label", "data.csv", "--run", "run", "-o", "new.csv", "-q"],
    ["run", "data.csv", "-o", "run", "--labels", "good,bad", "--model", "simulated:large@85", "-q"],
)
FILES = (
    "book.json",
    "variables/label/model.json",
    "variables/label/evaluation.json",
    "variables/label/votes.parquet",
    "items.parquet",
    "variables/label/variants.parquet",
    "draws.jsonl",
    "ledger.db",
)
DAMAGE: Mapping[str, Callable[[bytes], bytes]] = {
    "cut": lambda content: content[: len(content) // 2],
    "empty": lambda content: b"",
    "another shape": lambda content: b"[1, 2]",
    "an empty object": lambda content: b"{}",
    "other values": lambda content: json.dumps(
        {key: [1] for key in ("config", "annotators", "weights", "learn", "fit", "figures", "schema")}
    ).encode(),
    "binary": lambda content: PNG,
}


# every pair of a file and its damage with one command, and every command with every file; half of them in a normal run
DAMAGED = [
    pytest.param(
        name,
        damage,
        command := COMMANDS[(row + column) % len(COMMANDS)],
        id=f"{name} {damage} {command[0]}",
        marks=[pytest.mark.slow] if (row + column) % 2 else [],
    )
    for row, name in enumerate(FILES)
    for column, damage in enumerate(DAMAGE)
]


@pytest.mark.parametrize(("name", "damage", "command"), DAMAGED)
def test_a_damaged_run_folder_is_made_good_or_explained(
    name: str, damage: str, command: list[str], made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    path = Path("run", name)
    path.write_bytes(DAMAGE[damage](path.read_bytes() if path.exists() else b""))
    with simulated_models():
        ends(command, capsys)


def test_a_file_of_another_kind_in_a_run_folder(made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with simulated_models():
        for name in ("variables/label/votes.parquet", "items.parquet", "variables/label/variants.parquet"):
            shutil.copytree(made, tmp_path, dirs_exist_ok=True)
            for command in COMMANDS[:3]:
                nested(Path("run", name))
                ends(command, capsys)


@pytest.mark.parametrize(
    "content",
    [
        PNG,
        DEEP.encode(),
        b"x = " + DEEP.encode(),
        b"ask = 1",
        b"[ask]\nmodels = 5",
        b"[ask]\nmodels = [1]",
        b"[ask]\ndraws = -1",
        b"[ask]\nconcurrency = -5",
        b"[ask]\nbudget_usd = nan",
        b"[ask]\nprices = {a = [nan, 1]}",
        b"[ask.questions]\na = 5",
        b"[task]\nlabels = {a = 1}",
        b"[task]\nlabels = ['a', 'a']",
        b"[task]\nmeanings = {zebra = 'x'}",
        b"[task]\nwordings = ['']",
        b"[relations]\nuse = ['']",
        b"[relations.own]\nprompt = 5",
        b"[relations.own]\nprompt = 'x {text}'\nshortest = 'x'",
        b"[learn]\nseed = 1" + b"0" * 40,
        b"[learn]\nseed = -1",
        b"[learn]\nfolds = 0",
        b"[learn]\nfolds = 100000000000",
        b"[learn]\nresamples = -1",
        b"[learn]\nmax_error = nan",
        b"[learn]\nmax_error = -1",
        b"[learn]\ncertainty = inf",
        b"[learn]\noptimiser = ''",
        b"[data]\ntext_column = 'nope'",
    ],
)
def test_settings_of_any_kind_are_used_or_refused(
    content: bytes, made: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("pcs.toml").write_bytes(content)
    options = ["--model", "scripted:hash", "--relations", "original", "-q"]
    ends(["run", str(made / "data.csv"), "-o", "run", *options], capsys)


def test_places_that_cannot_be_written(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("a-folder").mkdir()
    Path("a-file").touch()
    run = str(made / "run")
    for command in (
        ["report", run, "-o", "a-folder"],
        ["report", run, "-o", "a-file/report.html"],
        ["report", run, "-o", "/proc/report.html"],
        ["evaluate", run, "--methods", "uniform", "--resamples", "20", "-o", "a-file"],
        ["fit", str(made / "run" / "variables/label/votes.parquet"), "-o", "a-file", "-q"],
        ["run", str(made / "data.csv"), *SCRIPTED, "-o", "a-file"],
        ["ledger", "size", "a-folder"],
        ["report", "caf\udce9"],
    ):
        assert ends(command, capsys, (2,)), command


def test_a_run_in_a_folder_that_cannot_be_written_is_reported_elsewhere(
    made: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(made / "run", "run")
    before = sorted(path.name for path in Path("run").iterdir())
    # root may write everywhere, so that permissions alone would not show it
    monkeypatch.setattr(os, "access", lambda path, mode: not (mode == os.W_OK and Path(path).name == "run"))
    Path("run").chmod(0o555)
    try:
        assert not ends(["report", "run", "-o", "page.html"], capsys, (0,))
    finally:
        Path("run").chmod(0o755)
    assert Path("page.html").exists()
    assert sorted(path.name for path in Path("run").iterdir()) == before


def test_problems_of_the_machine_are_no_bugs(
    made: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for problem in (MemoryError(), PermissionError(13, "Permission denied", "x.csv"), OSError(28, "No space left")):

        def raised(*_: object, problem: Exception = problem) -> None:
            raise problem

        monkeypatch.setattr("pcs_annotator.faces.cli.report.open_book", raised)
        assert ends(["report", "run"], capsys, (2,))
