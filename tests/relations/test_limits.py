"""Files in other languages than English: what can be asked, what cannot, and who says so."""

import csv
import json
import warnings
from collections.abc import Sequence
from itertools import product
from pathlib import Path

import pytest

from pcs_annotator import PcsWarning, RelationOptions
from pcs_annotator.faces.cli.main import main
from pcs_annotator.relations.base import Context
from pcs_annotator.relations.combine import choose_relations
from pcs_annotator.relations.limits import languages_of, usual_text_relation
from pcs_annotator.runs.run_request import RunRequest
from pcs_annotator.runs.settings import AskSettings, Config, LearnSettings, RelationSettings, TaskSettings
from pcs_annotator.showing.findings import what_to_look_at
from pcs_annotator.verbs.plan import plan
from tests.simulated import run

QUICK = LearnSettings(optimiser="uniform", folds=3, resamples=0, max_error=None)
THINGS = ("Der Fernseher", "Die Lieferung", "Das Zimmer", "Der Kundendienst", "Die neue App", "Das Frühstück",
          "Der Staubsauger", "Die Matratze", "Das Fahrrad", "Der Drucker")  # fmt: skip
VERDICTS = ("war leider eine Enttäuschung", "hat mich wirklich überzeugt", "ist in Ordnung, mehr aber nicht",
            "kam viel zu spät und beschädigt an", "funktioniert seit Wochen ohne Probleme")  # fmt: skip
WHEN = ("im letzten Urlaub", "nach dem zweiten Versuch", "für diesen Preis", "am vergangenen Montag")
ENDS = ("Ich würde nie wieder dort kaufen.", "Meine Familie ist zufrieden.", "Man merkt, dass hier gespart wurde.",
        "Wir haben 25.000 Schritte getestet.", "So etwas habe ich noch nicht erlebt!", "Vielen Dank an das Team.",
        "Der Preis von 49,90 Euro ist fair.", "Warum antwortet niemand auf meine E-Mails?",
        "Das Gerät ist leise und schnell.", "Ich kann es weder loben noch tadeln.")  # fmt: skip
GERMAN = [f"{thing} {verdict} {when}. {end}" for thing, verdict, when, end in product(THINGS, VERDICTS, WHEN, ENDS)]
CHINESE = [f"这家{place}的{what}{how}。" for place, what, how in product(
    ("餐厅", "酒店", "商店"), ("服务", "价格", "环境"), ("非常好", "很差", "还可以")
)]  # fmt: skip
ARABIC = [f"{what} في هذا {place} {how} جدا" for what, place, how in product(
    ("الخدمة", "الطعام"), ("المطعم", "الفندق"), ("ممتاز", "سيئ", "بطيء")
)]  # fmt: skip
ENGLISH = [f"The {thing} {verdict}." for thing, verdict in product(
    ("phone", "hotel", "film"), ("was very good", "broke after a week", "cost too much")
)]  # fmt: skip


def request_for(folder: Path, texts: Sequence[str], relations: tuple[str, ...] = ()) -> RunRequest:
    data = folder / "data.csv"
    with data.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("id", "text"), *enumerate(texts)])
    config = Config(
        task=TaskSettings(labels=("gut", "mittel", "schlecht"), instruction="Wie beurteilt der Text das Produkt?"),
        ask=AskSettings(models=("scripted:hash",)),
        relations=RelationSettings(use=relations),
        learn=QUICK,
    )
    return RunRequest(data=data, folder=folder / "run", config=config)


@pytest.mark.parametrize("rows", [100, pytest.param(2000, marks=pytest.mark.slow)])
def test_every_row_of_a_german_file_has_votes_from_four_variants_without_a_rewriter(tmp_path: Path, rows: int) -> None:
    texts = GERMAN[:: 2000 // rows]
    assert len(set(texts)) == rows
    votes = run(request_for(tmp_path, texts)).votes
    voted = (votes.codes >= 0).any(axis=(1, 3)).sum(axis=1)
    assert voted.tolist() == [5] * rows


@pytest.mark.asyncio
async def test_every_row_of_a_german_file_has_a_variant_of_every_free_rule() -> None:
    rules = choose_relations(["case", "typo", "frame"], RelationOptions())
    for text in GERMAN[::10]:
        assert [(await rule.rewrite(text, Context())).status for rule in rules] == ["changed"] * 3


def test_the_report_names_what_could_not_be_done_and_what_to_use_instead(tmp_path: Path) -> None:
    wanted = ("original", "order", "case", "typo", "frame")
    with pytest.warns(PcsWarning, match="case and typo can do nothing with 100 % of the texts") as said:
        result = run(request_for(tmp_path, CHINESE, wanted))
    assert len(said) == 1
    (found,) = [flag for flag in what_to_look_at(result) if "case" in flag.detail]
    assert found.kind == "not for this language"
    assert found.detail.endswith("(100 % Chinese): use order, wording, layout or frame instead")
    assert "can do nothing with 100 % of the texts" in result.folder.report.read_text(encoding="utf-8")
    rewritten = result.votes.relations.index("frame")
    assert (result.votes.codes[:, :, rewritten] >= 0).any(axis=(1, 2)).mean() > 0.95


def test_a_plan_foresees_it_and_without_names_warns_of_nothing(tmp_path: Path) -> None:
    planned = plan(request_for(tmp_path, [*CHINESE, *ENGLISH], ("original", "typo", "frame")))
    assert planned.languages is not None
    assert list(planned.languages.counts) == ["zh", "en"]
    assert planned.languages.limits == {"typo": 27}
    assert "typo can do nothing with 75 % of the texts (75 % Chinese, 25 % English)" in planned.languages.warning

    planned = plan(request_for(tmp_path, CHINESE))
    assert planned.languages is not None
    assert planned.languages.warning == ""


def test_the_command_says_it_in_words_and_in_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = str(request_for(tmp_path, CHINESE).data)
    command = ["plan", data, "--model", "scripted:hash", "--labels", "a,b", "--relations", "original,case"]
    assert main(command) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "languages of 27 texts: 100 % Chinese" in shown
    assert "case can do nothing with 100 % of the texts" in shown
    assert main([*command, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["languages"]
    assert (found["texts"], found["relations_that_do_not_apply"]) == ({"zh": 27}, {"case": 27})


def test_english_files_are_spared(tmp_path: Path) -> None:
    with warnings.catch_warnings(action="error"):
        result = run(request_for(tmp_path, ENGLISH, ("original", "case", "frame")))
    assert "not for this language" not in {flag.kind for flag in what_to_look_at(result)}


@pytest.mark.parametrize(
    ("texts", "relation"),
    [(ENGLISH, "case"), (GERMAN[:50], "case"), (CHINESE, "frame"), (ARABIC, "frame"), ([], "case"),
     ([*GERMAN[:20], *CHINESE[:10]], "case"), (["", " "], "case"), (["2024", "17"], "typo")],
    ids=["English", "German", "Chinese", "Arabic", "unknown", "mixed", "empty", "numbers"],
)  # fmt: skip
def test_by_default_the_text_changes_as_its_script_allows(texts: list[str], relation: str) -> None:
    assert usual_text_relation(texts) == relation


def test_the_order_of_rows_makes_no_difference() -> None:
    chosen = choose_relations(["case", "order+typo"], RelationOptions())
    mixed = [*GERMAN, *CHINESE, *ARABIC, *ENGLISH]
    forth, back = languages_of(mixed, chosen), languages_of(reversed(mixed), chosen)
    assert (forth.sample, forth.limits) == (back.sample, back.limits)
    assert list(forth.limits) == ["case", "order+typo"]
