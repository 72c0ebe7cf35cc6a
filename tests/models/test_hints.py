from __future__ import annotations

from datetime import UTC, datetime

import pytest

from pcs_annotator.core.chat import RateHint
from pcs_annotator.models.failures import parse_duration, parse_retry_after, rate_hint

NOW = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1s", 1.0),
        ("6m0s", 360.0),
        ("120ms", 0.12),
        ("1h2m", 3720.0),
        ("2.5", 2.5),
        ("0", 0.0),
        ("1d", 86400.0),
        ("", None),
        ("soon", None),
        ("-1", None),
        ("1s later", None),
    ],
)
def test_durations(text: str, seconds: float | None) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("3", 3.0),
        ("Thu, 01 Jan 2026 12:00:30 GMT", 30.0),
        ("Thu, 01 Jan 2026 12:00:30 -0000", 30.0),
        ("Thu, 01 Jan 2026 11:00:00 GMT", 0.0),
        ("never", None),
    ],
)
def test_retry_after(text: str, seconds: float | None) -> None:
    assert parse_retry_after({"Retry-After": text}, NOW) == seconds


@pytest.mark.parametrize(
    ("headers", "hint"),
    [
        ({"x-ratelimit-remaining-requests": "5", "x-ratelimit-reset-requests": "1s"}, (5, 1.0)),
        ({"x-ratelimit-remaining-requests": "5"}, None),
        ({"x-ratelimit-remaining-requests": "many", "x-ratelimit-reset-requests": "1s"}, None),
        (
            {
                "anthropic-ratelimit-requests-remaining": "0",
                "anthropic-ratelimit-requests-reset": "2026-01-01T12:00:10Z",
            },
            (0, 10.0),
        ),
        ({"anthropic-ratelimit-requests-remaining": "0", "anthropic-ratelimit-requests-reset": "later"}, None),
        ({}, None),
    ],
)
def test_rate_hints(headers: dict[str, str], hint: tuple[int, float] | None) -> None:
    expected = RateHint(remaining=hint[0], reset_after=hint[1]) if hint else None
    assert rate_hint(headers, NOW) == expected
