"""Any LangChain chat model: an object, or `langchain:provider:model`."""

from collections.abc import Mapping
from functools import partial
from time import perf_counter
from typing import Any

from pcs_annotator.base.errors import ConfigError, MissingPackage, ModelError, ServerTrouble
from pcs_annotator.core.chat import ChatModel, Reply, Request, sendable
from pcs_annotator.models.catalog import context_of
from pcs_annotator.models.failures import CallSite, Complaint, failure
from pcs_annotator.models.functions import ObjectModel
from pcs_annotator.models.openai import FINISHES, finish_of, join_parts, usage_of
from pcs_annotator.models.provider import opens, refuse_key
from pcs_annotator.models.reasoning import ask_with_room, has_thought, usual_room, with_room

INSTALL = "pip install 'perceived-confidence[langchain]'"
ROLES = {"system": "system", "user": "human", "assistant": "ai"}
# How LangChain's model classes call the limit of an answer.
LIMITS = ("max_tokens", "max_output_tokens", "max_completion_tokens", "num_predict", "max_new_tokens")
# HTTP status by class name, for exceptions of vendors' clients that carry none.
STATUS_BY_NAME = {"AuthenticationError": 401, "PermissionDeniedError": 403, "NotFoundError": 404, "RateLimitError": 429}
STATUS_BY_NAME |= {"ResourceExhausted": 429, "ContextOverflowError": 413, "OpenAIContextOverflowError": 413}


class LangChainModel(ObjectModel):
    """A LangChain chat model, called through `ainvoke`; one opened by its name is known by that name alone.

    Temperature and limit are set on a copy of the object, if it has fields for them: passing them with every call fails
    for integrations whose client does not know them.
    """

    def __init__(self, model: Any, *, name: str | None = None, by_name: bool = False) -> None:
        super().__init__(name or _name(model), None if by_name else model)
        _refuse_keys(model, self.name)
        self.context_tokens = context_of(self.name)
        self._model = model
        self.thinking_tokens = usual_room(self.name)
        self._tuned: dict[int | None, Any] = {}
        self._place = CallSite(name=self.name, model=self.name.rpartition(":")[2], url="LangChain")

    async def ask(self, request: Request) -> Reply:
        """Return the answer to one request, sent once, or again with room to think."""
        return await ask_with_room(self, partial(self._ask, request))

    async def _ask(self, request: Request) -> Reply:
        limit = with_room(request, self.thinking_tokens).max_tokens
        if limit not in self._tuned:
            self._tuned[limit] = _tune(self._model, limit)
        turns = [(ROLES[message.role], sendable(message.content)) for message in request.messages]
        started = perf_counter()
        try:
            message = await self._tuned[limit].ainvoke(turns)
        except ModelError:
            raise
        except Exception as error:
            raise self._failure(error) from None
        return _reply(message, perf_counter() - started)

    def _failure(self, error: Exception) -> ModelError:
        status = _status(error)
        body = getattr(error, "body", None)
        code = body.get("code") or body.get("type") if isinstance(body, dict) else getattr(error, "code", None)
        complaint = Complaint(str(error), str(code or ""))
        if status is not None:
            headers = getattr(getattr(error, "response", None), "headers", None) or {}
            return failure(self._place, status, complaint, headers)
        message = self._place.scrub(str(error))
        return ServerTrouble(f"{self.name}: {type(error).__name__}: {message}")


@opens("langchain")
def open_langchain(model: str, environment: Mapping[str, str]) -> ChatModel:
    """Return `langchain:provider:model` through `init_chat_model`; a missing package is named with its `pip` line."""
    try:
        from langchain.chat_models import init_chat_model
    except ImportError:
        raise MissingPackage(f"langchain:{model} needs LangChain: {INSTALL}") from None
    try:
        return LangChainModel(init_chat_model(model), by_name=True)
    except ImportError as error:
        raise MissingPackage(f"langchain:{model}: {error}") from None
    except Exception as error:  # each integration raises its own error for a missing key
        message = CallSite(name="langchain", model=model, url="").scrub(str(error))
        raise ConfigError(f"LangChain cannot open {model!r}: {message}") from None


def _refuse_keys(model: Any, name: str) -> None:
    for field, value in getattr(_inner(model), "__dict__", {}).items():
        if isinstance(value, str) and "://" in value and "proxy" not in field:
            refuse_key(value, f"{name}: {field}", "pass the key in its own argument, such as api_key")


def _inner(model: Any) -> Any:
    bound = getattr(model, "bound", None)  # a model with settings bound to it
    return bound if bound is not None and hasattr(bound, "ainvoke") else model


def _name(model: Any) -> str:
    inner = _inner(model)
    for field in ("model_name", "model", "model_id", "deployment_name", "repo_id"):
        value = getattr(inner, field, None)
        if isinstance(value, str) and value:
            return f"langchain:{type(inner).__name__}:{value}"
    return f"langchain:{type(inner).__name__}"


def _tune(model: Any, limit: int | None) -> Any:
    fields = getattr(type(model), "model_fields", None)
    if not isinstance(fields, Mapping):
        return model
    update: dict[str, float] = {"temperature": 0.0} if "temperature" in fields else {}
    limit_field = next((name for name in LIMITS if name in fields), None)
    if limit is not None and limit_field is not None:
        update[limit_field] = limit
    return model.model_copy(update=update) if update else model


def _status(error: Exception) -> int | None:
    for holder in (error, getattr(error, "response", None)):
        for field in ("status_code", "http_status", "status", "code"):
            status = getattr(holder, field, None)
            if isinstance(status, int) and 300 <= status < 600:
                return status
    names = (cls.__name__ for cls in type(error).__mro__)
    return next((STATUS_BY_NAME[name] for name in names if name in STATUS_BY_NAME), None)


def _reply(message: Any, latency: float) -> Reply:
    content = getattr(message, "content", message)
    metadata = getattr(message, "response_metadata", None) or {}
    ended = metadata.get("finish_reason") or metadata.get("stop_reason") or metadata.get("done_reason")
    return Reply(
        text=content if isinstance(content, str) else join_parts(content),
        finish=finish_of(ended.lower() if isinstance(ended, str) else ended, FINISHES),
        usage=usage_of(getattr(message, "usage_metadata", None), "input_tokens", "output_tokens"),
        latency=latency,
        thought=has_thought({"content": content, **(getattr(message, "additional_kwargs", None) or {})}),
    )
