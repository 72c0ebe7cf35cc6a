"""Reads the structure of a reply: turns of a conversation, fences and tags.

Structure that the text also has is left alone: a rewrite of JSON is JSON.
"""

import html
import re

# The marks between turns, as models of many families write them when their template goes wrong.
_MARK = re.compile(
    r"<\|[^|<>\n]{1,40}\|>|<｜[^｜<>\n]{1,40}｜>|</?s>|\[/?INST\]|<</?SYS>>|<(?:start|end)_of_turn>|<(?:bos|eos|pad|unk)>"
)
_ROLE = re.compile(r"\A\s*(?:assistant|ai|model|bot|user|system)\s*(?:\n|\Z)", re.I)
_GLUED_ROLE = re.compile(r"(?<=[.!?\"”。])(?:assistant|user|model)\s*\n")
_JSON = re.compile(r"[{\[]\s*[\"'{\[]")


def first_turn(reply: str, source: str) -> str:
    r"""Return what a reply says first between the marks of turns, without a role in front of it.

    >>> first_turn("<|im_start|>assistant\nGood.<|im_end|><|im_start|>user\nThanks!", "Well.")
    'Good.'
    """
    # gpt-oss thinks in other channels before that of the answer
    turns = [reply] if _MARK.search(source) else _MARK.split(reply.rpartition("final<|message|>")[2])
    said = (_GLUED_ROLE.split(_ROLE.sub("", turn), maxsplit=1)[0].strip() for turn in turns)
    return next(filter(None, said), "")


def is_json(text: str, source: str) -> bool:
    """Return whether a reply gives JSON for a text that is none: there is no telling which of its values to take."""
    return _JSON.search(text) is not None and _JSON.search(source) is None


_FENCE = re.compile(r"(```|~~~)(?:[\w+-]*[ \t]*\n)?(.*?)(?:\1|\Z)", re.S)
_TAG = re.compile(r"<(/?)([A-Za-z][\w-]{0,30})/?>")
_MARKUP = re.compile(r"</?(?:b|i|u|em|strong|mark|p|br|span|div|blockquote)/?>", re.I)


def in_fences(text: str, source: str) -> list[str] | None:
    """Return the contents of fences; None if there are none."""
    found = [] if "```" in source or "~~~" in source else _FENCE.findall(text)
    return [inner for _, inner in found] or None


def in_tags(text: str, source: str) -> list[str] | None:
    """Return what is inside of tags that the text does not have, then what is outside of them; None without tags."""
    text = text if _MARKUP.search(source) else _MARKUP.sub("", text)
    tags = list(_TAG.finditer(text))
    if not tags or any(tag[0].lower() in source.lower() for tag in tags):
        return None
    inside, outside, opened, end = [], [], None, 0
    for tag in tags:
        if opened is None and not tag[1]:
            outside.append(text[end : tag.start()])
            opened = tag
        elif opened is not None and tag[1] and tag[2] == opened[2]:
            inside.append(text[opened.end() : tag.start()])
            opened, end = None, tag.end()
    rest = text[end if opened is None else opened.end() :]
    return [*inside, *outside, _TAG.sub("", rest)]


def without_markup(text: str, source: str) -> str:
    """Return a text without bold and italic type, tabs, entities and escapes that the source does not have."""
    if "\t" in text and "\t" not in source:
        text = re.sub(r"(?<=\w)\t(?=\S)", ": ", text)  # a label in a column of its own
    if "*" in text and "*" not in source:
        text = re.sub(r"\*\*|(?<![\w*])\*(?=\S)|(?<=\S)\*(?![\w*])", "", text)
    if "__" in text and "__" not in source:
        text = text.replace("__", "")
    if "&" in text and "&" not in source.replace("& ", ""):
        text = html.unescape(text)
    if "\\" in text and "\\" not in source:
        text = re.sub(r"\\([\"'*_`#-])", r"\1", text.replace("\\n", "\n"))
    return _MARKUP.sub("", text) if not _MARKUP.search(source) else text
