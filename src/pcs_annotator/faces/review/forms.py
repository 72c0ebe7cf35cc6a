"""What a browser sends, as values; what cannot be read is refused in a sentence."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple, TypeVar
from urllib.parse import parse_qsl, unquote

from starlette.requests import Request

from pcs_annotator.base.errors import ConfigError
from pcs_annotator.core.review import Queue, reviewer_name
from pcs_annotator.faces.review.queues import QUEUES, TO_CHOOSE
from pcs_annotator.reviewing.values import Given

T = TypeVar("T", bound=str)
MOST_FIELDS = 400
LONGEST_NAME = 60
LONGEST_NOTE = 2000
LONGEST_LOOK = 24 * 3600.0
REVIEWER, QUEUE = "reviewer", "queue"  # names of cookies; the second is also that of a field


class Visit(NamedTuple):
    """Who asks, empty if that is not known yet, and the queue from which their next row comes."""

    reviewer: str
    queue: Queue


def visit_of(request: Request, given: Mapping[str, str], usual_reviewer: str) -> Visit:
    """Return who asks; the queue is the one given, or the one before."""
    name = reviewer_name(unquote(request.cookies.get(REVIEWER, "")))[:LONGEST_NAME]
    before = request.cookies.get(QUEUE)
    usual = next((queue for queue in TO_CHOOSE if queue == before), TO_CHOOSE[0])
    return Visit(name or usual_reviewer, one_of(TO_CHOOSE, given, QUEUE, usual))


async def form_of(request: Request) -> dict[str, str]:
    """Return the fields of a form."""
    try:
        fields = parse_qsl((await request.body()).decode(), keep_blank_values=True, max_num_fields=MOST_FIELDS)
    except ValueError:
        raise ConfigError("the form cannot be read: reload the page and try again") from None
    return dict(fields)


def name_of(form: Mapping[str, str]) -> str:
    """Return a reviewer's name."""
    name = " ".join(form.get("name", "").split())
    if not name or len(name) > LONGEST_NAME or not name.isprintable():
        raise ConfigError(f"a name has 1 to {LONGEST_NAME} printable characters: choose another one")
    return name


def verdict_of(form: Mapping[str, str], reviewer: str) -> Given:
    """Return the verdict in a form."""
    return Given(
        id=form.get("id", ""),
        label=None if form.get("skip") else form.get("label", ""),
        reviewer=reviewer,
        queue=one_of(QUEUES, form, "shown_by", "chosen"),
        lease=form.get("lease", ""),
        version=number_of(form, "version"),
        seconds=_seconds(form),
        note=form.get("note", "")[:LONGEST_NOTE].strip(),
    )


def one_of(known: Iterable[T], given: Mapping[str, str], name: str, usual: T) -> T:
    """Return the value of a field, which must be a known one."""
    wanted = given.get(name) or usual
    found = next((one for one in known if one == wanted), None)
    if found is None:
        raise ConfigError(f"{name}={wanted!r} is not one of {', '.join(filter(None, known))}")
    return found


def number_of(form: Mapping[str, str], name: str) -> int:
    """Return the number in a field that the page itself has filled in."""
    given = form.get(name, "")
    if not given.isascii() or not given.isdecimal() or len(given) > 18:
        raise ConfigError(f"{name}={given[:40]!r} is not a number: reload the page and try again")
    return int(given)


def _seconds(form: Mapping[str, str]) -> float | None:
    """Return how long the row was on screen; None if the browser did not measure it."""
    try:
        seconds = float(form.get("seconds", ""))
    except ValueError:
        return None
    return seconds if 0 <= seconds <= LONGEST_LOOK else None
