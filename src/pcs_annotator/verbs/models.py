"""`pcs models`: the known models, and whether a model answers."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pcs_annotator.base.concurrency import run_sync
from pcs_annotator.base.errors import PcsError
from pcs_annotator.core.chat import ChatModel, Constraint, Message, Request
from pcs_annotator.models.catalog import context_of, known_models, price_of
from pcs_annotator.models.local.download import ModelFiles, download, is_intact, pull, weights_of, weights_path
from pcs_annotator.models.local.in_process import TransformersModel
from pcs_annotator.models.logprobs import tells
from pcs_annotator.models.provider import hide_keys, read_environment
from pcs_annotator.models.resolve import resolve_model

CHECK_CALLS = 3
CHECK_SECONDS = 60.0
CHECK_WORDS = ("ready", "waiting")
CHECK_ALTERNATIVES = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkup:
    """The result of checking a model."""

    model: str  # its name as the user wrote it
    answers: bool  # whether it answered
    problem: str = ""  # what went wrong, with the remedy; empty when it answered
    seconds: float | None = None  # median time of an answer; None when there was none
    constrained: bool = False  # whether its answers can be limited to the label set
    graded: bool = False  # whether log-probabilities of its answers come back
    context_tokens: int | None = None  # size of its context, if known
    usd: float | None = None  # cost of the check; None when the price is unknown


def list_models() -> list[dict[str, Any]]:
    """Return every model of the catalogue, with None for what is unknown; others work too, at an unknown price."""
    catalogue = []
    for name in known_models():
        price = price_of(name)
        costs = (price.input, price.output, price.as_of) if price else (None, None, None)
        names = ("usd_per_million_in", "usd_per_million_out", "price_as_of")
        catalogue.append({"name": name, "context_tokens": context_of(name), **dict(zip(names, costs, strict=True))})
    return catalogue


def missing_weights(specs: Sequence[str]) -> list[str]:
    """Return the models among these whose weights are not here; a package that is not installed is an error."""
    names = set[str]()
    for spec in specs:
        if name := _embedded_name(spec):
            resolve_model(spec)
            names.add(name)
    embedded = sorted(name for name in names if not is_intact(weights_path(name), weights_of(name)))
    return embedded + [spec for spec in specs if (files := _hub_files(spec)) and not files.complete]


def pull_weights(name: str) -> Path:
    """Download the weights of an embedded model, or of one of the Hugging Face hub, and return their path."""
    files = _hub_files(name)
    return download(files, read_environment(Path.cwd())) if files else pull(_embedded_name(name) or name)


def _embedded_name(spec: str) -> str:
    prefix, _, rest = spec.partition(":")
    return rest.split("/")[0] if prefix == "embedded" else ""


def _hub_files(spec: str) -> ModelFiles | None:
    """Return the files of a `transformers:` model, if it can be opened; None for other models."""
    if not spec.startswith("transformers:"):
        return None
    model = resolve_model(spec)
    return model.files if isinstance(model, TransformersModel) else None


def check_models(specs: Sequence[str], folder: Path) -> list[Checkup]:
    """Ask every model a short question a few times, all models concurrently."""
    environment = read_environment(folder)

    async def check_all() -> list[Checkup]:
        return await asyncio.gather(*(_check(spec, environment) for spec in specs))

    return run_sync(check_all)


async def _check(spec: str, environment: Mapping[str, str]) -> Checkup:
    name = hide_keys(spec)
    try:
        model = resolve_model(spec, environment)
        name = spec
        try:
            return await _ask_briefly(spec, model)
        finally:
            await model.close()
    except (PcsError, TimeoutError) as error:
        problem = str(error) if isinstance(error, PcsError) else f"no answer within {CHECK_SECONDS:g} s"
        return Checkup(model=name, answers=False, problem=problem)


async def _ask_briefly(spec: str, model: ChatModel) -> Checkup:
    request = Request(
        messages=(Message("user", "Answer with the single word ready."),),
        max_tokens=8,
        constraint=Constraint(choices=CHECK_WORDS) if model.can_constrain else None,
        logprobs=CHECK_ALTERNATIVES if model.can_grade else 0,
    )
    seconds, replies = [], []
    for _ in range(CHECK_CALLS):
        started = time.perf_counter()
        async with asyncio.timeout(CHECK_SECONDS):
            replies.append(await model.ask(request))
        seconds.append(time.perf_counter() - started)
    price = price_of(model.name)
    costs = [cost for reply in replies if price and (cost := price.cost(reply.usage)) is not None]
    return Checkup(
        model=spec,
        answers=True,
        seconds=sorted(seconds)[CHECK_CALLS // 2],
        constrained=model.can_constrain,
        graded=any(tells(reply.logprobs) for reply in replies),
        context_tokens=model.context_tokens,
        usd=sum(costs) if len(costs) == len(replies) else None,
    )
