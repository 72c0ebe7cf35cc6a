"""Answers and errors as HTTP, in the formats of OpenAI and Anthropic."""

import json
import math
from typing import Any, Literal

from tests.stub.answers import Answer
from tests.stub.behaviour import Behaviour
from tests.stub.questions import Question

Dialect = Literal["openai", "anthropic"]
HTML = b"<!doctype html><html><head><title>Welcome</title></head><body><h1>Please sign in</h1></body></html>"
_REASONS = {200: "OK", 400: "Bad Request", 401: "Unauthorized", 404: "Not Found", 405: "Method Not Allowed"}
_REASONS |= {411: "Length Required", 413: "Content Too Large", 429: "Too Many Requests"}
_REASONS |= {500: "Internal Server Error", 503: "Service Unavailable"}
_ANTHROPIC_TYPES = {400: "invalid_request_error", 401: "authentication_error", 404: "not_found_error"}
_ANTHROPIC_TYPES |= {413: "request_too_large", 429: "rate_limit_error", 500: "api_error", 503: "overloaded_error"}
_OPENAI_FINISH = {"stop": "stop", "filter": "content_filter"}
_ANTHROPIC_FINISH = {"stop": "end_turn", "filter": "refusal"}


def http(status: int, body: bytes, headers: str = "", content_type: str = "application/json") -> bytes:
    """Return a complete HTTP reply; each extra header must end with a line break."""
    head = f"HTTP/1.1 {status} {_REASONS[status]}\r\nContent-Type: {content_type}\r\n{headers}"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode("latin-1") + body


def error(dialect: Dialect, status: int, code: str, message: str) -> bytes:
    if dialect == "anthropic":
        inner: dict[str, Any] = {"type": _ANTHROPIC_TYPES.get(status, "api_error"), "message": message}
        return json.dumps({"type": "error", "error": inner}).encode()
    kind = "server_error" if status >= 500 else "invalid_request_error"
    return json.dumps({"error": {"message": message, "type": kind, "param": None, "code": code}}).encode()


def completion(dialect: Dialect, mark: str, question: Question, answer: Answer, logprobs: str = "null") -> bytes:
    """Return the body of an answer; `mark` becomes its id."""
    model, text = json.dumps(question.model), json.dumps(answer.text)
    asked, said = question.chars // 4, len(answer.text) // 4
    if dialect == "anthropic":
        return (
            f'{{"id":"msg_{mark}","type":"message","role":"assistant","model":{model},'
            f'"content":[{{"type":"text","text":{text}}}],"stop_reason":"{_ANTHROPIC_FINISH[answer.finish]}",'
            f'"stop_sequence":null,"usage":{{"input_tokens":{asked},"output_tokens":{said}}}}}'
        ).encode()
    return (
        f'{{"id":"chatcmpl-{mark}","object":"chat.completion","created":0,"model":{model},"choices":[{{"index":0,'
        f'"message":{{"role":"assistant","content":{text},"refusal":null}},"logprobs":{logprobs},'
        f'"finish_reason":"{_OPENAI_FINISH[answer.finish]}"}}],"usage":{{"prompt_tokens":{asked},'
        f'"completion_tokens":{said},"total_tokens":{asked + said}}}}}'
    ).encode()


def models(behaviour: Behaviour) -> bytes:
    """Return the list of models, valid in both formats."""
    names = behaviour.models or ("stub-model",)
    data = [
        {"id": name, "object": "model", "type": "model", "display_name": name, "created": 0, "owned_by": "stub"}
        for name in names
    ]
    return json.dumps({"object": "list", "data": data, "has_more": False}).encode()


def wait_header(behaviour: Behaviour, seconds: float) -> str:
    match behaviour.retry_after:
        case "none":
            return ""
        case "whole":
            return f"Retry-After: {max(1, math.ceil(seconds))}\r\n"
        case "exact":
            return f"Retry-After: {seconds:.3f}\r\n"
