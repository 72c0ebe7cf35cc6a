"""Counters in the text format of Prometheus."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from time import perf_counter
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

Labels = tuple[tuple[str, str], ...]
BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
AUDITED: Mapping[str, tuple[str, Callable[[Any], float]]] = {
    "audited_texts": ("Accepted texts that people have checked.", lambda audit: audit.rows),
    "audit_errors": ("Errors among them.", lambda audit: audit.wrong),
    "audit_error_low": ("Error rate of accepted texts, at least.", lambda audit: audit.error.low),
    "audit_error_high": ("Error rate of accepted texts, at most.", lambda audit: audit.error.high),
    "audit_revoked": ("Whether the promise is withdrawn.", lambda audit: audit.finding == "revoked"),
}
METRICS = {
    "pcs_rows_done": ("gauge", "Rows finished.", "rows"),
    "pcs_rows_expected": ("gauge", "Rows in all.", "rows_expected"),
    "pcs_rows_without_label": ("gauge", "Rows finished without a label.", "rows_without_label"),
    "pcs_rows_per_minute": ("gauge", "Rows per minute, lately.", "rows_per_minute"),
    "pcs_seconds_left": ("gauge", "Seconds until the end at the pace so far.", "seconds_left"),
    "pcs_calls_total": ("counter", "Calls to models that were paid for.", "calls"),
    "pcs_tokens_total": ("counter", "Tokens in and out.", "tokens"),
    "pcs_cost_usd_total": ("counter", "Cost of calls whose price is known, in dollars.", "usd"),
    "pcs_retries_total": ("counter", "Attempts that were repeated, by cause.", "retries cause"),
    "pcs_unanswered": ("gauge", "Questions without an answer, by reason.", "unanswered reason"),
    "pcs_budget_left": ("gauge", "What is left of each limit.", "budget_left limit"),
    "pcs_state": ("gauge", "1 for the state: running, or how it ended.", "state state"),
    "pcs_updated_timestamp_seconds": ("gauge", "When these figures were taken.", "updated"),
}
"""Name → kind, help, and the figure; if that has several numbers, also what tells them apart."""
MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Metrics:
    """What a service counts: requests by route, texts by decision or error."""

    def __init__(self) -> None:
        self.texts: Counter[str] = Counter()
        self._requests: Counter[tuple[str, str]] = Counter()
        self._buckets: dict[str, list[int]] = {}
        self._seconds: Counter[str] = Counter()

    def answered(self, route: str, status: int, seconds: float) -> None:
        """Count a request."""
        self._requests[route, str(status)] += 1
        self._buckets.setdefault(route, [0] * (len(BOUNDS) + 1))[bisect_left(BOUNDS, seconds)] += 1
        self._seconds[route] += seconds  # type: ignore[assignment]  # a sum of seconds

    def page(self, gauges: Mapping[str, tuple[str, float | Mapping[str, float]]], figures: Mapping[str, Any]) -> str:
        """Return everything; `gauges` is name → help and value, perhaps by group; `figures`, what a command counts."""
        lines = metric_lines(figures)
        requests = {(("route", route), ("status", status)): n for (route, status), n in sorted(self._requests.items())}
        lines += family("pcs_requests_total", "counter", "Requests by route and status.", requests.items())
        texts = {(("result", result),): count for result, count in sorted(self.texts.items())}
        lines += family("pcs_texts_total", "counter", "Texts by decision or error.", texts.items())
        lines += self._durations()
        for name, (about, value) in gauges.items():
            values = value if isinstance(value, Mapping) else {"": value}
            samples = [((("group", group),) if group else (), number) for group, number in values.items()]
            lines += family(name, "gauge", about, samples)
        return "\n".join([*lines, ""])

    def _durations(self) -> list[str]:
        name = "pcs_request_duration_seconds"
        lines = [f"# HELP {name} Time from request to answer.", f"# TYPE {name} histogram"]
        for route, counts in sorted(self._buckets.items()):
            below = 0
            for bound, count in zip([*map(str, BOUNDS), "+Inf"], counts, strict=True):
                below += count
                lines.append(sample(f"{name}_bucket", (("route", route), ("le", bound)), below))
            lines.append(sample(f"{name}_sum", (("route", route),), self._seconds[route]))
            lines.append(sample(f"{name}_count", (("route", route),), below))
        return lines


class Counted:
    """Counts every request of an app."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app, self._metrics = app, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand a request on, and count its answer by the route, of which there are few."""
        began, status = perf_counter(), 500

        async def send_noted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, send_noted)
        finally:
            route = getattr(scope.get("route"), "path", "unknown")
            self._metrics.answered(route, status, perf_counter() - began)


def metric_lines(values: Mapping[str, Any]) -> list[str]:
    """Return figures in the text format of Prometheus; those that are unknown are left out."""
    updated = datetime.fromisoformat(values["updated"]).timestamp()
    values, lines = {**values, "updated": updated, "state": {values["state"]: 1}}, []
    for name, (kind, about, figure) in METRICS.items():
        key, _, apart = figure.partition(" ")
        numbers = values[key] if apart else {"": values[key]}
        samples = {((apart, name_apart),) if apart else (): number for name_apart, number in numbers.items()}
        lines += family(name, kind, about, [pair for pair in samples.items() if pair[1] is not None])
    return lines


def family(name: str, kind: str, about: str, samples: Iterable[tuple[Labels, float]]) -> list[str]:
    """Return a metric with its help and its samples."""
    head = [f"# HELP {name} {about}", f"# TYPE {name} {kind}"]
    return [*head, *(sample(name, labels, value) for labels, value in samples)]


def sample(name: str, labels: Labels, value: float) -> str:
    """Return a line with one number."""
    escaped = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})
    inside = ",".join(f'{key}="{text.translate(escaped)}"' for key, text in labels)
    number = f"{value:.12g}"
    return f"{name}{{{inside}}} {number}" if labels else f"{name} {number}"
