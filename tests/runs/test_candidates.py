"""Runs with very many labels: each text is asked about a few, found by what is frozen with the run."""

from dataclasses import replace
from pathlib import Path

import pytest

from pcs_annotator import Annotator, Task, run
from pcs_annotator.asking.annotators.annotator import Question
from pcs_annotator.asking.engine.job import QuestionForm
from pcs_annotator.base.errors import ConfigError
from pcs_annotator.core.chat import Reply, Request
from pcs_annotator.core.task import Phrasing
from pcs_annotator.core.votes import Vote
from pcs_annotator.faces.cli.main import main
from pcs_annotator.models.scripted import ScriptedModel
from pcs_annotator.relations.base import Original
from pcs_annotator.reviewing.run_rows import asked as asked_of
from pcs_annotator.runs.paths import RunFolder, read_start
from pcs_annotator.runs.resolve_config import _with_candidates, asked_alone, task_of
from pcs_annotator.runs.settings import Config, TaskSettings
from tests.builders import the
from tests.simulated import few_resamples

STARTS, ENDS = ("bor", "dal", "fen", "gim", "kus", "lop"), ("ag", "et", "iv", "om")
WORDS = [f"{start}{end}" for start in STARTS for end in ENDS]
LABELS = [f"{one}/{other}" for one in ("tree", "sea", "sky") for other in WORDS]
TEXTS = [f"row {number} is about {place.replace('/', ' ')}" for number, place in enumerate(LABELS * 2)]
SETTINGS = {
    "labels": LABELS,
    "kind": "tree",
    "relations": ["original", "order"],
    "optimiser": "majority",
    "text": False,
}


def answer(request: Request) -> str:
    """Return the listed label whose words the text has; one that was not listed for a text that asks for it."""
    listed = [line.removeprefix("- ") for line in the(request.parts).menu.splitlines()]
    right = [one for one in listed if the(request.parts).text.endswith(one.replace("/", " "))]
    return right[0] if right else listed[0]


def asked(model: ScriptedModel, text: str) -> list[list[str]]:
    """Return the labels that were listed for a text, in order, once per prompt."""
    menus = {one.parts.menu for one in model.requests if one.parts is not None and one.parts.text == text}
    return sorted([line.removeprefix("- ") for line in menu.splitlines()] for menu in menus)


@pytest.mark.filterwarnings("ignore::pcs_annotator.base.errors.PcsWarning")
def test_texts_are_asked_about_their_own_labels(tmp_path: Path) -> None:
    model = ScriptedModel(answer, name="scripted:taxonomy")
    gold = [*(LABELS * 2)[:40], *[""] * (len(TEXTS) - 40)]
    data = {"text": TEXTS, "gold": gold}
    few = few_resamples(tmp_path)
    result = run(data, tmp_path / "run", config=few, models=[model], **SETTINGS)  # type: ignore[arg-type]

    first, second = asked(model, TEXTS[50])
    assert len(first) == 30
    assert first == second[::-1]
    assert LABELS[50] in first
    assert [one.leaf for one in result.outcomes] == LABELS * 2
    assert "Each text is asked about 30 of 72 labels" in result.candidates
    assert "100% of 40 gold rows" in result.candidates
    stored = read_start(RunFolder(tmp_path / "run"))["config"]["task"]
    assert len(stored["known"]) == 40
    # with more gold, the same questions are asked, so that nothing is paid for twice
    calls = model.calls
    more = {"text": TEXTS, "gold": LABELS * 2}
    run(more, tmp_path / "run", config=few, models=[model], **SETTINGS)  # type: ignore[arg-type]
    assert model.calls == calls


def test_plan_says_how_many_labels_are_asked_about_and_how_often_that_is_enough(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "data.csv").write_text("text,gold\n" + "".join(f"{one},\n" for one in TEXTS))
    options = ["--labels", ",".join(LABELS), "--model", "scripted:hash"]
    assert main(["plan", str(tmp_path / "data.csv"), *options]) == 0
    assert "asked about 30 of 72 labels; gold rows would tell" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--answers", "graded"], "graded answers are not kept"),
        (["--model", "scripted:hash/ling-1s"], "ask it for a label only"),
    ],
)
def test_what_very_many_labels_cannot_have_is_refused(
    more: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "data.csv").write_text("text\n" + "\n".join(TEXTS))
    options = ["--labels", ",".join(LABELS), "--model", "scripted:hash", "-o", str(tmp_path / "run"), *more]
    assert main(["run", str(tmp_path / "data.csv"), *options]) == 2
    assert said in " ".join(capsys.readouterr().err.split())


def test_candidates_are_not_for_scales() -> None:
    config = Config(task=TaskSettings(labels=("1", "2", "3"), kind="scale", candidates=2))
    with pytest.raises(ConfigError, match="scale"):
        _with_candidates(config, ("1", "2", "3"))
    assert not asked_alone(replace(config.task, candidates=0, labels=tuple(map(str, range(90)))))


def test_a_variable_with_very_many_labels_is_asked_alone() -> None:
    tone = TaskSettings(labels=("good", "bad"))
    topic, many = TaskSettings(labels=tuple(LABELS)), TaskSettings(labels=("x", "y"), kind="many")
    book = Config(variables={"topic": topic, "tone": tone, "frames": many})
    assert task_of(replace(book, task=topic, part="topic")).together is None
    asked = the(task_of(replace(book, task=tone, part="tone")).together)
    assert [part.name for part in asked.parts] == ["tone", "frames"]


def test_a_reply_outside_the_candidates_is_an_answer() -> None:
    model = ScriptedModel(["sky/lopom"], name="scripted:one")
    model.can_constrain = False
    form = QuestionForm.of(Phrasing(task=Task("Which?", LABELS)), [Annotator(model)], Original())
    task = form.about("about tree borag")
    question = Annotator(model).question(task, "about tree borag", model)
    assert isinstance(question, Question)
    assert "sky/lopom" not in task.labels
    vote = Annotator(model).parse_reply(question, [Reply(text="<label>sky/lopom</label>")], model)
    assert isinstance(vote, Vote)
    assert vote.label == "sky/lopom"
    assert "30 of 72 labels, chosen for it" in asked_of(Phrasing(task=Task("Which?", LABELS)))
