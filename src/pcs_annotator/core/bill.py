"""What calls cost: a `Bill` per model and purpose, and the `Plan` of a whole job."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Bill:
    """Calls, tokens and cost of one model for one purpose; `usd` is None when the price is unknown."""

    model: str
    purpose: str
    calls: int
    input_tokens: int
    output_tokens: int
    usd: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The calls that a job will make, per model and purpose."""

    rows: int
    models: tuple[Bill, ...]

    @property
    def calls(self) -> int:
        """Total number of calls."""
        return sum(model.calls for model in self.models)

    @property
    def usd(self) -> float | None:
        """The maximum total cost; None when a price is unknown."""
        prices = [model.usd for model in self.models]
        return None if None in prices else sum(price or 0.0 for price in prices)
