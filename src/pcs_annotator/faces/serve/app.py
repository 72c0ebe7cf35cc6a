"""The routes of the service."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine, Sequence
from typing import Any

import orjson
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from pcs_annotator.base.removed import removed
from pcs_annotator.faces.serve import bodies, docs_page, openapi
from pcs_annotator.faces.serve.metrics import MEDIA_TYPE, Counted, Metrics
from pcs_annotator.faces.serve.queueing import TextQueue
from pcs_annotator.faces.web.guard import ERROR_HANDLERS, request_id_of
from pcs_annotator.runs.labelling import service as labelling
from pcs_annotator.runs.labelling.service import Classified, Service

OPEN_PATHS = frozenset({"/health", "/ready"})
"""What an orchestrator asks, without a token."""


class Json(Response):
    """Values as JSON."""

    media_type = "application/json"

    def render(self, content: object) -> bytes:
        """Return JSON."""
        return orjson.dumps(content)


class App:
    """Answers requests with a service."""

    def __init__(self, service: Service, *, max_queue: int, seconds: float) -> None:
        self._service, self._seconds = service, seconds
        self._queue = TextQueue(max_queue)
        self._metrics = Metrics()
        self._work: set[asyncio.Task[Classified]] = set()
        self._stopping = asyncio.Event()
        self._page = docs_page.page(openapi.document(service.task.labels))
        routes = [
            Route("/v1/classify", self.classify, methods=["POST"]),
            Route("/v1/models", self.models),
            Route("/v1/jobs{rest:path}", self.no_jobs, methods=["GET", "POST", "DELETE"]),
            Route("/health", self.health),
            Route("/ready", self.ready),
            Route("/metrics", self.metrics),
            Route("/openapi.json", self.openapi),
            Route("/docs", self.docs),
            Route("/docs.css", self.style),
            Route("/favicon.ico", self.icon),
            Route("/predict", self.predict, methods=["POST"]),
            Route("/setup", self.setup, methods=["POST"]),
        ]
        starlette = Starlette(routes=routes, exception_handlers=ERROR_HANDLERS)
        self.asgi: ASGIApp = Counted(starlette, self._metrics)

    def stopping(self) -> None:
        """Say on `/ready` that no more texts are accepted."""
        self._stopping.set()

    async def stop(self) -> None:
        """Finish what is in progress."""
        self._stopping.set()
        if self._work:
            await asyncio.wait(self._work)

    async def classify(self, request: Request) -> Response:
        """Label texts."""
        values = await bodies.read_object(request)
        asked = bodies.asked(values, self._queue.most)
        service = self._service
        if asked.model not in (None, "", service.name, service.version):
            raise HTTPException(404, f"there is no model {asked.model!r}: this service has {service.name!r}")
        found = await self._label(asked.texts)
        return Json(self._listed(found, request_id_of(request)))

    async def _label(self, texts: Sequence[str]) -> list[Classified]:
        """Return the labels of texts; 503 if there are none for a reason that concerns all texts."""
        self._queue.take(len(texts))
        work = [self._keep(self._service.classify(text)) for text in texts]
        if (await asyncio.wait(work, timeout=self._seconds))[1]:
            self._service.note_failure("late")
            message = f"no answer within {self._seconds:g} s; what is on its way will be kept: try again"
            raise HTTPException(503, message, {"Retry-After": "5"})
        found = [one.result() for one in work]
        for one in found:
            decided = one.outcome and one.outcome.decision
            self._metrics.texts[one.error.kind if one.error else decided or "labelled"] += 1
        errors = [one.error for one in found if one.error is not None and not one.error.of_text]
        if len(errors) == len(found):
            wait = {} if errors[0].kind == "budget_reached" else {"Retry-After": "5"}
            raise HTTPException(503, errors[0].message, wait)
        return found

    def _keep(self, work: Coroutine[Any, Any, Classified]) -> asyncio.Task[Classified]:
        """Start a task that goes on if the client leaves, because its answers are paid for."""
        task = asyncio.create_task(work)
        self._work.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[Classified]) -> None:
        self._work.discard(task)
        self._queue.leave()
        if not task.cancelled():
            task.exception()  # who waits for it has it; asyncio would print it, and it may quote a text

    def _listed(self, found: Sequence[Classified], request_id: str) -> dict[str, Any]:
        tokens = [sum(getattr(one.spent, name) for one in found) for name in ("input_tokens", "output_tokens")]
        answer = {
            "id": f"classify-{request_id}",
            "object": "list",
            "created": int(time.time()),
            "model": found[0].version,
            "labels": list(self._service.task.labels),
            "data": [{"index": place, **_item(one)} for place, one in enumerate(found)],
            "usage": {
                "prompt_tokens": tokens[0],
                "completion_tokens": tokens[1],
                "total_tokens": sum(tokens),
                "calls": sum(one.spent.calls for one in found),
                "known_already": sum(one.spent.known for one in found),
            },
        }
        warning = self._service.about_drift
        return {"warning": warning, **answer} if warning else answer

    async def models(self, request: Request) -> Response:
        """List the one model there is."""
        about = {"id": self._service.name, "object": "model", "owned_by": "pcs", "version": self._service.version}
        return Json({"object": "list", "data": [about]})

    async def no_jobs(self, request: Request) -> Response:
        """Say what to use instead of the jobs of an earlier version."""
        raise HTTPException(410, f"/v1/jobs {removed('route', '/v1/jobs')}")

    async def health(self, request: Request) -> Response:
        """Say that the process lives."""
        return Json({"status": "UP", "model_class": "pcs", "model_version": self._service.version})

    async def ready(self, request: Request) -> Response:
        """Say whether texts are accepted and get labels, with which model, and whether the run has a newer one."""
        self._service.look_for_changes()
        stopping, reason = self._stopping.is_set(), self._service.trouble
        about = {
            "status": "stopping" if stopping else "not ready" if reason else "ready",
            "reason": reason,
            "model": self._service.version,
            "outdated": self._service.outdated,
            "queued_texts": self._queue.texts,
        }
        return Json(about, 503 if stopping or reason else 200)

    async def metrics(self, request: Request) -> Response:
        """Show all counters."""
        spent, drift = self._service.tracker, self._service.drift
        gauges = {
            "pcs_calls_total": ("counter", "Calls to models that were paid for.", spent.calls),
            "pcs_tokens_total": ("counter", "Tokens in and out.", spent.tokens),
            "pcs_cost_usd_total": ("counter", "Cost of calls whose price is known, in dollars.", spent.usd),
            "pcs_queue_texts": ("gauge", "Texts in progress and waiting.", self._queue.texts),
            "pcs_queue_room": ("gauge", "Texts that there is room for.", self._queue.most),
            "pcs_outdated": (
                "gauge",
                "Whether the run has a newer model, which is unreadable.",
                bool(self._service.outdated),
            ),
        }
        if drift is not None:
            gauges["pcs_drift"] = ("gauge", "Whether recent texts differ from those of the run.", drift.found)
            gauges["pcs_drift_p_value"] = ("gauge", "Probability of such a difference by chance.", drift.p_value)
        return PlainTextResponse(self._metrics.page(gauges), media_type=MEDIA_TYPE)

    async def openapi(self, request: Request) -> Response:
        """Show the description of all routes."""
        return Json(openapi.document(self._service.task.labels))

    async def docs(self, request: Request) -> Response:
        """Show it for people."""
        return HTMLResponse(self._page)

    async def style(self, request: Request) -> Response:
        """Return the style of that page."""
        return Response(docs_page.STYLE, media_type="text/css")

    async def icon(self, request: Request) -> Response:
        """Tell browsers, which ask for one with every page, that there is none."""
        return Response(status_code=204)

    async def predict(self, request: Request) -> Response:
        """Label tasks of Label Studio."""
        tasks, interface = bodies.label_studio_tasks(await bodies.read_object(request), self._queue.most)
        names = labelling.label_studio_interface(interface)
        texts = [task["data"].get(names.key) for task in tasks]
        for place, text in enumerate(texts):
            if not isinstance(text, str) or not text.strip():
                raise HTTPException(400, f"`tasks[{place}].data` has no text under {names.key!r}")
        found = await self._label(texts) if texts else []
        version = self._service.version
        return Json(
            {
                "results": [labelling.label_studio_prediction(one, names) for one in found],
                "model_version": found[0].version if found else version,
            }
        )

    async def setup(self, request: Request) -> Response:
        """Check that a project of Label Studio can be answered."""
        schema = bodies.interface_of(await bodies.read_object(request), "schema")
        labelling.label_studio_interface(schema)
        return Json({"model_version": self._service.version})


def _item(one: Classified) -> dict[str, Any]:
    outcome = one.outcome
    cost = {"usd": one.spent.usd, "calls": one.spent.calls}
    if outcome is None or one.error is not None:
        error = one.error and one.error._asdict()
        nothing: dict[str, Any] = {
            "label": None,
            "probs": [],
            "num_classes": 0,
            "confidence": None,
            "decision": "review",
        }
        return {**nothing, "reason": one.error.message if one.error else "", "cost": cost, "error": error}
    item = {
        "label": outcome.label,
        "probs": one.probabilities,
        "num_classes": len(one.probabilities),
        "confidence": outcome.confidence,
        "decision": outcome.decision,
        "reason": outcome.reason,
        "cost": cost,
    }
    return {**item, "label_set": outcome.label_set} if outcome.label_set else item
