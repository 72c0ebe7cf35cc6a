"""`pcs models`: known models and their prices, whether models answer, and weights of local ones."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from pcs_annotator.faces.cli import ending, options
from pcs_annotator.showing import blocks as b
from pcs_annotator.verbs import models

PRICES = (
    "Prices are in US dollars per million tokens. Any other model works too; its price can be set in [ask.prices] of "
    "pcs.toml. Models here are free: embedded:smollm2, transformers:FOLDER-OR-REPO, ollama:NAME"
)


@click.group("models")
def command() -> None:
    """List models, download a local one, or check that models answer."""


@command.command("list")
@options.JSON
def list_() -> None:
    """List models whose context size or price is known.

    Any other model works too.
    """
    catalogue = models.list_models()
    options.show(lambda: catalogue, lambda: _models_shown(catalogue))


@command.command("pull")
@click.argument("model")
@options.JSON
def pull_(model: str) -> None:
    """Download the weights of MODEL, such as embedded:smollm2 or transformers:Qwen/Qwen3-0.6B.

    This also happens when the model is first used.
    """
    path = _pull(model, shown=options.shown())
    files = [path] if path.is_file() else path.iterdir()
    size = sum(file.stat().st_size for file in files if file.is_file())
    options.tell({"model": model, "path": str(path), "bytes": size}, f"{model}: {path}")


@command.command()
@click.argument("model", nargs=-1, required=True)
@options.JSON
def check(model: tuple[str, ...]) -> int:
    """Check that each MODEL answers, how fast, and at what cost.

    It also shows whether answers can be restricted to the labels, and whether log-probabilities come back.

    A model is written provider:model, or http://host:port/v1#model for any server that speaks the OpenAI protocol.
    """
    with options.gathered_warnings() as notes:
        checkups = models.check_models(model, Path.cwd())
    options.show(lambda: [*map(asdict, checkups)], lambda: map(_checkup_shown, checkups))
    for note in notes:
        options.say(f"note: {note}")
    return ending.ExitCode.DONE if all(checkup.answers for checkup in checkups) else ending.ExitCode.USER


def _models_shown(catalogue: Sequence[Mapping[str, Any]]) -> list[b.Block]:
    rows: list[b.Row] = []
    for model in catalogue:
        context = f"{model['context_tokens'] / 1000:,.0f}k" if model["context_tokens"] else "?"
        costs, as_of = [model["usd_per_million_in"], model["usd_per_million_out"]], model["price_as_of"]
        price = [f"{usd:g}" for usd in costs] + [f"{as_of:%Y-%m}"] if as_of else ["price", "unknown", ""]
        rows.append([model["name"], context, *price])
    return [b.Table(columns=[b.Column("model"), *b.numbers("context", "$ in", "$ out", "as of")], rows=rows), PRICES]


def _checkup_shown(checkup: models.Checkup) -> str:
    if not checkup.answers:
        return f"✗ {checkup.model}: {checkup.problem}"
    money = "price unknown" if checkup.usd is None else f"${checkup.usd:.6f} for this check"
    form = "answers restricted to the labels" if checkup.constrained else "free-text answers"
    logs = "log-probabilities" if checkup.graded else "no log-probabilities"
    return f"✓ {checkup.model}: {checkup.seconds:.2f} s, {form}, {logs}, {money}"


def pull_missing(names: Sequence[str], *, shown: bool) -> None:
    """Download the weights of local models that are not on this machine yet."""
    for name in models.missing_weights(names):
        _pull(name, shown=shown)


def _pull(model: str, *, shown: bool) -> Path:
    if shown:
        options.say(f"downloading the weights of {model}, once; this may take a few minutes")
    return models.pull_weights(model)
