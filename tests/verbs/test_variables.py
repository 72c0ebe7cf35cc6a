"""Codebooks: several variables in one call, each a run of its own, and one table of all labels."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pcs_annotator import BookResult, Item, run
from pcs_annotator.base.errors import ConfigError
from pcs_annotator.core.chat import ChatModel, Request
from pcs_annotator.faces.cli.main import main
from pcs_annotator.models.provider import providers
from pcs_annotator.models.scripted import ScriptedModel
from pcs_annotator.runs.levels import key_of
from pcs_annotator.runs.opened import Run
from pcs_annotator.runs.recorded_votes import RecordedVotes
from pcs_annotator.studies.methods_text import methods_of
from pcs_annotator.verbs.fit import open_book, open_run
from tests.builders import the
from tests.command_line import Pcs
from tests.runs.reviewing import Reviewing
from tests.simulated import read_csv
from tests.stub.behaviour import pick

pytestmark = pytest.mark.system

TOPICS, FRAMES = ("economy", "health"), ("conflict", "human interest", "morality")
CONFIG = """
[ask]
models = ["coder:good@90", "coder:fair@75"]

[relations]
use = ["original", "order"]

[learn]
optimiser = "lr"
text = false
max_error = 0.1

[variables.topic]
instruction = "What is the text about?"
labels = ["economy", "health"]
meanings = { health = "illness and care" }

[variables.frames]
instruction = "Which frames does the text use?"
kind = "many"
labels = ["conflict", "human interest", "morality"]
"""


def truth(row: int) -> tuple[str, list[str]]:
    frames = [frame for place, frame in enumerate(FRAMES) if pick(3, "frame", str(place), str(row)) == 0]
    return TOPICS[pick(2, "topic", str(row))], frames


class CoderProvider:
    """Opens `coder:NAME@PERCENT`, which answers several questions at once, each right on that percentage of texts."""

    def open(self, model: str, environment: object) -> ChatModel:
        percent = int(model.partition("@")[2])

        def answer(request: Request) -> str:
            asked = "\n".join(message.content for message in request.messages)
            row = int(the(re.search(r"Text (\d+)", asked) or re.search(r"text (\d+) says", asked.lower()))[1])

            def right(*what: object) -> bool:
                return pick(100, model, str(row), *map(str, what)) < percent

            topic, frames = truth(row)
            topic = topic if right("topic") else TOPICS[1 - TOPICS.index(topic)]
            named = [frame for frame in FRAMES if (frame in frames) == right(frame)]
            lines = {"topic": f"<topic>{topic}</topic>", "frames": f"<frames>{'; '.join(named) or 'none'}</frames>"}
            if "<frames>" not in asked:
                return f"<label>{topic}</label>"
            return "\n".join(line for name, line in lines.items() if f"<{name}>:" in asked)

        return ScriptedModel(answer, name=f"coder:{model}")


@pytest.fixture(autouse=True)
def coders(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(providers._factories, "coder", CoderProvider)
    monkeypatch.chdir(tmp_path)
    Path("pcs.toml").write_text(CONFIG)


def write(name: str, rows: range, gold: int, frames: Callable[[list[str]], str] = ";".join) -> None:
    lines = ["id,text,party,topic,frames"]
    for row in rows:
        topic, named = truth(row)
        told = f"{topic},{frames(named) or 'none'}" if row - rows.start < gold else ","
        lines.append(f"{row},Text {row} says something.,left,{told}")
    Path(name).write_text("\n".join(lines) + "\n")


def test_variables_share_their_calls_and_have_a_run_and_columns_each(pcs: Pcs) -> None:
    write("data.csv", range(150), gold=100)
    said = pcs.out("run", "data.csv")
    assert "150 rows, 2 variables" in said
    assert "600 calls" in said  # 150 texts, two models, two questions; not four times as many for four parts
    rows = read_csv(Path("runs/data/labels.csv"))
    assert list(rows[0])[:5] == ["id", "text", "party", "topic", "frames"]
    right = sum(row["pcs_topic"] == truth(int(row["id"]))[0] for row in rows)
    assert right > 0.8 * len(rows)
    for frame in FRAMES:
        agreeing = [(frame in row["pcs_frames"].split(";")) == (frame in truth(int(row["id"]))[1]) for row in rows]
        assert sum(agreeing) > 0.8 * len(rows)
        assert all(0 <= float(row[f"pcs_frames={frame}"]) <= 1 for row in rows)
    assert {row["pcs_frames_decision"] for row in rows} <= {"accept", "review"}
    page = Path("runs/data/report.html").read_text()
    assert all(f'<section id="{name}"' in page for name in ("topic", "frames-human-interest"))
    assert re.search(r"frames +whole set +\d", said)
    again = pcs.json("run", "data.csv")
    assert {one["calls"] for one in again["variables"].values()} == {0}
    assert list(again["variables"]) == ["topic", *(f"frames={frame}" for frame in FRAMES)]
    assert "lr" in pcs.out("evaluate", "runs/data/variables/topic", "--methods", "lr")


def test_new_texts_get_all_variables(pcs: Pcs) -> None:
    write("data.csv", range(120), gold=100)
    write("new.csv", range(500, 540), gold=0)
    pcs.out("run", "data.csv", "-q")
    said = pcs.out("label", "new.csv", "--run", "runs/data")
    assert "40 rows" in said
    rows = read_csv(Path("new-labels.csv"))
    assert sum(row["pcs_topic"] == truth(int(row["id"]))[0] for row in rows) > 30
    assert {"pcs_frames", "pcs_frames_confidence", "pcs_frames=morality", "pcs_frames=morality_decision"} <= rows[
        0
    ].keys()
    found = pcs.json("label", "new.csv", "--run", "runs/data", "--replace")
    assert found["variables"]["topic"]["rows"] == 40


def exact(rows: list[dict[str, str]]) -> list[bool]:
    return [row["pcs_frames"] == (";".join(truth(int(row["id"]))[1]) or "none") for row in rows]


def test_whole_sets_have_a_confidence_and_a_promise_of_their_own(pcs: Pcs) -> None:
    Path("pcs.toml").write_text(CONFIG.replace("@75", "@88").replace("max_error = 0.1", "max_error = 0.3"))
    write("data.csv", range(260), gold=200)
    write("new.csv", range(500, 900), gold=0)
    said = pcs.out("run", "data.csv")
    assert "likewise of whole sets of frames" in " ".join(said.split())
    rows = read_csv(Path("runs/data/labels.csv"))
    sure = [float(row["pcs_frames_confidence"]) for row in rows]
    assert sum(sure) / len(rows) == pytest.approx(sum(exact(rows)) / len(rows), abs=0.05)
    least = min(one for one, row in zip(sure, rows, strict=True) if row["pcs_frames_set_decision"] == "accept")
    assert all(
        (one >= least) == (row["pcs_frames_set_decision"] == "accept") for one, row in zip(sure, rows, strict=True)
    )
    assert "whole set" in Path("runs/data/report.html").read_text()
    pcs.out("report", "runs/data")
    assert "whole sets of frames" in Path("runs/data/report.html").read_text()
    for ask in ("needed", "all"):
        found = pcs.json("label", "new.csv", "--run", "runs/data", "--ask", ask, "--replace")
        labelled = read_csv(Path("new-labels.csv"))
        taken = [
            right
            for right, row in zip(exact(labelled), labelled, strict=True)
            if row["pcs_frames_set_decision"] == "accept"
        ]
        assert found["sets"]["frames"]["decisions"]["accept"] == len(taken) > 100
        assert sum(taken) >= 0.7 * len(taken)
    pcs.out("fit", "runs/data/variables/frames/morality", "--optimiser", "uniform")
    for ask in ("needed", "all"):
        found = pcs.json("label", "new.csv", "--run", "runs/data", "--ask", ask, "--replace")
        assert found["sets"]["frames"]["decisions"] == {"review": 400}
        assert "pcs fit of all labels makes this promise again" in found["sets"]["frames"]["certificate"]["why_not"]
    fitted = pcs.json("fit", "runs/data")
    assert fitted["sets"]["frames"]["certificate"]["threshold"] is not None
    Path("runs/data/variables/frames/whole-set.json").unlink()  # as if an earlier version had fitted
    assert open_book(Path("runs/data")).sets["frames"].model.certificate is None


def test_a_plan_shows_the_price_of_one_call_and_of_several(pcs: Pcs) -> None:
    write("data.csv", range(20), gold=10)
    for option, calls in (([], 80), (["--separately"], 160)):
        assert pcs.json("plan", "data.csv", *option)["calls"] == calls


def test_plan_and_methods_say_what_prompts_about_several_variables_showed(pcs: Pcs) -> None:
    write("data.csv", range(40), gold=30)
    examples = '[[variables.topic.examples]]\ntext = "Prices rose."\nlabel = "economy"\n'
    Path("pcs.toml").write_text(f"{CONFIG}\n{examples}", encoding="utf-8")
    assert not pcs.json("plan", "data.csv")["examples"]
    pcs.out("run", "data.csv", "-q")
    methods = methods_of(open_run(Path("runs/data/variables/topic")))
    assert "Examples" not in methods
    assert "this one shared its prompt with 'frames'" in methods


def test_variables_asked_separately_agree_with_one_call(pcs: Pcs) -> None:
    write("data.csv", range(120), gold=100)
    pcs.out("run", "data.csv", "-q")
    pcs.out("run", "data.csv", "-q", "--separately", "-o", "runs/alone")
    joint, alone = (read_csv(Path("runs", name, "labels.csv")) for name in ("data", "alone"))
    assert [row["pcs_topic"] for row in joint] == [row["pcs_topic"] for row in alone]
    assert [row["pcs_frames"] for row in joint] == [row["pcs_frames"] for row in alone]


@pytest.mark.parametrize("written", [";".join, lambda frames: json.dumps(frames).replace('"', "'"), "|".join])
def test_lists_of_gold_labels_are_read(written: Callable[[list[str]], str], pcs: Pcs) -> None:
    lines = ["text\tframes"]
    lines += [f"Text {row}\t{written(truth(row)[1]) or 'none'}" for row in range(60)]
    Path("data.tsv").write_text("\n".join(lines) + "\n")
    found = pcs.json("run", "data.tsv")
    gold = found["variables"]["frames=morality"]["gold_rows"]
    assert gold == 60


def test_columns_of_zeros_and_ones_are_read_and_other_cells_refused(pcs: Pcs) -> None:
    lines = ["text,frames_conflict,frames_human interest,frames_morality"]
    for row in range(60):
        lines.append(f"Text {row}," + ",".join("WAHR" if frame in truth(row)[1] else "0" for frame in FRAMES))
    Path("data.csv").write_text("\n".join(lines) + "\n")
    found = pcs.json("run", "data.csv")
    assert found["variables"]["frames=conflict"]["gold_rows"] == 60
    Path("data.csv").write_text("text,frames_conflict\nText 1,1\n")
    assert "add frames_human interest" in pcs.refused("run", "data.csv")
    Path("data.csv").write_text("\n".join([lines[0], "Text 1,1,maybe,0"]) + "\n")
    assert "row 2, column frames_human interest: 'maybe' says neither yes nor no" in pcs.refused(
        "run", "data.csv", "-o", "other"
    )


@pytest.mark.parametrize(
    ("data", "config", "message"),
    [
        ("text,frames\nText 1,conflict;love\n", CONFIG, "row 2, column frames: 'love' is not one of the labels"),
        ("text,frames\nText 1,conflct\n", CONFIG, "'morality'; did you mean 'conflict'?"),
        ("text,frames\nText 1,'conflict, morality'\n".replace("'", '"'), CONFIG, "such as 'conflict; morality'"),
        ("text,frames\nText 1,[conflict\n", CONFIG, "is not a list of labels: write them as a;b"),
        ("text,gold\nText 1,economy\n", CONFIG, "name it like its variable"),
        ("text\nText 1\n", CONFIG.replace("variables.topic", "variables.label"), "is not a name for a variable"),
        ("text\nText 1\n", CONFIG + "\n[variables.tone]\n", "variables.tone needs at least two labels"),
        ("text\nText 1\n", CONFIG.replace("human interest", "conflict!"), "has the same letters and digits"),
        ("text\nText 1\n", CONFIG.replace('kind = "many"', 'kind = "few"'), "frames.kind is 'few'"),
    ],
)
def test_codebooks_and_gold_that_cannot_be_used_are_refused(data: str, config: str, message: str, pcs: Pcs) -> None:
    Path("pcs.toml").write_text(config)
    Path("data.csv").write_text(data)
    assert message in pcs.refused("run", "data.csv")


def test_commands_for_one_run_name_the_variables(pcs: Pcs) -> None:
    write("data.csv", range(40), gold=30)
    pcs.out("run", "data.csv", "-q")
    assert "runs/data has several variables: name one of them, runs/data/variables/topic," in pcs.refused(
        "paper", "runs/data"
    )
    assert "has several variables, but no runs/data/tone: name one of them, runs/data/variables/topic," in pcs.refused(
        "report", "runs/data/tone"
    )
    assert "such as pcs fit runs/data/variables/topic --gold to_label.csv" in pcs.refused(
        "fit", "runs/data", "--gold", "to_label.csv"
    )


def test_a_fit_writes_all_labels_anew_with_what_people_said(pcs: Pcs) -> None:
    write("data.csv", range(120), gold=100)
    pcs.out("run", "data.csv", "-q")
    before = read_csv(Path("runs/data/labels.csv"))
    assert [row["pcs_topic_final"] for row in before[:100]] == [row["topic"] for row in before[:100]]
    items = [Item(id=row["id"], text=row["text"]) for row in before]
    frame = [row["id"] for row in before if not row["topic"]]
    other = {row["id"]: TOPICS[1 - TOPICS.index(row["pcs_topic"])] for row in before}
    Reviewing(Path("runs/data/variables/topic"), items, frame).judge("110", other["110"])
    Reviewing(Path("runs/data/variables/frames/morality"), items, frame).judge("110", "yes")
    fitted = pcs.json("fit", "runs/data", "--max-error", "0.2")
    assert json.loads(Path("runs/data/variables/topic/model.json").read_text())["fit"] == {"max_error": 0.2}
    assert fitted["variables"]["frames=morality"]["gold_rows"] == 101
    after = {row["id"]: row for row in read_csv(Path("runs/data/labels.csv"))}
    assert list(after["0"])[:5] == ["id", "text", "party", "topic", "frames"]
    assert after["110"]["pcs_topic_final"] == other["110"]
    assert "morality" in after["110"]["pcs_frames_final"]
    assert after["5"]["pcs_topic_final"] == after["5"]["topic"]


def test_labels_are_learned_together_by_a_run_a_fit_and_a_fit_of_one(pcs: Pcs) -> None:
    Path("pcs.toml").write_text(CONFIG.replace('optimiser = "lr"\ntext = false', "text = true"))
    write("data.csv", range(150), gold=100)
    pcs.out("run", "data.csv", "-q")
    folder, levels = Path("runs/data/variables/frames/conflict"), Path("runs/data/levels.json")
    before = json.loads((folder / "model.json").read_text())
    tested = levels.read_text()
    for target in (Path("runs/data"), folder):
        pcs.out("fit", str(target))
        assert json.loads((folder / "model.json").read_text())["fit_id"] == before["fit_id"]
    assert levels.read_text() == tested
    recorded = Run.open(folder)
    votes = recorded.to_learn(recorded.settings)
    assert [len(rows) for rows, _ in votes.siblings] == [100, 100]
    assert all(rows.text_log_probs is not None for rows, _ in votes.siblings)
    assert not recorded.to_learn(replace(recorded.settings, optimiser="lr")).siblings
    (rows, codes), other = votes.siblings
    assert [len(each) for each, _ in RecordedVotes.read(folder).votes.siblings] == [100, 100]
    changed = replace(votes, siblings=[(rows, np.roll(codes, 1)), other])
    keys = {key_of(each, recorded.gold.labels, recorded.settings) for each in (votes, changed, recorded.votes)}
    assert len(keys) == 3  # other gold labels, even of another label, are another test


def test_one_page_leads_to_the_reports_and_methods_are_compared_per_variable(
    pcs: Pcs, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = ["text,topic", *(f"Text {row},{truth(row)[0]}" for row in range(60))]
    Path("data.csv").write_text("\n".join(lines) + "\n")
    pcs.out("run", "data.csv", "-q")
    assert "wrote all.html" in pcs.out("report", "runs/data", "-o", "all.html")
    page = Path("all.html").read_text()
    assert '<a href="#frames-human-interest">frames=human interest</a>' in page
    Path("mine.html").write_text("<p>mine</p>")
    assert main(["report", "runs/data", "-o", "mine.html"]) == 2
    found = pcs.json("evaluate", "runs/data", "--methods", "lr,majority", "-o", "out")
    assert list(found["variables"]) == ["topic"]
    book = json.loads(Path("runs/data/book.json").read_text())
    assert {part["data"] for part in book["variables"].values()} == {"data.csv"}
    assert found["without_gold"] == [f"frames={frame}" for frame in FRAMES]
    assert Path("out/topic").is_dir()
    capsys.readouterr()
    said = pcs.out("evaluate", "runs/data", "--methods", "lr,majority")
    assert "too little gold" in " ".join(said.split())
    Path("data.csv").write_text("text\nText 1\nText 2\n")
    pcs.out("run", "data.csv", "-q", "-o", "runs/bare")
    refused = pcs.refused("evaluate", "runs/bare")
    assert "methods cannot be compared on any variable of runs/bare: " in refused
    assert "topic has no gold labels" in refused


def test_half_a_codebook_is_refused(pcs: Pcs) -> None:
    write("data.csv", range(40), gold=30)
    pcs.out("run", "data.csv", "-q")
    Path("runs/data/variables/frames/morality/votes.parquet").unlink()
    for command in ("fit", "report", "evaluate"):
        assert "half a run: runs/data/variables/frames/morality has no answers; repeat pcs run" in pcs.refused(
            command, "runs/data"
        )
    pcs.out("run", "data.csv", "-q")
    Path("runs/data/items.parquet").unlink()
    assert "runs/data has no items.parquet: repeat pcs run, which writes it" in pcs.refused("fit", "runs/data")


def test_a_sheet_has_the_variables_and_python_runs_them() -> None:
    write("data.csv", range(60), gold=50)
    Path("pcs.toml").write_text(CONFIG.partition("[variables.topic]")[0])
    sheet = ["variable,kind,label,definition", *(f"topic,,{topic}," for topic in TOPICS)]
    Path("book.csv").write_text("\n".join([*sheet, *(f"frames,many,{frame}," for frame in FRAMES)]) + "\n")
    result: object = run("data.csv", "out", config="pcs.toml", codebook="book.csv")
    assert isinstance(result, BookResult)
    assert list(result.results) == ["topic", *(f"frames={frame}" for frame in FRAMES)]
    assert result.results["topic"].counts.rows == 60
    Path("pcs.toml").write_text(CONFIG)
    with pytest.raises(ConfigError, match=r"topic is in pcs\.toml too"):
        run("data.csv", "other", config="pcs.toml", codebook="book.csv")


def test_labels_of_all_variables_follow_the_policy_for_outputs(pcs: Pcs, monkeypatch: pytest.MonkeyPatch) -> None:
    write("data.csv", range(40), gold=30)
    Path("new.csv").write_text("id;text;note\n1;Text 500 says something.;=1+1\n2;Text 501 says something.;=2\n")
    pcs.out("run", "data.csv", "-q")
    label = ["label", "new.csv", "--run", "runs/data", "-q"]
    Path("mine.csv").write_text("mine")
    assert "mine.csv exists" in pcs.refused(*label, "-o", "mine.csv")
    assert Path("mine.csv").read_text() == "mine"
    pcs.out(*label, "-o", "mine.csv", "--replace", "--spreadsheet-safe")
    assert [kept.read_text() for kept in Path().glob("mine-20*.csv")] == ["mine"]
    assert Path("mine.csv").read_text().splitlines()[1].startswith("1;Text 500 says something.;'=1+1;")
    with Path("new.csv").open() as piped:
        monkeypatch.setattr("sys.stdin", piped)
        pcs.out("label", "-", "--run", "runs/data", "-o", "rows", "--format", "jsonl", "-q")
    rows = [json.loads(line) for line in Path("rows").read_text().splitlines()]
    assert [row["pcs_topic"] for row in rows] == [truth(row)[0] if row else None for row in (500, 501)]
    assert all(row["pcs_frames"] for row in rows)


@pytest.mark.parametrize("several", [True, False])
def test_a_run_makes_at_most_the_calls_of_the_plan(
    several: bool, pcs: Pcs, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    config = CONFIG.replace('use = ["original", "order"]', "").replace(
        '["economy", "health"]', '["economy", "health", "art"]'
    )
    Path("pcs.toml").write_text(config)
    if not several:  # such a model is asked about every part in a call of its own
        monkeypatch.setattr("pcs_annotator.asking.annotators.annotator.gets_no_examples", lambda _: True)
    write("data.csv", range(12), gold=0)
    planned = pcs.json("plan", "data.csv")
    main(["run", "data.csv", "--json"])  # this model answers only one of the questions if they are asked alone
    made = json.loads(capsys.readouterr().out)
    assert planned["calls"] == sum(one["calls"] for one in made["variables"].values())
