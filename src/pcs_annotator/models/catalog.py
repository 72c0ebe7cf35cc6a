"""What is known of models: provider of a bare name, context size, price per million tokens.

`prices.csv` has list prices in USD without discounts for caching or batches. The date beside a price is one on which it
was seen; if the page had none, the earliest possible one. An unknown price is empty, never 0 (of Hugging Face, because
the company that serves the model sets it); a user's own prices take precedence over this table.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from functools import cache
from importlib.resources import files
from typing import Any

from pcs_annotator.core.chat import Usage

_DATED = re.compile(r"[-@_:.](?:\d{4}-\d\d-\d\d|\d{3,8})$")


@dataclass(frozen=True, slots=True)
class Price:
    """USD per million tokens."""

    input: float  # price of the request
    output: float  # price of the answer
    as_of: date | None = None  # a date on which the price was valid; None for a user's own

    def cost(self, usage: Usage) -> float | None:
        """Return the cost in USD; None if the server did not report the number of tokens."""
        if usage.input_tokens is None or usage.output_tokens is None:
            # A free model costs nothing, whatever the number of tokens.
            return None if self.input or self.output else 0.0
        return (usage.input_tokens * self.input + usage.output_tokens * self.output) / 1e6


FREE = Price(0.0, 0.0, None)
LOCAL = frozenset({"ollama", "embedded", "transformers", "scripted", "function"})
"""Providers whose models run on the user's own machine."""


_Entry = tuple[int | None, Price | None]  # what `prices.csv` has of a model: context and price; None where unknown


@cache
def _models() -> Mapping[str, _Entry]:
    """Return the table, by `provider:model`."""
    lines = files(__package__).joinpath("prices.csv").read_text(encoding="utf-8").splitlines()[1:]
    models: dict[str, _Entry] = {}
    for provider, model, context, usd_in, usd_out, as_of in (line.split(",") for line in lines):
        price = Price(float(usd_in), float(usd_out), date.fromisoformat(as_of)) if usd_in and usd_out else None
        models[f"{provider}:{model}"] = int(context) if context else None, price
    return models


# Pattern of a bare name → provider; the first match counts.
_BARE_NAMES: tuple[tuple[str, str], ...] = (
    (r"llama3-\d+b-\d+|llama-3\.\d+-\w+-(?:instant|versatile|preview|specdec|vision-preview)", "groq"),
    (r"gemma2?-\db-it|mixtral-8x7b-32768", "groq"),
    (r"gpt-\d.*|chatgpt-.*|o\d(?:-.*)?", "openai"),
    (r"claude-.*", "anthropic"),
    (r"gemini-.*", "gemini"),
    (r"(?:mistral|ministral|magistral)-.*|open-mi[sx]tral-.*", "mistral"),
    (r"deepseek-(?:chat|reasoner)", "deepseek"),
    (r"[\w.-]+/[\w.-]+(?<!\.gguf)", "huggingface"),
)
_SNAPSHOT = re.compile(r"-(?:\d{4}-\d{2}-\d{2}|\d{8}|latest)$")


def provider_of(bare_name: str) -> str | None:
    """Return the provider of a model named without one; None if unknown."""
    return next((name for pattern, name in _BARE_NAMES if re.fullmatch(pattern, bare_name)), None)


def known_models() -> list[str]:
    """Return all models of the table as `provider:model`, sorted."""
    return sorted(_models())


def context_of(name: str) -> int | None:
    """Return the number of tokens that fit into a request and its answer; None if unknown."""
    return _find(name)[0]


def price_of(name: str, own_prices: Mapping[str, Any] | None = None) -> Price | None:
    """Return the price of `provider:model`, the user's own by this or its bare name first; None if unknown."""
    provider, _, model = name.partition(":")
    for key in (name, model):
        price = (own_prices or {}).get(key)
        if price is not None:
            return price if isinstance(price, Price) else Price(float(price[0]), float(price[1]))
    if provider in LOCAL:
        # Ollama also sells models that run on its own machines.
        return None if model.endswith("-cloud") else FREE
    return _find(name)[1]


def _find(name: str) -> _Entry:
    provider, _, model = name.partition(":")
    if provider == "langchain":  # langchain:ChatOpenAI:gpt-4o costs what gpt-4o costs
        model = model.partition(":")[2]
        provider = provider_of(model) or provider
    provider = "openai" if provider == "azure" else provider
    undated = f"{provider}:{_SNAPSHOT.sub('', model)}"
    return _models().get(f"{provider}:{model}") or _models().get(undated, (None, None))


def same_model(asked: str, named: str) -> bool:
    """Return whether a server that names a model in its reply may well mean the one that was asked."""
    (asked, asked_tag), (named, named_tag) = map(_without_owner, (asked, named))
    if asked_tag and named_tag and asked_tag != named_tag:
        return False
    return asked == named or asked == _DATED.sub("", named) or _DATED.sub("", asked) == named


def _without_owner(name: str) -> tuple[str, str]:
    name, _, tag = name.lower().rpartition("/")[2].partition(":")
    return name.removesuffix(".gguf").removesuffix("-latest"), "" if tag == "latest" else tag
