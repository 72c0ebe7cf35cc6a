import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow.parquet import read_table, write_table

from pcs_annotator import PcsWarning, Votes, relation
from pcs_annotator.asking.engine.progress import Tally
from pcs_annotator.base.errors import Interrupted, TableError
from pcs_annotator.judging.evaluate.scored import Splitting
from pcs_annotator.relations.base import relations
from pcs_annotator.runs import ask, folder_votes, ledgers
from pcs_annotator.runs.executors import ask_job
from pcs_annotator.runs.opened import Run
from pcs_annotator.runs.paths import RunFolder
from pcs_annotator.runs.run_request import RunRequest
from pcs_annotator.runs.settings import AskSettings, Config, RelationSettings, TaskSettings
from pcs_annotator.tables.files import read_json
from pcs_annotator.verbs.evaluate import EvaluateRequest, evaluate_source
from pcs_annotator.verbs.fit import fit_run, open_run
from tests.simulated import QUICK, label, run, simulated_models, write_csv

pytestmark = pytest.mark.system  # whole runs, one after the other

ROWS = 40


@pytest.fixture(autouse=True)
def models() -> Iterator[None]:
    with simulated_models():
        yield


@pytest.fixture
def request_(tmp_path: Path) -> RunRequest:
    rows = [
        {
            "id": f"r{row}",
            "text": f"Number {row} looks {'good' if row % 3 else 'bad'}.",
            "gold": ["bad", "good", "good"][row % 3] if row < 24 else "",
        }
        for row in range(ROWS)
    ]
    config = Config(
        task=TaskSettings(labels=("good", "bad")),
        ask=AskSettings(models=("simulated:a@85", "simulated:b@70")),
        relations=RelationSettings(use=("original", "frame")),
        learn=replace(QUICK, max_error=None),  # no test here is about promises, and foretelling one takes time
    )
    return RunRequest(data=write_csv(tmp_path / "data.csv", rows), folder=tmp_path / "run", config=config)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Tally]:
    """A list that gets the tally of every time that questions go through the ledger."""
    found: list[Tally] = []
    original = ask_job

    async def noting(job: object, items: object, ledger: object, settings: ask.CollectSettings, *more: object) -> Votes:
        found.append(settings.tally)
        return await original(job, items, ledger, settings, *more)  # type: ignore[arg-type]

    monkeypatch.setattr(folder_votes, "ask_job", noting)
    return found


def same(one: Votes, other: Votes) -> bool:
    return one.ids == other.ids and bool((one.codes == other.codes).all())


def with_config(request: RunRequest, **sections: object) -> RunRequest:
    return replace(request, config=replace(request.config, **sections))  # type: ignore[arg-type]


def test_a_finished_run_is_read_back_instead_of_asked_again(request_: RunRequest, asked: list[Tally]) -> None:
    first = run(request_)
    labels = first.folder.labels.read_bytes()
    second = run(request_)
    assert len(asked) == 1
    assert same(second.votes, first.votes)
    assert second.folder.labels.read_bytes() == labels
    assert (second.tally.calls, second.tally.from_ledger) == (0, first.tally.calls + first.tally.from_ledger)
    assert (second.tally.not_applicable, second.tally.questions) == (first.tally.not_applicable, first.tally.questions)


def test_damaged_votes_are_made_again_from_the_ledger_and_that_is_said(
    request_: RunRequest, asked: list[Tally]
) -> None:
    first = run(request_)
    path = RunFolder(request_.folder).votes
    table = read_table(path)
    write_table(table.set_column(4, "label", pa.array(["ugly"] * len(table))), path)
    with pytest.warns(PcsWarning, match="'ugly' is not one of the labels.*; votes are taken from the ledger instead"):
        again = run(request_)
    assert same(first.votes, again.votes)
    assert asked[-1].calls == 0


def test_a_ledger_whose_spending_cannot_be_taken_over_is_named(request_: RunRequest) -> None:
    run(request_)
    RunFolder(request_.folder).ledger.write_bytes(b"this is no database" * 100)
    with pytest.warns(PcsWarning, match=r"what was spent before does not count for budgets: .*ledger-.*db.*damaged"):
        ledgers.set_ledger_aside(RunFolder(request_.folder).ledger)


def test_what_was_deleted_from_the_ledger_is_asked_again(request_: RunRequest, asked: list[Tally]) -> None:
    folder = run(request_).folder
    assert ledgers.prune_ledger(folder.ledger, model="simulated:b@70", before=None) == 2 * ROWS
    assert run(request_).tally.calls == 2 * ROWS


def test_a_users_function_may_have_changed(
    request_: RunRequest, asked: list[Tally], monkeypatch: pytest.MonkeyPatch
) -> None:
    for ending in (" Indeed.", " Surely."):
        relation("ended")(lambda text, ending=ending: text + ending)
        run(with_config(request_, relations=RelationSettings(use=("original", "ended"))))
    monkeypatch.delitem(relations._factories, "ended")
    assert [tally.calls for tally in asked] == [4 * ROWS, 2 * ROWS]


def test_unanswered_questions_are_asked_again(request_: RunRequest, asked: list[Tally]) -> None:
    prices = dict.fromkeys(request_.config.ask.models, (1e6, 1e6))
    budget = replace(request_.config.ask, budget_usd=5_000.0, prices=prices)
    assert run(with_config(request_, ask=budget)).tally.failed
    assert run(request_).tally.calls
    assert len(asked) == 2


def stop_after(request: RunRequest, share: float) -> Path:
    """Leave a run folder as a run that is killed leaves it: a part of the answers, and nothing learned."""
    run(request)
    folder = RunFolder(request.folder)
    for path in (folder.votes, folder.variants, folder.model, folder.evaluation, folder.labels, folder.report):
        path.unlink()
    with sqlite3.connect(folder.ledger) as ledger:
        keys = ledger.execute("SELECT key FROM calls ORDER BY key").fetchall()
        ledger.executemany("DELETE FROM calls WHERE key = ?", keys[round(share * len(keys)) :])
    ledger.close()
    return folder.path


def test_after_a_stop_fit_report_and_evaluate_work_on_what_is_there(request_: RunRequest) -> None:
    path = stop_after(request_, 0.5)
    with pytest.warns(PcsWarning, match=r"not finished: 80 votes are there, about 50\.0% of all; pcs run"):
        fitted = fit_run(path)
    assert fitted.folder.labels.exists()
    assert fitted.folder.report.exists()
    assert sum(outcome.label is not None for outcome in fitted.outcomes) > ROWS / 2
    with pytest.warns(PcsWarning, match="not finished"):
        assert same(open_run(path).votes, fitted.votes)
    splitting = Splitting(folds=2, repeats=1, resamples=20)
    with pytest.warns(PcsWarning, match="not finished"):
        found = evaluate_source(EvaluateRequest(source=path, methods=["lr", "uniform"], splitting=splitting))
    assert same(found.votes, fitted.votes)
    assert run(request_).tally.calls == 80
    assert same(open_run(path).votes, run(request_).votes)


def test_answers_that_came_after_the_last_fit_are_found(request_: RunRequest) -> None:
    path = stop_after(request_, 0.5)
    kept = path.with_name("all.db")
    with pytest.warns(PcsWarning):
        fit_run(path)
    complete = replace(request_, folder=path.with_name("other"))
    run(complete)
    RunFolder(complete.folder).ledger.rename(kept)
    ledgers.import_ledger(RunFolder(path).ledger, kept)
    assert fit_run(path).unlabelled == 0


def test_without_any_answer_it_says_what_to_do(request_: RunRequest) -> None:
    path = stop_after(request_, 0.0)
    with pytest.raises(TableError, match="no answers yet: pcs run"):
        fit_run(path)
    RunFolder(path).ledger.unlink()
    with pytest.raises(TableError, match="no answers yet: pcs run"):
        fit_run(path)


def test_a_changed_run_that_was_stopped_does_not_get_the_old_votes(
    request_: RunRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(request_)

    def stop(*given: object) -> None:
        raise Interrupted("stopped")

    with monkeypatch.context() as patch:
        patch.setattr("pcs_annotator.runs.folder_votes.vote_files.write_votes", stop)
        with pytest.raises(Interrupted):
            run(with_config(request_, relations=RelationSettings(use=("original", "case"))))
    with pytest.warns(PcsWarning, match="learned again for this command alone"):
        assert open_run(request_.folder).votes.relations == ("original", "case")


@pytest.mark.filterwarnings("ignore::pcs_annotator.base.errors.PcsWarning")
def test_reading_a_damaged_model_changes_nothing_and_learning_again_gives_the_same(request_: RunRequest) -> None:
    run(request_)
    folder = RunFolder(request_.folder)
    model = read_json(folder.model)
    folder.model.write_text("{", encoding="utf-8")
    with pytest.raises(TableError, match="pcs fit makes it again"):
        label(request_, None)
    assert folder.model.read_text(encoding="utf-8") == "{"
    assert not [*folder.own_folder.glob("model-*.json")]
    fit_run(folder.path)
    assert read_json(folder.model) == model


def test_an_old_model_that_was_put_back_is_not_mixed_with_the_figures_of_another_fit(request_: RunRequest) -> None:
    run(request_)
    folder = RunFolder(request_.folder)
    first = folder.model.read_bytes()
    fit_run(folder.path, {"optimiser": "uniform"})
    folder.model.write_bytes(first)
    with pytest.raises(TableError, match=r"evaluation\.json and model\.json are of different fits: pcs fit"):
        Run.open(folder.path).figures()
    with pytest.warns(PcsWarning, match=r"of different fits: pcs fit.*; learned again for this command alone"):
        opened = open_run(folder.path)  # with the settings of the model that was put back
    assert opened.model.weights.diagnostics.optimiser == opened.learned.figures[0].method == QUICK.optimiser
    assert folder.model.read_bytes() == first


@pytest.mark.parametrize("content", ["", '{"weights": [1], "learn": {"folds": "x"}}'])
def test_a_damaged_model_is_learned_again_by_fit_and_run(content: str, request_: RunRequest) -> None:
    run(request_)
    folder = RunFolder(request_.folder)
    labels = folder.labels.read_bytes()
    commands: list[Callable[[], object]] = [partial(fit_run, folder.path), partial(run, request_)]
    for again in commands:
        folder.model.write_text(content, encoding="utf-8")
        with pytest.warns(PcsWarning, match=r"model\.json .*the settings of the run are used"):
            again()
        assert content in [kept.read_text(encoding="utf-8") for kept in folder.own_folder.glob("model-*.json")]
        assert read_json(folder.model)["learn"]["folds"] == QUICK.folds
        assert folder.labels.read_bytes() == labels
