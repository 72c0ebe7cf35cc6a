"""Models that answer from a script: deterministic and in this process, for tests, docs and benchmarks."""

import asyncio
import re
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from hashlib import blake2b

from pcs_annotator.base.errors import ConfigError
from pcs_annotator.core.chat import ChatModel, Reply, Request, Usage
from pcs_annotator.models.provider import Named, opens

Scripted = str | Reply | Exception
Script = Sequence[Scripted] | Callable[[Request], Scripted]
TAG = re.compile(r"<label>\s*([^<>]{1,200}?)\s*</label>", re.I)
KEPT_REQUESTS = 1000
DEFINE = "LABEL: SENTENCE"  # the form in which a question wants a sentence about each label


class ScriptedModel(Named):
    """Answers from a script: a list, repeated when it ends, or a function of the request.

    An exception in the script is raised; a text becomes a reply whose usage counts words. `requests` are the last ones.
    """

    can_constrain = True

    def __init__(
        self,
        script: Script,
        *,
        latency: float = 0.0,
        name: str = "scripted:script",
        context_tokens: int | None = None,
        can_grade: bool = False,
    ) -> None:
        self.name = name
        self.can_grade = can_grade
        self.context_tokens = context_tokens
        self.latency = latency
        self.calls = 0
        self.requests: deque[Request] = deque(maxlen=KEPT_REQUESTS)
        self._script = (script,) if isinstance(script, str) else script

    async def ask(self, request: Request) -> Reply:
        """Return the next answer of the script, after `latency` seconds."""
        script = self._script
        answer = script(request) if callable(script) else script[self.calls % len(script)]
        self.calls += 1
        self.requests.append(request)
        await asyncio.sleep(self.latency)
        if isinstance(answer, Exception):
            raise answer
        if isinstance(answer, Reply):
            return answer
        words = sum(len(message.content.split()) for message in request.messages)
        usage = Usage(input_tokens=words, output_tokens=len(answer.split()))
        return Reply(text=answer, usage=usage, latency=self.latency)

    async def close(self) -> None:
        """Do nothing: there is nothing to close."""


def answer_by_hash(request: Request, salt: str = "") -> str:
    """Return a choice, or one of the labels in tags in the messages, by a hash of the last message; else the hash."""
    last = request.messages[-1].content if request.messages else ""
    if DEFINE in last:
        return defined(last)
    digest = blake2b(f"{salt}\0{last}".encode("utf-8", "replace"), digest_size=8)
    choices = request.constraint.choices if request.constraint is not None else ()
    # of the messages, the first with two tags or more lists the labels
    tags = (list(dict.fromkeys(TAG.findall(message.content))) for message in request.messages)
    labels = choices or next((tagged for tagged in tags if len(tagged) > 1), ())
    if not labels:
        return digest.hexdigest()
    chosen = labels[int.from_bytes(digest.digest(), "big") % len(labels)]
    return chosen if choices else f"<label>{chosen}</label>"


def defined(question: str) -> str:
    """Return a sentence about each label that is listed in a question."""
    return "\n".join(
        f"{label}: The text is about {label}." for label in re.findall(r"^- (.+)$", question, re.MULTILINE)
    )


@opens("scripted")
def open_scripted(model: str, environment: Mapping[str, str]) -> ChatModel:
    """Return `scripted:hash`, or `scripted:hash:anything` for further models that answer differently."""
    kind, _, salt = model.partition(":")
    if kind != "hash":
        raise ConfigError(f"no scripted model is named {model!r}: write scripted:hash or scripted:hash:2")
    return ScriptedModel(lambda request: answer_by_hash(request, salt), name=f"scripted:{model}")
