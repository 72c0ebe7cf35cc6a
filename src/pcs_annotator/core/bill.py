"""What calls cost: a `Bill` per model and purpose, and the `Plan` of a whole job."""

from collections.abc import Callable, Mapping
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

    def scaled(self, number: Callable[[int], int], price: Callable[[float], float]) -> "Bill":
        """Return a bill with other numbers of calls and tokens, and another price."""
        return replace(
            self,
            calls=number(self.calls),
            input_tokens=number(self.input_tokens),
            output_tokens=number(self.output_tokens),
            usd=None if self.usd is None else price(self.usd),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The calls that a job will make."""

    rows: int  # number of rows
    models: tuple[Bill, ...]  # calls, tokens and cost per model and purpose, as if no question had been answered yet
    known: Mapping[tuple[str, str], int] = field(default_factory=dict)  # of these, calls with an answer in a ledger

    def for_rows(self, rows: int) -> "Plan":
        """Return the plan for another number of similar rows."""
        if rows == self.rows:
            return self

        models = [
            bill.scaled(lambda number: -(-number * rows // self.rows), lambda usd: usd * rows / self.rows)
            for bill in self.models
        ]
        answered = {of: number * rows // self.rows for of, number in self.known.items()}
        return replace(self, rows=rows, models=tuple(models), known=answered)

    @property
    def calls(self) -> int:
        """Total number of calls."""
        return sum(model.calls for model in self.models)

    @property
    def left(self) -> "Plan":
        """The calls that the ledger has no answers to."""

        def rest(bill: Bill) -> Bill:
            share = 1 - min(self.known.get((bill.model, bill.purpose), 0) / max(bill.calls, 1), 1)
            return bill.scaled(lambda number: round(share * number), lambda usd: share * usd)

        return Plan(rows=self.rows, models=tuple(map(rest, self.models)))

    @property
    def usd(self) -> float | None:
        """The maximum total cost; None when a price is unknown."""
        prices = [model.usd for model in self.models]
        return None if None in prices else sum(price or 0.0 for price in prices)
