"""FakeNewsNet (Shu et al., arXiv:1809.01286) in its published layout, as the source `fakenewsnet:FOLDER`.

```text
politifact_fake.csv, politifact_real.csv, …              id, news_url, title, tweet_ids
politifact/fake/politifact15014/news content.json        title, text, url, …
```
"""

import json
from collections.abc import Iterator, Mapping
from hashlib import blake2b
from pathlib import Path

from pcs_annotator.base.errors import TableError, warn_user
from pcs_annotator.tables.arrow import columns_of, pa, text_column
from pcs_annotator.tables.find import as_arrow

LAYOUT = "fakenewsnet"  # before the colon of a source
LABELS = ("fake", "real")
ARTICLE = "news content.json"

Row = Mapping[str, str]


def is_fakenewsnet(spec: Path | str) -> bool:
    """Return whether a source names this layout; an existing file of that name takes precedence."""
    return str(spec).startswith(f"{LAYOUT}:") and not Path(spec).exists()


def read_fakenewsnet(spec: str) -> pa.Table:
    """Return id, site, title, text, url and gold of all sites in a folder, or of one, `FOLDER/SITE`.

    The text is the title, followed by the article if it was downloaded. A text that occurs as both fake and real has no
    gold, because nothing in the text tells the two apart. Rows are in a fixed order that mixes sites and labels, so
    that the first N rows are a sample of all.
    """
    folder = Path(spec.partition(":")[2])
    rows = [*_from_tables(folder), *_from_articles(folder)]
    if not rows:
        raise TableError(
            f"{spec}: nothing found; name a folder with politifact_fake.csv, politifact_real.csv, …, or with "
            f"SITE/fake/ID/{ARTICLE}; add /SITE to the folder to read one site"
        )
    first_with: dict[str, str] = {}
    for row in rows:
        first = first_with.setdefault(row["id"], row["where"])
        if first != row["where"]:
            raise TableError(f"{row['where']} has the same id {row['id']!r} as {first}: remove one of the two")
    rows.sort(key=lambda row: blake2b(row["id"].encode()).digest())
    columns = {name: [row[name] for row in rows] for name in ("id", "site", "title", "text", "url")}
    return pa.table({**columns, "gold": _gold(rows, spec)})


def _from_tables(folder: Path) -> Iterator[Row]:
    home, pattern = (folder, "*") if folder.is_dir() else (folder.parent, folder.name)
    for path in sorted(path for label in LABELS for path in home.glob(f"{pattern}_{label}.csv")):
        site, _, label = path.stem.rpartition("_")
        columns = columns_of(as_arrow(path))
        missing = [name for name in ("id", "title") if name not in columns]
        if missing:
            raise TableError(f"{path} has no column {missing[0]!r}: FakeNewsNet has id, news_url, title, tweet_ids")
        names = [name for name in ("id", "title", "news_url") if name in columns]
        cells = zip(*(text_column(name, columns[name]).to_pylist() for name in names), strict=True)
        for number, (name, title, *urls) in enumerate(cells, 1):
            if not name:
                raise TableError(f"{path}, row {number}: the id is empty; complete the row, or download the file again")
            about = {"site": site, "url": (urls or [""])[0] or "", "gold": label, "where": f"{path}, row {number}"}
            yield {"id": name, "title": title or "", "text": (title or "").strip(), **about}


def _from_articles(folder: Path) -> Iterator[Row]:
    sites = [folder] if any((folder / label).is_dir() for label in LABELS) else sorted(folder.glob("*/"))
    for path in (path for site in sites for label in LABELS for path in sorted(site.glob(f"{label}/*/{ARTICLE}"))):
        title, text, url = _article(path)
        whole = "\n\n".join(part for part in (title.strip(), text.strip()) if part)
        label, site = path.parts[-3], path.parts[-4]
        about = {"site": site, "url": url, "gold": label, "where": str(path)}
        yield {"id": path.parent.name, "title": title, "text": whole, **about}


def _article(path: Path) -> tuple[str, str, str]:
    remedy = "download it again, or remove its folder"
    try:
        article = json.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError) as error:
        raise TableError(f"{path} cannot be read ({error}): {remedy}") from None
    if not isinstance(article, dict) or not all(isinstance(article.get(name) or "", str) for name in ("title", "text")):
        raise TableError(f"{path}: title and text must be texts in an object: {remedy}")
    return article.get("title") or "", article.get("text") or "", article.get("url") or ""


def _gold(rows: list[Row], spec: str) -> list[str | None]:
    labels: dict[str, set[str]] = {}
    for row in rows:
        labels.setdefault(row["text"], set()).add(row["gold"])
    unclear = [bool(row["text"]) and len(labels[row["text"]]) > 1 for row in rows]
    if any(unclear):
        warn_user(f"{spec}: {sum(unclear)} rows have a text that occurs as both fake and real: they get no gold")
    return [None if skip else row["gold"] for row, skip in zip(rows, unclear, strict=True)]
