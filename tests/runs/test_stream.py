"""What a service and `pcs label` leave for people, what becomes of their verdicts, and what stops acceptance."""

import asyncio
import sqlite3
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pcs_annotator import Item, Votes
from pcs_annotator.asking.engine.call import Asker
from pcs_annotator.asking.engine.item_asker import Missing
from pcs_annotator.base.errors import LedgerError, UnknownRow
from pcs_annotator.core.votes import NOT_ASKED
from pcs_annotator.reviewing import session
from pcs_annotator.reviewing.session import Review
from pcs_annotator.reviewing.values import Given, ReviewOptions
from pcs_annotator.runs import service as labelling
from pcs_annotator.runs import stream as stream_module
from pcs_annotator.runs.fits import list_versions
from pcs_annotator.runs.labeller import Labeller, LoadOptions
from pcs_annotator.runs.opened import Run
from pcs_annotator.runs.paths import RunFolder
from pcs_annotator.runs.run_request import RunRequest
from pcs_annotator.runs.service import Classified, Service
from pcs_annotator.runs.settings import Config, Saving
from pcs_annotator.runs.stream import Stream, StreamMemory
from pcs_annotator.verbs.fit import fit_run
from pcs_annotator.verbs.forget import forget
from tests.builders import the
from tests.simulated import label, move_run, run, simulated_models, truth_of, write_texts

EVERYTHING = Saving(audit=1.0)


@pytest.fixture
def folder(promising_run: Path, tmp_path: Path) -> Iterator[Path]:
    with simulated_models():
        yield move_run(promising_run, tmp_path / "run")


def text(row: int) -> str:
    return f"Case {row} looks {truth_of(row)}."


def classify(folder: Path, rows: range, saving: Saving | None = None) -> list[Classified]:
    """Label texts with a service that is started and stopped."""

    async def served() -> list[Classified]:
        async with Service(folder, LoadOptions(saving=saving or Saving(), environment={})) as service:
            return await asyncio.gather(*(service.classify(text(row)) for row in rows))

    return asyncio.run(served())


def judge_stream(folder: Path, rows: int, answer: Callable[[str, int], str]) -> int:
    """Give verdicts on texts of the stream; return how many there were."""
    with Review.open(folder, ReviewOptions(refit_every=0)) as review:
        for place in range(rows):
            shown = review.next_row("Ann", "stream")
            if shown is None:
                return place
            given = answer(shown.text, place)
            lease, version = shown.lease, shown.version
            review.submit(Given(id=shown.id, label=given, reviewer="Ann", queue="stream", lease=lease, version=version))
    return rows


def truthfully(shown: str, _place: int) -> str:
    return "good" if "good" in shown else "bad"


def wrongly(shown: str, _place: int) -> str:
    return "bad" if "good" in shown else "good"


def test_what_is_not_accepted_waits_for_people_and_a_share_of_what_is(folder: Path) -> None:
    found = classify(folder, range(1000, 1100), Saving(audit=0.3))
    decisions = {one.outcome.id: one.outcome.decision for one in found if one.outcome}
    with Stream(RunFolder(folder).stream) as stream:
        kept = stream.read(Run.open(folder).votes)
    assert kept is not None
    ids = [item.id for item in kept.items]
    review = {name for name, decision in decisions.items() if decision == "review"}
    assert review
    assert review <= set(ids)
    others = set(ids) - review
    assert 0.1 < len(others) / (len(decisions) - len(review)) < 0.5
    assert {decisions[name] for name in others} == {"accept"}
    assert set(kept.version) == {1}
    assert kept.drawn[[ids.index(name) for name in others]].all()
    # the same texts again are there once
    classify(folder, range(1000, 1100), Saving(audit=0.3))
    with Stream(RunFolder(folder).stream) as stream:
        assert stream.counts()["texts"] == len(ids)


def test_texts_that_come_while_people_review_are_shown_to_them(folder: Path) -> None:
    before = len(Run.open(folder).votes)
    classify(folder, range(1000, 1002), EVERYTHING)
    with Review.open(folder, ReviewOptions(refit_every=0)) as review:
        first, second = review.next_row("Ann", "stream"), review.next_row("Ben", "stream")
        assert first is not None
        assert second is not None
        assert review.next_row("Cleo", "stream") is None
        classify(folder, range(1002, 1003), EVERYTHING)
        assert the(review.next_row("Cleo", "stream")).text == text(1002)
        # what others have in hand is still theirs
        lease, version = first.lease, first.version
        given = Given(id=first.id, label="good", reviewer="Ann", queue="stream", lease=lease, version=version)
        assert review.submit(given).queue == "stream"
        assert review.next_row("Ann", "stream") is None
        assert review.progress("Ann").rows == before + 3


def test_a_text_that_the_models_failed_on_does_not_wait_for_people_and_one_that_comes_again_waits_once(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = Labeller.ask

    async def unanswered(self: Labeller, items: Sequence[Item], part: Asker, missing: Missing | None = None) -> Votes:
        votes = await asked(self, items, part, missing)
        part.tally.failed["no answer"] += 1
        return replace(votes, codes=np.full_like(votes.codes, NOT_ASKED), grades=None, stated=None)

    monkeypatch.setattr(Labeller, "ask", unanswered)
    (failed,) = classify(folder, range(1000, 1001), EVERYTHING)
    assert the(failed.error).kind == "model_unavailable"
    with Stream(RunFolder(folder).stream) as stream:
        assert stream.counts()["texts"] == 0
    monkeypatch.setattr(Labeller, "ask", asked)

    async def left_and_sent_again() -> None:
        async with Service(folder, LoadOptions(saving=EVERYTHING, environment={})) as service:
            left = asyncio.create_task(service.classify(text(1000)))
            await asyncio.sleep(0)
            left.cancel()
            await asyncio.gather(left, *(service.classify(text(1000)) for _ in range(2)), return_exceptions=True)
            assert service.waiting["texts"] == 1

    asyncio.run(left_and_sent_again())


def test_new_texts_of_a_stream_are_shown_before_a_backlog(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "LOOK_EVERY", 0.0)
    for row in range(1000, 1003):
        classify(folder, range(row, row + 1), EVERYTHING)
    with Review.open(folder, ReviewOptions(refit_every=0)) as review:
        shown = [review.next_row(name, "stream") for name in ("Ann", "Ben")]
        classify(folder, range(1003, 1004), EVERYTHING)
        shown += [review.next_row(name, "stream") for name in ("Cleo", "Dora")]
    assert [row and row.text for row in shown] == [text(1002), text(1001), text(1003), text(1000)]


def test_verdicts_on_the_stream_are_gold_for_the_next_fit(folder: Path) -> None:
    classify(folder, range(1000, 1060), EVERYTHING)
    assert judge_stream(folder, 100, truthfully) == 60
    labels = (folder / "labels.csv").read_text().splitlines()
    result = fit_run(folder)
    assert result.learned.model.gold_rows == 210
    certificate = the(result.learned.model.certificate)
    assert certificate.gold_rows == 210  # all 60 were drawn, by a probability of 1
    assert len((folder / "labels.csv").read_text().splitlines()) == len(labels)  # the run's own rows
    versions = list_versions(RunFolder(folder))
    assert [(version.gold_rows, version.streamed_gold_rows) for version in versions] == [(150, 0), (150, 60)]
    assert Run.open(folder).model_in_force().certificate == certificate
    (again,) = classify(folder, range(2000, 2001))
    assert again.version == "run@2"


def test_errors_among_accepted_texts_withdraw_acceptance_and_a_fit_that_learned_from_them_brings_it_back(
    folder: Path,
) -> None:
    accepted = [one for one in classify(folder, range(1000, 1080), EVERYTHING) if one.outcome]
    assert any(one.outcome and one.outcome.decision == "accept" for one in accepted)
    judge_stream(folder, 80, wrongly)
    assert the(Run.open(folder).stream_audit(Run.open(folder).model_in_force()).get("")).finding == "revoked"
    with Review.open(folder) as review:
        assert review.progress("Ann").fit.standing == "revoked"  # the page says so, too
    found = classify(folder, range(2000, 2040))
    assert {one.outcome.decision for one in found if one.outcome} == {"review"}
    fit_run(folder)
    certificate = the(Run.open(folder).model_in_force().certificate)
    assert not certificate.revoked  # another promise, which knows these errors


@pytest.mark.system
def test_a_running_service_heeds_verdicts_and_fits(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "pcs_annotator")
    said: list[str] = []

    async def served() -> list[str]:
        options = LoadOptions(saving=EVERYTHING, environment={})
        async with Service(folder, options, said.append, refit_every=70) as service:
            await asyncio.gather(*(service.classify(text(row)) for row in range(1000, 1080)))
            assert service.waiting["texts"] == 80
            await asyncio.to_thread(judge_stream, folder, 80, wrongly)
            decisions = []
            for row in range(2000, 3500):  # a fit takes long on a busy machine
                one = await service.classify(text(row))
                decisions.append(str(one.outcome and one.outcome.decision))
                await asyncio.sleep(0.05)
                if service.version == "run@2":
                    break
            assert service.audits
            return [*decisions, service.version]

    *decisions, version = asyncio.run(served())
    assert "review" in decisions
    assert any("people found more errors" in line for line in said)
    events = [record.getMessage() for record in caplog.records if record.name.endswith("runs.service")]
    assert events[0].startswith("promise withdrawn: ")
    assert events[-1] == "refit: version 2 is in use now"
    assert version == "run@2"  # learned in the background, and taken over


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), ZeroDivisionError("SECRET")])
def test_verdicts_that_cannot_be_read_for_a_moment_are_read_later(
    folder: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    monkeypatch.setattr(labelling, "LOOK_EVERY", 0.05)
    monkeypatch.setattr(labelling, "RETRY_SECONDS", 0.0)
    said: list[str] = []

    def fail(*_: object) -> int:
        raise error

    async def served() -> None:
        async with Service(folder, LoadOptions(saving=EVERYTHING, environment={}), said.append) as service:
            await asyncio.gather(*(service.classify(text(row)) for row in range(1000, 1010)))
            with monkeypatch.context() as patch:
                patch.setattr(Service, "_read_verdicts", fail)
                await asyncio.to_thread(judge_stream, folder, 10, truthfully)
                while not said:
                    service.look_for_changes()
                    await asyncio.sleep(0.01)
            async with asyncio.timeout(30):
                while not service.audits:  # nothing in the folder changes any more
                    service.look_for_changes()
                    await asyncio.sleep(0.01)

    asyncio.run(served())
    assert said[0].startswith("verdicts cannot be read: ")
    assert "SECRET" not in str(said)


def test_a_fit_that_cannot_be_started_is_said_and_the_next_one_may_be(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []

    def fail(*_: object, **__: object) -> None:
        raise OSError(12, "Cannot allocate memory")

    async def served() -> None:
        async with Service(folder, LoadOptions(environment={}), said.append) as service:
            monkeypatch.setattr(subprocess, "Popen", fail)
            service._fitting = asyncio.create_task(service._fit_again())
            await service._fitting
            assert service._fitting is None

    asyncio.run(served())
    assert any("Cannot allocate memory" in line for line in said)


def test_a_text_that_is_forgotten_leaves_no_trace(folder: Path) -> None:
    secret = "My name is Zebedee Quux, and this looks good."

    async def served() -> str:
        async with Service(folder, LoadOptions(saving=EVERYTHING, environment={})) as service:
            found = await service.classify(secret)
            assert found.outcome
            return found.outcome.id

    classify(folder, range(1000, 1030), EVERYTHING)
    name = asyncio.run(served())
    judge_stream(folder, 31, truthfully)
    fit_run(folder)
    traces = [path for path in folder.rglob("*") if path.is_file() and _has(path, name, "Zebedee")]
    assert {path.name for path in traces} >= {"stream.db", "draws.jsonl", "model.json", "2.json"}
    found = forget(folder, name)
    assert found.answers == 6  # three models, two questions
    assert (found.ids, found.rows) == ([name], [])
    assert [path for path in folder.rglob("*") if path.is_file() and _has(path, name, "Zebedee")] == []
    assert Run.open(folder).model_in_force().certificate is not None
    assert fit_run(folder, say=lambda line: None).learned.model.gold_rows == 180
    with pytest.raises(UnknownRow, match="keeps no text"):
        forget(folder, name)
    classify(folder, range(4000, 4001), Saving(audit=0.0, ask="all"))
    assert forget(folder, "serve:unknown", text(4000)).answers == 6


def test_a_text_that_is_sent_again_after_a_lost_reply_has_the_id_by_which_it_is_kept(folder: Path) -> None:
    lost, again = classify(folder, range(4000, 4002), EVERYTHING), classify(folder, range(4000, 4002), EVERYTHING)
    ids = [[found.outcome.id for found in service if found.outcome] for service in (lost, again)]
    assert ids[0] == ids[1]
    assert len({*ids[0]}) == 2
    assert forget(folder, ids[1][0]).ids == ids[1][:1]


def test_a_text_is_forgotten_whatever_id_it_was_sent_with(folder: Path) -> None:
    classify(folder, range(4000, 4003), EVERYTHING)
    found = forget(folder, "serve:when-it-came-again", text(4000))
    assert len(found.ids) == 1
    assert not [path for path in folder.rglob("*") if path.is_file() and _has(path, found.ids[0], text(4000))]
    with Stream(RunFolder(folder).stream) as stream:
        (other,) = stream.having([], [text(4002)])
    with pytest.raises(UnknownRow, match="is another text"):
        forget(folder, other, text(4001))
    assert len(forget(folder, text=text(4001)).ids) == 1


def test_rows_of_the_run_with_the_text_are_named_because_they_stay(folder: Path) -> None:
    item = Run.open(folder).dataset.items[3]
    assert forget(folder, text=item.text).rows == [item.id]


def test_the_stream_of_replaced_results_is_kept_with_them(folder: Path, tmp_path: Path) -> None:
    classify(folder, range(4000, 4001), EVERYTHING)
    data = write_texts(tmp_path / "data.csv", range(8000, 8040), gold_rows=30)
    config = Run.open(folder).config
    run(RunRequest(data=data, folder=folder, config=config, replace=True, say=lambda _: None))
    assert not RunFolder(folder).stream.exists()
    (earlier,) = folder.glob("earlier-*/stream.db")
    with Stream(earlier) as stream:
        assert [*stream.having([], [text(4000)]).values()] == [text(4000)]


def _has(path: Path, *words: str) -> bool:
    content = path.read_bytes()
    return any(word.encode() in content for word in words)


def test_label_leaves_rows_for_people_too(folder: Path, tmp_path: Path) -> None:
    data = write_texts(tmp_path / "new.csv", range(3000, 3060))
    label(RunRequest(data=data, folder=folder, config=Config()), tmp_path / "out.csv", EVERYTHING)
    with Stream(RunFolder(folder).stream) as stream:
        kept = stream.read(Run.open(folder).votes)
    assert kept is not None
    assert len(kept.items) == 60
    assert kept.items[0].id.startswith("new.csv:")


def test_texts_are_not_kept_if_that_is_not_wanted_and_go_after_some_days(folder: Path) -> None:
    classify(folder, range(1000, 1010), Saving(audit=1.0, keep_texts=False))
    path = RunFolder(folder).stream
    with Stream(path) as stream:
        assert stream.counts()["texts"] == 10
        assert stream.read(Run.open(folder).votes) is None
    assert not _has(path, "Case 1000")
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("UPDATE texts SET at = at - 3 * 86400 WHERE number <= 4")
    classify(folder, range(1010, 1011), Saving(audit=1.0, keep_days=2))
    with Stream(path) as stream:
        assert stream.counts()["texts"] == 7


def test_a_service_that_runs_on_and_pcs_label_delete_old_texts_too(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream_module, "PURGE_EVERY", 0.0)
    path, saving = RunFolder(folder).stream, Saving(audit=1.0, keep_days=2)

    def grow_old() -> None:
        with closing(sqlite3.connect(path)) as database, database:
            database.execute("UPDATE texts SET at = at - 3 * 86400")

    async def served() -> int:
        async with Service(folder, LoadOptions(saving=saving, environment={})) as service:
            await asyncio.gather(*(service.classify(text(row)) for row in range(1000, 1010)))
            grow_old()
            await service.classify(text(1010))
            return service.waiting["texts"]

    assert asyncio.run(served()) == 1
    grow_old()
    data = write_texts(tmp_path / "new.csv", range(3000, 3005))
    label(RunRequest(data=data, folder=folder, config=Config()), tmp_path / "out.csv", saving)
    with Stream(path) as stream:
        assert stream.counts()["texts"] == 5


def test_a_file_that_cannot_be_used_is_named_and_no_text_is_acknowledged(folder: Path) -> None:
    path = RunFolder(folder).stream

    async def served() -> Classified:
        async with Service(folder, LoadOptions(saving=EVERYTHING, environment={})) as service:
            with closing(sqlite3.connect(path)) as database:
                database.execute("DROP TABLE texts")
            return await service.classify(text(1001))

    found = asyncio.run(served())
    assert the(found.error).kind == "ledger_unavailable"
    assert "where texts wait for review" in the(found.error).message
    path.write_bytes(b"this is not a database, but it is long enough to look like one" * 20)
    with pytest.raises(LedgerError, match=r"stream\.db"):
        classify(folder, range(1))


def test_votes_with_grades_come_back_as_they_were_and_others_are_left_out(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    codes = rng.integers(0, 2, size=(4, 2, 2, 1)).astype(np.int8)
    grades = np.full((4, 2, 2, 1, 2), np.nan, dtype=np.float32)
    grades[:2] = 0.5
    votes = Votes(
        codes=codes,
        ids=list("pqrs"),
        annotators=["a", "b"],
        relations=["original", "order"],
        labels=["x", "y"],
        grades=grades,
    )
    items = [Item(id=name, text=f"text {name}") for name in "pqrs"]
    with Stream(tmp_path / "stream.db") as stream:
        nothing = np.zeros(4, dtype=np.bool_)
        stream.add(items, votes, nothing, version=1, probability=0.0)
        found = the(stream.read(votes))
        assert (found.votes.codes == codes).all()
        assert found.votes.grades is not None
        assert np.array_equal(found.votes.grades, grades, equal_nan=True)
        assert not found.drawn.any()
        assert stream.read(replace(votes, labels=["x", "z"])) is None
        assert [item.text for item in the(stream.read(votes, ["q"])).items] == ["text q"]


def test_texts_are_counted_as_they_come_change_and_go(tmp_path: Path) -> None:
    codes = np.zeros((4, 1, 1, 1), dtype=np.int8)
    votes = Votes(codes=codes, ids=list("pqrs"), annotators=["a"], relations=["original"], labels=["x", "y"])
    items = [Item(id=name, text=f"text {name}") for name in "pqrs"]
    accepted = np.array([True, True, False, False])
    path = tmp_path / "stream.db"
    with Stream(path) as stream:
        assert stream.counts() == {"texts": 0, "accepted": 0, "drawn": 0}
        stream.add(items, votes, accepted, version=1, probability=np.array([1.0, 0.0, 0.0, 1.0]))
        assert stream.counts() == {"texts": 3, "accepted": 1, "drawn": 2}
        stream.add(items, votes, accepted, version=1, probability=1.0)  # those that were drawn stay as they were
        assert stream.counts() == {"texts": 4, "accepted": 2, "drawn": 4}
        stream.forget(["p"])
        assert stream.counts() == {"texts": 3, "accepted": 1, "drawn": 3}


def test_an_alarm_counts_until_a_fit_has_learned_from_later_texts(tmp_path: Path) -> None:
    tests: dict[str, dict[str, object]] = {
        "": {"alarm": 5.0, "blocks": [{"x": 1}]},
        "de": {"alarm": 7.0},
        "en": {"alarm": 0.0},
    }
    with Stream(tmp_path / "stream.db") as stream:
        assert StreamMemory(stream, 1, {}).recall() == {}
        StreamMemory(stream, 2, {}).keep(tests)
        assert stream.note("alarm") == {"": 5.0, "de": 7.0}
        assert [*StreamMemory(stream, 2, {"de": 7.0}).recall()] == ["", "en"]
        assert StreamMemory(stream, 3, {"de": 7.0}).recall() == {"": {"alarm": 5.0, "blocks": []}}
