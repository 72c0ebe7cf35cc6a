"""A rewrite with its changes marked; long unchanged passages are left out."""

from itertools import takewhile

from pcs_annotator.core.variant import Edit, edits_between
from pcs_annotator.showing.markup import Markup, joined, tag

# Comparing word by word takes time quadratic in the length.
LONGEST_COMPARED = 600
CONTEXT = 80
MOST_CHANGES = 6


def marked(before: str, after: str, room: int) -> Markup:
    """Return the second text, with `<del>` and `<ins>` where it differs from the first, in about `room` characters."""
    return joined(*(part if isinstance(part, str) else tag(*part) for part in changes(before, after, room)))


def changes(before: str, after: str, room: int) -> list[str | tuple[str, str]]:
    """Return the parts of the second text: a text that both share, or `del` or `ins` with what differs."""
    edits, whole = _edits(before, after), max(len(before), len(after)) <= room
    context = min(CONTEXT, room // 2)
    shown: list[str | tuple[str, str]] = []
    at = 0
    for index, edit in enumerate(edits if whole else edits[:MOST_CHANGES]):
        same = before[at : edit.start]
        shown.append(same if whole else _middle(same, context, from_start=not index))
        longest = LONGEST_COMPARED if whole else max(room // 3, context)
        shown += [(name, clipped(part, longest)) for name, part in (("del", edit.before), ("ins", edit.after)) if part]
        at = edit.start + len(edit.before)
    rest = " …" if len(edits) > MOST_CHANGES else clipped(before[at:], context)
    return [part for part in [*shown, before[at:] if whole else rest] if part]


def clipped(text: str, room: int) -> str:
    """Return the beginning of a text, with an ellipsis if it was cut."""
    if len(text) <= room:
        return text
    text = text if text[:room].strip() else text.lstrip()
    if len(text) <= room:
        return text
    return text[:room].rsplit(None, 1)[0] + " …" if " " in text[:room] else text[:room] + "…"


def _edits(before: str, after: str) -> tuple[Edit, ...]:
    # what both share at the beginning and at the end, in whole words
    head = _shared(before, after)
    while head and (_inside_word(before, head) or _inside_word(after, head)):
        head -= 1
    tail = _shared(before[head:][::-1], after[head:][::-1])
    while tail and (_inside_word(before, len(before) - tail) or _inside_word(after, len(after) - tail)):
        tail -= 1
    old, new = before[head : len(before) - tail], after[head : len(after) - tail]
    if max(len(old), len(new)) > LONGEST_COMPARED:
        return (Edit(head, old, new),)
    return tuple(edit._replace(start=edit.start + head) for edit in edits_between(old, new))


def _shared(first: str, other: str) -> int:
    return sum(1 for _ in takewhile(lambda both: both[0] == both[1], zip(first, other, strict=False)))


def _inside_word(text: str, at: int) -> bool:
    return 0 < at < len(text) and text[at - 1].isalnum() and text[at].isalnum()


def _middle(same: str, context: int, *, from_start: bool) -> str:
    """Return unchanged text between two changes, with its middle left out if it is long."""
    if from_start:
        return same if len(same) <= context else f"… {_end(same, context)}"
    return same if len(same) <= 2 * context else f"{same[:context]} … {_end(same, context)}"


def _end(same: str, context: int) -> str:
    """Return the end of a long text, from the beginning of a word on."""
    end = same[-context:]
    return end.partition(" ")[2] or end
