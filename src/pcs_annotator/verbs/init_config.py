"""`pcs init`: a first `pcs.toml`, made from the user's data file."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

from pcs_annotator.base.errors import ConfigError, LabelError
from pcs_annotator.core.task import usual_instruction
from pcs_annotator.runs.files.config import CONFIG_NAME, Config
from pcs_annotator.runs.resolve_config import columns_of, labels_seen, reading_of
from pcs_annotator.tables import tables
from pcs_annotator.tables.files import atomic_path
from pcs_annotator.tables.sources import read_source
from pcs_annotator.tables.table_files import Reading

TEMPLATE = """\
# Settings of perceived-confidence. Every key is optional; command-line options override this file.
# Made from {name}: {rows} rows, {gold}.

[task]
# The question for the models, in one sentence.
instruction = {instruction}
labels = {labels}
# What a label means, if its name is not clear enough:
# [task.meanings]
# {example} = "…"

[data]
text_column = {text}
{id_line}
{gold_line}
{reading}
[ask]
# As provider:model; keys come from the environment or a .env file (OPENAI_API_KEY, GROQ_API_KEY, …).
# Without a key: embedded:smollm2 (small, runs on this computer), ollama:…, or http://host:port/v1#model.
models = {models}
# answers = "auto"   # graded: keep the probability of every label where a model gives it; hard: the label only
# draws = 1          # how often each question is asked
# budget_usd = 5.0   # stop when the calls in the run folder have cost this much
# [ask.prices]       # US dollars per million input and output tokens, for models whose price is unknown
# "http://localhost:8000/v1#my-model" = [0.0, 0.0]

[relations]
# Models are asked the same in several ways; which ones suits the models, and `pcs plan` shows the choice.
# use = ["original", "order", "wording", "voice"]   # your own choice; `pcs relations list` shows all
# Rules rewrite texts for free. A model can rewrite more texts, but its calls cost money:
# rewriter = "groq:llama-3.1-8b-instant"
# judge = true       # also ask it whether each rewrite means the same

[learn]
optimiser = "auto"   # or lr, logit, scaling, naive-bayes, ga, uniform, majority
seed = 0
"""


def write_first_config(data: Path | str, out: Path | None, config: Config, *, force: bool) -> Path:
    """Write a commented `pcs.toml` for a table and return its path; `config` has what the user says about it.

    Raises:
        ConfigError: The file already exists.
    """
    path = out or Path(CONFIG_NAME)
    if path.exists() and not force:
        raise ConfigError(f"{path} already exists: name another file with --out, or overwrite it with --force")
    reading = reading_of(config)
    text = first_config(read_source(data, columns_of(config), reading=reading), reading)
    with atomic_path(path) as temporary:
        temporary.write_text(text, encoding="utf-8")
    return path


def first_config(dataset: tables.Dataset, reading: Reading) -> str:
    """Return the text of a `pcs.toml` for a dataset that was read in some way."""
    try:
        labels = list(labels_seen(dataset))
    except LabelError:
        labels = []
    columns = dataset.columns
    known = sum(value is not None for value in dataset.gold)
    gold = f"{known:,} with a gold label in {columns.gold_source!r}" if known else "none with a gold label"
    shown = labels or ["yes", "no"]
    return TEMPLATE.format(
        name=dataset.name,
        rows=f"{len(dataset.items):,}",
        gold=gold,
        instruction=_toml(usual_instruction(shown)),
        labels=_toml(shown) + ("" if labels else "  # examples: replace them with your own"),
        example=json.dumps(shown[0], ensure_ascii=False),
        text=_toml(columns.text or ""),
        id_line=f"id_column = {_toml(columns.id_setting)}"
        if columns.id_setting
        else '# id_column = "id"   # default: row numbers',
        gold_line=f"gold_column = {_toml(columns.gold)}"
        if known and columns.gold
        else '# gold_column = "gold"   # may be partly empty',
        reading="".join(f"{name} = {_toml(value)}\n" for name, value in asdict(reading).items() if value),
        models=_toml(["embedded:smollm2"]),
    )


def _toml(value: str | list[str]) -> str:
    # JSON strings and lists of strings are valid TOML.
    return json.dumps(value, ensure_ascii=False)
