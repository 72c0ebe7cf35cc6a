"""The review page as a web app: every address, and what it answers.

Every answer is a whole page or, for the page's own script, its parts as JSON; forms and links work without the script.
Handlers call the review directly, in the one thread of the server: it is quick, and nothing can come between two steps.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from importlib.resources import files
from typing import Any
from urllib.parse import parse_qsl, quote, urlsplit

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from pcs_annotator.base.errors import ChangedMeanwhile, LeaseExpired, UnknownRow, UserError
from pcs_annotator.base.text import counted, series
from pcs_annotator.core.events import Verdict
from pcs_annotator.faces.review import forms
from pcs_annotator.faces.review.forms import QUEUE, QUEUES, REVIEWER, Visit, one_of, visit_of
from pcs_annotator.faces.review.item import beside_view, evidence_view, item_view
from pcs_annotator.faces.review.layout import OF_PASSAGES, Screen, guidelines_view, link, name_form, whole_page
from pcs_annotator.faces.review.passage_form import passages_in
from pcs_annotator.faces.review.standing import end_view, people_view, progress_view, queue_menu
from pcs_annotator.faces.review.variable_form import form_view, labels_in
from pcs_annotator.faces.web.guard import ERROR_HANDLERS, error_response, request_id_of
from pcs_annotator.reviewing.book_review import BookReview
from pcs_annotator.reviewing.values import Shown
from pcs_annotator.runs.settings import TaskSettings
from pcs_annotator.showing.formats import number
from pcs_annotator.showing.markup import Markup, joined, section, sentence, tag, user_text

Fields = Mapping[str, str]
A_YEAR = 365 * 24 * 3600
STATUS: Mapping[type[Exception], int] = {UnknownRow: 404, LeaseExpired: 409, ChangedMeanwhile: 409}
FIRST_ROW = "This is the first row that you saw."
NOTHING_TO_UNDO = "There is nothing of yours to undo."


class Pages:
    """All pages of one review; `keys` are those of labels, none where each variable has labels of its own."""

    def __init__(self, review: BookReview, name: str, keys: Mapping[str, str], reviewer: str = "") -> None:
        self._review, self._name, self._keys, self._usual_reviewer = review, name, keys, reviewer
        self._guidelines = section("guidelines", "Guidelines", guidelines_view(review.guidelines))

    def app(self) -> Starlette:
        """Return the app; put a guard in front of it."""
        pages = {
            "/": lambda visit, _: self._next(visit),
            "/row": self._row,
            "/step": self._step,
            "/people": self._people,
            "/evidence": self._evidence,
        }
        actions = {"/verdict": self._verdict, "/undo": self._undo}
        routes = [
            *(Route(path, self._page(screen_of)) for path, screen_of in pages.items()),
            *(Route(path, self._page(screen_of), methods=["POST"]) for path, screen_of in actions.items()),
            Route("/progress", self._progress),
            Route("/reviewer", self._who),
            Route("/reviewer", self._named, methods=["POST"]),
            *(Route(f"/assets/{file}", _sending(kind, content)) for file, (kind, content) in _assets().items()),
        ]
        return Starlette(routes=routes, exception_handlers={**ERROR_HANDLERS, UserError: self._problem})

    # who

    async def _who(self, request: Request) -> Response:
        visit = visit_of(request, {}, self._usual_reviewer)
        screen = Screen(title="Who is reviewing?", main=name_form(visit.reviewer), address="/reviewer")
        return _html(whole_page(screen, self._name, "", self._keys, Markup("")))

    async def _named(self, request: Request) -> Response:
        response = RedirectResponse("/", 303)
        name = quote(forms.name_of(await forms.form_of(request)))
        response.set_cookie(REVIEWER, name, max_age=A_YEAR, httponly=True, samesite="strict")
        return response

    # pages

    def _row(self, visit: Visit, fields: Fields) -> Screen:
        shown_by = one_of(QUEUES, fields, "shown_by", "chosen")
        return self._item(self._review.show(fields.get("id", "").strip(), visit.reviewer, shown_by), visit)

    def _step(self, visit: Visit, fields: Fields) -> Screen:
        queues = self._review.trail(visit.reviewer)
        trail, name = list(queues), fields.get("id", "")
        at = (trail.index(name) if name in trail else len(trail)) + (-1 if fields.get("by") == "-1" else 1)
        if at >= len(trail) or not trail:
            return self._next(visit)
        before = trail[max(at, 0)]
        shown = self._review.show(before, visit.reviewer, queues[before])
        return self._item(shown, visit, message=FIRST_ROW if at < 0 else "")

    def _people(self, visit: Visit, _: Fields) -> Screen:
        main = people_view(self._review.progress(visit.reviewer), self._review.reviews, visit.reviewer)
        return Screen(title="People", main=main, address="/people", place="/people")

    def _evidence(self, visit: Visit, fields: Fields) -> Screen:
        name = fields.get("id", "")
        view = evidence_view(self._review.evidence(name, visit.reviewer))
        address = link("/row", id=name, queue=visit.queue)
        back = tag("h1", "Prompts and replies: ", tag("a", "row ", user_text(name), href=address))
        return Screen(title=f"Row {name}", main=tag("div", back, view, class_="card evidence"), address=address)

    async def _progress(self, request: Request) -> Response:
        visit = visit_of(request, request.query_params, self._usual_reviewer)
        return JSONResponse({"progress": self._strip(visit)} if visit.reviewer else {})

    # verdicts

    def _verdict(self, visit: Visit, form: Fields) -> Screen:
        verdict = forms.verdict_of(form, visit.reviewer)
        try:
            saved = self._review.submit(verdict, labels_in(form, self._review, verdict))
            message = _saved(saved, self._review.variables)
        except LeaseExpired as error:
            return self._next(visit, message=str(error), kind="problem", status=409)
        except ChangedMeanwhile as error:
            fresh = self._review.show(verdict.id, visit.reviewer, verdict.queue)
            return self._item(fresh, visit, message=str(error), kind="problem", status=409)
        return self._next(visit, message=message, kind="saved")

    def _undo(self, visit: Visit, form: Fields) -> Screen:
        undone = self._review.undo(visit.reviewer)
        if not undone:
            return self._next(visit, message=NOTHING_TO_UNDO)
        shown = self._review.show(undone[0].id, visit.reviewer, undone[0].queue)
        return self._item(shown, visit, message=_undone(undone), kind="saved")

    # answers

    def _next(self, visit: Visit, **status: Any) -> Screen:
        address = link("/", queue=visit.queue)
        shown = self._review.next_row(visit.reviewer, visit.queue)
        if shown is None:
            why = self._review.why_empty(visit.reviewer, visit.queue)
            end = end_view(visit.queue, self._review.progress(visit.reviewer), why, self._review.folder)
            return Screen(title="Nothing left", main=end, address=address, **status)
        return self._item(shown, visit, address=address, **status)

    def _item(self, shown: Shown, visit: Visit, *, address: str = "", **status: Any) -> Screen:
        view = form_view(shown, visit) if shown.variables else item_view(shown, visit, self._keys)
        aside = tag("aside", self._guidelines, beside_view(shown), aria_label="Guidelines and columns", tabindex="0")
        main = tag("div", tag("div", view, class_="work"), aside, class_="desk")
        address = address or link("/row", id=shown.id, shown_by=shown.queue, queue=visit.queue)
        return Screen(title=f"Row {shown.id}", main=main, address=address, **status)

    # sending

    def _strip(self, visit: Visit) -> Markup:
        progress = self._review.progress(visit.reviewer)
        return joined(queue_menu(progress, visit.queue), progress_view(progress, visit.queue))

    def _page(self, make: Callable[[Visit, Fields], Screen]) -> Callable[[Request], Awaitable[Response]]:
        """Return the handler that answers somebody whose name is known, and asks for it otherwise."""

        async def answer(request: Request) -> Response:
            fields = await forms.form_of(request) if request.method == "POST" else request.query_params
            here = parse_qsl(urlsplit(fields.get("here", "")).query)
            visit = visit_of(request, {**dict(here), **fields}, self._usual_reviewer)
            if not visit.reviewer:
                return RedirectResponse("/reviewer", 303)
            response = self._sent(request, visit, make(visit, fields))
            if request.cookies.get(QUEUE) != visit.queue:
                response.set_cookie(QUEUE, visit.queue, httponly=True, samesite="strict")
            return response

        return answer

    def _sent(self, request: Request, visit: Visit, answer: Screen) -> Response:
        """Return a whole page; its parts for the script; or, after a form without script, where to look."""
        for_script = _for_script(request)
        if request.method == "POST" and answer.status < 400 and not for_script:
            return RedirectResponse(answer.address, 303)
        strip = self._strip(visit) if visit.reviewer else Markup("")
        if for_script:
            parts = {"title": f"{answer.title} · {self._name}", "main": answer.main, "progress": strip}
            about = {"message": answer.message, "kind": answer.kind, "address": answer.address, "place": answer.place}
            return JSONResponse(parts | about, answer.status)
        more = OF_PASSAGES if any(task.kind == "passages" for task in self._review.variables.values()) else ()
        return _html(whole_page(answer, self._name, visit.reviewer, self._keys, strip, more), answer.status)

    async def _problem(self, request: Request, error: Exception) -> Response:
        status = STATUS.get(type(error), 400)
        if _for_script(request):
            return error_response(status, str(error), request_id_of(request))
        title, problem = tag("h1", "That did not work"), sentence(str(error))
        main = tag("div", title, problem, sentence(tag("a", "To the review", href="/")), class_="card")
        answer = Screen(title="Problem", main=main, address="/", status=status)
        return self._sent(request, visit_of(request, {}, self._usual_reviewer), answer)


def _assets() -> dict[str, tuple[str, bytes]]:
    """Return file → type and content, all read once: no path from a request is opened."""

    def together(*names: str) -> bytes:
        return b"".join((files(__package__) / "assets" / name).read_bytes() for name in names)

    colours = (files("pcs_annotator.showing.report") / "colours.css").read_bytes()
    return {
        "review.css": ("text/css", colours + together("review.css", "passages.css")),
        "review.js": ("text/javascript", together("passages.js", "review.js")),
        "icon.svg": ("image/svg+xml", together("icon.svg")),
    }


def _sending(kind: str, content: bytes) -> Callable[[Request], Awaitable[Response]]:
    async def send(_request: Request) -> Response:
        return Response(content, media_type=kind)

    return send


def _for_script(request: Request) -> bool:
    return "application/json" in request.headers.get("accept", "")


def _html(page: str, status: int = 200) -> Response:
    return Response(page.encode("utf-8", "replace"), status, media_type="text/html")


def _saved(verdicts: Mapping[str, Verdict], variables: Mapping[str, TaskSettings]) -> str:
    """Return what was saved and, where they were hidden until now, what the models say."""
    first = next(iter(verdicts.values()))
    blind = {part: verdict for part, verdict in verdicts.items() if verdict.blind and verdict.label}
    if "" in verdicts:
        message = f"{'Skipped' if first.label is None else f'Saved: {first.label}'} · row {first.id}"
        sure = "" if first.confidence is None else f" ({number(first.confidence)})"
        return f"{message} · models: {first.proposed or 'no label'}{sure}" if blind else message
    skipped = all(verdict.label is None for verdict in verdicts.values())
    message = f"{'Skipped' if skipped else 'Saved'} · row {first.id}"
    differing = {part: verdict for part, verdict in blind.items() if verdict.label != verdict.proposed}
    proposed = {part: verdict.proposed or "no label" for part, verdict in differing.items()}
    for part in proposed.keys() & {name for name, task in variables.items() if task.kind == "passages"}:
        proposed[part] = counted(len(passages_in(differing[part].proposed or "[]")), "passage")
    other = [f"{part} ({label})" for part, label in proposed.items()]
    said = f"models differ on {series(other)}" if other else "models say the same"
    return f"{message} · {said}" if blind else message


def _undone(verdicts: Sequence[Verdict]) -> str:
    same = len({verdict.id for verdict in verdicts}) == 1
    return f"Undone: row {verdicts[0].id}" if same else f"Undone: {counted(len(verdicts), 'verdict')}"
