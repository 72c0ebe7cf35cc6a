"""Whole runs with a promise for each group of texts, such as their language or their source."""

import asyncio
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyarrow import csv

import pcs_annotator as pcs
from pcs_annotator.base.errors import ConfigError, TableError
from pcs_annotator.core.chat import ChatModel, Request
from pcs_annotator.core.outcome import UNLIKE_GOLD
from pcs_annotator.core.votes import NO_GROUP
from pcs_annotator.faces.cli.main import main
from pcs_annotator.models.provider import providers
from pcs_annotator.models.scripted import ScriptedModel
from pcs_annotator.runs import gold_labels as gold_module
from pcs_annotator.runs import run_table
from pcs_annotator.runs.columns import groups_of
from pcs_annotator.runs.opened import Run
from pcs_annotator.runs.service import Service
from pcs_annotator.runs.settings import Saving
from pcs_annotator.runs.stream import Stream
from pcs_annotator.runs.watch import status_lines
from pcs_annotator.showing import answer
from pcs_annotator.showing.report.page import render
from pcs_annotator.tables.files import read_json
from pcs_annotator.verbs.fit import fit_run, open_run
from tests.builders import the
from tests.faces.serve.running import running
from tests.runs.test_stream import judge_stream
from tests.simulated import copy_run, few_resamples, read_csv, write_csv
from tests.stub.behaviour import pick

QUICK: Any = {"optimiser": "lr", "relations": ["original", "frame"], "text": False, "max_error": 0.1}
RIGHT = {"news": 95, "forum": 93, "chat": 60}


MODELS = [f"sourced:{number}" for number in range(3)]


class SourcedProvider:
    """Opens models that are right as often as the source of a text allows."""

    def open(self, model: str, environment: Mapping[str, str]) -> ChatModel:
        def answer(request: Request) -> str:
            asked = request.messages[-1].content
            source, truth = re.findall(r"Case \d+ from (\w+) looks (good|bad)", asked)[-1]
            right = pick(100, asked, model) < RIGHT[source]
            label = truth if right else {"good": "bad", "bad": "good"}[truth]
            return label if request.constraint is not None else f"<label>{label}</label>"

        return ScriptedModel(answer, name=f"sourced:{model}")


@pytest.fixture(scope="module", autouse=True)
def sourced() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(providers._factories, "sourced", SourcedProvider)
        yield


def case(row: int, source: str) -> str:
    return f"Case {row} from {source} looks {'good' if pick(2, 'truth', str(row)) else 'bad'}."


def rows_of(rows: range, gold: int = 0) -> list[dict[str, str]]:
    found = []
    for row in rows:
        source = [*RIGHT][pick(3, "source", str(row))]
        text = case(row, source)
        truth = "good" if "good" in text else "bad"
        found.append({"id": f"t{row}", "text": text, "source": source, "gold": truth if row < gold else ""})
    return found


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("groups")
    rows = rows_of(range(420), gold=360)
    rows[0]["source"] = ""
    data = write_csv(folder / "data.csv", rows)
    how: Any = {"config": few_resamples(folder), "by": "source", **QUICK}
    pcs.run(data, folder / "run", models=MODELS, labels=["good", "bad"], **how)
    return folder / "run"


@pytest.fixture
def run(made: Path, tmp_path: Path) -> Path:
    return copy_run(made, tmp_path / "run")


def decisions(rows: list[dict[str, str]]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for row in rows:
        found.setdefault(row["source"], set()).add(row["pcs_decision"])
    return found


def test_a_group_whose_promise_fails_is_for_review_while_others_are_accepted(made: Path) -> None:
    rows = read_csv(made / "labels.csv")
    decided = decisions(rows)
    assert "accept" in decided["news"]
    assert "accept" in decided["forum"]
    assert (decided["chat"], decided[""]) == ({"review"}, {"review"})
    reasons = {row["source"]: row["pcs_reason"].partition(":")[0] for row in rows if row["source"] in ("chat", "")}
    assert re.fullmatch(r"no promise for chat \(\d+ gold rows\)", reasons["chat"])
    assert reasons[""] == "no promise for (none) (1 gold row)"


def test_report_and_answer_name_the_groups_without_a_promise(made: Path) -> None:
    result = open_run(made)
    ((_, said),) = answer.promise(result.learned.model)
    assert "for each source separately" in str(said)
    assert re.search(r"nothing is promised for source .*chat \(\d+ gold rows\)", str(said))
    page = render(result)
    assert "By source" in page
    assert "All intervals together hold with 95 %." in page
    assert [one.group for one in the(result.learned.by_group).groups] == [NO_GROUP, "chat", "forum", "news"]


def test_another_fit_may_promise_for_all_together_again(run: Path) -> None:
    found = fit_run(run, {"by": ""}).learned
    assert not the(found.model.certificate).promise.by
    assert found.by_group is None
    assert Run.open(run).by == ""
    again = fit_run(run, {"by": "source"}, say=lambda line: None).learned
    assert the(again.model.certificate).groups["news"] > 100


def test_new_texts_need_the_column_and_unseen_groups_are_for_review(run: Path, tmp_path: Path) -> None:
    rows = [
        {**row, "source": "blog" if place < 5 else row["source"]} for place, row in enumerate(rows_of(range(900, 960)))
    ]
    data = write_csv(tmp_path / "new.csv", [{key: row[key] for key in ("id", "text", "source")} for row in rows])
    pcs.label(data, run, tmp_path / "out.csv")
    written = read_csv(tmp_path / "out.csv")
    decided = decisions(written)
    assert "accept" in decided["news"]
    assert (decided["blog"], decided["chat"]) == ({"review"}, {"review"})
    assert written[0]["pcs_reason"].startswith("no promise for blog (0 gold rows): ")
    bare = write_csv(tmp_path / "bare.csv", [{"id": row["id"], "text": row["text"]} for row in rows])
    with pytest.raises(TableError, match=r"bare.csv has no column 'source' \(--by\): add it"):
        pcs.label(bare, run, tmp_path / "other.csv")


def test_a_loaded_run_labels_tables_by_group_and_single_texts_never(run: Path) -> None:
    rows = rows_of(range(900, 940))
    with pcs.load_run(run) as loaded:
        table = loaded.label_table({"text": [row["text"] for row in rows], "source": [row["source"] for row in rows]})
        decided = decisions(table.to_pylist())
        assert "accept" in decided["news"]
        assert decided["chat"] == {"review"}
        assert loaded.label(rows[0]["text"]).reason.startswith("no promise for (none)")
        with pytest.raises(TableError, match="the table has no column 'source'"):
            loaded.label_table([rows[0]["text"]])


def test_a_service_takes_groups_and_keeps_them_for_the_next_fit(run: Path) -> None:
    texts = [case(row, "news") for row in range(2000, 2012)]

    async def asked() -> list[Any]:
        async with running(run) as one:
            sent: list[dict[str, Any]] = [
                {"groups": ["news"] * 12},
                {"group": "chat"},
                {},
                {"groups": ["a"]},
                {"group": 1},
            ]
            return [await one.ask("POST", "/v1/classify", json={"input": texts, **more}) for more in sent]

    by_list, by_one, unknown, *wrong = asyncio.run(asked())
    assert {one["decision"] for one in by_list[1]["data"]} >= {"accept"}
    assert {one["decision"] for one in by_one[1]["data"]} == {"review"}
    assert unknown[1]["data"][0]["reason"].startswith("no promise for (none)")
    assert [status for status, _ in wrong] == [400, 400]
    with Stream(run / "stream.db") as stream:
        kept = stream.read(Run.open(run).votes)
    assert kept is not None
    assert {*(kept.votes.groups or ())} <= {"news", "chat"}
    with_stream = Run.open(run).with_stream().votes
    assert (with_stream.groups or ())[-1] in ("news", "chat")


def test_figures_of_any_column_are_shown(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", str(made), "--by", "source"]) == 0
    assert "By source, on gold rows" in capsys.readouterr().out
    assert main(["evaluate", str(made), "--by", "language", "--json"]) == 0
    groups = json.loads(capsys.readouterr().out)["groups"]
    assert {one["group"] for one in groups} <= {"en", NO_GROUP}
    assert sum(one["gold_rows"] for one in groups) == 360
    assert main(["evaluate", str(made), "--by", "nothing"]) == 2
    assert "no column 'nothing' (--by)" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"by": "shop"}, r"data.csv has no column 'shop' \(--by\)"),
        ({"by": "id"}, "column 'id' has 60 groups, and at most 50 can have a promise each"),
        ({"by": "source", "per_label": True}, "by = 'source' cannot be used with per_label"),
    ],
)
def test_groups_that_cannot_be_used_are_refused_before_anything_is_asked(
    settings: Any, why: str, tmp_path: Path
) -> None:
    data = write_csv(tmp_path / "data.csv", rows_of(range(60), gold=30))

    def unasked(question: str) -> str:
        raise AssertionError(question)

    with pytest.raises((ConfigError, TableError), match=why):
        pcs.run(data, tmp_path / "run", models=[unasked], labels=["good", "bad"], **{**QUICK, **settings})


def test_languages_are_detected_where_no_column_names_them() -> None:
    import pyarrow as pa

    texts = ["Das Essen war leider schon kalt.", "The food was cold, sadly enough.", "42"]
    assert groups_of("language", pa.table({"text": texts}), texts) == ["de", "en", NO_GROUP]
    assert groups_of("language", pa.table({"language": ["x", " ", None]}), texts) == ["x", NO_GROUP, NO_GROUP]
    assert groups_of("", pa.table({"text": texts}), texts) is None


def test_a_table_of_votes_is_fitted_by_group(made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = Run.open(made)
    votes = run.votes.to_table().append_column("gold", [[*run.gold.labels]])
    path, folder = tmp_path / "votes.csv", tmp_path / "run"
    csv.write_csv(votes.append_column("source", [[*(run.votes.groups or ())]]), path)
    assert main(["fit", str(path), "--by", "source", "--max-error", ".1", "-o", str(folder)]) == 0
    assert read_json(folder / "variables/label/model.json")["certificate"]["groups"]["news"] > 100
    csv.write_csv(votes, path)
    assert main(["fit", str(path), "--by", "source", "-o", str(tmp_path / "other")]) == 2
    assert "has no column 'source' (--by)" in capsys.readouterr().err


@pytest.mark.system
def test_rows_of_a_large_table_are_decided_by_group(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, limit in (("IN_MEMORY_ROWS", 100), ("SAMPLE_ROWS", 400)):
        monkeypatch.setattr(run_table, name, limit)
    data = write_csv(tmp_path / "data.csv", rows_of(range(500), gold=360))
    folder = tmp_path / "run"
    pcs.run(data, folder, models=MODELS, labels=["good", "bad"], by="source", **QUICK)
    first = decisions(read_csv(folder / "labels.csv"))
    assert "accept" in first["news"]
    assert first["chat"] == {"review"}
    fit_run(folder)
    assert decisions(read_csv(folder / "labels.csv")) == first
    pcs.label(data, folder, tmp_path / "out.csv")
    new = decisions(read_csv(tmp_path / "out.csv"))
    assert "accept" in new["news"]
    assert new["chat"] == {"review"}


def shifted(rows: range) -> list[dict[str, str]]:
    """Texts of two sources; all of the forum are good, so that only these differ from those of the run."""
    news = [{"id": f"n{row}", "text": case(row, "news"), "source": "news"} for row in rows]
    forum = [f"Case {row} from forum looks good." for row in rows]
    return [*news, *({"id": f"f{row}", "text": text, "source": "forum"} for row, text in zip(rows, forum, strict=True))]


def test_only_the_group_that_differs_is_for_review(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = write_csv(tmp_path / "new.csv", shifted(range(5000, 5060)))
    assert main(["label", str(data), "--run", str(run), "-o", str(tmp_path / "out.csv")]) == 4
    shown = capsys.readouterr()
    assert "so nothing of forum is accepted" in " ".join((shown.out + shown.err).split())
    written = read_csv(tmp_path / "out.csv")
    decided = decisions(written)
    assert "accept" in decided["news"]
    assert decided["forum"] == {"review"}
    assert all(row["pcs_reason"].startswith(UNLIKE_GOLD) for row in written if row["source"] == "forum")
    assert main(["status", str(run)]) == 0
    assert "forum: " in capsys.readouterr().out
    anyhow = ["label", str(data), "--run", str(run), "-o", str(tmp_path / "any.csv"), "--on-drift", "accept", "--json"]
    assert main(anyhow) == 0
    found = json.loads(capsys.readouterr().out)["drift"]
    assert {name: one["found"] for name, one in found["groups"].items()} == {"forum": True, "news": False}
    assert "accept" in decisions(read_csv(tmp_path / "any.csv"))["forum"]
    # a model of an earlier version has no profiles of groups, and then all texts are compared
    model = read_json(run / "variables/label/model.json")
    del model["profiles"]
    (run / "variables/label/model.json").write_text(json.dumps(model))
    assert main(["label", str(data), "--run", str(run), "-o", str(tmp_path / "old.csv"), "--json", "--ask", "all"]) == 4
    assert json.loads(capsys.readouterr().out)["drift"]["groups"] is None
    assert decisions(read_csv(tmp_path / "old.csv")) == {"news": {"review"}, "forum": {"review"}}


async def sent(service: Service, rows: list[dict[str, str]]) -> dict[str, set[str]]:
    """Send texts one batch after the other; return the decisions, or the kind of error, by group."""
    found: dict[str, set[str]] = {}
    for start in range(0, len(rows), 40):
        some = rows[start : start + 40]
        for row, one in zip(
            some, await asyncio.gather(*(service.classify(x["text"], x["source"]) for x in some)), strict=True
        ):
            decided = one.error.kind if one.error else str(one.outcome and one.outcome.decision)
            found.setdefault(row["source"], set()).add(decided)
    return found


@pytest.mark.system
def test_a_service_sends_one_group_to_review_until_a_fit_has_learned_from_its_later_texts(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gold_module, "ENOUGH_AFTER_ALARM", 30)

    async def served(rows: range, on_drift: Any = "review", first: range = range(0)) -> tuple[Any, ...]:
        async with running(run, saving=Saving(on_drift=on_drift)) as one:
            service = one.service
            await sent(service, shifted(first))
            found = await sent(service, shifted(rows))
            return found, service.note, service.trouble, (await one.ask("GET", "/metrics"))[1], one.app.watch.figures()

    found, note, trouble, metrics, figures = asyncio.run(served(range(6200, 6240), first=range(6000, 6200)))
    assert "accept" in found["news"]
    assert found["forum"] == {"review"}
    assert "so nothing of forum is accepted" in note
    assert note in "\n".join(status_lines(figures))
    assert 'pcs_group_drift{group="forum"} 1' in metrics
    assert 'pcs_group_drift{group="news"} 0' in metrics
    # it is remembered, and with --on-drift fail the others still get labels
    found, _, trouble, _, _ = asyncio.run(served(range(6240, 6250), "fail"))
    assert found["forum"] == {"group_drift"}
    assert "accept" in found["news"]
    assert trouble == ""
    # every text of the group was drawn since the alarm, so verdicts on them may carry a new promise
    judged = judge_stream(run, 400, lambda shown, _: "good" if "good" in shown else "bad")
    assert judged > 40
    fit_run(run, say=lambda line: None)
    model = read_json(run / "variables/label/model.json")
    assert [*model["since"]] == ["forum"]
    assert Run.open(run).model_in_force().certificate
    taught = Run.open(run).taught
    groups, at_random = np.array(taught.votes.groups or ())[:420], taught.gold.random_sample[:420]
    assert not at_random[groups == "forum"].any()
    assert at_random[groups == "news"].any()
    found, note, *_ = asyncio.run(served(range(6300, 6310)))
    assert note == ""


def test_errors_among_accepted_texts_withdraw_the_promise_of_their_group_alone(run: Path) -> None:
    async def served(rows: range) -> tuple[Any, ...]:
        async with running(run, saving=Saving(audit=1.0, on_drift="accept")) as one:
            found = await sent(one.service, shifted(rows))
            await asyncio.to_thread(one.service._read_verdicts)
            return found, one.service.note, (await one.ask("GET", "/metrics"))[1]

    asyncio.run(served(range(7000, 7060)))
    judge_stream(run, 400, lambda shown, _: "bad" if ("forum" in shown) == ("good" in shown) else "good")
    found, note, metrics = asyncio.run(served(range(7100, 7120)))
    assert "accept" in found["news"]
    assert found["forum"] == {"review"}
    assert "accepted texts of forum" in note
    assert 'pcs_group_audit_revoked{group="forum"} 1' in metrics
    assert 'pcs_group_audit_revoked{group="news"} 0' in metrics
    assert "\npcs_audit_revoked 0" in metrics
    reason = next(
        iter(Run.open(run).model_in_force().judge(replace(Run.open(run).votes.take(np.arange(1)), groups=["forum"])))
    ).reason
    assert reason.startswith("the promise for forum is withdrawn")
