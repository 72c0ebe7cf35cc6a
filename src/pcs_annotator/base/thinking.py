"""Finds what a reasoning model wrote on the way to its answer."""

import re

# `<think>`, `[THINK]`, `◁think▷` and `<|begin_of_thought|>`, with their ends. Possessive quantifiers, because a reply
# can be hostile: no pattern may try a second way to match the same characters.
_NAMES = "think|thinking|thoughts?|reasoning|reflection|scratchpad"
_TAG = re.compile(
    rf"(?:<\s*+(?P<a>/?+)\s*+(?:seed:)?+(?P<name>{_NAMES})\s*+>|◁(?P<b>/?+)think▷|<\|(?P<c>begin|end)_of_thought\|>)"
    r"|(?-i:\[(?P<d>/?+)THINK\])",
    re.IGNORECASE,
)
# The channels of gpt-oss, with their marks or as they look when a server leaves the marks out.
_CHANNEL = re.compile(
    r"<\|channel\|>(?:analysis|commentary)[^<]*+<\|message\|>(?:(?!<\|(?:end|return|start|channel)\|>).)*+(?:<\|end\|>)?+"
    r"|\Aanalysis(?=[A-Z\"'])(?:(?!assistantfinal|<\|).)*+(?:assistantfinal)?+",
    re.S,
)


def thinking_spans(reply: str) -> list[tuple[int, int]]:
    """Return where a reply thinks, in order; thinking that is never closed goes to the end.

    >>> thinking_spans("<think>Cheap?</think>Positive")
    [(0, 21)]
    """
    spans: list[tuple[int, int]] = []
    start, opened = 0, ""
    for match in _TAG.finditer(reply):
        mark = match["a"] or match["b"] or match["c"] or match["d"]
        closing, name = mark in ("/", "end"), (match["name"] or "think").lower()
        if not closing and not opened:
            start, opened = match.start(), name
        elif closing and opened in ("", name):
            if not opened:
                # The server's template opened it, so everything before was thinking as well.
                spans, start = [], 0
            spans.append((start, match.end()))
            opened = ""
    if opened:
        spans.append((start, len(reply)))
    if "<|channel|>" in reply or reply.startswith("analysis"):
        spans = sorted([*spans, *(match.span() for match in _CHANNEL.finditer(reply))])
    return _merged(spans)


def _merged(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    apart: list[tuple[int, int]] = []
    for start, end in spans:
        if not apart or start >= apart[-1][1]:
            apart.append((start, end))
        elif end > apart[-1][1]:
            apart[-1] = (apart[-1][0], end)
    return apart


def without_thinking(reply: str) -> str:
    """Return a reply without its thinking."""
    kept, end = [], 0
    for start, stop in thinking_spans(reply):
        kept.append(reply[end:start])
        end = stop
    return "".join([*kept, reply[end:]])
