"""FakeNewsNet (Shu et al., arXiv:1809.01286) as it comes: a CSV per site and label, or a folder per article.

```text
politifact_fake.csv, politifact_real.csv, gossipcop_fake.csv, …    id, news_url, title, tweet_ids
politifact/fake/politifact15014/news content.json                  title, text, url, …
```
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator, Mapping
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pcs_annotator.core.tabular import as_arrow, columns_of, text_column
from pcs_annotator.errors import PcsWarning, TableError

if TYPE_CHECKING:
    import pyarrow as pa

LABELS = ("fake", "real")
ARTICLE = "news content.json"

Row = Mapping[str, str]


def read_fakenewsnet(place: str) -> pa.Table:
    """Return id, site, title, text, url and gold of all sites in a folder, or of one, `FOLDER/SITE`.

    The text is the title, followed by the article where it was downloaded. Two articles with the same text of which one
    is fake and one real have no gold: nothing in the text tells them apart. Rows come in an order that mixes sites and
    labels and is always the same, so that the first hundred are a sample of all.
    """
    import pyarrow as pa

    folder = Path(place)
    rows = [*_from_tables(folder), *_from_articles(folder)]
    if not rows:
        raise TableError(
            f"fakenewsnet:{place}: nothing found; it takes a folder with politifact_fake.csv, politifact_real.csv, …, "
            f"or with SITE/fake/ID/{ARTICLE}, and one site of it as FOLDER/SITE"
        )
    _refuse_twins(rows)
    rows.sort(key=lambda row: blake2b(row["id"].encode()).digest())
    names = ("id", "site", "title", "text", "url")
    columns = {name: [row[name] for row in rows] for name in names}
    return pa.table({**columns, "gold": _gold(rows, place)})


def _from_tables(folder: Path) -> Iterator[Row]:
    by_site = folder.is_dir()
    home, pattern = (folder, "*") if by_site else (folder.parent, folder.name)
    for path in sorted(path for label in LABELS for path in home.glob(f"{pattern}_{label}.csv")):
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
            yield _row(name, site, title or "", "", url=url or "", gold=label, where=f"{path}, row {number}")


def _from_articles(folder: Path) -> Iterator[Row]:
    sites = [folder] if any((folder / label).is_dir() for label in LABELS) else sorted(folder.glob("*/"))
    for site in sites:
        for label in LABELS:
            for path in sorted(site.glob(f"{label}/*/{ARTICLE}")):
                found = _article(path)
                title, text, url = (found.get(name) or "" for name in ("title", "text", "url"))
                yield _row(path.parent.name, site.name, title, text, url=url, gold=label, where=str(path))


def _article(path: Path) -> Mapping[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError) as error:
        raise TableError(f"{path} cannot be read ({error}): download it again, or remove its folder") from None
    if not isinstance(found, dict) or not all(isinstance(found.get(name) or "", str) for name in ("title", "text")):
        raise TableError(f"{path}: title and text must be texts in an object: download it again, or remove its folder")
    return found


def _row(name: str, site: str, title: str, text: str, **more: str) -> Row:
    whole = "\n\n".join(part for part in (title.strip(), text.strip()) if part)
    return {"id": name, "site": site, "title": title, "text": whole, **more}


def _refuse_twins(rows: list[Row]) -> None:
    seen: dict[str, str] = {}
    for row in rows:
        first = seen.setdefault(row["id"], row["where"])
        if first != row["where"]:
            raise TableError(f"{row['where']} has the id {row['id']!r}, and so has {first}: remove one of the two")


def _gold(rows: list[Row], place: str) -> list[str | None]:
    said: dict[str, set[str]] = {}
    for row in rows:
        said.setdefault(row["text"], set()).add(row["gold"])
    unsettled = [bool(row["text"]) and len(said[row["text"]]) > 1 for row in rows]
    if any(unsettled):
        warnings.warn(
            f"fakenewsnet:{place}: {sum(unsettled)} rows have a text that stands among both fake and real: they are "
            "left without gold",
            PcsWarning,
            stacklevel=4,
        )
    return [None if unclear else row["gold"] for row, unclear in zip(rows, unsettled, strict=True)]
