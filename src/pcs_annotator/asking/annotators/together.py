"""Reads the answer to one of several questions that were asked in one call.

Every variable of a codebook is a task of its own, with its own votes. Tasks that are asked together have the same
prompt, so that only the first of them pays for the call; each reads its own line of the reply.
"""

import re
from collections.abc import Sequence

from pcs_annotator.asking.annotators.prompt import NOTHING
from pcs_annotator.asking.annotators.reply import ParsedReply, read_label
from pcs_annotator.asking.annotators.vocabulary import vocabulary
from pcs_annotator.core.chat import Message
from pcs_annotator.core.task import AskedTogether

TOKENS_PER_PART = 48  # an answer has a line for each part
YES, NO = "yes", "no"
_BETWEEN = re.compile(r"[;,|\n]|\band\b")


def read_part(reply: str, asked: AskedTogether, text: str, prompt: Sequence[Message]) -> ParsedReply:
    """Return the label of one variable in a reply to several questions; a variable that cannot be read is silent."""
    part = asked.own
    line = _own_line(reply, asked)
    if not part.many:
        return read_label(line, part.labels, text, prompt)
    *answers, _ = re.split("</label>", line, flags=re.IGNORECASE)
    tags = [
        tag[1] for answer in answers if len(tag := re.split("<label>", answer, maxsplit=1, flags=re.IGNORECASE)) > 1
    ]
    if not tags:
        return ParsedReply(None, f"no <{part.name}> in the reply")
    words = vocabulary((*part.labels, NOTHING))
    whole = words.match(tags[-1])  # a label may have a comma in it
    named = [whole] if whole else [words.match(name) for name in _BETWEEN.split(tags[-1].strip().strip("[]")) if name]
    if not named or None in named or (NOTHING in named and len(named) > 1):
        return ParsedReply(None, f"<{part.name}> has something that is not a label")
    return ParsedReply(YES if asked.label in named else NO, how="tag")


def _own_line(reply: str, asked: AskedTogether) -> str:
    """Return a reply in which the answer of this variable stands where a single answer would, without the others."""
    for part in asked.parts:
        name = re.escape(part.name)
        if part.name == asked.name:
            reply = re.sub(rf"<\s*+(/?+)\s*+{name}\s*+>", r"<\1label>", reply, flags=re.IGNORECASE)
            reply = re.sub(rf"([\"']){name}\1\s*+:", '"label":', reply, flags=re.IGNORECASE)
        else:
            closing = rf"<\s*+/\s*+{name}\s*+>"
            # Tags that are never closed come after the last closing one; each of them would be read to the end.
            end = max((tag.end() for tag in re.finditer(closing, reply, re.IGNORECASE)), default=0)
            answered = rf"<\s*+{name}\s*+>.*?{closing}"
            reply = re.sub(answered, "", reply[:end], flags=re.IGNORECASE | re.DOTALL) + reply[end:]
            value = r"(?:\"[^\"]*\"|\[[^\]]{0,2000}\]|[^,}\n]*),?"
            reply = re.sub(rf"([\"']){name}\1\s*+:\s*+{value}", "", reply, flags=re.IGNORECASE)
    return reply
