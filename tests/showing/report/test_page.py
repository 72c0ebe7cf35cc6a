import re
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from pcs_annotator.asking.engine.progress import Tally
from pcs_annotator.core.weights import Evidence, Interval
from pcs_annotator.judging.evaluate.scored import MethodFigures
from pcs_annotator.judging.metrics.figures import Estimate
from pcs_annotator.judging.metrics.significance import BootstrapTest
from pcs_annotator.showing.report.page import render, write_report
from tests.showing.report.reading import Page, listed, section
from tests.showing.report.results import QUICK, QUICKER, Made, book_of, made_learned, made_run

CASES = {
    "usual": Made(),
    "no gold": Made(gold=False),
    "one model and no rewrites": Made(skills=(0.8,), relations=("original",)),
    "no votes": Made(votes=False, gold=False),
    "no votes but gold": Made(votes=False),
    "one row": Made(rows=1),
    "too little gold": Made(rows=6),
    "no rows": Made(rows=0, gold=False),
    "several draws": Made(draws=5),
    "many labels": Made(labels=tuple(f"label {number}" for number in range(100)), rows=60, gold=False),
    "nothing paid": Made(prices=()),
    "thirty labels": Made(labels=tuple(f"label {number}" for number in range(30)), rows=150, learn=QUICKER),
    "three rows": Made(rows=3),
    "never wrong": Made(skills=(1.0, 1.0)),
    "graded": Made(graded=(True, True), relations=("original", "order")),
    "one graded question": Made(graded=(True, True), relations=("original",)),
    "graded and hard": Made(graded=(True, False)),
    "graded without gold": Made(graded=(True, False), gold=False),
    "right to left": Made(labels=("חיובי", "سلبي"), text="שלום עולם"),
}


@pytest.mark.parametrize("made", CASES.values(), ids=CASES.keys())
def test_every_page_is_well_formed_and_shows_no_missing_value(made: Made, tmp_path: Path) -> None:
    page = Page(render(made_run(tmp_path, made)))
    assert not re.search(r"\b(nan|None|inf|NaN|null|undefined)\b", page.text)
    assert not any("nan" in str(value) for _, attributes in page.tags for value in attributes.values())
    ids = [str(attributes["id"]) for _, attributes in page.tags if "id" in attributes]
    assert len(ids) == len(set(ids))


def test_headings_go_down_one_step_at_a_time(tmp_path: Path) -> None:
    levels = [int(tag[1]) for tag, _ in Page(render(made_run(tmp_path))).tags if re.fullmatch(r"h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(later <= earlier + 1 for earlier, later in pairwise(levels))


def test_links_lead_to_places_on_the_page_and_nothing_is_fetched(tmp_path: Path) -> None:
    names = ("https://example.org/v1#big-model", "b")
    page = Page(render(made_run(tmp_path, Made(names=names, text="See https://example.org/page"))))
    ids = {attributes.get("id") for _, attributes in page.tags}
    assert {str(link["href"]).removeprefix("#") for link in page.of("a")} <= ids
    fetching = {"src", "srcset", "action", "poster", "data", "style"}
    assert not any(fetching & attributes.keys() for _, attributes in page.tags)
    assert not page.of("link")
    assert not page.of("img")
    policy = next(meta for meta in page.of("meta") if meta.get("http-equiv") == "Content-Security-Policy")
    assert str(policy["content"]).startswith("default-src 'none'")


def test_style_and_script_fetch_nothing_either(tmp_path: Path) -> None:
    html = render(made_run(tmp_path))
    for kind in ("style", "script"):
        (inside,) = re.findall(rf"<{kind}>(.*?)</{kind}>", html, re.S)
        assert not re.search(r"https?:|[^ ]//|@import|url\(|fetch|innerHTML|eval", inside)


def test_the_same_run_gives_the_same_page(tmp_path: Path) -> None:
    first = render(made_run(tmp_path))
    made_learned.cache_clear()
    assert render(made_run(tmp_path)) == first


def test_the_header_shows_the_question(tmp_path: Path) -> None:
    page = Page(render(made_run(tmp_path)))
    for fact in ("tweets.csv", "1.2.3", "How does the writer feel?", "model-0", "voice"):
        assert fact in page.text
    assert "/home/user" not in page.text


def test_figures_come_with_intervals_and_rivals(tmp_path: Path) -> None:
    result = made_run(tmp_path)
    text = Page(render(result)).text
    first = result.learned.figures[0]
    low, high = first.auroc.interval.rounded(2)
    assert f"{first.auroc.value:.2f} [{low:.2f}, {high:.2f}]" in text
    assert "majority vote" in text
    assert "PCS, equal weights" in text
    assert "Cross-validated on 40 gold rows in 3 folds" in text


def _with_confidence(one: MethodFigures, found: Estimate | None) -> MethodFigures:
    others = {name: own for name, own in one.figures.items() if name != "auroc_confidence"}
    return one._replace(figures=others if found is None else {**others, "auroc_confidence": found})


def test_a_confidence_auroc_is_shown_with_its_interval_or_is_a_dash(tmp_path: Path) -> None:
    result = made_run(tmp_path)
    given = Estimate(0.71, Interval(0.6, 0.8), 40)
    for found, cell in ((given, "0.71 [0.60, 0.80]"), (None, "–")):
        figures = [_with_confidence(one, found) for one in result.learned.figures]
        text = Page(render(replace(result, learned=replace(result.learned, figures=figures)))).text
        assert text.count(cell) >= len(figures)
        assert ("Confidence AUROC is missing" not in text) == bool(found)
        assert "class AUROC" in text
        assert "whether right labels have a higher confidence than wrong ones" in text


@pytest.mark.parametrize(
    ("auroc", "accuracy", "verdict"),
    [
        ((0.05, 0.01), (0.05, 0.05), "PCS separates the labels better than a majority vote."),
        ((-0.05, 0.01), None, "PCS separates the labels worse than a majority vote."),
        ((0.05, 0.2), None, "No difference between PCS and a majority vote"),
        ((0.05, 0.2), (0.06, 0.01), "PCS is right more often than a majority vote."),
        ((0.05, 0.01), (0.06, 0.01), "PCS separates the labels better and is right more often than a majority vote."),
        ((0.05, 0.01), (-0.15, 0.01), "PCS separates the labels better and is right less often than a majority vote."),
    ],
)
def test_the_verdict_follows_the_adjusted_p_value(
    auroc: tuple[float, float], accuracy: tuple[float, float] | None, verdict: str, tmp_path: Path
) -> None:
    result = made_run(tmp_path)
    first, _, majority, *_ = result.learned.figures
    assert majority.behind is not None
    assert majority.accuracy_behind is not None
    # the interval of one comparison by itself excludes 0 in all cases
    by_auroc = BootstrapTest(auroc[0], Interval(auroc[0] - 0.01, auroc[0] + 0.01), 0.001, 40)
    changed = majority._replace(behind=by_auroc, holm=auroc[1], accuracy_behind=None)
    if accuracy is not None:
        by_accuracy = by_auroc._replace(difference=accuracy[0])
        changed = changed._replace(accuracy_behind=by_accuracy, holm_accuracy=accuracy[1])
    learned = replace(result.learned, figures=[first, changed])
    text = Page(render(replace(result, learned=learned))).text
    assert verdict in text
    assert "p is adjusted for the number of methods (Holm)" in text


def test_without_gold_the_quality_is_unknown(tmp_path: Path) -> None:
    html = render(made_run(tmp_path, Made(gold=False)))
    assert "Not known yet. No gold labels" in section(html, "quality")
    assert "no gold labels" in section(html, "questions")
    text = section(html, "rows")
    assert "low score (below 0.70)" in text
    assert "low confidence" not in text
    assert "differs from gold" not in text


def test_the_choice_of_auto_and_a_class_aware_optimiser_are_shown(tmp_path: Path) -> None:
    result = made_run(tmp_path)
    weights = result.learned.model.weights
    labels = len(result.votes.labels)
    evidence = Evidence(
        labels=result.votes.labels, log_prior=np.zeros(labels), log_likelihood=np.zeros((2, 3, labels, labels))
    )
    chosen = replace(weights.diagnostics, optimiser="auto")
    model = replace(result.learned.model, weights=replace(weights, evidence=evidence, diagnostics=chosen))
    shown = replace(result, learned=replace(result.learned, model=model))
    text = Page(render(shown)).text
    assert "by auto." in text
    assert "which labels each model confuses" in text
    averaging = replace(weights, evidence=replace(evidence, reads="mean log-odds"), diagnostics=chosen)
    scaled = replace(result.learned, model=replace(model, weights=averaging))
    assert "its questions count the same" in section(render(replace(result, learned=scaled)), "questions")
    assert "PCS, lr: auto" in text


def test_nothing_is_said_to_be_learned_without_gold_or_by_fixed_weights(tmp_path: Path) -> None:
    unlabelled = section(render(made_run(tmp_path, Made(gold=False, graded=(True, True)))), "questions")
    assert "There are no gold labels, so all votes count the same. " in unlabelled
    uniform = Made(graded=(True, True), learn=replace(QUICK, optimiser="uniform"))
    fixed = section(render(made_run(tmp_path, uniform)), "questions")
    assert "The weights are fixed, because uniform learns nothing. " in fixed
    for shown in (unlabelled, fixed):
        assert "its questions count the same." in shown
        assert "learned" not in shown.lower()
        assert "learns a scale" not in shown.lower()


def test_own_prices_are_among_the_settings(tmp_path: Path) -> None:
    result = made_run(tmp_path)
    ask = replace(result.config.ask, prices={"openai:x": (0.5, 1.5)})
    text = Page(render(replace(result, config=replace(result.config, ask=ask)))).text
    assert "prices · openai:x 0.5, 1.5" in text


def test_a_silent_and_a_constant_model_are_named(tmp_path: Path) -> None:
    result = made_run(tmp_path, Made(skills=(0.97, 0.96, 0.95), learn=replace(QUICK, max_error=None)))
    assert "Nothing stood out" in section(render(result), "look-at")
    silent = made_run(tmp_path, Made(votes=False, gold=False))
    text = section(render(silent), "look-at")
    assert "silent model model-0" in text
    assert "40 rows have no label" in text


def test_costs_are_added_up_and_an_unknown_price_is_not_zero(tmp_path: Path) -> None:
    text = Page(render(made_run(tmp_path))).text
    assert "model-0 label 120 9,000 240 $0.2500" in text
    assert "model-1 label 120 9,000 240 price unknown" in text
    assert "total 240 18,000 480 at least $0.2500" in text


def test_calls_retries_and_failures_of_the_last_run_are_counted(tmp_path: Path) -> None:
    tally = Tally(calls=12, from_ledger=3, retries=Counter(TimedOut=2), failed=Counter({"server error": 1}))
    text = Page(render(replace(made_run(tmp_path, Made(tally=tally)), unreadable={"refusal": 4}))).text
    assert re.search("12 calls; 3 answers .*; 2 retries: 2 time-outs", text)
    assert "Why answers were unreadable 4 refusal" in text
    assert "1 server error" in text


def test_missing_rewrites_are_counted_by_their_reason(tmp_path: Path) -> None:
    text = section(render(made_run(tmp_path, Made(rows=21))), "questions")
    assert "Why rewrites did not apply 7 synonym: no subject" in text
    assert "2 voice: a negation was added" in text


def test_passwords_in_addresses_are_not_shown(tmp_path: Path) -> None:
    result = made_run(tmp_path)
    ask = replace(result.config.ask, models=("http://user:secret@host:1/v1#m",))
    html = render(replace(result, config=replace(result.config, ask=ask)))
    assert "secret" not in html
    assert "http://host:1/v1#m" in html


def test_a_lone_surrogate_does_not_stop_the_page(tmp_path: Path) -> None:
    result = made_run(tmp_path)
    item = replace(result.dataset.items[0], text="half \ud83d of a smile \x00\x1b[31m")
    dataset = replace(result.dataset, items=(item, *result.dataset.items[1:]))
    write_report(book_of(replace(result, dataset=dataset)), tmp_path / "report.html")
    shown = listed((tmp_path / "report.html").read_text(encoding="utf-8"))[0]["text"]
    assert shown == "half � of a smile \x00\x1b[31m"
