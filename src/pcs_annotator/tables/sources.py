"""Where texts come from: a table, or a public dataset in its published layout.

```text
fakenewsnet:FOLDER     FakeNewsNet (Shu et al., arXiv:1809.01286), one site of it as FOLDER/SITE:
                       politifact_fake.csv, politifact_real.csv, …              id, news_url, title, tweet_ids
                       politifact/fake/politifact15014/news content.json        title, text, url, …
```
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from itertools import chain
from pathlib import Path
from typing import Any

from pcs_annotator.base.errors import TableError, warn_user
from pcs_annotator.core.arrays import is_column
from pcs_annotator.core.task import Item
from pcs_annotator.tables.arrow import pa
from pcs_annotator.tables.table_files import AS_FOUND, PARQUET, Reading, ending_of, refuse_repeated
from pcs_annotator.tables.table_parts import open_parts, source_name
from pcs_annotator.tables.tables import Columns, Dataset, TableStream, find_columns
from pcs_annotator.tables.tabular import as_arrow, columns_of, place_or_table, text_column, texts_of

NEWS_LABELS = ("fake", "real")
ARTICLE = "news content.json"
FAKENEWSNET = "fakenewsnet"  # before the colon of a source

Row = Mapping[str, str]


def read_source(spec: Path | str, columns: Columns, limit: int | None = None, reading: Reading = AS_FOUND) -> Dataset:
    """Return all texts of a source at once, with their gold labels where it has some; see `open_stream`."""
    return open_stream(spec, columns, limit, reading=reading).read()


def items_of(given: object, text_column: str | None = None) -> Sequence[Item]:
    """Return the texts that Python code gave: a list or a column of them, a table, or where one is."""
    if is_column(given):
        return [Item(id=str(row), text=text or "") for row, text in enumerate(texts_of(given, "the texts"), 1)]
    stream = open_stream(place_or_table(given), Columns(text=text_column))
    table = stream.table()
    return TableStream.of(table, stream.name, stream.columns).read().items if len(table) else ()


def open_stream(
    spec: Path | str | pa.Table, columns: Columns, limit: int | None = None, reading: Reading = AS_FOUND
) -> TableStream:
    """Return the texts of a source, to be read in chunks; a look at its columns is all that is read here.

    Of JSON Lines, every row is looked at, because each may have a column of its own. A source is a file, a folder of
    files, or a pattern such as `parts/*.parquet`, here or at an address such as `s3://bucket/news.csv`; `-` for
    standard input; a public dataset, as above; or a table in memory.
    """
    if not isinstance(spec, Path | str):
        return TableStream.of(spec, name_in_memory(spec), columns, limit)
    if is_public_set(spec):
        table = _read_fakenewsnet(str(spec).partition(":")[2])
        return TableStream.of(table, str(spec), columns, limit)
    files, (schema, rows, dialect, _) = open_parts(spec, limit, reading)
    name = source_name(spec)
    refuse_repeated(schema.names, name)
    return TableStream(
        name=name,
        columns=find_columns(dict.fromkeys(schema.names), name, columns),
        schema=schema,
        total=rows,
        batches=lambda wanted: chain.from_iterable(file.batches(wanted) for file in files),
        versions=lambda: [file.version() for file in files],
        packed=any(file.packed for file in files),
        parquet=ending_of(files[0].name).kind in PARQUET,
        dialect=dialect,
        limit=limit,
    )


def name_in_memory(table: pa.Table) -> str:
    """Return what messages and run folders call a table that is in memory."""
    return f"the table of {len(table):,} rows"


def is_public_set(spec: Path | str) -> bool:
    """Return whether a source names the layout of a public dataset; an existing file of that name takes precedence."""
    layout, colon, rest = str(spec).partition(":")
    if not colon or rest.startswith("//") or Path(spec).exists():  # `hf://datasets/…` is an address like others
        return False
    return layout == FAKENEWSNET


def _read_fakenewsnet(place: str) -> pa.Table:
    """Return id, site, title, text, url and gold of all sites in a folder, or of one, `FOLDER/SITE`.

    The text is the title, followed by the article if it was downloaded. A text that occurs as both fake and real has no
    gold, because nothing in the text tells the two apart. Rows are in a fixed order that mixes sites and labels, so
    that the first N rows are a sample of all.
    """
    folder = Path(place)
    rows = [*_from_tables(folder), *_from_articles(folder)]
    if not rows:
        raise TableError(
            f"fakenewsnet:{place}: nothing found; name a folder with politifact_fake.csv, politifact_real.csv, …, "
            f"or with SITE/fake/ID/{ARTICLE}; add /SITE to the folder to read one site"
        )
    _refuse_twins(rows)
    rows.sort(key=lambda row: blake2b(row["id"].encode()).digest())
    names = ("id", "site", "title", "text", "url")
    columns = {name: [row[name] for row in rows] for name in names}
    return pa.table({**columns, "gold": _news_gold(rows, place)})


def _from_tables(folder: Path) -> Iterator[Row]:
    home, pattern = (folder, "*") if folder.is_dir() else (folder.parent, folder.name)
    for path in sorted(path for label in NEWS_LABELS for path in home.glob(f"{pattern}_{label}.csv")):
        site, _, label = path.stem.rpartition("_")
        columns = columns_of(as_arrow(path))
        missing = [name for name in ("id", "title") if name not in columns]
        if missing:
            raise TableError(f"{path} has no column {missing[0]!r}: FakeNewsNet has id, news_url, title, tweet_ids")
        ids, titles = (text_column(name, columns[name]).to_pylist() for name in ("id", "title"))
        urls = text_column("news_url", columns["news_url"]).to_pylist() if "news_url" in columns else [""] * len(ids)
        for number, (name, title, url) in enumerate(zip(ids, titles, urls, strict=True), 1):
            if not name:
                raise TableError(f"{path}, row {number}: the id is empty; complete the row, or download the file again")
            yield _news_row(name, site, title or "", "", url=url or "", gold=label, where=f"{path}, row {number}")


def _from_articles(folder: Path) -> Iterator[Row]:
    sites = [folder] if any((folder / label).is_dir() for label in NEWS_LABELS) else sorted(folder.glob("*/"))
    for site in sites:
        for label in NEWS_LABELS:
            for path in sorted(site.glob(f"{label}/*/{ARTICLE}")):
                found = _article(path)
                title, text, url = (found.get(name) or "" for name in ("title", "text", "url"))
                yield _news_row(path.parent.name, site.name, title, text, url=url, gold=label, where=str(path))


def _article(path: Path) -> Mapping[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError) as error:
        raise TableError(f"{path} cannot be read ({error}): download it again, or remove its folder") from None
    if not isinstance(found, dict) or not all(isinstance(found.get(name) or "", str) for name in ("title", "text")):
        raise TableError(f"{path}: title and text must be texts in an object: download it again, or remove its folder")
    return found


def _news_row(name: str, site: str, title: str, text: str, **more: str) -> Row:
    whole = "\n\n".join(part for part in (title.strip(), text.strip()) if part)
    return {"id": name, "site": site, "title": title, "text": whole, **more}


def _refuse_twins(rows: list[Row]) -> None:
    seen: dict[str, str] = {}
    for row in rows:
        first = seen.setdefault(row["id"], row["where"])
        if first != row["where"]:
            raise TableError(f"{row['where']} has the same id {row['id']!r} as {first}: remove one of the two")


def _news_gold(rows: list[Row], place: str) -> list[str | None]:
    labels: dict[str, set[str]] = {}
    for row in rows:
        labels.setdefault(row["text"], set()).add(row["gold"])
    unclear = [bool(row["text"]) and len(labels[row["text"]]) > 1 for row in rows]
    if any(unclear):
        warn_user(
            f"fakenewsnet:{place}: {sum(unclear)} rows have a text that occurs as both fake and real: they get no gold"
        )
    return [None if skip else row["gold"] for row, skip in zip(rows, unclear, strict=True)]
