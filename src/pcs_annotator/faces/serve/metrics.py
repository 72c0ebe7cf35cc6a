"""Counters in the text format of Prometheus."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Mapping
from time import perf_counter
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pcs_annotator.runs.watch import family, metric_lines, sample

BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
AUDITED: Mapping[str, tuple[str, Callable[[Any], float]]] = {
    "audited_texts": ("Accepted texts that people have checked.", lambda audit: audit.rows),
    "audit_errors": ("Errors among them.", lambda audit: audit.wrong),
    "audit_error_low": ("Error rate of accepted texts, at least.", lambda audit: audit.error.low),
    "audit_error_high": ("Error rate of accepted texts, at most.", lambda audit: audit.error.high),
    "audit_revoked": ("Whether the promise is withdrawn.", lambda audit: audit.finding == "revoked"),
}
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
            lines += family(name, "gauge", about, [((("group", one),) if one else (), values[one]) for one in values])
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
