"""`--quiet` prints errors only: that rows have no label is one, and is said in a line with why and what to do."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from pcs_annotator.asking.engine.call import Patience
from pcs_annotator.faces.cli.main import main
from pcs_annotator.runs import resolve_config
from tests.stub.behaviour import Behaviour
from tests.stub.process import StubProcess, stub_process

pytestmark = pytest.mark.system

KEPT = "; answers are kept: try other models or wording"
AGAIN = "1 question unanswered: no answer; the same command asks again (7 retries: 7 server errors)"
HIGHER = "4 questions unanswered: budget reached; to ask them, run again with a higher --budget, "


@pytest.fixture(scope="module")
def started() -> Iterator[StubProcess]:
    with stub_process() as process:
        yield process


@pytest.fixture
def server(started: StubProcess) -> Iterator[StubProcess]:
    """A server that forgets the faults and the attempts of a test."""
    yield started
    started.change(**Behaviour().to_json())
    started.reset()


@pytest.fixture(autouse=True)
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait hardly at all before asking again."""
    monkeypatch.setattr(
        resolve_config, "Patience", lambda **given: Patience(**given, first_wait=0.001, longest_wait=0.001)
    )


def quiet(server: StubProcess, capsys: pytest.CaptureFixture[str], rows: int, *more: str) -> tuple[int, str]:
    Path("texts.csv").write_text("text\n" + "".join(f"Text number {row} is here.\n" for row in range(rows)))
    asked = ["--labels", "good,bad", "--model", f"{server.url}#m", "--answers", "hard", "--relations", "original"]
    code = main(["run", "texts.csv", *asked, "-q", *more])
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") <= 1
    return code, said.err


@pytest.mark.parametrize("fault", ["500", "reset", "drop_middle", "truncated", "html"])
def test_few_rows_and_a_server_that_fails_end_with_a_line_and_the_same_command_resumes(
    fault: str, server: StubProcess, capsys: pytest.CaptureFixture[str]
) -> None:
    server.change(**{f"share_{fault}": 1.0})
    assert quiet(server, capsys, 1) == (1, f"error: no label for 1 of 1 row: {AGAIN}\n")
    server.change(**{f"share_{fault}": 0.0})
    assert quiet(server, capsys, 1) == (0, "")


@pytest.mark.parametrize(
    ("fault", "why"),
    [("chatter", "no label in reply"), ("filtered", "filtered by the provider"), ("empty", "empty reply")],
)
def test_answers_without_a_label_are_an_error_that_asking_again_does_not_mend(
    fault: str, why: str, server: StubProcess, capsys: pytest.CaptureFixture[str]
) -> None:
    server.change(**{f"share_{fault}": 0.6})
    expected = 1, f"error: no label for 4 of 6 rows: no usable answer ({why}){KEPT}\n"
    assert quiet(server, capsys, 6) == expected
    server.change(**{f"share_{fault}": 0.0})
    assert quiet(server, capsys, 6) == expected


def test_a_limit_is_named(server: StubProcess, capsys: pytest.CaptureFixture[str]) -> None:
    code, said = quiet(server, capsys, 6, "--max-calls", "2")
    assert (code, said.startswith(f"error: no label for 4 of 6 rows: {HIGHER}")) == (3, True)


def test_rows_with_a_label_from_fewer_answers_are_a_warning(
    server: StubProcess, capsys: pytest.CaptureFixture[str]
) -> None:
    code, said = quiet(server, capsys, 1, "--model", "http://127.0.0.1:9/v1#absent")
    assert (code, said) == (0, f"warning: {AGAIN}\n")


def test_new_texts_are_the_same(server: StubProcess, capsys: pytest.CaptureFixture[str]) -> None:
    assert quiet(server, capsys, 6) == (0, "")
    Path("new.csv").write_text("text\nAnother text.\n")
    server.change(share_empty=1.0)
    assert main(["label", "new.csv", "--run", "runs/texts", "-q"]) == 1
    assert capsys.readouterr().err == f"error: no label for 1 of 1 row: no usable answer (empty reply){KEPT}\n"
