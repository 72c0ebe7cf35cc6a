"""Where texts come from: a table, or a public dataset in its published layout.

```text
fakenewsnet:FOLDER     FakeNewsNet (Shu et al., arXiv:1809.01286), one site of it as FOLDER/SITE:
                       politifact_fake.csv, politifact_real.csv, …              id, news_url, title, tweet_ids
                       politifact/fake/politifact15014/news content.json        title, text, url, …
sentiment:FILE         a file of Sp1786/multiclass-sentiment-analysis-dataset
hf:OWNER/NAME@SPLIT    a dataset of Hugging Face
```
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import blake2b
from itertools import chain
from pathlib import Path
from typing import Any

from pcs_annotator.base.errors import MissingPackage, TableError, warn_user
from pcs_annotator.base.text import first_line
from pcs_annotator.core.arrays import is_column
from pcs_annotator.core.task import Item
from pcs_annotator.tables.arrow import pa
from pcs_annotator.tables.table_files import AS_FOUND, PARQUET, Reading, ending_of, refuse_repeated
from pcs_annotator.tables.table_parts import open_parts, source_name
from pcs_annotator.tables.tables import Columns, Dataset, TableStream, find_columns
from pcs_annotator.tables.tabular import as_arrow, columns_of, place_or_table, text_column, texts_of

NEWS_LABELS = ("fake", "real")
ARTICLE = "news content.json"
SENTIMENTS = ("negative", "neutral", "positive")  # by number: 0, 1, 2
SENTIMENT_COLUMNS = ("sentiment", "label")
SPLITS = ("test", "validation", "train")  # the default split is the first of these that exists

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
        layout, _, place = str(spec).partition(":")
        return TableStream.of(_LOADERS[layout](place), str(spec), columns, limit)
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
    layout, colon, rest = str(spec).partition(":")  # `hf://datasets/OWNER/NAME/FILE` is an address like others
    return bool(colon) and layout in _LOADERS and not rest.startswith("//") and not Path(spec).exists()


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


def _read_sentiment_file(place: str) -> pa.Table:
    """Return a file of the sentiment set (CSV, JSONL or Parquet); its gold labels may be names or numbers."""
    path = Path(place)
    table = as_arrow(path)
    if not set(SENTIMENT_COLUMNS) & set(table.column_names):
        listed = ", ".join(table.column_names)
        raise TableError(f"{path.name} has no column 'sentiment' or 'label', only {listed}: rename the gold column")
    return _with_sentiments(table, path.name)


def _read_hugging_face(place: str) -> pa.Table:
    """Return a dataset of Hugging Face, `OWNER/NAME` or `OWNER/NAME@SPLIT`, with label names where it has them."""
    try:
        import datasets  # type: ignore[import-not-found,unused-ignore]  # optional
    except ImportError as error:
        raise MissingPackage(
            f"hf:{place} needs the package datasets: pip install datasets; or download the files and name one of them"
        ) from error
    name, _, split = place.partition("@")
    try:
        parts = datasets.load_dataset(name)
    except Exception as error:  # whatever the package raises, its first line says why
        raise TableError(
            f"hf:{place} cannot be loaded ({first_line(error)}): check the name and the connection"
        ) from error
    split = split or next((one for one in SPLITS if one in parts), next(iter(parts), ""))
    if split not in parts:
        raise TableError(f"hf:{place}: there is no split {split!r}; there are {', '.join(parts)}")
    table = as_arrow(parts[split].with_format("arrow")[:])
    if "sentiment" in table.column_names:
        return _with_sentiments(table, f"hf:{place}")
    return _with_class_names(table, parts[split].features)


def _with_sentiments(table: pa.Table, source: str) -> pa.Table:
    """Return the table with a column `gold`: negative, neutral or positive, also where the table has 0, 1 or 2."""
    columns = columns_of(table)
    name = next(name for name in SENTIMENT_COLUMNS if name in columns)
    gold: list[str | None] = []
    for row, value in enumerate(text_column(name, columns[name]).to_pylist(), 1):
        word = (value or "").strip().casefold()
        if word in ("0", "1", "2"):
            word = SENTIMENTS[int(word)]
        if word and word not in SENTIMENTS:
            raise TableError(
                f"{source}, row {row}, column {name!r}: {value!r} is not a sentiment; "
                f"write {', '.join(SENTIMENTS)}, or 0, 1, 2"
            )
        gold.append(word or None)
    return _with_gold(table, gold)


def _with_class_names(table: pa.Table, features: Any) -> pa.Table:
    names = getattr(features.get("label"), "names", None)
    if not names:
        return table
    codes = columns_of(table)["label"].to_pylist()
    # the package writes -1 for a row without a label
    return _with_gold(table, [names[code] if code is not None and code >= 0 else None for code in codes])


def _with_gold(table: pa.Table, gold: list[str | None]) -> pa.Table:
    if "gold" in table.column_names:
        table = table.drop_columns(["gold"])
    return table.append_column("gold", pa.array(gold, pa.string()))


_LOADERS: Mapping[str, Callable[[str], pa.Table]] = {
    "fakenewsnet": _read_fakenewsnet,
    "hf": _read_hugging_face,
    "sentiment": _read_sentiment_file,
}
"""Prefix of a source → the function that reads what follows the colon."""
