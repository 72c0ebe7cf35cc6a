"""The routes of the service, from the open run folder to the open port, and back."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from functools import partial
from itertools import zip_longest
from typing import Any

import orjson
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from pcs_annotator.core.outcome import Outcome
from pcs_annotator.core.task import Task
from pcs_annotator.faces.serve import Limits, bodies, openapi
from pcs_annotator.faces.serve.bodies import TextQueue
from pcs_annotator.faces.serve.metrics import AUDITED, MEDIA_TYPE, Counted, Metrics
from pcs_annotator.faces.serve.service_page import ASSETS, Door, Standing, service_page
from pcs_annotator.faces.web.guard import ERROR_HANDLERS, request_id_of
from pcs_annotator.faces.web.server import Listening, serve
from pcs_annotator.runs.book import Book
from pcs_annotator.runs.service import Classified, Service, Spent
from pcs_annotator.runs.settings import TaskSettings
from pcs_annotator.runs.watch import Watch
from pcs_annotator.showing.report.over_time import fits_chart, fits_of
from pcs_annotator.showing.svg_plot import Plot

OPEN_PATHS = frozenset({"/health", "/ready"})  # what an orchestrator asks, without a token
NO_OUTCOME = Outcome(id="", label=None, scores={}, confidence=None, decision="review", reason="")


class Json(Response):
    """Values as JSON."""

    media_type = "application/json"

    def render(self, content: object) -> bytes:
        """Return JSON."""
        return orjson.dumps(content)


class App:
    """Answers requests with a service for each part of a run; the first pays for shared calls."""

    def __init__(
        self, services: Mapping[str, Service], limits: Limits, *, variables: Mapping[str, TaskSettings], port: int = 0
    ) -> None:
        self._services, self._variables = services, variables
        self.service = service = next(iter(services.values()))
        self._seconds, self._max_text = limits.seconds, limits.max_text
        self._queue = TextQueue(limits.max_queue)
        self._metrics = Metrics()
        self.watch = Watch(service.folder, "serve", service.tally, port=port)
        for each in services.values():
            self.watch.follow(service.tally, each.tracker)
        self.watch.note = lambda: "; ".join(dict.fromkeys(each.note for each in services.values() if each.note))
        self._work: set[asyncio.Task[Classified]] = set()
        self._stopping = asyncio.Event()
        self._about = openapi.document(service.names, self._variables, pairs=bool(service.task.pair))
        assets = {file: (content, 200, None, kind) for file, (kind, content) in ASSETS.items()}
        alive = {"status": "UP", "model_class": "pcs"}
        routes = [
            Route("/v1/classify", self.classify, methods=["POST"]),
            Route("/v1/models", _answering(self._models)),
            Route("/health", _answering(lambda: Json({**alive, "model_version": service.version}))),
            Route("/ready", _answering(self._ready)),
            Route("/metrics", _answering(self._metrics_page)),
            Route("/openapi.json", _answering(lambda: Json(self._about))),
            Route("/", self._page),
            *(Route(f"/assets/{file}", _answering(partial(Response, *content))) for file, content in assets.items()),
        ]
        starlette = Starlette(routes=routes, exception_handlers=ERROR_HANDLERS)
        self.asgi: ASGIApp = Counted(starlette, self._metrics)

    def stopping(self) -> None:
        """Say on `/ready` that no more texts are accepted; what waits for a model is given up within the timeout."""
        if not self._stopping.is_set():
            self._stopping.set()
            for share in (0.5, 0.9):  # calls in flight may end in between
                asyncio.get_running_loop().call_later(share * self._seconds, self._give_up)

    def _give_up(self) -> None:
        for work in self._work:
            work.cancel()

    async def stop(self) -> None:
        """Finish what is in progress."""
        self.stopping()
        if self._work:
            await asyncio.wait(self._work)

    async def classify(self, request: Request) -> Response:
        """Label texts."""
        return Json(await self.labelled(await bodies.read_object(request), request_id_of(request)))

    async def labelled(self, body: dict[str, Any], request_id: str = "mcp") -> dict[str, Any]:
        """Return the answer to a body that names texts."""
        service = self.service
        texts, model = bodies.texts_and_model(body, self._queue.most, pairs=bool(service.task.pair))
        names = {self._model, *(name for each in self._services.values() for name in (each.name, each.version))}
        if model and model not in names:
            raise HTTPException(404, f"there is no model {model!r}: this service has {service.name!r}")
        groups, own_ids = (bodies.of_each_text(body, field, len(texts)) for field in ("group", "custom_id"))
        until = time.monotonic() + self._seconds
        labelled = {name: await self._label(texts, each, until, groups) for name, each in self._services.items()}
        return self._listed(labelled, own_ids, request_id)

    @property
    def _model(self) -> str:
        return ", ".join(dict.fromkeys(service.version for service in self._services.values()))

    async def _label(
        self, texts: Sequence[str], service: Service, until: float, groups: Sequence[str | None] = ()
    ) -> list[Classified]:
        """Return the labels of texts; 503 if there are none for a reason that concerns all texts."""
        for position, text in enumerate(texts):
            if len(text) > self._max_text:
                at_most = f"at most {self._max_text:,} are taken: cut it, or start the service with a larger --max-text"
                raise HTTPException(413, f"text {position} has {len(text):,} characters, {at_most}")
        self._queue.take(len(texts))
        work = [self._keep(service.classify(text, group)) for text, group in zip_longest(texts, groups)]
        if (await asyncio.wait(work, timeout=max(0.0, until - time.monotonic())))[1]:
            service.note_failure("late")
            message = f"no answer within {self._seconds:g} s; what is on its way will be kept: try again"
            raise HTTPException(503, message, {"Retry-After": "5"})
        if any(task.cancelled() for task in work):
            raise HTTPException(503, "the service stops before this text has a label: ask again", {"Retry-After": "5"})
        results = [result.result() for result in work]
        for result in results:
            decided = result.outcome and result.outcome.decision
            self._metrics.texts[result.error.kind if result.error else decided or "labelled"] += 1
        errors = [result.error for result in results if result.error is not None and not result.error.of_text]
        if len(errors) == len(results):
            wait = {} if errors[0].kind == "budget_reached" else {"Retry-After": "5"}
            raise HTTPException(503, errors[0].message, wait)
        return results

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

    def _listed(
        self, results: Mapping[str, Sequence[Classified]], own_ids: Sequence[str | None], request_id: str
    ) -> dict[str, Any]:
        """Return one item per text; of several variables, it has a field for each."""
        texts = [dict(zip(results, parts, strict=True)) for parts in zip(*results.values(), strict=True)]
        warnings = {name: each.about_drift for name, each in self._services.items() if each.about_drift}
        labels: object = list(self.service.task.labels)
        warning: object = next(iter(warnings.values()), "")
        if self._variables:
            labels, warning = {name: list(task.labels) for name, task in self._variables.items()}, warnings
        items = []
        for at, (parts, own_id) in enumerate(zip(texts, own_ids, strict=True)):
            named = {"index": at} if own_id is None else {"index": at, "custom_id": own_id}
            item = self._variables_of(parts) if self._variables else _item(next(iter(parts.values())))
            items.append({**named, **item})
        spent = [each.spent for some in results.values() for each in some]
        sums = {name: sum(getattr(each, name) for each in spent) for name in Spent._fields[:4]}
        usage = {"prompt_tokens": sums["input_tokens"], "completion_tokens": sums["output_tokens"]}
        usage |= {"total_tokens": sum(usage.values()), "calls": sums["calls"], "known_already": sums["known"]}
        return {
            **({"warning": warning} if warning else {}),
            "id": f"classify-{request_id}",
            "object": "list",
            "created": int(time.time()),
            "model": ", ".join(dict.fromkeys(some[0].version for some in results.values())),
            "labels": labels,
            "data": items,
            "usage": usage,
        }

    def _variables_of(self, results: Mapping[str, Classified]) -> dict[str, Any]:
        item: dict[str, Any] = {}
        for name, task in self._variables.items():
            if task.kind != "many":
                item[name] = _item(results[name])
                continue
            parts = {label: _item(results[f"{name}={label}"]) for label in task.labels}
            applies = {label: part["label"] and part["label"] == "yes" for label, part in parts.items()}
            item[name] = [{**part, "label": label, "applies": applies[label]} for label, part in parts.items()]
        return item

    def _models(self) -> Response:
        about = {"id": self.service.name, "object": "model", "owned_by": "pcs", "version": self.service.version}
        return Json({"object": "list", "data": [about]})

    def _ready(self) -> Response:
        about = self.state()
        return Json(about, 200 if about["status"] == "ready" else 503)

    def state(self) -> dict[str, Any]:
        """Return whether texts are accepted and get labels, with which model, and whether the run has a newer one."""
        services = self._services.values()
        for service in services:
            service.look_for_changes()
        reason = next((service.trouble for service in services if service.trouble), "")
        return {
            "status": "stopping" if self._stopping.is_set() else "not ready" if reason else "ready",
            "reason": reason,
            "model": self._model,
            "outdated": next((service.outdated for service in services if service.outdated), ""),
            "queued_texts": self._queue.texts,
        }

    async def _page(self, request: Request) -> Response:
        token = bool(request.cookies or "authorization" in request.headers)
        door = Door(str(request.base_url).rstrip("/"), token, pairs=bool(self.service.task.pair))
        tasks: Mapping[str, Task | TaskSettings] = self._variables or {"": self.service.task}
        standing = self._standing()._replace(charts=await asyncio.to_thread(self._charts))
        page = service_page(self._model, tasks, self._about, standing, door)
        return HTMLResponse(page)

    def _standing(self) -> Standing:
        """Return how the service is, in the figures that `/ready`, `/metrics` and `pcs status` have, too."""
        state, figures, waiting = self.state(), self.watch.figures(), self.service.waiting
        by_decision = ", ".join(f"{count:,} {result}" for result, count in sorted(self._metrics.texts.items()))
        drifts = [each.drift for each in self._services.values() if each.drift is not None]
        usual = "texts are like those of the run" if drifts else "too few texts to tell whether they are like the run's"
        left = "".join(f", {number:,.10g} left of {limit}" for limit, number in figures["budget_left"].items())
        lines = {
            "Status": state["reason"] or state["status"],
            "Model": "; ".join(filter(None, [state["model"], state["outdated"]])),
            "Since": figures["started"][:16].replace("T", " ") + " UTC",
            "Texts": by_decision or "none yet",
            "In progress": f"{state['queued_texts']:,} texts, room for {self._queue.most:,}",
            "Kept for people": f"{waiting['texts']:,} texts",
            "Drift, audit": figures["note"] or usual,
            "Calls": f"{figures['calls']:,}, ${figures['usd']:,.4g}{left}",
        }
        return Standing(state["status"] == "ready", lines)

    def _charts(self) -> dict[str, Plot]:
        """Return variable → how its fits have changed, where there are several."""
        numbered = enumerate(self._services.items())
        charts = {name: fits_chart(fits_of(each.folder), f"fits{at}") for at, (name, each) in numbered}
        return {name: chart for name, chart in charts.items() if chart}

    def _metrics_page(self) -> Response:
        service = self.service
        gauges: dict[str, tuple[str, float | Mapping[str, float]]] = {
            "pcs_queue_texts": ("Texts in progress and waiting.", self._queue.texts),
            "pcs_queue_room": ("Texts that there is room for.", self._queue.most),
            "pcs_outdated": ("Whether the run has a newer model, which is unreadable.", bool(service.outdated)),
        }
        if drifts := [each.drift for each in self._services.values() if each.drift is not None]:
            groups = [values for drift in drifts for values in (drift.groups or {}).items()]
            by_group = {name: any(each.found for group, each in groups if group == name) for name, _ in groups}
            differ, p_value = any(each.found for each in drifts), min(each.p_value for each in drifts)
            gauges["pcs_drift"] = ("Whether recent texts differ from those of the run.", differ)
            gauges["pcs_drift_p_value"] = ("Probability of such a difference by chance.", p_value)
            gauges["pcs_group_drift"] = ("The same by group.", by_group)
        for name, (about, of) in AUDITED.items():
            values = {group: of(each) for group, each in service.audits.items()}
            gauges[f"pcs_{name}"] = (about, {"": values[""]} if "" in values else {})
            gauges[f"pcs_group_{name}"] = (f"By group: {about}", {each: values[each] for each in values if each})
        for name, value in service.waiting.items():
            gauges[f"pcs_stream_{name}"] = (f"Texts kept for people: {name}.", value)
        return PlainTextResponse(self._metrics.page(gauges, self.watch.figures()), media_type=MEDIA_TYPE)


def _answering(answer: Callable[[], Response]) -> Callable[[Request], Awaitable[Response]]:
    """Return what answers a route whose requests have nothing to say."""

    async def answered(request: Request) -> Response:
        return answer()

    return answered


def _item(classified: Classified) -> dict[str, Any]:
    judged, why = classified.outcome, classified.error
    labelled = judged is not None and why is None
    outcome = judged if judged is not None and labelled else NO_OUTCOME
    probabilities = classified.probabilities if labelled else ()
    item = {
        "label": outcome.label,
        "probs": probabilities,
        "num_classes": len(probabilities),
        "confidence": outcome.confidence,
        "decision": outcome.decision,
        "reason": why.message if why else outcome.reason,
        "id": outcome.id,
        "cost": {"usd": classified.spent.usd, "calls": classified.spent.calls},
    }
    if not labelled:
        return {**item, "error": why and why._asdict()}
    more = {name.removeprefix("pcs_"): value for name, value in outcome.details.items()}
    return {**item, **more, **({"label_set": outcome.label_set} if outcome.label_set else {})}


@asynccontextmanager
async def opened_app(
    services: Mapping[str, Service], limits: Limits, book: Book, *, port: int = 0
) -> AsyncIterator[App]:
    """Open all parts of a run; what is in progress is finished at the end."""
    async with AsyncExitStack() as stack:
        for service in services.values():
            await stack.enter_async_context(service)
        app = App(services, limits, variables=book.variables if book.named else {}, port=port)
        with app.watch:
            app.watch.begin()
            try:
                yield app
            finally:
                await app.stop()


async def serve_run(
    services: Mapping[str, Service],
    door: Listening,
    limits: Limits,
    say: Callable[[str], None],
    *,
    book: Book,
    verbose: bool = False,
) -> None:
    """Open all parts of a run, and answer requests until a signal to stop."""
    rules = replace(door.rules, open_paths=OPEN_PATHS)
    port = door.socket.getsockname()[1]
    async with opened_app(services, limits, book, port=port) as app:
        name = book.path.resolve().name if book.named else next(iter(services.values())).version
        say(f"{name} is ready; {door.url} shows how to ask it")
        await serve(app.asgi, replace(door, rules=rules), say, verbose=verbose, on_stop=app.stopping)
