"""Turns a server's status and body into one of our errors."""

import errno
import json
import re
import socket
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from pcs_annotator.base import errors
from pcs_annotator.base.errors import ModelError, ServerTrouble
from pcs_annotator.core.chat import RateHint
from pcs_annotator.models.provider import KEY_LIKE

SHOWN = 240
MOST_BYTES = 4 * 2**20  # maximum size of a reply, unpacked
# Only words that never come with a temporary limit: Gemini and Groq mention "quota" and "billing" there too.
NO_MONEY = re.compile(r"insufficient_quota|credit balance|insufficient.balance", re.I)
TRY_AGAIN = re.compile(r"(?:try again|retry) in ([\d.]+(?:ms|[dhms])(?:[\d.]+(?:ms|[hms]))*)", re.I)
TOO_LONG = re.compile(
    r"context_length_exceeded|maximum context length|context (?:window|size|length)|exceed_context|prompt is too long"
    r"|input (?:is )?too long|too many (?:input )?tokens|string_above_max_length|reduce the length|max_model_len"
    r"|request (?:too|_too_)large|exceeds the (?:maximum|limit).{0,40}tokens",
    re.I,
)
FILTERED = re.compile(r"content_filter|content_policy|content management policy|responsibleaipolicy|flagged", re.I)
NO_MODEL = re.compile(
    r"model_not_found|model_decommissioned|model.{0,80}(?:does not exist|not found|decommissioned|no longer)"
    r"|(?:unknown|invalid|no such|not a valid) model|deploymentnotfound|not supported by any provider",
    re.I,
)
# Some servers send a 400 where others send a 401, 402 or 404; any other 400 is about this question alone.
HOPELESS = re.compile(
    rf"{NO_MODEL.pattern}|{NO_MONEY.pattern}|api.?key.{{0,20}}(?:not valid|invalid)|invalid.{{0,10}}api.?key", re.I
)
# What OpenSSL calls an answer that is not TLS, depending on its version and on the answer's first bytes.
NOT_TLS = {"WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "PACKET_LENGTH_TOO_LONG", "HTTP_REQUEST", "UNKNOWN_PROTOCOL"}
NO_SUCH_NAME = {socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME)}  # Windows has no EAI_NODATA
HTML = re.compile(rb"\s*(?:<!doctype|<html|<\?xml|<head|<body)", re.I)


@dataclass(frozen=True, slots=True, kw_only=True)
class CallSite:
    """Where a call goes: what error messages need to name."""

    name: str  # `provider:model`
    model: str  # the model's name at its provider
    url: str  # the base URL, without any key
    key_variable: str = ""  # the environment variable that holds or may hold the key
    secret: str = field(default="", repr=False)  # the key, stored so that it can be removed from messages
    batch_model: str = ""  # the model's name in batches, if it has another one there

    def scrub(self, text: str) -> str:
        """Return the text shortened, on one line and without anything that looks like a key."""
        if self.secret:
            text = text.replace(self.secret, "[key]")
        text = " ".join(KEY_LIKE.sub("[key]", text).split())
        text = text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"
        return "".join(sign if sign.isprintable() else "\ufffd" for sign in text)  # a terminal obeys some of the others


class Complaint(NamedTuple):
    """A server's error: its message, its code, and the parameter it refused."""

    message: str
    code: str = ""
    parameter: str = ""

    @property
    def words(self) -> str:
        """Code and message, to search in."""
        return f"{self.code} {self.message}"


def read_complaint(raw: bytes) -> Complaint:
    """Return the error in a response body: JSON of any usual shape, HTML or plain text."""
    if HTML.match(raw):
        return Complaint("an HTML page instead of JSON")
    try:
        return _complaint(json.loads(raw))
    except (ValueError, RecursionError):
        return Complaint(raw[:2000].decode("utf-8", "replace"))


def _complaint(data: Any) -> Complaint:
    if isinstance(data, list) and data:
        data = data[0]
    if not isinstance(data, dict):
        return Complaint(str(data))
    error = data.get("error", data)
    if not isinstance(error, dict):
        return Complaint(str(error))
    message = error.get("message") or error.get("detail") or error.get("msg") or json.dumps(error)
    code = f"{error.get('code') or ''} {error.get('type') or ''}".strip()
    return Complaint(str(message), code, str(error.get("param") or ""))


def failure(site: CallSite, status: int, complaint: Complaint, headers: Mapping[str, str]) -> ModelError:
    """Return the error for an HTTP status that is not 200."""
    message = site.scrub(complaint.message)
    words = complaint.words
    if status == 429:
        if NO_MONEY.search(words):
            return errors.AccessDenied(f"{site.name}: the account has no credit left: add some ({message})")
        wait, hint = parse_retry_after(headers), TRY_AGAIN.search(complaint.message)
        wait = parse_duration(hint[1]) if wait is None and hint else wait
        return errors.RateLimited(f"{site.name}: too many requests (429): {message}", wait)
    if status in (408, 409, 425) or status >= 500:
        return ServerTrouble(f"{site.name}: the server at {site.url} failed ({status}): {message}")
    if status == 413 or TOO_LONG.search(words):
        return errors.Unanswerable(f"{site.name}: the text is too long for the model ({status}): {message}")
    if status != 401 and FILTERED.search(words):
        return errors.Unanswerable(f"{site.name}: the content filter refused the text ({status}): {message}")
    refusal = errors.BadRequest if status in (400, 422) and not HOPELESS.search(words) else errors.AccessDenied
    return refusal(_refusal(site, status, words, message))


def _refusal(site: CallSite, status: int, words: str, message: str) -> str:
    start, heard = f"{site.name}: {site.url}", f"The server's message: {message}"
    if status == 404 or NO_MODEL.search(words):
        remedy = "check the spelling, and that your account may use it"
        return f"{start} has no model {site.model!r} ({status}): {remedy}. {heard}"
    if status in (401, 403):
        return f"{start} refused access ({status}): check {site.key_variable or 'the key'}. {heard}"
    if 300 <= status < 400:
        return f"{start} redirects to another address ({status}): correct the base URL"
    return f"{start} refused the request ({status}); retrying cannot help. {heard}"


def unreachable(site: CallSite, error: Exception) -> ModelError:
    """Return the error for a connection that failed; it is final if no safe one is possible."""
    reason = site.scrub(f"{type(error).__name__}: {error}")
    cause = getattr(error, "certificate_error", None) or getattr(error, "os_error", None)
    if isinstance(cause, ssl.SSLError) and cause.reason in NOT_TLS:
        remedy = f"write http{site.url.removeprefix('https')}"
        return errors.AccessDenied(f"{site.name}: {site.url} speaks http, not https: {remedy} ({reason})")
    if isinstance(error, TimeoutError):
        return errors.TimedOut(f"{site.name}: no answer in time from {site.url}")
    if getattr(error, "errno", None) in (errno.EMFILE, errno.ENFILE):
        return errors.TooManyFiles(f"{site.name}: too many open files: no connection to {site.url} ({reason})")
    if isinstance(cause, ssl.SSLCertVerificationError):
        return errors.AccessDenied(
            f"{site.name}: nothing was sent to {site.url}, whose certificate is not valid ({cause.verify_message}): "
            "check the URL and the clock; if the authority is your own, set SSL_CERT_FILE to its certificate"
        )
    if isinstance(cause, socket.gaierror) and cause.errno in NO_SUCH_NAME:
        host = urlsplit(site.url).hostname
        return errors.UnknownHost(f"{site.name}: there is no host {host}: check the URL and the network ({reason})")
    return ServerTrouble(f"{site.name}: no connection to {site.url}: check the URL and the network ({reason})")


def unreadable(site: CallSite, raw: bytes) -> ServerTrouble:
    """Return the error for a reply that does not follow the protocol."""
    if HTML.match(raw):
        return ServerTrouble(f"{site.name}: {site.url} sent an HTML page instead of JSON: check the base URL")
    start = site.scrub(raw[:120].decode("utf-8", "replace"))
    return ServerTrouble(
        f"{site.name}: the answer from {site.url} cannot be read: {len(raw)} bytes, starting with {start!r}"
    )


DURATION = re.compile(r"(?<!\d)(\d+(?:\.\d+)?)(ms|[dhms]|$)")
UNIT_SECONDS = {"d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001, "": 1.0}


def parse_duration(text: str) -> float | None:
    """Return seconds from `6m0s`, `120ms`, `1h2m` or `1.5`; None for anything else."""
    parts = DURATION.findall(text.strip())
    if not parts or "".join(number + unit for number, unit in parts) != text.strip():
        return None
    return float(sum(float(number) * UNIT_SECONDS[unit] for number, unit in parts))


def parse_retry_after(headers: Mapping[str, str], now: datetime | None = None) -> float | None:
    """Return the seconds to wait, from `retry-after-ms`, or from `Retry-After` in seconds or as a date."""
    milliseconds = parse_duration(headers.get("retry-after-ms", ""))
    seconds = _seconds_until(headers.get("Retry-After", ""), parsedate_to_datetime, now)
    return seconds if milliseconds is None else milliseconds / 1000.0


def rate_hint(headers: Mapping[str, str], now: datetime | None = None) -> RateHint | None:
    """Return the remaining requests and the seconds until the reset, if a reply's headers have both."""
    for names in ("x-ratelimit-{}-requests", "anthropic-ratelimit-requests-{}"):
        remaining = headers.get(names.format("remaining"))
        if remaining is not None:
            reset = _seconds_until(headers.get(names.format("reset"), ""), datetime.fromisoformat, now)
            usable = reset is not None and remaining.strip().isdecimal()
            return RateHint(remaining=int(remaining.strip()[:18]), reset_after=reset or 0.0) if usable else None
    return None


def _seconds_until(text: str, parse_date: Callable[[str], datetime], now: datetime | None) -> float | None:
    """Return the seconds in a text that is a duration or a date; None if it is neither."""
    seconds = parse_duration(text)
    if seconds is not None or not text:
        return seconds
    try:
        moment = parse_date(text)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(0.0, (moment - (now or datetime.now(UTC))).total_seconds())
