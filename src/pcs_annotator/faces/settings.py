"""The settings that `run`, `label` and `evaluate` take by name, with their types, for editors and type checkers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypedDict

from pcs_annotator.core.ledger_address import LedgerAddress


class RunSettings(TypedDict, total=False):
    """Settings of `run`: the options of `pcs run`, which override those in `config`."""

    labels: Sequence[str]
    instruction: str | None
    models: Sequence[object]
    relations: Sequence[object]
    rewriter: object | None
    text_column: str | None
    id_column: str | None
    gold_column: str | None
    encoding: str | None
    sheet: str | None
    answers: str | None
    draws: int | None
    concurrency: int | None
    executor: str | None
    workers: int | None
    ray_address: str | None
    max_per_second: float | None
    budget_usd: float | None
    budget_per_day_usd: float | None
    max_calls: int | None
    max_tokens: int | None
    ledger: LedgerAddress | None
    prices: Mapping[str, tuple[float, ...]]
    optimiser: str | None
    seed: int | None
    calibration: str | None
    max_error: float | None
    certainty: float | None
    promise: str | None
    per_label: bool | None
    sets: bool | None


class SavingSettings(TypedDict, total=False):
    """Settings of `label` and `load_run`: when to stop asking, and what may be spent."""

    ask_all: bool
    cascade: bool
    max_calls: int | None
    max_tokens: int | None
    budget_usd: float | None
    budget_per_day_usd: float | None
    prices: Mapping[str, tuple[float, ...]]
    executor: str | None
    workers: int | None
    ray_address: str | None
    max_per_second: float | None
    on_drift: str


class SplittingSettings(TypedDict, total=False):
    """Settings of `evaluate`: how rows are split and resampled."""

    folds: int
    repeats: int
    seed: int
    resamples: int
