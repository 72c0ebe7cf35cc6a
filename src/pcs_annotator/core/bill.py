"""What calls cost: a `Bill` per model and purpose, and the `Plan` of a whole job."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace


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
    """The calls that a job will make.

    Attributes:
        rows: Number of rows.
        models: Calls, tokens and cost per model and purpose, as if no question had been answered yet.
        known: How many of these calls a ledger has answers to; those on rewritten texts are not looked up.
    """

    rows: int
    models: tuple[Bill, ...]
    known: Mapping[tuple[str, str], int] = field(default_factory=dict)

    def for_rows(self, rows: int) -> Plan:
        """Return the plan for another number of similar rows."""
        if rows == self.rows:
            return self

        def scaled(bill: Bill) -> Bill:
            calls, tokens_in, tokens_out = (
                -(-number * rows // self.rows) for number in (bill.calls, bill.input_tokens, bill.output_tokens)
            )
            usd = None if bill.usd is None else bill.usd * rows / self.rows
            return replace(bill, calls=calls, input_tokens=tokens_in, output_tokens=tokens_out, usd=usd)

        known = {of: number * rows // self.rows for of, number in self.known.items()}
        return replace(self, rows=rows, models=tuple(map(scaled, self.models)), known=known)

    @property
    def calls(self) -> int:
        """Total number of calls."""
        return sum(model.calls for model in self.models)

    @property
    def left(self) -> Plan:
        """The calls that the ledger has no answers to."""

        def rest(bill: Bill) -> Bill:
            share = 1 - min(self.known.get((bill.model, bill.purpose), 0) / max(bill.calls, 1), 1)
            calls, tokens_in, tokens_out = (
                round(share * number) for number in (bill.calls, bill.input_tokens, bill.output_tokens)
            )
            usd = None if bill.usd is None else share * bill.usd
            return replace(bill, calls=calls, input_tokens=tokens_in, output_tokens=tokens_out, usd=usd)

        return Plan(rows=self.rows, models=tuple(map(rest, self.models)))

    @property
    def usd(self) -> float | None:
        """The maximum total cost; None when a price is unknown."""
        prices = [model.usd for model in self.models]
        return None if None in prices else sum(price or 0.0 for price in prices)
