"""`pcs init`: a first `pcs.toml`, made from the user's data file."""

import json
from collections.abc import Mapping
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

HEAD = "# Settings of perceived-confidence. Every key is optional; command-line options override this file."
KEYS = """\
# Keys come from the environment or a .env file (OPENAI_API_KEY, GROQ_API_KEY, …).
# Without a key: embedded:smollm2 (small, runs on this computer), ollama:…, or http://host:port/v1#model."""
EXAMPLES: Mapping[str, Mapping[str, str]] = {
    "task": {"instruction": "", "labels": "", "meanings": '{{ {first} = "…" }}'},
    "data": {
        "text_column": "",
        "id_column": '"id"',
        "gold_column": '"gold"',
        "encoding": '"windows-1252"',
        "sheet": '"1"',
    },
    "ask": {
        "models": "",
        "answers": '"auto"',
        "draws": "1",
        "budget_usd": "5.0",
        "prices": '{{ "http://localhost:8000/v1#my-model" = [0.0, 0.0] }}',
    },
    "relations": {"use": '["original", "order", "wording", "case"]', "rewriter": '"groq:llama-3.1-8b-instant"'},
    "learn": {"optimiser": "", "seed": ""},
}
"""Section → key → an example, which is commented out where nothing is known about the table."""


def write_first_config(data: Path | str, out: Path | None, config: Config, policy: OutputPolicy) -> Path:
    """Write a commented `pcs.toml` for a table and return its path; `config` has what the user says about it."""
    path = out or Path(CONFIG_NAME)
    policy.check(path, [".toml"])
    reading = reading_of(config)
    text = first_config(read_source(data, columns_of(config), reading=reading), reading)
    return policy.write_page(path, text)


def first_config(dataset: chunks.Dataset, reading: Reading) -> str:
    """Return the text of a `pcs.toml` for a dataset that was read in some way; above each key is what it means."""
    try:
        labels = list(labels_seen(dataset))
    except LabelError:
        labels = []
    columns, shown = dataset.columns, labels or ["yes", "no"]
    gold_rows = sum(value is not None for value in dataset.gold)
    gold = f"{gold_rows:,} with a gold label in {columns.gold_source!r}" if gold_rows else "none with a gold label"
    values = {
        "instruction": usual_instruction(shown),
        "labels": shown,
        "text_column": columns.text,
        "id_column": columns.id_setting,
        "gold_column": columns.gold if gold_rows else None,
        "encoding": reading.encoding,
        "sheet": reading.sheet,
        "models": ["embedded:smollm2"],
        "optimiser": "auto",
        "seed": 0,
    }
    lines = [HEAD, f"# Made from {dataset.name}: {len(dataset.items):,} rows, {gold}."]
    for section, examples in EXAMPLES.items():
        lines += ["", f"[{section}]", *([KEYS] if section == "ask" else [])]
        meanings = {setting.key: setting.meaning for setting in settings_in(sections()[section])}
        for key, example in examples.items():
            lines.append(fill(meanings[key], 118, initial_indent="# ", subsequent_indent="# "))
            if values.get(key) in (None, ""):
                lines.append(f"# {key} = {example.format(first=_toml(shown[0]))}")
            else:
                yours = "" if labels or key != "labels" else "  # examples: replace them with your own"
                lines.append(f"{key} = {_toml(values[key])}{yours}")
    return "\n".join([*lines, ""])


def _toml(value: object) -> str:
    # JSON strings, numbers and lists of strings are valid TOML.
    return json.dumps(value, ensure_ascii=False)
