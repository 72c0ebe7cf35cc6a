"""A folder of pages for a web server."""

import re
import shutil
from pathlib import Path
from urllib.parse import unquote

import pytest

from pcs_annotator.base.errors import TableError
from pcs_annotator.faces.cli.main import main
from pcs_annotator.showing.report.site import write_site
from pcs_annotator.tables.write import OutputPolicy
from pcs_annotator.verbs.fit import open_book
from tests.command_line import Pcs
from tests.made_once import made_once
from tests.showing.report.reading import Page

pytestmark = pytest.mark.system

CODEBOOK = """
[variables.topic]
labels = ["economy", "health"]
[variables.urgent]
labels = ["yes", "no"]
"""
ODD = "<b>news & more</b> 1"


def make_runs(place: Path) -> None:
    rows = [f"r{row},Text number {row} is here.,{('good', 'bad')[row % 2]}" for row in range(40)]
    (place / "data.csv").write_text("\n".join(["id,text,gold", *rows]), encoding="utf-8")
    (place / "texts.csv").write_text("\n".join(["id,text,said", *rows]), encoding="utf-8")
    (place / "book.toml").write_text(CODEBOOK, encoding="utf-8")
    asked = ["--model", "scripted:hash", "--relations", "original,order", "-q"]
    one = [str(place / "data.csv"), "--labels", "good,bad", "--optimiser", "lr", "-o", str(place / "one")]
    assert main(["run", *one, *asked]) == 0
    several = [str(place / "texts.csv"), "--config", str(place / "book.toml"), "-o", str(place / "book")]
    assert main(["run", *several, *asked]) in (0, 1)


@pytest.fixture
def runs(tmp_path_factory: pytest.TempPathFactory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    made = made_once(tmp_path_factory, "site", make_runs)
    shutil.copytree(made / "one", tmp_path / "deep" / "one")
    for name in ("one", "book"):
        shutil.copytree(made / name, tmp_path / name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_index_lists_every_run_with_links_that_lead_to_pages_which_lead_back(runs: Path, pcs: Pcs) -> None:
    assert main(["estimate", "one", "-o", "one/shares.html"]) == 0
    (runs / "one" / "notes.html").write_text("<title>Not ours</title>", encoding="utf-8")
    shutil.copy("one/shares.html", "one/shares-2026-01-31-120000.html")
    shutil.copy("one/shares.html", "book/variables/topic/shares.html")
    told = pcs.json("report", "one", "deep/one", "book", "one", "--site")
    index = runs / "site" / "index.html"
    assert Path(told["site"]) == index
    shown = Page(index.read_text(encoding="utf-8"))
    assert shown.text.count("labels can be used") + shown.text.count("labels, without a promise") >= 2
    assert "3 runs" in shown.text
    assert "40 rows: " in shown.text
    assert "topic, urgent: nothing is promised" in shown.text
    linked = {unquote(str(one["href"])) for one in shown.of("a") if not str(one["href"]).startswith("#")}
    reports = {"one/report.html", "one-2/report.html", "book/report.html"}
    shares = {name for name in linked if name.endswith("shares.html")} - {"book/topic-shares.html"}
    assert linked == {*reports, *shares, "book/topic-shares.html"}
    assert len(shares) == 1  # the other run of this name has none
    assert {str(path.relative_to(index.parent)) for path in index.parent.glob("*/*.html")} == linked
    for name in linked:
        page = (index.parent / name).read_text(encoding="utf-8")
        assert page.count('href="../index.html"') == 1
        assert not re.search('(href|src)="(/|http|file)', page)


def test_names_are_text_and_a_site_is_never_written_over(runs: Path) -> None:
    (runs / "one").rename(runs / ODD.replace("/", "-"))
    book = open_book(runs / ODD.replace("/", "-"))
    index, *_ = write_site([book], runs / "site")
    assert "<b>news" not in index.read_text(encoding="utf-8")
    with pytest.raises(TableError, match="add --replace"):
        write_site([book], runs / "site")
    write_site([book], runs / "site", OutputPolicy(replace=True))
    assert len([*runs.glob("site*")]) == 2


def test_of_several_runs_there_is_a_site_only(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "one", "deep/one"]) == 2
    assert "--site" in capsys.readouterr().err
