"""`pcs models`: what is known about models, whether they answer, and their weights."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from pcs_annotator.faces.cli.options import JSON, echo_json
from pcs_annotator.faces.cli.pulling import pull_with_bar
from pcs_annotator.pipeline.models import Checkup, KnownModel, check_models, list_models


@click.group("models")
def command() -> None:
    """List models, pull the embedded one, or check that models answer."""


@command.command("list")
@JSON
def list_(to_json: bool) -> None:
    """List the models whose size or price is known; any other model works too."""
    models = list_models()
    if to_json:
        echo_json([asdict(model) for model in models])
        return
    for model in models:
        click.echo(f"{model.name:<60} {_size(model):>12}  {_price(model)}")
    click.echo("Any other model works too, only its price is unknown. Prices are in US dollars per million tokens.")


def _size(model: KnownModel) -> str:
    return f"{model.context_tokens:,}" if model.context_tokens else "?"


def _price(model: KnownModel) -> str:
    if model.usd_per_million_in is None:
        return "price unknown"
    return f"{model.usd_per_million_in:g} in, {model.usd_per_million_out:g} out ({model.price_as_of:%B %Y})"


@command.command("pull")
@click.argument("model")
@JSON
def pull_(model: str, to_json: bool) -> None:
    """Fetch the weights of an embedded MODEL, such as embedded:smollm2; this also happens at its first use."""
    path = pull_with_bar(model, shown=not to_json)
    if to_json:
        echo_json({"model": model, "path": str(path), "bytes": path.stat().st_size})
    else:
        click.echo(f"{model}: {path}")


@command.command()
@click.argument("model", nargs=-1, required=True)
@JSON
def check(model: tuple[str, ...], to_json: bool) -> int:
    """Ask each MODEL a tiny question: is it reachable, how fast, how dear?

    A model is written provider:model, or http://host:port/v1#model for any server that speaks the OpenAI protocol.
    """
    checkups = check_models(model, Path.cwd())
    if to_json:
        echo_json([asdict(one) for one in checkups])
    else:
        for one in checkups:
            click.echo(_line(one))
    return 0 if all(one.answers for one in checkups) else 2


def _line(one: Checkup) -> str:
    if not one.answers:
        return f"✗ {one.model}: {one.problem}"
    money = "price unknown" if one.usd is None else f"${one.usd:.6f} for this check"
    held = "answers held to the labels" if one.constrained else "free answers"
    return f"✓ {one.model}: {one.seconds:.2f} s, {held}, {money}"
