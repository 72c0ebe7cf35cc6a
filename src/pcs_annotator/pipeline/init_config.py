"""A first `pcs.toml`, written from a look at the user's file."""

from __future__ import annotations

import json
from pathlib import Path

from pcs_annotator.errors import ConfigError, LabelError
from pcs_annotator.files.config import CONFIG_NAME, Config
from pcs_annotator.files.runs import atomic_path
from pcs_annotator.files.tables import Dataset, read_dataset
from pcs_annotator.pipeline.resolve_config import columns_of, labels_seen

TEMPLATE = """\
# Settings of pcs-annotator. Every key may be left out; the command line wins over this file.
# Made from {name}: {rows} rows, {gold}.

[task]
# What the models are asked, in a sentence.
instruction = {instruction}
labels = {labels}
# What a label means, where its name is not enough:
# [task.meanings]
# {example} = "…"

[data]
text_column = {text}
{id_line}
{gold_line}

[ask]
# Written provider:model; keys come from the environment or a file .env (OPENAI_API_KEY, GROQ_API_KEY, …).
# Without a key: embedded:smollm2 (small, on this computer), ollama:…, or http://host:port/v1#model.
models = {models}
# draws = 1          # how often the same question is repeated
# budget_usd = 5.0   # stop before this is exceeded
# [ask.prices]       # US dollars per million tokens in and out, for models whose price is unknown
# "http://localhost:8000/v1#my-model" = [0.0, 0.0]

[relations]
# Each text is also shown rewritten; `pcs relations list` shows what there is.
use = ["original", "voice", "double-negation", "synonym"]
# Rules rewrite for free. A model rewrites more texts, and costs calls:
# rewriter = "groq:llama-3.1-8b-instant"
# joint = true       # all rewrites of a text in one call

[learn]
optimiser = "auto"   # or lr, logit, naive-bayes, ga, uniform, majority
seed = 0
"""


def write_first_config(data: Path, out: Path | None, *, force: bool) -> Path:
    """Write a commented `pcs.toml` for a file and return where it is.

    Raises:
        ConfigError: There is one already.
    """
    path = out or Path(CONFIG_NAME)
    if path.exists() and not force:
        raise ConfigError(f"{path} is there already: remove it, name another with --out, or overwrite it with --force")
    text = first_config(read_dataset(data, columns_of(Config())))
    with atomic_path(path) as temporary:
        temporary.write_text(text, encoding="utf-8")
    return path


def first_config(dataset: Dataset) -> str:
    """Return a `pcs.toml` that suits a file."""
    try:
        labels = list(labels_seen(dataset))
    except LabelError:
        labels = []
    columns = dataset.columns
    known = sum(value is not None for value in dataset.gold)
    gold = f"{known:,} with a gold label in {columns.gold!r}" if known else "none with a gold label"
    shown = labels or ["yes", "no"]
    return TEMPLATE.format(
        name=dataset.name,
        rows=f"{len(dataset.items):,}",
        gold=gold,
        instruction=_toml(f"Which label fits the text best: {', '.join(shown)}?"),
        labels=_toml(shown) + ("" if labels else "  # not seen in the file: put your own here"),
        example=json.dumps(shown[0], ensure_ascii=False),
        text=_toml(columns.text or ""),
        id_line=f"id_column = {_toml(columns.id)}" if columns.id else '# id_column = "id"   # rows are numbered',
        gold_line=f"gold_column = {_toml(columns.gold)}"
        if known and columns.gold
        else '# gold_column = "gold"   # may be partly empty',
        models=_toml(["embedded:smollm2"]),
    )


def _toml(value: str | list[str]) -> str:
    # JSON strings and lists of strings are TOML as well
    return json.dumps(value, ensure_ascii=False)
