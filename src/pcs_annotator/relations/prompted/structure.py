"""Reads the structure of a reply: turns of a conversation, JSON, fences and tags.

Structure that the text also has is left alone: a rewrite of JSON is JSON.
"""

import html
import json
import re
from collections.abc import Iterator

# The marks between turns, as models of many families write them when their template goes wrong.
_MARK = re.compile(
    r"<\|[^|<>\n]{1,40}\|>|<｜[^｜<>\n]{1,40}｜>|</?s>|\[/?INST\]|<</?SYS>>|<(?:start|end)_of_turn>|<(?:bos|eos|pad|unk)>"
)
_OPENS_PROMPT, _ENDS_PROMPT = ("[INST]", "<<SYS>>"), ("[/INST]", "<</SYS>>")
_OWN = "assistant|ai|model|bot|chatgpt|response|answer|output|final"
_OTHERS = "user|human|system|prompt|instruction|input|question"
_NAME = re.compile(rf"(?<!\W)\W*(?:(?P<own>{_OWN})|{_OTHERS})\W*", re.I)
_GLUED_NAME = re.compile(r"(?<=[.!?\"”。])(?:assistant|user|model)\s*\n")


def own_turns(reply: str, source: str) -> list[str]:
    r"""Return what a reply says in the model's first turn; two texts where either may be that.

    >>> own_turns("<|im_start|>assistant\nGood.<|im_end|><|im_start|>user\nThanks!", "Well.")
    ['Good.']
    >>> own_turns("[INST] Rewrite it. [/INST] Good.", "Well.")
    ['Good.']
    """
    turns = [reply] if _MARK.search(source) else list(_between_marks(reply))
    return [said for turn in turns if (said := _GLUED_NAME.split(turn, 1)[0].strip())]


def _between_marks(reply: str) -> Iterator[str]:
    own, spoken = True, False
    pieces = _MARK.split(reply)
    for mark, given in zip(["", *_MARK.findall(reply)], pieces, strict=True):
        # Another's turn follows, unless this is the end of a prompt that was repeated.
        if spoken and mark not in _ENDS_PROMPT:
            return
        named = _NAME.search(mark)
        head, _, rest = given.strip().partition("\n")
        alone = _NAME.fullmatch(head) if mark else None
        named, piece = (named, given) if alone is None else (alone, rest)
        if named is not None:
            own = named["own"] is not None
        else:
            own = mark in _ENDS_PROMPT or (own and mark not in _OPENS_PROMPT)
        if own and piece.strip():
            spoken = True
            yield piece


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


NOTHING = "NOT APPLICABLE"
_BEGINS_JSON = re.compile(r"[{\[]\s*[\"'{\[]")
_BESIDE = re.compile(
    r"orig|source|input|before|expla|notes?\b|reason|comment|changes|replace|status|lang|why|type|role|analy|think|thought"
    r"|confid|score|label|task|relation|warning|error|meta",
    re.I,
)
_DECODER = json.JSONDecoder(strict=False)  # allows line breaks inside a text


def in_json(text: str, source: str) -> list[str] | None:
    """Return the texts in a JSON answer; None if there is none, empty if it is broken off.

    >>> in_json('{"original": "Well.", "rewrite": "Good."}', "Well.")
    ['Good.']
    >>> in_json('{"rewrite": null}', "Well.")
    ['NOT APPLICABLE']
    """
    start = _BEGINS_JSON.search(text)
    if start is None or _BEGINS_JSON.search(source):
        return None
    body = text[start.start() :]
    try:
        found, _ = _DECODER.raw_decode(body)
    except (ValueError, RecursionError):
        found = None
    texts = list(_texts(found))
    return texts if texts or body[0] == "{" else None


def _texts(found: object) -> Iterator[str]:
    if isinstance(found, str):
        yield found
    elif isinstance(found, list | tuple):
        for one in found:
            yield from _texts(one)
    elif isinstance(found, dict):
        for key, value in found.items():
            if not _BESIDE.search(str(key)):
                yield from _texts(NOTHING if value is None else value)
