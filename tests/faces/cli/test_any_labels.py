"""Answers on a narrow terminal without colours, for labels of every kind, little gold, and nothing accepted."""

import csv
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest
from rich.cells import cell_len

from pcs_annotator.core.chat import ChatModel, Request
from pcs_annotator.faces.cli.main import main
from pcs_annotator.models.provider import providers
from pcs_annotator.models.scripted import ScriptedModel
from tests.stub.behaviour import pick

pytestmark = pytest.mark.system  # whole runs, one after the other

MARKUP = ("[bold]x[/bold]", "[red]", "plain")
ARABIC = ("عدائي", "ودود", "محايد")
JAPANESE = ("敵対的な投稿です", "友好的な投稿です", "中立")
COMMAS = ("good, mostly", "bad; very", "none")
LONG = tuple(f"a rather long name of a label, the one with number {place} of twelve" for place in range(12))
COPIED = ("labels ", "report ", "files ", "gold ", "next ")
Command = Callable[..., str]


class NumberedProvider:
    """Opens `numbered:PERCENT`: it gives the label with the number in the text, right on that percentage of texts."""

    labels: Sequence[str] = ()

    def open(self, model: str, environment: Mapping[str, str]) -> ChatModel:
        def answer(request: Request) -> str:
            asked = request.messages[-1].content
            found = re.search(r"kind (\d+)\.", asked)
            place = int(found[1]) if found else 0
            wrong = pick(100, model, asked) >= int(model)
            label = self.labels[(place + wrong) % len(self.labels)]
            return label if request.constraint is not None else f"<label>{label}</label>"

        return ScriptedModel(answer, name=f"numbered:{model}")


@pytest.fixture
def pcs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """Run a command at a width, and return what it prints; there is no terminal, and colours are unwanted."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setitem(providers._factories, "numbered", NumberedProvider)

    def command(*given: str, width: int = 60, code: int = 0) -> str:
        monkeypatch.setenv("COLUMNS", str(width))
        assert main([*given]) == code
        printed = capsys.readouterr()
        return printed.err if code else printed.out

    return command


def run(
    pcs: Command, labels: Sequence[str], *, rows: int = 60, gold: int = 40, right: str = "95", width: int = 60
) -> str:
    NumberedProvider.labels = labels
    with open("data.csv", "w", newline="", encoding="utf-8") as file:
        table = [[f"Case {row} is of kind {row % len(labels)}.", labels[row % len(labels)]] for row in range(rows)]
        csv.writer(file).writerows(
            [["text", "gold"], *([text, label * (row < gold)] for row, (text, label) in enumerate(table))]
        )
    # these texts say their label, which a model of the texts would read off
    learn = '[learn]\ntext = false\nresamples = 5\nfolds = 3\noptimiser = "lr"\n'
    Path("pcs.toml").write_text(learn, encoding="utf-8")
    named = [part for label in labels for part in ("--label", label)]
    options = ["--model", f"numbered:{right}", "--relations", "original,order", "--max-error", "0.2", "-o", "run"]
    return pcs("run", "data.csv", *named, *options, width=width)


def fits(shown: str, width: int, lines: int) -> None:
    """Check that lines fit, except those to be copied, and that nothing is coloured or ends in blanks."""
    found = shown.splitlines()
    assert len(found) <= lines, shown
    wide = [line for line in found if cell_len(line) > width and not line.startswith(COPIED)]
    assert wide == []
    assert "\x1b" not in shown
    assert [line for line in found if line != line.rstrip() and "  " not in line.strip()] == []


@pytest.mark.parametrize(
    "labels", [MARKUP, ARABIC, JAPANESE, COMMAS, LONG], ids=["markup", "rtl", "cjk", "commas", "long"]
)
def test_labels_of_every_kind_are_shown_as_they_are(labels: Sequence[str], pcs: Command) -> None:
    shown = run(pcs, labels, rows=12 * len(labels), gold=10 * len(labels) + 10)
    fits(shown, 60, 20)
    estimated = pcs("estimate", "run", width=80)
    fits(estimated, 80, 15)
    assert pcs("fit", "run", width=80).count("\n") <= 15
    if labels is LONG:
        said = " ".join(shown.split())
        assert "with 8 other labels" in said
        assert len(re.findall(r"a rather long … \d+ of twelve", said)) == 4
        assert "Share of 12 labels" in estimated
        return
    plain = " ".join(shown.replace("\u200e", "").split())
    names = [f"“{label}”" if labels is COMMAS and label != "none" else label for label in labels]
    assert all(f"{name}," in f"{plain.split('quality')[0].strip()},".replace(" ,", ",") for name in names)
    assert all(name in estimated.replace("\u200e", "") for name in names)


def test_wide_letters_take_two_places_in_tables(pcs: Command) -> None:
    run(pcs, JAPANESE)
    lines = [line for line in pcs("estimate", "run", width=80).splitlines() if line.startswith(JAPANESE)]
    assert len({cell_len(line.rstrip()) for line in lines}) == 1


def test_labels_from_the_right_do_not_turn_numbers_around(pcs: Command) -> None:
    shown = run(pcs, ARABIC)
    assert all(f"\u200e{label}\u200e" in shown for label in ARABIC)


def test_no_gold_says_what_is_unknown_and_what_to_do(pcs: Command) -> None:
    shown = " ".join(run(pcs, ("a", "b"), rows=20, gold=0).split())
    assert "quality unknown: no gold labels" in shown
    assert "no promise without gold labels" in shown
    assert shown.endswith("next pcs review run")
    assert "draw 30 or more with pcs gold" in " ".join(pcs("estimate", "run", code=2).split())
    planned = " ".join(pcs("gold", "run").split())
    assert "0 rows have gold. That is too little: 80 % of labels are assumed to be right (--accuracy)" in planned
    assert planned.endswith("next pcs gold run --n 20")


def test_one_gold_row_is_spoken_of_in_the_singular(pcs: Command) -> None:
    shown = " ".join(run(pcs, ("a", "b"), rows=20, gold=1).split())
    assert "1 gold row is too few to promise anything" in shown
    assert "the only gold row says 'a'" in shown
    assert "the only gold row is 'a', so that nothing is known about other labels" in " ".join(
        pcs("estimate", "run", code=2).split()
    )


def test_one_label_is_refused_with_the_remedy(pcs: Command) -> None:
    NumberedProvider.labels = ("a",)
    Path("data.csv").write_text("text,gold\nCase 1.,a\n", encoding="utf-8")
    said = pcs("run", "data.csv", "--label", "a", "--model", "numbered:95", "-o", "run", code=2)
    assert "label" in said
    assert "two" in said


def test_nothing_accepted_says_why_once_and_what_to_do(pcs: Command) -> None:
    shown = run(pcs, ("a", "b"), rows=300, gold=300, right="55", width=80)
    fits(shown, 80, 15)
    plain = " ".join(shown.split())
    assert "no promise that at most 20 % of the accepted labels are wrong" in plain
    assert "use better models" in plain
    assert "--max-error" not in plain  # which would be another test of the same gold
    assert plain.count("accepted") == 1
    assert plain.endswith("next pcs evaluate run")


def test_every_answer_has_at_most_15_lines_and_the_next_step(pcs: Command) -> None:
    fits(run(pcs, ("a", "b", "c"), rows=90, gold=60, width=80), 80, 15)
    quick = ("--resamples", "20", "--repeats", "1")
    for command in (
        ("fit", "run"),
        ("label", "data.csv", "--run", "run", "-o", "new.csv"),
        ("gold", "run"),
        ("estimate", "run"),
        ("estimate", "run", "--robust"),
        ("evaluate", "run", "--methods", "lr,uniform,majority,zero-shot,auto,spuq", *quick),
        ("compare", "run", ":optimiser=uniform"),
        ("relations", "value", "run", *quick),
    ):
        shown = pcs(*command, width=80)
        fits(shown, 80, 15)
        last = shown.splitlines()[-1].split()[0]
        assert last in ("next", "more", "labels", "tried"), command
