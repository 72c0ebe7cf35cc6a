"""What a browser sends, as values, and the queues that people choose from; what cannot be read is refused."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple, TypeVar
from urllib.parse import parse_qsl, unquote

from starlette.requests import Request

from pcs_annotator.base.errors import ConfigError
from pcs_annotator.core.events import Queue, reviewer_name
from pcs_annotator.reviewing.values import Given

T = TypeVar("T", bound=str)
MOST_FIELDS = 400
LONGEST_NAME = 60
LONGEST_NOTE = 2000
LONGEST_LOOK = 24 * 3600.0
REVIEWER, QUEUE = "reviewer", "queue"  # names of cookies; the second is also that of a field


class QueueText(NamedTuple):
    """A queue in words."""

    title: str  # its name
    purpose: str  # what it is good for
    use: str  # what its verdicts may be used for


QUEUES: Mapping[Queue, QueueText] = {
    "learn": QueueText(
        "Learn",
        "Rows that teach most come first, one in ten is drawn at random. Start here.",
        "Teaches weights; every draw has a known probability, so label shares can be estimated.",
    ),
    "random": QueueText(
        "Random",
        "A simple random sample, for a promise and for plain statistics.",
        "Supports a promise; teaches weights; fit for every estimate.",
    ),
    "audit": QueueText(
        "Audit",
        "Accepted rows at random, to check whether the promise holds.",
        "Confirms or revokes the promise; nothing is learned from it.",
    ),
    "doubtful": QueueText(
        "Doubtful first",
        "The least certain rows in a fixed order, to clean up a result.",
        "Corrects labels and teaches weights; unfit for estimates.",
    ),
    "finish": QueueText(
        "Finish",
        "What pcs finish leaves to people, the least certain rows first; then the whole table has few errors.",
        "Gives the certificate of pcs finish; corrects labels and teaches weights; unfit for estimates.",
    ),
    "stream": QueueText(
        "Stream",
        "Texts that pcs serve and pcs label left for people, and some that were accepted, drawn at random.",
        "Teaches weights; those drawn at random support the promise, or withdraw it.",
    ),
    "conflicts": QueueText(
        "Conflicts",
        "Rows on which reviewers differ; your verdict settles them.",
        "Settles labels; unfit for estimates.",
    ),
    "chosen": QueueText(
        "Chosen", "Rows that you went to.", "Corrects labels and teaches weights; unfit for estimates."
    ),
}
FOR_ESTIMATES: tuple[Queue, ...] = ("learn", "random", "audit")  # their draws have known probabilities
TO_CHOOSE: tuple[Queue, ...] = (*FOR_ESTIMATES, "doubtful", "finish", "stream", "conflicts")


class Visit(NamedTuple):
    """Who asks, empty if that is not known yet, and the queue from which their next row comes."""

    reviewer: str
    queue: Queue


def visit_of(request: Request, fields: Mapping[str, str], usual_reviewer: str) -> Visit:
    """Return who asks; the queue is the one given, or the one before."""
    name = reviewer_name(unquote(request.cookies.get(REVIEWER, "")))[:LONGEST_NAME]
    before = request.cookies.get(QUEUE)
    usual = next((queue for queue in TO_CHOOSE if queue == before), TO_CHOOSE[0])
    return Visit(name or usual_reviewer, one_of(TO_CHOOSE, fields, QUEUE, usual))


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


def one_of(choices: Iterable[T], fields: Mapping[str, str], name: str, usual: T) -> T:
    """Return the value of a field, which must be a known one."""
    wanted = fields.get(name) or usual
    choice = next((each for each in choices if each == wanted), None)
    if choice is None:
        raise ConfigError(f"{name}={wanted!r} is not one of {', '.join(filter(None, choices))}")
    return choice


def number_of(form: Mapping[str, str], name: str) -> int:
    """Return the number in a field that the page itself has filled in."""
    digits = form.get(name, "")
    if not digits.isascii() or not digits.isdecimal() or len(digits) > 18:
        raise ConfigError(f"{name}={digits[:40]!r} is not a number: reload the page and try again")
    return int(digits)


def _seconds(form: Mapping[str, str]) -> float | None:
    """Return how long the row was on screen; None if the browser did not measure it."""
    try:
        seconds = float(form.get("seconds", ""))
    except ValueError:
        return None
    return seconds if 0 <= seconds <= LONGEST_LOOK else None
