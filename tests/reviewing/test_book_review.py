"""The review of a codebook: one text for all variables, and each variable's log as if it had been reviewed alone."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from unittest import mock

import numpy as np
import pytest

from pcs_annotator.base.errors import ChangedMeanwhile, ConfigError, LabelError, LeaseExpired
from pcs_annotator.core.events import Draw, Queue, Verdict, fixed_order
from pcs_annotator.models.provider import providers
from pcs_annotator.reviewing.book_review import BookReview, answers_of
from pcs_annotator.reviewing.values import Given, Shown
from pcs_annotator.runs.book import Book
from pcs_annotator.runs.draw_registry import read_events
from pcs_annotator.verbs.fit import fit_run
from tests.faces.review.coded import FRAMES, ONE, Coder, make_codebook, open_review
from tests.faces.review.made import OPTIONS
from tests.made_once import made_once
from tests.reviewing.reviewing import judge as judge_one
from tests.reviewing.reviewing import verdict
from tests.simulated import copy_run

PARTS = ("topic", *(f"frames={frame}" for frame in FRAMES), "tone", "event")
PLACES = ("topic", "frames/conflict", "frames/human-interest", "frames/morality", "tone", "event")


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_once(tmp_path_factory, "codebook", make_codebook) / "run"


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    return copy_run(made, tmp_path / "run")


@pytest.fixture
def review(folder: Path) -> Iterator[BookReview]:
    with open_review(folder) as opened:
        yield opened


def given(shown: Shown, who: str = "ann") -> Given:
    return replace(verdict(shown, None, who), seconds=3.0)


def labels(**other: str | None) -> dict[str, str | None]:
    first = {name: labels_of[0] for name, labels_of in ONE.items()}
    return {part: first.get(part, "no") for part in PARTS} | other


def judge(review: BookReview, queue: Queue) -> Shown:
    shown = review.next_row("ann", queue)
    assert shown is not None
    review.submit(given(shown), labels())
    return shown


def events(folder: Path, place: str, kind: type) -> list:  # type: ignore[type-arg]
    return [
        event for event in read_events(folder / "draws.jsonl", PARTS[PLACES.index(place)]) if isinstance(event, kind)
    ]


def without_gold(review: BookReview, part: str) -> list[str]:
    rows = review.reviews[part].rows
    return [rows.ids[place] for place in np.flatnonzero(rows.data_gold < 0).tolist()]


def test_a_text_has_a_verdict_in_the_log_of_every_variable(review: BookReview, folder: Path) -> None:
    shown = judge(review, "random")
    for place in PLACES:
        (draw,), (verdict,) = events(folder, place, Draw), events(folder, place, Verdict)
        assert (verdict.id, verdict.queue, verdict.reviewer, verdict.blind) == (shown.id, "random", "ann", True)
        assert draw.id == shown.id
    assert [one.name for one in shown.variables] == ["topic", "frames", "tone", "event"]
    assert {one.id for one in review.undo("ann")} == {shown.id}
    assert review.undo("ann") == []
    again = review.next_row("ann", "random")
    assert again is not None
    assert again.id == shown.id


def test_random_texts_are_a_random_sample_of_every_variable_with_known_probabilities(
    review: BookReview, folder: Path
) -> None:
    """Rows 30 to 39 have gold for all variables but frames, which draws from 60 texts, the others from 50."""
    seen = [judge(review, "random") for _ in range(30)]
    assert [one.id for one in seen] == fixed_order(without_gold(review, "frames=morality"))[:30]
    for part, place in zip(PARTS, PLACES, strict=True):
        frame = without_gold(review, part)
        draws = events(folder, place, Draw)
        assert [one.id for one in draws] == [one.id for one in seen if one.id in frame]
        assert [one.id for one in draws] == fixed_order(frame)[: len(draws)]
        assert [one.reached for one in draws] == list(range(1, len(draws) + 1))
        assert [one.probability for one in draws] == pytest.approx([1 / (len(frame) - k) for k in range(len(draws))])
        assert [one.pool for one in draws] == [len(frame) - k for k in range(len(draws))]
    half = next(one for one in seen if one.id not in without_gold(review, "topic"))
    assert [one.name for one in half.variables if one.asked] == ["frames"]


@pytest.mark.system
def test_learning_draws_have_the_probability_that_they_had_for_each_variable(folder: Path) -> None:
    """The mean of 1 / (probability × pool) over draws is 1 if probabilities are what they are said to be."""
    found: dict[str, list[float]] = {place: [] for place in PLACES}
    for seed in range(12):
        with open_review(folder, replace(OPTIONS, seed=seed)) as review:
            for _ in range(8):
                judge(review, "learn")
        for place in PLACES:
            found[place] += [1 / (one.probability * one.pool) for one in events(folder, place, Draw)[-8:]]
        (folder / "draws.jsonl").unlink()
    means = [np.mean(ratios) for ratios in found.values()]
    errors = [np.std(ratios) / len(ratios) ** 0.5 for ratios in found.values()]
    assert all(abs(mean - 1) < 4 * error for mean, error in zip(means, errors, strict=True))


def test_a_variable_that_was_reviewed_alone_is_caught_up_with(folder: Path) -> None:
    from pcs_annotator.reviewing.session import Review

    with Review.open(folder / "variables/topic", OPTIONS) as alone:
        first = [judge_one(alone, "random", "health", "bob").id for _ in range(3)]
    with open_review(folder) as review:
        seen = [judge(review, "random") for _ in range(8)]
        order = fixed_order(without_gold(review, "frames=morality"))[:8]
        assert [one.id for one in seen] == order
        assert [one.id for one in seen if not one.variables[0].asked and one.id in first] == first
        draws = events(folder, "topic", Draw)
        assert [one.id for one in draws] == fixed_order(without_gold(review, "topic"))[: len(draws)]
    with open_review(folder) as review:
        assert judge(review, "random").id == fixed_order(without_gold(review, "frames=morality"))[8]


def test_an_audit_walks_one_order_for_all_variables(review: BookReview, folder: Path) -> None:
    seen = [judge(review, "audit").id for _ in range(5)]
    audited = set()
    for part, place in zip(PARTS, PLACES, strict=True):
        one = review.reviews[part]
        draws = events(folder, place, Draw)
        accepted = [
            one.rows.ids[at] for at in np.flatnonzero(one.rows.judgement.accepted & (one.rows.gold < 0)).tolist()
        ]
        backwards = fixed_order(accepted)[::-1]
        assert [draw.id for draw in draws] == backwards[: len(draws)]
        assert [draw.probability for draw in draws] == pytest.approx(
            [1 / (len(accepted) - k) for k in range(len(draws))]
        )
        queues = {verdict.id: verdict.queue for verdict in events(folder, place, Verdict)}
        assert all(queues[name] == ("audit" if name in backwards else "chosen") for name in queues)
        audited |= {draw.id for draw in draws}
    assert audited == set(seen)


def test_texts_that_most_variables_are_doubtful_about_come_first(review: BookReview, folder: Path) -> None:
    def doubtful(name: str) -> int:
        place = review.reviews["topic"].rows.places[name]
        open_to = {part: one.rows.gold[place] < 0 for part, one in review.reviews.items()}
        needed = {
            part.partition("=")[0]
            for part, one in review.reviews.items()
            if open_to[part] and not one.rows.judgement.accepted[place]
        }
        return len(needed)

    most = max(map(doubtful, without_gold(review, "frames=morality")))
    shown = [judge(review, "doubtful") for _ in range(3)]
    assert doubtful(shown[0].id) == most
    assert [doubtful(one.id) for one in shown] == sorted([doubtful(one.id) for one in shown], reverse=True)
    assert events(folder, "topic", Draw)[0].probability is None


def test_a_fit_learns_from_all_verdicts_and_an_earlier_verdict_can_be_changed(review: BookReview, folder: Path) -> None:
    shown = judge(review, "random")
    again = review.show(shown.id, "ann", "random")
    assert again.variables[0].said["ann"] == ["economy"]
    assert again.variables[1].said["ann"] == []
    saved = review.submit(given(again), dict.fromkeys(PARTS, None) | {"topic": "health"})
    assert saved["topic"].label == "health"
    assert "ann" not in review.show(shown.id, "ann", "random").variables[1].said
    assert fit_run(folder / "variables/topic").verdicts.counts["learned_from"] == 1
    assert fit_run(folder / "variables/tone").verdicts.counts["skipped"] == 1


def test_what_changed_meanwhile_or_is_in_other_hands_is_not_saved(review: BookReview, folder: Path) -> None:
    shown = review.next_row("ann", "random")
    other = review.next_row("bob", "random")
    assert shown is not None
    assert other is not None
    assert other.id != shown.id
    with pytest.raises(LeaseExpired):
        review.submit(given(shown, "bob"), labels())
    with pytest.raises(LeaseExpired, match="not in your hands"):
        review.submit(replace(given(shown), lease="x"), labels())
    review.submit(given(shown), labels())
    with pytest.raises(ChangedMeanwhile):
        review.submit(given(shown), labels())
    with pytest.raises(LabelError, match="'nonsense'"):
        review.submit(given(other, "bob"), labels(event="nonsense"))
    assert all(len(events(folder, place, Verdict)) == 1 for place in PLACES)


def test_progress_is_about_all_variables(review: BookReview) -> None:
    judge(review, "random")
    progress = review.progress("ann")
    assert progress.queues["random"] == (1, 59)
    assert "promise" in progress.fit.promise


def test_the_queue_ends_and_conflicts_are_settled(folder: Path) -> None:
    with open_review(folder, replace(OPTIONS, double=1.0)) as review:
        for who, topic in (("ann", "economy"), ("bob", "health")):
            shown = review.next_row(who, "random")
            assert shown is not None
            review.submit(given(shown, who), labels(topic=topic))
        settled = review.next_row("cat", "conflicts")
        assert settled is not None
        assert [one.name for one in settled.variables if one.asked] == ["topic"]
        review.submit(given(settled, "cat"), labels())
        assert review.next_row("cat", "conflicts") is None
        while review.next_row("ann", "random") is not None:
            judge(review, "random")
        assert review.why_empty("ann", "random")


def test_neighbours_on_a_scale_agree_better_than_ends(folder: Path) -> None:
    found = {}
    for second in ("negative", "very positive"):
        with open_review(folder, replace(OPTIONS, double=1.0)) as review:
            for at in range(6):
                for who in ("ann", "bob"):
                    shown = review.next_row(who, "random")
                    assert shown is not None
                    other = second if who == "bob" and at == 0 else "very negative" if at % 2 == 0 else "very positive"
                    review.submit(given(shown, who), labels(tone=other))
            found[second] = review.reviews["tone"].agreement().alpha
        (folder / "draws.jsonl").unlink()
    assert found["negative"] is not None
    assert found["very positive"] is not None
    assert found["negative"] > found["very positive"]


def test_variables_with_other_rows_are_refused(folder: Path) -> None:
    book = Book.open(folder)
    with open_review(folder), pytest.raises(ConfigError, match="is being reviewed already"), BookReview.open(book):
        pass


def test_a_form_needs_an_answer_to_every_variable() -> None:
    from pcs_annotator.runs.settings import TaskSettings

    one, many = TaskSettings(labels=("a", "b")), TaskSettings(labels=("a", "b"), kind="many")
    assert list(answers_of("x", one, {"x": "a"})) == [("x", "a")]
    assert list(answers_of("x", one, {"x": ""})) == [("x", None)]
    assert list(answers_of("x", many, {"x=b": "yes", "x": "none"})) == [("x=a", "no"), ("x=b", "yes")]
    assert list(answers_of("x", many, {"x": "none"})) == [("x=a", "no"), ("x=b", "no")]
    assert list(answers_of("x", many, {"x": ""})) == [("x=a", None), ("x=b", None)]
    for task in (one, many):
        with pytest.raises(ConfigError, match="x has no answer"):
            list(answers_of("x", task, {}))


def test_prompts_and_replies_of_all_variables_are_there_once_unless_one_is_to_be_judged_first(
    review: BookReview,
) -> None:
    with mock.patch.dict(providers._factories, {"coder": Coder}):
        whole = review.evidence("t80", "ann")
        shown = review.next_row("ann", "random")
        assert shown is not None
        hidden = review.evidence(shown.id, "ann")
    assert [(one.relation, one.annotator[:10]) for one in whole.exchanges[0]] == [
        (relation, f"coder:{name}") for relation in ("original", "order") for name in ("good", "fair")
    ]
    assert hidden.exchanges == ()
    assert "judge this row first" in hidden.missing
