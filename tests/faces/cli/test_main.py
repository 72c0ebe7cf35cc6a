import os
import re
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import click
import pytest

from pcs_annotator import __version__
from pcs_annotator.base.errors import TableError
from pcs_annotator.faces.cli.main import VERBS, main, pcs
from tests.command_line import Pcs


def test_help_lists_every_verb_without_loading_numpy() -> None:
    code = (
        "import sys; from pcs_annotator.faces.cli.main import main; main(['--help']);"
        "assert not {'numpy', 'scipy', 'pyarrow', 'rich'} & set(sys.modules)"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert all(verb in result.stdout for verb in VERBS)


def test_a_plan_does_not_load_the_code_that_learns(tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_text("text,gold\nIt was fine.,good\nIt was not.,bad\n", encoding="utf-8")
    code = (
        "import sys; from pcs_annotator.faces.cli.main import main\n"
        "assert main(['plan', 'data.csv', '--model', 'scripted:hash']) == 0\n"
        "assert not {'pcs_annotator.runs.learn', 'scipy', 'sklearn'} & set(sys.modules)"
    )
    result = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert "No model was called." in result.stdout


def test_every_listed_verb_exists() -> None:
    context = click.Context(pcs)
    assert all(isinstance(pcs.get_command(context, verb), click.Command) for verb in VERBS)


def test_many_options_are_grouped_by_purpose_and_each_is_listed_once() -> None:
    context = click.Context(pcs, info_name="pcs")
    for verb in VERBS:
        command = pcs.get_command(context, verb)
        assert command is not None
        given = [one for one in command.params if isinstance(one, click.Option)]
        help = command.get_help(click.Context(command, info_name=verb, parent=context))
        assert ("Options:" in help) == (len(given) <= 15), verb
        listed = re.split(r"^\w.*:$", help, maxsplit=1, flags=re.MULTILINE)[-1]
        names = re.findall(r"^  (?:-\w, )?(--[\w-]+)", listed, re.MULTILINE)
        assert sorted(names) == sorted({*names}), verb
        assert {name for one in given for name in one.opts if name.startswith("--")} <= {*names}, verb


def test_the_help_of_run_has_the_purposes_in_this_order(pcs: Pcs) -> None:
    found = re.findall(r"^(\w.*):$", pcs.out("run", "--help"), re.MULTILINE)
    assert found == ["Data", "Models", "Rewrites", "Learning and promise", "Cost and speed", "Output"]


def test_the_version_is_printed(pcs: Pcs) -> None:
    assert __version__ in pcs.out("--version")


def test_the_help_of_run_says_which_tasks_are_not_supported(pcs: Pcs) -> None:
    shown = pcs("run", "--help")
    assert "Every text gets one of 2 to 5,000 labels; with [variables.NAME] in pcs.toml" in shown
    assert "with --kind number, a quantity; with --pair, which of two texts is better" in shown
    assert "docs/limits.md" in shown


def test_an_unknown_verb_is_exit_code_2(pcs: Pcs) -> None:
    assert "'fitt'" in pcs.refused("fitt")


@pytest.mark.parametrize("interruption", [KeyboardInterrupt, click.exceptions.Abort])
def test_an_interruption_is_exit_code_130(
    interruption: type[BaseException], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: object) -> None:
        raise interruption

    monkeypatch.setattr("pcs_annotator.faces.cli.fit.import_votes", interrupted)
    assert main(["fit", "votes.csv"]) == 130
    assert "resumes" in capsys.readouterr().err


def test_a_bug_shows_no_traceback_unless_asked_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("oops")

    monkeypatch.setattr("pcs_annotator.faces.cli.fit.import_votes", broken)
    monkeypatch.delenv("PCS_DEBUG", raising=False)
    assert main(["fit", "votes.csv"]) == 70
    assert "ZeroDivisionError: oops" in capsys.readouterr().err
    monkeypatch.setenv("PCS_DEBUG", "1")
    with pytest.raises(ZeroDivisionError):
        main(["fit", "votes.csv"])


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_other_signals_to_stop_do_what_ctrl_c_does(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    number = getattr(signal, name)
    before = signal.getsignal(number)
    monkeypatch.setattr("pcs_annotator.faces.cli.fit.import_votes", lambda *_: signal.raise_signal(number))
    try:
        signal.signal(number, signal.SIG_DFL)
        assert main(["fit", "votes.csv"]) == 130
        assert "resumes" in capsys.readouterr().err
        assert signal.getsignal(number) == signal.SIG_DFL
        signal.signal(number, signal.SIG_IGN)  # as under nohup
        monkeypatch.setattr("pcs_annotator.faces.cli.fit.import_votes", partial(stopped_by_pcs_error, number))
        assert main(["fit", "votes.csv"]) == 2
    finally:
        signal.signal(number, before)


def stopped_by_pcs_error(number: signal.Signals, *_: object) -> None:
    signal.raise_signal(number)
    raise TableError("the signal was ignored")


def test_a_terminal_without_the_letters_shows_question_marks_instead_of_failing(tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_text("text,gold\nGrün,gut\nGrau,übel\n", encoding="utf-8")
    command = [sys.executable, "-m", "pcs_annotator", "run", "data.csv", "--model", "scripted:hash", "--details"]
    found = subprocess.run(
        command,
        cwd=tmp_path,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        timeout=300,
        check=False,
    )
    assert (found.returncode, b"?bel" in found.stdout) == (0, True)


def test_a_file_in_the_place_of_the_run_folder_is_named(pcs: Pcs) -> None:
    Path("data.csv").write_text("text,gold\nA,x\nB,y\n")
    assert "data.csv is a file: name a folder for the run with -o" in pcs.refused(
        "run", "data.csv", "--model", "scripted:hash", "-o", "data.csv"
    )
