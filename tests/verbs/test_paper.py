"""Several coders in a run, and tables for a paper."""

import csv
import io
import re
import shutil
from pathlib import Path

import pytest

from pcs_annotator import PcsWarning
from pcs_annotator.base.errors import GoldError, LabelError
from pcs_annotator.faces.cli.main import main
from pcs_annotator.judging.evaluate.agreement import MAJORITY, MODEL
from pcs_annotator.reviewing.session import Review
from pcs_annotator.reviewing.values import ReviewOptions
from pcs_annotator.runs.run_request import RunRequest
from pcs_annotator.runs.settings import AskSettings, Config, LearnSettings, RelationSettings, TaskSettings
from pcs_annotator.showing.report.page import render
from pcs_annotator.studies.methods_text import methods_of
from pcs_annotator.verbs.fit import fit_run, open_run
from pcs_annotator.verbs.paper import Paper, format_of, paper_of, paper_text
from tests.command_line import Pcs
from tests.reviewing.reviewing import judge
from tests.showing.report.reading import section
from tests.simulated import run, simulated_models, truth_of, write_csv
from tests.stub.behaviour import pick

pytestmark = pytest.mark.system  # whole runs, one after the other

INSTRUCTION = r"How is it? Use 100 % of the_text & {mind} \the #1 rule ~ $5^2 <\"quoted\">."
ROWS, CODED = 90, 60
LEARN = LearnSettings(optimiser="lr", folds=3, resamples=40, max_error=0.4)


def coded(row: int, coder: str) -> str:
    """Return what a coder says about a text: mostly the truth."""
    truth = truth_of(row)
    right = pick(100, coder, str(row)) < 85
    return truth if right else {"good": "bad", "bad": "good"}[truth]


def coded_rows(coders: tuple[str, ...]) -> list[dict[str, str]]:
    return [
        {
            "id": f"t{row}",
            "text": f"Case {row} looks {truth_of(row)}.",
            **{f"gold_{name}": coded(row, name) if row < CODED else "" for name in coders},
        }
        for row in range(ROWS)
    ]


def labelled(folder: Path, coders: tuple[str, ...]) -> Path:
    """Label texts that several people coded, and return the run folder."""
    config = Config(
        task=TaskSettings(
            labels=("good", "bad"), instruction=INSTRUCTION, kind="scale", meanings={"good": "100% fine"}
        ),
        ask=AskSettings(models=("simulated:large_1@85", "simulated:small@65")),
        relations=RelationSettings(use=("original", "frame")),
        learn=LEARN,
    )
    data = write_csv(folder / "data_1&2.csv", coded_rows(coders))
    with simulated_models():
        run(RunRequest(data=data, folder=folder / "run", config=config))
    return folder / "run"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return labelled(tmp_path_factory.mktemp("paper"), ("anna", "ben"))


@pytest.fixture(scope="module")
def paper(made: Path) -> Paper:
    return paper_of(open_run(made))


def test_gold_is_the_majority_of_the_coders_and_ties_are_not_learned_from(made: Path) -> None:
    result = open_run(made)
    tied = [row for row in range(CODED) if coded(row, "anna") != coded(row, "ben")]
    coders, found = result.learned.among_coders, result.learned.against_gold
    assert coders is not None
    assert found is not None
    assert tied
    assert (coders.rows, coders.tied) == (CODED, len(tied))
    assert found.n == result.learned.model.gold_rows == CODED - len(tied)
    by_name = {(one.first, one.second): one.figures["agreement"] for one in coders.pairs}
    assert by_name["anna", "ben"].value == pytest.approx(1 - len(tied) / CODED)
    assert by_name[MODEL, "anna"].n == CODED  # rows on which people tie are compared too
    assert by_name[MODEL, MAJORITY].value == found.figures["accuracy"].value


def test_a_label_of_one_coder_that_is_none_is_refused_before_anything_is_paid_for(tmp_path: Path) -> None:
    rows = coded_rows(("anna", "ben"))
    rows[7]["gold_ben"] = "goood"
    config = Config(task=TaskSettings(labels=("good", "bad")), ask=AskSettings(models=("simulated:a@85",)))
    with simulated_models(), pytest.raises(LabelError, match="id 't7', coder ben: 'goood'"):
        run(RunRequest(data=write_csv(tmp_path / "data.csv", rows), folder=tmp_path / "run", config=config))
    assert not (tmp_path / "run").exists()


def test_the_methods_paragraph_has_what_readers_need(paper: Paper) -> None:
    for part in (
        "90 texts (data_1&2.csv) were labelled as good and bad by 2 language models (simulated:large_1@85 and ",
        "The models were asked on 20",
        " ".join(INSTRUCTION.split()),
        "Labels were explained: good: 100% fine.",
        "up to 2 ways (original and frame)",
        "2 coders (anna and ben) labelled rows; ",
        "came with the data and are assumed to be drawn at random",
        "the majority of the coders (rows on which they tie have none)",
        "3-fold cross-validation",
        "To cite: Perceived Confidence Score: Salimian et al.",
    ):
        assert part in paper.methods
    assert re.search(r"(Promise: at most|No promise that at most) 40 %", paper.methods)
    assert re.search(r"\d+ calls were made, (of unknown price|at a cost of)", paper.methods)


def test_a_ledger_that_cannot_be_read_is_named_instead_of_the_days(made: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(made, tmp_path / "run")
    result = open_run(folder)
    (folder / "ledger.db").write_bytes(b"this is no database" * 100)
    with pytest.warns(PcsWarning, match=r"the days of the calls are not known: .*ledger\.db.*damaged"):
        assert "on days that are not recorded" in paper_of(result).methods


def with_copies(folder: Path, name: str, ledger: str = "", texts: int = 80) -> Path:
    """Label 90 rows with so many texts, of which the first and last rows have gold, and return the run folder."""
    rows = [
        {"id": f"t{row}", "text": f"Case {row % texts} looks {truth_of(row % texts)}.", "gold": truth_of(row % texts)}
        for row in range(ROWS)
    ]
    data = write_csv(
        folder / "copies.csv",
        [{**row, "gold": row["gold"] if at >= 50 or at < 10 else ""} for at, row in enumerate(rows)],
    )
    config = Config(
        task=TaskSettings(labels=("good", "bad")),
        ask=AskSettings(models=("simulated:large_1@85",), ledger=ledger),
        relations=RelationSettings(use=("original", "rule:frame")),
        learn=LEARN,
    )
    with simulated_models():
        run(RunRequest(data=data, folder=folder / name, config=config))
    return folder / name


def test_copies_and_verdicts_are_counted_in_the_paragraph_as_in_a_fit(tmp_path: Path) -> None:
    folder = with_copies(tmp_path, "run")
    first = paper_of(open_run(folder)).methods
    assumed = "40 came with the data and are assumed to be drawn at random"
    assert f"50 rows had a gold label; {assumed} and 10 repeat a text and were not counted again." in first
    fit_run(folder, {"max_error": None})  # nothing is accepted, so that all rows are for people
    with Review.open(folder, ReviewOptions(refit_every=0, seed=1)) as review:
        for _ in range(12):
            judge(review, "doubtful", lambda shown: truth_of(int(shown.text.split()[1])))
    result = fit_run(folder)
    assert result.verdicts.counts["at_random"] == 0
    methods = paper_of(result).methods
    assert f"62 rows had a gold label; {assumed}, 12 were chosen otherwise and 10 repeat a text" in methods
    assert "Figures include the 12 rows that were chosen otherwise, so they describe the gold rows" in methods
    assert "Figures include" not in first


def test_answers_that_others_paid_for_count_like_own_ones(tmp_path: Path) -> None:
    ledger = str(tmp_path / "shared.db")
    first, second = (with_copies(tmp_path, name, ledger, ROWS) for name in ("first", "second"))
    paid = re.search(r"([\d,]+) calls were made, (?:of unknown price|at a cost of \S+)\.", methods_of(open_run(first)))
    assert paid is not None
    said = methods_of(open_run(second))
    assert f"{paid[1]} calls were made, " in said
    assert "counting all calls in the ledger that this run shares" in said


# Every special character of LaTeX that is not escaped, and every command that we do not write ourselves.
SPECIAL = re.compile(r"(?<!\\)[#$%&_^~]|[^\x00-\u024f“”’]")
COMMANDS = frozenset(
    "alpha begin bottomrule caption centering delta epsilon dots else end fi footnotesize ge ifdim kappa label le "  # noqa: SIM905
    "linewidth midrule multicolumn par paragraph resizebox textasciicircum textasciitilde textbackslash textbar textbf "
    "textquotedbl times toprule usepackage width".split()
)


def test_latex_has_no_character_that_would_not_compile(paper: Paper) -> None:
    text = paper_text(paper, "latex")
    for line in text.splitlines():
        body = re.sub(r"^% .*|\{%$", "", line)
        body = re.sub(r"\$(\\[a-z]+|[<>-])\$", "", body)  # our own mathematics
        body = body.replace(r"\\", "").replace(" & ", " ") if body.rstrip().endswith(r"\\") else body
        assert not SPECIAL.search(body.replace(r"\&", "")), line
    assert set(re.findall(r"\\([A-Za-z]+)", text)) <= COMMANDS
    for name in ("table", "tabular"):
        assert text.count(rf"\begin{{{name}}}") == text.count(rf"\end{{{name}}}") == 4
    depth = 0
    for brace in re.findall(r"(?<!\\)[{}]", text):
        depth += 1 if brace == "{" else -1
        assert depth >= 0
    assert depth == 0
    columns = re.findall(r"\\begin\{tabular\}\{([lr]+)\}", text)
    for layout, table in zip(columns, re.findall(r"\\toprule\n(.*?)\\bottomrule", text, re.S), strict=True):
        lines = [line for line in table.splitlines() if line.endswith(r"\\")]
        assert {len(re.findall(r"(?<!\\)&", line)) for line in lines} == {len(layout) - 1}


def test_scripts_that_pdflatex_lacks_are_said_in_a_comment(paper: Paper) -> None:
    assert not paper_text(paper, "latex").startswith("% has characters")
    assert paper_text(paper._replace(methods="好"), "latex").startswith("% has characters that pdfLaTeX may lack")


def test_csv_has_one_row_per_figure(paper: Paper) -> None:
    rows = list(csv.DictReader(io.StringIO(paper_text(paper, "csv"))))
    assert list(rows[0]) == ["quantity", "label", "other", "value", "low", "high", "n"]
    keys = [(row["quantity"], row["label"], row["other"]) for row in rows]
    assert len(set(keys)) == len(keys)
    found = dict(zip(keys, rows, strict=True))
    assert float(found["kappa", "", ""]["low"]) <= float(found["kappa", "", ""]["value"])
    counts = [int(row["value"]) for row in rows if row["quantity"] == "count"]
    assert sum(counts) == int(found["accuracy", "", ""]["n"])
    for quantity, key in (("share_of_gold", "other"), ("share_of_label", "label")):
        shares = [float(row["value"]) for row in rows if row["quantity"] == quantity and row[key] == "good"]
        assert sum(shares) == pytest.approx(1, abs=1e-5)
    assert ("pair_kappa", "anna", "ben") in found
    assert ("auroc", "", "") in found


def test_the_ending_or_the_option_decides_about_the_format(pcs: Pcs, made: Path) -> None:
    assert format_of(None, Path("a.TEX")) == "latex"
    assert format_of(None, Path("results")) == "markdown"
    assert format_of("csv", Path("a.txt")) == "csv"
    assert pcs.out("paper", made, "--format", "csv", "--order", "bad,good").startswith("quantity,")
    assert main(["paper", str(made), "-o", "a.pdf"]) == 2
    assert "--order must name every label once" in pcs.refused("paper", made, "--order", "bad")


def test_an_order_given_later_counts_the_same_rows(made: Path, paper: Paper) -> None:
    turned = paper_of(open_run(made), ["bad", "good"])
    values = {row[0]: row[3] for row in paper.figures.rows if not row[1]}
    assert {row[0]: row[3] for row in turned.figures.rows if not row[1]} == pytest.approx(values)
    assert [row[1] for row in turned.figures.rows if row[0] == "count"][:1] == ["bad"]


def test_fewer_gold_rows_than_two_per_fold_leave_only_figures_of_scores_out(made: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(made, tmp_path / "run")
    found = paper_of(fit_run(folder, {"folds": 30}))
    assert {row[0] for row in found.figures.rows} & {"accuracy", "auroc"} == {"accuracy"}


def test_without_enough_gold_there_is_no_table_and_the_message_says_why(tmp_path: Path) -> None:
    folder = labelled(tmp_path, ())
    with pytest.raises(GoldError, match="no figures of labels against gold: no gold labels, so all votes count"):
        paper_of(open_run(folder))
    assert "Not known yet. No gold labels" in section(render(open_run(folder)), "quality")
