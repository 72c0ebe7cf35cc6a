"""What servers say about their limits, in the several ways they say it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from pcs_annotator.asking.models.base import RateHint

DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|[dhms]|$)")
UNIT_SECONDS = {"d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001, "": 1.0}


def parse_duration(text: str) -> float | None:
    """Return seconds from `6m0s`, `120ms`, `1h2m`, `1.5`; None where it is none of these.

    >>> parse_duration("6m0s"), parse_duration("120ms"), parse_duration("soon")
    (360.0, 0.12, None)
    """
    parts = DURATION.findall(text.strip())
    if not parts or "".join(number + unit for number, unit in parts) != text.strip():
        return None
    return float(sum(float(number) * UNIT_SECONDS[unit] for number, unit in parts))


def parse_retry_after(headers: Mapping[str, str], now: datetime | None = None) -> float | None:
    """Return the seconds a server asks us to wait, from `retry-after-ms` or `Retry-After` in seconds or as a date."""
    milliseconds = parse_duration(headers.get("retry-after-ms", ""))
    if milliseconds is not None:
        return milliseconds / 1000.0
    text = headers.get("Retry-After", "")
    seconds = parse_duration(text)
    if seconds is not None or not text:
        return seconds
    try:
        moment = parsedate_to_datetime(text)
    except ValueError:
        return None
    return _seconds_until(moment, now)


def rate_hint(headers: Mapping[str, str], now: datetime | None = None) -> RateHint | None:
    """Return the requests that are left and the seconds until the reset, where a reply's headers have both."""
    remaining = headers.get("x-ratelimit-remaining-requests")
    if remaining is not None:
        reset = _reset_after(headers.get("x-ratelimit-reset-requests", ""), now)
    else:
        remaining = headers.get("anthropic-ratelimit-requests-remaining")
        if remaining is None:
            return None
        reset = _reset_after(headers.get("anthropic-ratelimit-requests-reset", ""), now)
    if reset is None or not remaining.strip().isdecimal():
        return None
    return RateHint(remaining=int(remaining), reset_after=reset)


def _reset_after(text: str, now: datetime | None) -> float | None:
    seconds = parse_duration(text)
    if seconds is not None or not text:
        return seconds
    try:
        return _seconds_until(datetime.fromisoformat(text), now)
    except ValueError:
        return None


def _seconds_until(moment: datetime, now: datetime | None) -> float:
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(0.0, (moment - (now or datetime.now(UTC))).total_seconds())
