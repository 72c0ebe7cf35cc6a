"""`pcs init`: a first `pcs.toml`, made from the user's data file."""

import json
from collections.abc import Iterator
from pathlib import Path
from textwrap import fill

from pcs_annotator.base.errors import LabelError
from pcs_annotator.base.fields import settings_in
from pcs_annotator.core.task import usual_instruction
from pcs_annotator.runs.gold_labels import labels_seen
from pcs_annotator.runs.resolve_config import columns_of, reading_of
from pcs_annotator.runs.settings import Config, sections
from pcs_annotator.runs.toml import CONFIG_NAME
from pcs_annotator.tables import chunks
from pcs_annotator.tables.chunks import read_source
from pcs_annotator.tables.source_files import Reading
from pcs_annotator.tables.write import OutputPolicy

# What each key means is written above it.
TEMPLATE = """\
# Settings of perceived-confidence. Every key is optional; command-line options override this file.
# Made from {name}: {rows} rows, {gold}.

[task]
instruction = {instruction}
labels = {labels}
# meanings = {{ {first} = "…" }}

[data]
text_column = {text_column}
{others}

[ask]
# Keys come from the environment or a .env file (OPENAI_API_KEY, GROQ_API_KEY, …).
# Without a key: embedded:smollm2 (small, runs on this computer), ollama:…, or http://host:port/v1#model.
models = ["embedded:smollm2"]
# answers = "auto"
# draws = 1
# budget_usd = 5.0
# prices = {{ "http://localhost:8000/v1#my-model" = [0.0, 0.0] }}

[relations]
# use = ["original", "order", "wording", "case"]
# rewriter = "groq:llama-3.1-8b-instant"

[learn]
optimiser = "auto"
seed = 0
"""


def write_first_config(data: Path | str, out: Path | None, config: Config, policy: OutputPolicy) -> Path:
    """Write a commented `pcs.toml` for a table and return its path; `config` has what the user says about it."""
    path = out or Path(CONFIG_NAME)
    policy.check(path, [".toml"])
    reading = reading_of(config)
    text = first_config(read_source(data, columns_of(config), reading=reading), reading)
    return policy.write_page(path, text)


def first_config(dataset: chunks.Dataset, reading: Reading) -> str:
    """Return the text of a `pcs.toml` for a dataset that was read in some way."""
    try:
        labels = list(labels_seen(dataset))
    except LabelError:
        labels = []
    columns, shown = dataset.columns, labels or ["yes", "no"]
    gold_rows = sum(value is not None for value in dataset.gold)
    # value, and an example that is commented out
    others = {
        "id_column": (columns.id_setting, "id"),
        "gold_column": (columns.gold if gold_rows else None, "gold"),
        "encoding": (reading.encoding, "windows-1252"),
        "sheet": (reading.sheet, "1"),
    }
    text = TEMPLATE.format(
        name=dataset.name,
        rows=f"{len(dataset.items):,}",
        gold=f"{gold_rows:,} with a gold label in {columns.gold_source!r}" if gold_rows else "none with a gold label",
        instruction=_toml(usual_instruction(shown)),
        labels=_toml(shown) + ("" if labels else "  # examples: replace them with your own"),
        first=_toml(shown[0]),
        text_column=_toml(columns.text or ""),
        others="\n".join(
            f"{'' if value else '# '}{key} = {_toml(value or example)}" for key, (value, example) in others.items()
        ),
    )
    return "\n".join([*_explained(text), ""])


def _toml(value: str | list[str]) -> str:
    # JSON strings and lists of strings are valid TOML.
    return json.dumps(value, ensure_ascii=False)


def _explained(text: str) -> Iterator[str]:
    meanings: dict[str, str] = {}
    for line in text.splitlines():
        if line.startswith("["):
            meanings = {setting.key: setting.meaning for setting in settings_in(sections()[line.strip("[]")])}
        key = line.removeprefix("# ").partition(" = ")[0]
        if key in meanings:
            yield fill(meanings[key], 118, initial_indent="# ", subsequent_indent="# ")
        yield line
