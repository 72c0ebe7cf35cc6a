"""The routes of the service, from the open run folder to the open port, and back."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import orjson
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from pcs_annotator.base.removed import removed
from pcs_annotator.core.outcome import Outcome
from pcs_annotator.faces.serve import bodies, openapi
from pcs_annotator.faces.serve.bodies import TextQueue
from pcs_annotator.faces.serve.metrics import MEDIA_TYPE, Counted, Metrics
from pcs_annotator.faces.serve.page import EXAMPLE, ExampleCall, docs_page
from pcs_annotator.faces.web.guard import ERROR_HANDLERS, request_id_of
from pcs_annotator.faces.web.pages import asset_routes
from pcs_annotator.faces.web.server import Listening, serve
from pcs_annotator.runs.labelling.service import Classified, CodebookService, Service, Spent
from pcs_annotator.runs.watch import Watch
from pcs_annotator.tables.label_studio import Interface, prediction

GARBAGE_THRESHOLD = (20_000, 20, 50)
OPEN_PATHS = frozenset({"/health", "/ready"})
"""What an orchestrator asks, without a token."""
NO_OUTCOME = Outcome(id="", label=None, scores={}, confidence=None, decision="review", reason="")


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a service takes on."""

    max_queue: int = 1024  # how many texts may be in progress and waiting
    seconds: float = 120.0  # how long a request may take


class Json(Response):
    """Values as JSON."""

    media_type = "application/json"

    def render(self, content: object) -> bytes:
        """Return JSON."""
        return orjson.dumps(content)


class App:
    """Answers requests with a service."""

    def __init__(self, service: Service, limits: Limits, *, token: bool = False, port: int = 0) -> None:
        self._service, self._seconds, self._token = service, limits.seconds, token
        self._example: dict[str, Any] | None = None  # the last reply to the example of the page
        self._queue = TextQueue(limits.max_queue)
        self._metrics = Metrics()
        self.watch = Watch(service.folder, "serve", service.tally, port=port)
        self.watch.follow(service.tally, service.tracker)
        self._work: set[asyncio.Task[Classified]] = set()
        self._stopping = asyncio.Event()
        self._about = self._described()
        routes = [
            Route("/v1/classify", self.classify, methods=["POST"]),
            Route("/v1/models", _answering(self._models)),
            Route("/v1/jobs{rest:path}", _answering(_no_jobs), methods=["GET", "POST", "DELETE"]),
            Route("/health", _answering(self._health)),
            Route("/ready", _answering(self._ready)),
            Route("/metrics", _answering(self._metrics_page)),
            Route("/openapi.json", _answering(lambda: Json(self._about))),
            Route("/", _answering(lambda: RedirectResponse("/docs", 303))),
            Route("/docs", self.docs),
            *asset_routes(__package__, "docs"),
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

    def _described(self) -> dict[str, Any]:
        return openapi.document(self._service.names)

    async def classify(self, request: Request) -> Response:
        """Label texts."""
        texts, model = bodies.texts_and_model(await bodies.read_object(request), self._queue.most)
        service = self._service
        if model not in (None, "", service.name, service.version):
            raise HTTPException(404, f"there is no model {model!r}: this service has {service.name!r}")
        found = await self._reply(texts, request_id_of(request))
        if texts == [EXAMPLE]:
            self._example = found
        return Json(found)

    async def _reply(self, texts: Sequence[str], request_id: str) -> dict[str, Any]:
        return self._listed(await self._label(texts, self._service), request_id)

    def _made_up(self, request_id: str) -> dict[str, Any]:
        return self._listed([_made_up(self._service.task.labels, self._service.version)], request_id)

    async def docs(self, request: Request) -> Response:
        """Return the page about the service."""
        labels = self._service.task.labels
        reply = self._example or self._made_up(request_id_of(request))
        url = str(request.base_url).rstrip("/")
        example = ExampleCall(url, self._token, reply, real=self._example is not None)
        return HTMLResponse(docs_page(self._about, self._service.name, labels, example))

    async def _label(self, texts: Sequence[str], service: Service) -> list[Classified]:
        """Return the labels of texts; 503 if there are none for a reason that concerns all texts."""
        self._queue.take(len(texts))
        work = [self._keep(service.classify(text)) for text in texts]
        if (await asyncio.wait(work, timeout=self._seconds))[1]:
            service.note_failure("late")
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
        items = [{"index": place, **_item(one)} for place, one in enumerate(found)]
        answer = _list_of(items, list(self._service.task.labels), found, request_id)
        warning = self._service.about_drift
        return {"warning": warning, **answer} if warning else answer

    def _models(self) -> Response:
        about = {"id": self._service.name, "object": "model", "owned_by": "pcs", "version": self._service.version}
        return Json({"object": "list", "data": [about]})

    def _health(self) -> Response:
        """Say that the process lives."""
        return Json({"status": "UP", "model_class": "pcs", "model_version": self._service.version})

    def _ready(self) -> Response:
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

    def _metrics_page(self) -> Response:
        drift, outdated = self._service.drift, bool(self._service.outdated)
        gauges: dict[str, tuple[str, str, float]] = {
            "pcs_queue_texts": ("gauge", "Texts in progress and waiting.", self._queue.texts),
            "pcs_queue_room": ("gauge", "Texts that there is room for.", self._queue.most),
            "pcs_outdated": ("gauge", "Whether the run has a newer model, which is unreadable.", outdated),
        }
        if drift is not None:
            gauges["pcs_drift"] = ("gauge", "Whether recent texts differ from those of the run.", drift.found)
            gauges["pcs_drift_p_value"] = ("gauge", "Probability of such a difference by chance.", drift.p_value)
        if (audit := self._service.audit) is not None:
            gauges["pcs_audited_texts"] = ("gauge", "Accepted texts that people have checked.", audit.rows)
            gauges["pcs_audit_errors"] = ("gauge", "Errors among them.", audit.wrong)
            gauges["pcs_audit_error_low"] = ("gauge", "Error rate of accepted texts, at least.", audit.error.low)
            gauges["pcs_audit_error_high"] = ("gauge", "Error rate of accepted texts, at most.", audit.error.high)
            gauges["pcs_audit_revoked"] = ("gauge", "Whether the promise is withdrawn.", audit.finding == "revoked")
        for name, value in self._service.waiting.items():
            gauges[f"pcs_stream_{name}"] = ("gauge", f"Texts kept for people: {name}.", value)
        return PlainTextResponse(self._metrics.page(gauges, self.watch.figures()), media_type=MEDIA_TYPE)

    async def predict(self, request: Request) -> Response:
        """Label tasks of Label Studio."""
        texts, names = bodies.label_studio_texts(await bodies.read_object(request), self._queue.most)
        found = await self._label(texts, self._service) if texts else []
        version = found[0].version if found else self._service.version
        results = [_label_studio_prediction(one, names) for one in found]
        return Json({"results": results, "model_version": version})

    async def setup(self, request: Request) -> Response:
        """Check that a project of Label Studio can be answered."""
        bodies.interface_of(await bodies.read_object(request), "schema")
        return Json({"model_version": self._service.version})


class CodebookApp(App):
    """Answers requests with the services of all variables of a codebook; the first pays for calls that they share."""

    def __init__(self, codebook: CodebookService, limits: Limits, *, token: bool = False, port: int = 0) -> None:
        self._codebook = codebook
        first, *others = codebook.services.values()
        super().__init__(first, limits, token=token, port=port)
        for one in others:  # texts are counted once, calls of all
            self.watch.follow(first.tally, one.tracker)

    def _described(self) -> dict[str, Any]:
        return openapi.document(self._service.names, self._codebook.variables)

    async def _reply(self, texts: Sequence[str], request_id: str) -> dict[str, Any]:
        services = self._codebook.services
        return self._all({name: await self._label(texts, one) for name, one in services.items()}, request_id)

    def _made_up(self, request_id: str) -> dict[str, Any]:
        services = self._codebook.services
        return self._all({name: [_made_up(one.task.labels, one.version)] for name, one in services.items()}, request_id)

    def _all(self, found: Mapping[str, Sequence[Classified]], request_id: str) -> dict[str, Any]:
        """Return one item per text, with a field per variable; one that may have several labels is a list of them."""
        variables = self._codebook.variables
        items: list[dict[str, Any]] = [{"index": place} for place in range(len(next(iter(found.values()))))]
        for item in items:
            for name, task in variables.items():
                if task.kind != "many":
                    item[name] = _item(found[name][item["index"]])
                    continue
                parts = {label: _item(found[f"{name}={label}"][item["index"]]) for label in task.labels}
                item[name] = [
                    {**one, "label": label, "applies": one["label"] and one["label"] == "yes"}
                    for label, one in parts.items()
                ]
        labels = {name: list(task.labels) for name, task in variables.items()}
        warnings = {name: one.about_drift for name, one in self._codebook.services.items() if one.about_drift}
        answer = _list_of(items, labels, [one for some in found.values() for one in some], request_id)
        return {"warning": warnings, **answer} if warnings else answer

    async def predict(self, request: Request) -> Response:
        """Refuse, because a prediction of Label Studio is about one variable."""
        raise HTTPException(404, "Label Studio is answered about one variable: serve the folder of that one")


def _list_of(items: Sequence[Any], labels: object, found: Sequence[Classified], request_id: str) -> dict[str, Any]:
    tokens = [sum(getattr(one.spent, name) for one in found) for name in ("input_tokens", "output_tokens")]
    return {
        "id": f"classify-{request_id}",
        "object": "list",
        "created": int(time.time()),
        "model": found[0].version,
        "labels": labels,
        "data": items,
        "usage": {
            "prompt_tokens": tokens[0],
            "completion_tokens": tokens[1],
            "total_tokens": sum(tokens),
            "calls": sum(one.spent.calls for one in found),
            "known_already": sum(one.spent.known for one in found),
        },
    }


def _answering(answer: Callable[[], Response]) -> Callable[[Request], Awaitable[Response]]:
    """Return what answers a route whose requests have nothing to say."""

    async def answered(request: Request) -> Response:
        return answer()

    return answered


def _no_jobs() -> Response:
    raise HTTPException(410, f"/v1/jobs {removed('route', '/v1/jobs')}")


def _item(one: Classified) -> dict[str, Any]:
    found, why = one.outcome, one.error
    labelled = found is not None and why is None
    outcome = found if found is not None and labelled else NO_OUTCOME
    probabilities = one.probabilities if labelled else ()
    item = {
        "label": outcome.label,
        "probs": probabilities,
        "num_classes": len(probabilities),
        "confidence": outcome.confidence,
        "decision": outcome.decision,
        "reason": why.message if why else outcome.reason,
        "id": outcome.id,
        "cost": {"usd": one.spent.usd, "calls": one.spent.calls},
    }
    if not labelled:
        return {**item, "error": why and why._asdict()}
    more = {name.removeprefix("pcs_"): value for name, value in outcome.details.items()}
    return {**item, **more, **({"label_set": outcome.label_set} if outcome.label_set else {})}


def _label_studio_prediction(found: Classified, names: Interface) -> dict[str, Any]:
    """Return a label as Label Studio shows it; for a text without one, a prediction without a result."""
    known = None if found.outcome is None else prediction(found.outcome.for_people, found.version, names)
    return known or {"model_version": found.version, "score": 0.0, "result": []}


def _made_up(labels: Sequence[str], version: str) -> Classified:
    """Return what a reply may look like, because a real one would cost something."""
    shares = [0.9] + [0.1 / (len(labels) - 1)] * (len(labels) - 1)
    scores, why = dict(zip(labels, shares, strict=True)), "two of three answers agree"
    outcome = Outcome(id="", label=labels[0], scores=scores, confidence=0.9, decision="review", reason=why)
    spent = Spent(calls=3, known=0, input_tokens=240, output_tokens=9, usd=0.0004)
    return Classified(outcome=outcome, probabilities=tuple(shares), spent=spent, error=None, version=version)


async def serve_run(
    service: Service | CodebookService,
    door: Listening,
    limits: Limits,
    say: Callable[[str], None],
    *,
    verbose: bool = False,
) -> None:
    """Open a run, and answer requests until a signal to stop."""
    rules = replace(door.rules, open_paths=OPEN_PATHS)
    async with service:
        kind: Any = App if isinstance(service, Service) else CodebookApp
        app: App = kind(service, limits, token=bool(door.rules.token), port=door.socket.getsockname()[1])
        # With hundreds of texts in progress, Python would look for garbage too often, even in what was loaded before.
        gc.collect()
        gc.freeze()
        gc.set_threshold(*GARBAGE_THRESHOLD)
        with app.watch:
            app.watch.begin()
            try:
                say(f"{service.version} is ready; {door.url} shows how to ask it")
                await serve(app.asgi, replace(door, rules=rules), say, verbose=verbose, on_stop=app.stopping)
            finally:
                await app.stop()
