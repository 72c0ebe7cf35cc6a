import json
from pathlib import Path

import pytest

from pcs_annotator import PcsWarning
from pcs_annotator.base.errors import TableError
from pcs_annotator.tables.chunks import Columns, Dataset, read_source
from pcs_annotator.tables.fakenewsnet import is_fakenewsnet

HEADER = "id,news_url,title,tweet_ids\n"


def texts(found: Dataset) -> dict[str, tuple[str, str | None]]:
    return {item.id: (item.text, gold) for item, gold in zip(found.items, found.gold, strict=True)}


@pytest.fixture
def tables(tmp_path: Path) -> Path:
    for site in ("politifact", "gossipcop"):
        for label in ("fake", "real"):
            rows = "".join(
                f'{site}-{label}{n},http://x.example/{n},"{label.title()}, news {n} of {site}",1\t2\n' for n in range(6)
            )
            (tmp_path / f"{site}_{label}.csv").write_text(HEADER + rows, encoding="utf-8")
    return tmp_path


@pytest.fixture
def articles(tmp_path: Path) -> Path:
    for label in ("fake", "real"):
        folder = tmp_path / "politifact" / label / f"politifact-{label}"
        folder.mkdir(parents=True)
        content = {"title": f"A {label} title", "text": "It went on\nfor long.", "url": None}
        (folder / "news content.json").write_text(json.dumps(content), encoding="utf-8")
        (folder.parent / "politifact-never-downloaded").mkdir()
    return tmp_path


def test_a_plain_file_is_read_as_a_table(tmp_path: Path) -> None:
    path = tmp_path / "texts.csv"
    path.write_text("text,label\nA day.,good\n", encoding="utf-8")
    assert texts(read_source(path, Columns())) == {"1": ("A day.", "good")}
    odd = tmp_path / "hf:mine.csv"
    odd.write_text("text\nA day.\n", encoding="utf-8")
    assert not is_fakenewsnet(odd)


def test_titles_of_fakenewsnet_are_texts_and_the_name_of_the_file_is_gold(tables: Path) -> None:
    found = texts(read_source(f"fakenewsnet:{tables}", Columns()))
    assert len(found) == 24
    assert found["politifact-fake0"] == ("Fake, news 0 of politifact", "fake")
    assert found["gossipcop-real5"] == ("Real, news 5 of gossipcop", "real")
    one_site = texts(read_source(f"fakenewsnet:{tables}/politifact", Columns()))
    assert one_site == {name: row for name, row in found.items() if name.startswith("politifact-")}


def test_the_first_rows_of_fakenewsnet_are_of_both_labels(tables: Path) -> None:
    found = read_source(f"fakenewsnet:{tables}", Columns(), limit=10)
    assert len(found.items) == 10
    assert set(found.gold) == {"fake", "real"}
    assert found.items == read_source(f"fakenewsnet:{tables}", Columns(), limit=10).items


@pytest.mark.parametrize("part", ["", "/politifact"])
def test_articles_of_fakenewsnet_begin_with_their_title(articles: Path, part: str) -> None:
    found = texts(read_source(f"fakenewsnet:{articles}{part}", Columns()))
    assert found["politifact-fake"] == ("A fake title\n\nIt went on\nfor long.", "fake")
    assert found["politifact-real"][1] == "real"
    assert len(found) == 2
    titles = texts(read_source(f"fakenewsnet:{articles}{part}", Columns(text="title")))
    assert titles["politifact-fake"][0] == "A fake title"


def test_a_text_that_is_both_fake_and_real_has_no_gold(tables: Path) -> None:
    for label in ("fake", "real"):
        with (tables / f"politifact_{label}.csv").open("a", encoding="utf-8") as file:
            file.write(f"twin-{label},,The same title,\n")
    with pytest.warns(PcsWarning, match="2 rows.*fake and real"):
        found = texts(read_source(f"fakenewsnet:{tables}", Columns()))
    assert found["twin-fake"] == found["twin-real"] == ("The same title", None)
    assert found["politifact-fake0"][1] == "fake"


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (f"{HEADER}a,b,c,d\ne,f\n", r"site_fake\.csv, row 3.*4 columns, got 2"),
        ("id,news_url\na,b\n", r"site_fake\.csv.*'title'"),
        (f"{HEADER}a,b,c,d\n,b,c,d\n", r"site_fake\.csv, row 2.*id is empty"),
        (f"{HEADER}a,b,c,d\na,b,c,d\n", r"site_fake\.csv, row 2.*'a'.*row 1"),
        ("", "nothing found"),
    ],
)
def test_a_damaged_table_of_fakenewsnet_is_named_with_its_row(tmp_path: Path, content: str, problem: str) -> None:
    if content:
        (tmp_path / "site_fake.csv").write_text(content, encoding="utf-8")
    with pytest.raises(TableError, match=problem):
        read_source(f"fakenewsnet:{tmp_path}", Columns())


@pytest.mark.parametrize("content", ['{"title": "A title", "te', "[]", '{"title": 3}'])
def test_a_damaged_article_of_fakenewsnet_is_named(articles: Path, content: str) -> None:
    path = articles / "politifact" / "fake" / "politifact-fake" / "news content.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(TableError, match=r"politifact-fake/news content\.json"):
        read_source(f"fakenewsnet:{articles}", Columns())
