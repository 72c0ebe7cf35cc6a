"""What clients send, checked, and how much of it is taken: every error names the field and says what is expected."""

import logging
import math
from time import monotonic
from typing import Any

import orjson
from starlette.exceptions import HTTPException
from starlette.requests import Request

from pcs_annotator.core.task import PAIR_LABELS, pair_text

_LOG = logging.getLogger(__name__)
LONGEST_WAIT = 60
_KINDS = {dict: "an object", list: "a list", str: "a text", bool: "true or false", type(None): "null"}


def kind_of(value: object) -> str:
    """Return what a JSON value is, for messages."""
    return _KINDS.get(type(value), "a number")


async def read_object(request: Request) -> dict[str, Any]:
    """Return the JSON object that a request has as its body."""
    try:
        body = orjson.loads(await request.body())
    except orjson.JSONDecodeError as error:
        raise HTTPException(400, f"the body is not valid JSON: {error}") from None
    if not isinstance(body, dict):
        raise HTTPException(400, f"the body must be a JSON object, not {kind_of(body)}")
    return body


def texts_and_model(values: dict[str, Any], most: int, *, pairs: bool = False) -> tuple[list[str], str | None]:
    """Return the texts, or pairs of texts as one each, and the model that a body names."""
    model = values.get("model")
    if model is not None and not isinstance(model, str):
        raise HTTPException(400, f"`model` must be a text, not {kind_of(model)}")
    if "input" not in values:
        raise HTTPException(400, "`input` is missing: give a text, or a list of texts")
    sent = values["input"]
    texts = [sent] if isinstance(sent, dict if pairs else str) else sent
    if not isinstance(texts, list) or not texts:
        of_pairs = 'a pair of texts {"a": "…", "b": "…"}, or a list of pairs'
        raise HTTPException(400, f"`input` must be {of_pairs if pairs else 'a text, or a list of one or more texts'}")
    if len(texts) > most:
        raise HTTPException(413, f"{len(texts):,} texts in one request, at most {most:,} are taken: use pcs label")
    return [_text(text, f"input[{position}]", pairs=pairs) for position, text in enumerate(texts)], model


def _text(value: object, where: str, *, pairs: bool = False) -> str:
    if pairs and isinstance(value, dict):
        return pair_text(*(_text(value.get(name), f"{where}.{name}") for name in PAIR_LABELS[:2]))
    if not isinstance(value, str) or pairs:
        what = 'a pair {"a": "…", "b": "…"}' if pairs else "a text"
        raise HTTPException(400, f"`{where}` must be {what}, not {kind_of(value)}")
    if not value.strip():
        raise HTTPException(400, f"`{where}` is empty: leave it out")
    return value


def of_each_text(values: dict[str, Any], field: str, texts: int) -> list[str | None]:
    """Return what a body says of each text: `groups`, a list, or `group` for all texts; None if it does not."""
    names = values.get(f"{field}s", [values.get(field)] * texts)
    if not isinstance(names, list) or len(names) != texts:
        raise HTTPException(400, f"`{field}s` must be a list of texts, one for each text in `input`")
    for position, name in enumerate(names):
        if name is not None and not isinstance(name, str):
            raise HTTPException(400, f"`{field}s[{position}]` must be a text, not {kind_of(name)}")
    return names


class TextQueue:
    """Counts the `texts` in progress and waiting, and refuses more than the `most` it has room for."""

    def __init__(self, most: int) -> None:
        self.most, self.texts = most, 0
        self._rate, self._left, self._noted_at = 1.0, 0, monotonic()
        self._logged = 0  # percent of the room that was taken when this was last logged

    def take(self, texts: int) -> None:
        """Take the room for some texts; 429 if there is not enough."""
        self._log_length(self.texts + texts)
        if self.texts + texts > self.most:
            wait = min(LONGEST_WAIT, max(1, math.ceil(self.texts / self._rate)))
            message = f"{self.texts:,} texts are waiting, and there is room for {self.most:,}: try again in {wait} s"
            raise HTTPException(429, message, {"Retry-After": str(wait)})
        self.texts += texts

    def _log_length(self, texts: int) -> None:
        """Log that the queue is long, or full: once, until it is half empty."""
        percent = 100 if texts > self.most else 80 if texts >= 0.8 * self.most else 0
        if percent > self._logged:
            _LOG.warning("queue length %(texts)d of %(most)d", {"texts": texts, "most": self.most})
        if percent > self._logged or texts < self.most / 2:
            self._logged = percent

    def leave(self) -> None:
        """Give the room of one text back, and note how fast that goes, so that a refusal can say when to come again."""
        self.texts -= 1
        self._left += 1
        now = monotonic()
        if now > self._noted_at + 1:
            self._rate, self._left, self._noted_at = self._left / (now - self._noted_at), 0, now
