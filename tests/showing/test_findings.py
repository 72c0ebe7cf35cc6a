import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pcs_annotator import ABSTAINED, NOT_ASKED, Outcome, Votes, Weights
from pcs_annotator.core.variant import VariantCount
from pcs_annotator.core.weights import Interval
from pcs_annotator.judging.evaluate.agreement import against_gold
from pcs_annotator.judging.evaluate.methods import Calls
from pcs_annotator.judging.evaluate.scored import FIGURES, MethodFigures
from pcs_annotator.judging.metrics.figures import Estimate
from pcs_annotator.judging.model import Model
from pcs_annotator.judging.promise.certificate import Certificate
from pcs_annotator.judging.promise.promise import Promise
from pcs_annotator.judging.text_model import fit_text_model
from pcs_annotator.models.provider import providers
from pcs_annotator.models.scripted import ScriptedModel
from pcs_annotator.relations.base import Relation, relations
from pcs_annotator.relations.function import FunctionRelation
from pcs_annotator.runs.learn import Learned
from pcs_annotator.runs.run_result import Facts
from pcs_annotator.showing.findings import what_to_look_at
from tests.builders import the
from tests.command_line import Pcs
from tests.showing.report.reading import section
from tests.simulated import simulated_run

LABELS = ("bad", "good")


def facts_of(given: Sequence[str | None], gold: Sequence[str], confidence: float | None = None, **more: Any) -> Facts:
    """Facts about a run of two models and three relations, in which every model says what the run says."""
    codes = np.array([LABELS.index(label) if label else ABSTAINED for label in given], dtype=np.int8)
    votes = Votes(
        codes=np.tile(codes[:, None, None, None], (1, 2, 3, 1)),
        ids=[str(row) for row in range(len(given))],
        annotators=("a", "b"),
        relations=("original", "voice", "synonym"),
        labels=LABELS,
    )
    outcomes = [
        Outcome(id=str(row), label=label, scores={}, confidence=confidence if label else None, decision=None)
        for row, label in enumerate(given)
    ]
    learned = Learned(model=Model(weights=Weights.uniform(votes), calibrator=None), figures=())
    known = [*gold, *[None] * (len(given) - len(gold))]
    return Facts(votes=votes, outcomes=outcomes, gold=known if gold else (), learned=learned, **more)


def mixed(good: int, bad: int) -> list[str]:
    return ["good"] * good + ["bad"] * bad


def found(facts: Facts) -> dict[str, str]:
    return {flag.kind: flag.detail for flag in what_to_look_at(facts)}


def test_nothing_stands_out_where_nothing_is_wrong() -> None:
    assert found(facts_of(mixed(60, 40), mixed(30, 20), 0.9)) == {}


def test_without_gold_it_is_unknown_how_often_labels_are_right() -> None:
    shown = found(facts_of(mixed(60, 40), []))
    assert list(shown) == ["no gold labels"]
    assert "even where all answers agree" in shown["no gold labels"]


@pytest.mark.parametrize(
    ("given", "gold", "label"),
    [
        (mixed(80, 20), mixed(30, 60), "'good' is the label of 80 % of 100 rows, but of 33 % of the 90 gold rows"),
        (mixed(90, 910), mixed(10, 990), "'good' is the label of 9 % of 1,000 rows, but of 1 %"),
        (mixed(80, 20), mixed(3, 6), None),  # too few gold rows to tell
        (mixed(550, 450), mixed(500, 500), None),  # clear, but small
    ],
)
def test_a_label_given_far_too_often_is_named_and_small_samples_are_not_enough(
    given: list[str], gold: list[str], label: str | None
) -> None:
    detail = found(facts_of(given, gold)).get("label given too often")
    assert (detail is None) if label is None else detail is not None and detail.startswith(label)


def test_copies_of_a_text_count_once_for_how_often_a_label_is_given() -> None:
    given, gold = mixed(80, 20), mixed(30, 60)
    assert "label given too often" in found(facts_of(given, gold))
    tenfold = [f"text {row // 10}" for row in range(100)]
    assert "label given too often" not in found(facts_of(given, gold, texts=tenfold))


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [
        (
            0.2,
            0.45,
            (
                "confidence below chance",
                "the models' answers tell labels apart worse than chance: a class AUROC of 0.40 [0.20, 0.45]",
            ),
        ),
        (
            0.35,
            0.6,
            (
                "chance not ruled out",
                "the models' answers may tell labels apart no better than chance: a class AUROC of 0.40 [0.35, 0.60]",
            ),
        ),
        (0.51, 0.9, None),
    ],
)
def test_an_auroc_that_chance_could_reach_is_said(low: float, high: float, said: tuple[str, str] | None) -> None:
    facts = facts_of(mixed(20, 20), mixed(20, 20))
    estimate = Estimate(0.4, Interval(low, high), 40)
    figures = [MethodFigures("lr", dict.fromkeys(FIGURES, estimate), Calls(1.0, 0.0))]
    flags = found(replace(facts, learned=replace(facts.learned, figures=figures)))
    assert [(kind, detail.partition(" on ")[0]) for kind, detail in flags.items()] == ([said] if said else [])


def test_a_finding_about_answers_does_not_contradict_labels_that_the_texts_make_right() -> None:
    facts = facts_of(mixed(30, 30), mixed(30, 30))
    figures = [MethodFigures("lr", dict.fromkeys(FIGURES, Estimate(0.4, Interval(0.2, 0.45), 60)), Calls(1.0, 0.0))]
    words = [f"{'lovely' if row < 30 else 'awful'} room {row}" for row in range(60)]
    text = the(fit_text_model(words, np.repeat([0, 1], 30).astype(np.int8), LABELS))
    model = replace(facts.learned.model, text=text)
    flags = found(replace(facts, learned=replace(facts.learned, figures=figures, model=model)))
    assert "confidence below chance" not in flags
    assert flags["chance not ruled out"] == (
        "the models' answers may tell labels apart no better than chance: a class AUROC of 0.40 [0.20, 0.45] on 60 "
        "gold rows; what is right comes from the texts; better models would add to it"
    )


def measured(facts: Facts, right: int, gold: Sequence[str]) -> Facts:
    """Facts with held-out labels of which the first `right` agree with gold."""
    truth = np.array([LABELS.index(label) for label in gold], dtype=np.int8)
    given = np.where(np.arange(len(gold)) < right, truth, 1 - truth).astype(np.int8)
    found = against_gold(given, truth, LABELS)
    return replace(facts, learned=replace(facts.learned, against_gold=found))


@pytest.mark.parametrize(
    ("right", "said"),
    [
        (49, "the labels are no better than always giving 'good': 49 % of 100 held-out gold rows are right, against 6"),
        (66, "the labels are not clearly better than always giving 'good': 66 % of 100 held-out gold rows are right,"),
        (90, None),
    ],
)
def test_labels_no_better_than_one_label_for_all_are_said_to_be_so(right: int, said: str | None) -> None:
    gold = ["good", "bad", "good", "bad", "good"] * 20
    detail = found(measured(facts_of(gold, gold), right, gold)).get("no better than one label")
    assert (detail is None) if said is None else detail is not None and detail.startswith(said)


def promising(facts: Facts, accepted: int, **more: Any) -> Facts:
    certificate = Certificate(promise=Promise(max_error=0.05), gold_rows=50, **{"thresholds": {}, **more})
    outcomes = [
        replace(one, decision="accept" if row < accepted else "review") for row, one in enumerate(facts.outcomes)
    ]
    model = replace(facts.learned.model, certificate=certificate)
    return replace(facts, outcomes=outcomes, learned=replace(facts.learned, model=model))


def test_a_promise_that_accepts_nothing_or_almost_nothing_is_said_with_what_to_do() -> None:
    facts = facts_of(mixed(60, 40), mixed(30, 20))
    nothing = found(promising(facts, 0, why_not="50 gold rows are too few"))["nothing accepted"]
    assert nothing.startswith("none of 100 labels is accepted, because there is no promise: ")
    assert "label more random rows" in nothing
    assert "--max-error" not in nothing  # which would be another test of the same gold
    little = found(promising(facts, 3, thresholds={"any": 0.99}))
    assert little["nothing accepted"].startswith("only 3 of 100 labels are accepted")
    assert not found(promising(facts, 30, thresholds={"any": 0.9}))


def test_a_label_that_is_never_given_is_named() -> None:
    with_gold = found(facts_of(["good"] * 100, mixed(40, 10)))
    assert with_gold["label never given"].startswith("none of 100 rows is labelled 'bad', but 20 % of the 50 gold rows")
    assert "label given too rarely" not in with_gold
    assert "label never given" not in found(facts_of(["good"] * 100, mixed(49, 1)))
    without_gold = found(facts_of(["good"] * 100, []))
    assert without_gold["label never given"].startswith("none of 100 rows is labelled 'bad': if there are such texts")
    assert "label never given" not in found(facts_of(["good"] * 12, []))


def test_a_label_given_far_too_rarely_is_named() -> None:
    detail = found(facts_of(mixed(20, 980), mixed(25, 275)))["label given too rarely"]
    assert detail.startswith("'good' is the label of 2 % of 1,000 rows, but of 8 % of the 300 gold rows")


def flipping(share: float, gold: Sequence[str] = ()) -> Facts:
    """Facts about a run in which `b` gives that share of the texts another label under synonym."""
    facts = facts_of(mixed(60, 60), gold)
    codes = facts.votes.codes.copy()
    rows = slice(0, round(share * len(codes)))
    codes[rows, 1, 2] = 1 - codes[rows, 1, 2]
    return replace(facts, votes=replace(facts.votes, codes=codes))


@pytest.mark.parametrize("gold", [[], mixed(40, 40)])
def test_labels_that_flip_with_the_question_are_said_with_and_without_gold(gold: list[str]) -> None:
    detail = found(flipping(0.35, gold))["label flips"]
    assert detail.startswith("b changes 35 % of its 120 answers under synonym: ")
    assert "label flips" not in found(flipping(0.15, gold))


def test_flips_that_a_promise_has_allowed_for_are_not_said() -> None:
    assert not found(promising(flipping(0.35, mixed(40, 40)), 60, thresholds={"any": 0.9}))


def with_models(agreement: Sequence[float], rows: int = 100) -> Facts:
    """Facts about models, each of which gives the common label of a text on that share of the texts."""
    facts = facts_of(mixed(rows // 2, rows // 2), mixed(rows // 2, rows // 2))
    common = facts.votes.codes[:, 0]
    dice = np.random.default_rng(0)
    codes = [np.where(dice.random(rows)[:, None, None] < share, common, 1 - common) for share in agreement]
    names = [f"model-{place}" for place in range(len(agreement))]
    votes = replace(facts.votes, codes=np.stack(codes, axis=1).astype(np.int8), annotators=names)
    learned = replace(facts.learned, model=Model(weights=Weights.uniform(votes), calibrator=None))
    return replace(facts, votes=votes, learned=learned)


def test_a_model_that_disagrees_with_all_others_is_named() -> None:
    detail = found(with_models([0.95, 0.5, 0.95]))["disagreeing annotator"]
    assert re.match(
        r"model-1 agrees with the other models on 4\d % of 100 texts, and they with each other on 8\d %", detail
    )


@pytest.mark.parametrize("agreement", [[0.95, 0.5], [0.9, 0.75, 0.65], [0.95, 0.9, 0.95, 0.85]])
def test_models_that_are_merely_weaker_and_one_of_two_are_not_named(agreement: Sequence[float]) -> None:
    assert "disagreeing annotator" not in found(with_models(agreement))


def test_nothing_stands_out_in_a_good_run_with_gold(tmp_path: Path) -> None:
    result = simulated_run(tmp_path)
    assert the(result.certificate).holds
    assert found(result) == {}


def test_in_a_good_run_without_gold_only_the_missing_gold_stands_out(tmp_path: Path) -> None:
    models = ("simulated:large@97", "simulated:middle@96", "simulated:small@95")
    assert list(found(simulated_run(tmp_path, gold_rows=0, models=models))) == ["no gold labels"]


def without(facts: Facts, relation: int, rows: slice, code: int = NOT_ASKED) -> Facts:
    codes = facts.votes.codes.copy()
    codes[rows, :, relation] = code
    return replace(facts, votes=replace(facts.votes, codes=codes))


def test_a_relation_without_votes_is_named_with_the_commonest_cause_first() -> None:
    rewrites = [
        VariantCount("voice", "not_applicable", "no object", 30),
        VariantCount("voice", "not_applicable", "fragment", 5),
        VariantCount("voice", "rejected", "failed the check of names", 50),
        VariantCount("synonym", "changed", "", 100),
    ]
    facts = without(facts_of(mixed(50, 50), mixed(50, 50), rewrites=rewrites), 1, slice(None))
    assert found(facts) == {
        "relation without votes": "voice cast no votes: a check rejected 50 rewrites (failed the check of names), it "
        "did not apply to 35 texts (most often: no object), 15 texts were not asked about; look at the rejected "
        "rewrites in the report, or use a better --rewriter"
    }


def test_a_relation_with_few_votes_says_on_how_many_texts() -> None:
    facts = without(facts_of(mixed(50, 50), mixed(50, 50)), 2, slice(90), ABSTAINED)
    flags = found(facts)
    assert flags["relation with few votes"].startswith(
        "synonym cast votes on only 10 of 100 texts: no answer to 90 texts was readable; look at the answers"
    )
    assert flags["unreadable answers"].startswith("90 of 300 answers of b have no readable label")
    assert not found(without(facts_of(mixed(50, 50), mixed(50, 50)), 2, slice(79)))


def test_rows_without_a_label_and_texts_that_were_cut_are_counted() -> None:
    facts = facts_of(["good", None], ["good"], cut={"a": 1})
    assert found(facts) == {
        "rows without a label": "1 row has no label, because no model gave a usable answer",
        "texts cut": "1 of 2 texts do not fit into the context of a, which saw only a part of them: use a model with a "
        "longer context, or split these texts",
    }
    assert found(facts_of([None, None], []))["rows without a label"].startswith("2 rows have")


def test_rows_that_were_not_asked_about_are_not_blamed_on_the_models() -> None:
    facts = facts_of(["good", None], [])
    codes = facts.votes.codes.copy()
    codes[1] = NOT_ASKED
    detail = found(replace(facts, votes=replace(facts.votes, codes=codes)))["rows without a label"]
    assert (
        detail
        == "1 row has no label, because no question was answered: run again, with a higher limit if one was reached"
    )


@pytest.fixture
def troubled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Register `troubled:constant`, `troubled:short`, whose context is small, and a relation that never applies."""

    class Provider:
        def open(self, model: str, environment: object) -> ScriptedModel:
            answers: dict[str, Callable[[Any], str]] = {
                "constant": lambda request: "good",
                "short": lambda request: "good" if "fine" in request.messages[-1].content else "hm",
            }
            room = 600 if model == "short" else None
            return ScriptedModel(answers[model], name=f"troubled:{model}", context_tokens=room)

    monkeypatch.setitem(providers._factories, "troubled", Provider)
    never: Relation = FunctionRelation("never", lambda text: None)
    monkeypatch.setitem(relations._factories, "never", lambda: never)


@pytest.mark.usefixtures("troubled")
def test_terminal_json_and_report_name_the_same_troubles(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pcs: Pcs
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "300")
    texts = [f"It was {'fine' if row % 2 else 'so'} {row}.{' More.' * 400 * (row < 3)}" for row in range(12)]
    Path("data.csv").write_text("text\n" + "\n".join(texts), encoding="utf-8")
    options = ["--labels", "good,bad", "--model", "troubled:constant", "--model", "troubled:short"]
    command = ["run", "data.csv", *options, "--relations", "original,never,frame"]
    shown = pcs.json(*command)
    kinds = [flag["kind"] for flag in shown["look_at"]]
    assert kinds == [
        "no gold labels",
        "constant annotator",
        "relation without votes",
        "unreadable answers",
        "texts cut",
    ]
    assert "3 of 12 texts do not fit into the context of troubled:short" in shown["look_at"][-1]["detail"]
    assert {kind: sum(reasons.values()) for kind, reasons in shown["silences"].items()} == {
        "not_applicable": 12,
        "rejected": 0,
        "unreadable": 12,
    }
    assert shown["weights"]["by_relation"] == {"original": 0.5, "never": None, "frame": 0.5}
    assert pcs.json("label", "data.csv", "--run", "runs/data")["look_at"] == shown["look_at"][-1:]
    page = section((tmp_path / "runs/data/report.html").read_text(encoding="utf-8"), "look-at")
    text = re.sub(r"\s+", " ", pcs.out("fit", "runs/data", "--details"))
    assert "never – 0 % – cast no votes" in text
    assert "12 rewrites did not apply: • 12 never" in text
    assert "12 answers were unreadable: • 12 no label in reply" in text
    evidence, _, answer = text.partition(f"labelled {len(texts)} rows")
    assert shown["look_at"][1]["detail"][:100] in answer  # the first is said with how good labels are
    for flag in shown["look_at"]:
        assert flag["detail"] in page
        assert evidence.count(flag["detail"]) == 1


def test_gold_rows_chosen_for_review_are_no_measure_of_how_common_labels_are() -> None:
    facts = facts_of(mixed(800, 200), [*mixed(10, 80), *mixed(40, 10)], 0.7)
    assert "label given too often" in found(facts)
    at_random = replace(facts, random_sample=np.arange(1000) >= 90)
    assert list(found(at_random)) == ["gold chosen"]
    assert "90 of 140 gold rows were chosen" in found(at_random)["gold chosen"]
    assert "gold chosen" not in found(replace(facts, random_sample=np.arange(1000) >= 10))
