"""Servers that speak the OpenAI chat protocol, and how each differs from it."""

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal
from urllib.parse import quote, urlsplit

from pcs_annotator.base.errors import ConfigError
from pcs_annotator.models.failures import CallSite
from pcs_annotator.models.provider import check_same_source, read_key, refuse_key

Structure = Literal["json_schema", "choice", "none"]
AZURE_VERSION = "2024-10-21"
# Reasoning models: no temperature, and `max_completion_tokens` instead of `max_tokens`.
OPENAI_REASONING = r"(?:ft:)?(?:o\d|gpt-(?:[5-9]|\d\d)(?!.*chat))"
OPENAI_SCHEMA = r"(?:ft:)?(?:o[1-9](?!-mini-2024|-preview)|gpt-4o(?!-2024-05)|gpt-4\.1|gpt-(?:[5-9]|\d\d))"


@dataclass(frozen=True, slots=True)
class Host:
    """A server, or a provider's servers."""

    name: str  # the provider's name
    base_url: str = ""  # its address; `<NAME>_BASE_URL` overrides it
    keys: tuple[str, ...] = ()  # environment variables of the key, the usual one first; empty for `<NAME>_API_KEY`
    _: KW_ONLY
    needs_key: bool = True  # whether a key is required
    auth: Literal["Authorization", "api-key"] = "Authorization"  # the header that the key is sent in
    structure: Structure = "none"  # how answers can be constrained: by a JSON schema, a list of choices, or not at all
    structured_models: str = ""  # the models whose answers can be, as a pattern for the start of the name
    reasoning_models: str = "(?!)"  # the models that take the settings of OpenAI's reasoning models, as a pattern
    top_logprobs: int = 0  # most alternatives with log-probabilities; 0 if requesting them is an error
    # whether log-probabilities are those before an answer is constrained, among which a label may be far down: as many
    # as possible are then requested
    raw_logprobs: bool = False
    counts_logprobs: bool = False  # whether `logprobs` is that number, as in the older protocol, instead of `true`
    logprobs_vary: bool = False  # whether only an answer tells if a model gives log-probabilities

    @property
    def key_variables(self) -> tuple[str, ...]:
        """The environment variables that may hold the key."""
        return self.keys or (f"{self.name.upper()}_API_KEY",)


_OPENAI: Mapping[str, Any] = {
    "structure": "json_schema",
    "structured_models": OPENAI_SCHEMA,
    "reasoning_models": OPENAI_REASONING,
    "top_logprobs": 20,
}
_OWN_SERVER: Mapping[str, Any] = {"needs_key": False, "top_logprobs": 20, "raw_logprobs": True}
_HUGGING_FACE_KEYS = ("HF_TOKEN", "HUGGINGFACE_API_KEY", "HUGGINGFACEHUB_API_TOKEN")
_AZURE_KEYS = ("AZURE_OPENAI_API_KEY", "AZURE_API_KEY")
_GOOGLE = "https://generativelanguage.googleapis.com/v1beta/openai"
HOSTS = (
    Host("openai", "https://api.openai.com/v1", **_OPENAI),
    Host(
        "groq",
        "https://api.groq.com/openai/v1",
        structure="json_schema",
        structured_models=r"openai/gpt-oss|moonshotai/kimi-k2|meta-llama/llama-4",
    ),
    Host("huggingface", "https://router.huggingface.co/v1", _HUGGING_FACE_KEYS, top_logprobs=5, logprobs_vary=True),
    Host("mistral", "https://api.mistral.ai/v1", structure="json_schema"),
    Host("together", "https://api.together.xyz/v1", top_logprobs=20, counts_logprobs=True),
    Host("fireworks", "https://api.fireworks.ai/inference/v1", structure="json_schema", top_logprobs=5),
    Host("openrouter", "https://openrouter.ai/api/v1", top_logprobs=20, logprobs_vary=True),
    Host("deepseek", "https://api.deepseek.com/v1", top_logprobs=20),
    Host("gemini", _GOOGLE, ("GEMINI_API_KEY", "GOOGLE_API_KEY"), structure="json_schema"),
    Host("ollama", "http://localhost:11434/v1", structure="json_schema", logprobs_vary=True, **_OWN_SERVER),
    Host("vllm", "http://localhost:8000/v1", structure="choice", **_OWN_SERVER),
    Host("azure", "", _AZURE_KEYS, auth="api-key", **_OPENAI),
)
CUSTOM = Host("url", "", ("PCS_API_KEY",), needs_key=False, top_logprobs=20, logprobs_vary=True)
"""Any other server, given by its URL. Keys of providers are never sent to it."""
ANTHROPIC = Host("anthropic", "https://api.anthropic.com")  # it speaks a protocol of its own


def call_site(host: Host, model: str, environment: Mapping[str, str], url: str = "") -> CallSite:
    """Return where calls to a model go, to a URL of the user's own if one is given; a missing key is an error."""
    base = url or _base_url(host, environment)
    return CallSite(
        name=f"{base}#{model}" if url else f"{host.name}:{model}",
        model=model,
        url=base,
        key_variable=host.key_variables[0],
        secret=read_key(environment, host.key_variables, url or host.name, required=host.needs_key),
        batch_model=environment.get(f"{host.name.upper()}_BATCH_DEPLOYMENT", "").strip(),
    )


def _base_url(host: Host, environment: Mapping[str, str]) -> str:
    variables = [f"{host.name.upper()}_BASE_URL", *(["AZURE_OPENAI_ENDPOINT"] if host.name == "azure" else [])]
    for variable in variables:
        check_same_source(environment, variable, host.key_variables)
        if url := environment.get(variable, "").strip():
            return check_url(url, variable, f"set {host.name.upper()}_API_KEY instead")
    if not host.base_url:
        raise ConfigError(f"{host.name} has no address: set {variables[-1]}")
    return host.base_url


def check_url(url: str, source: str, remedy: str = "set PCS_API_KEY instead") -> str:
    """Return the URL without a trailing slash, or raise a `ConfigError` that names where it came from."""
    refuse_key(url, source, remedy)
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:  # a port that is not a number
        raise ConfigError(f"{source}: not a URL: write it as http://host:port/v1") from None
    if not usable:
        raise ConfigError(f"{source}: {url!r} is not a URL: write it as http://host:port/v1")
    return url.rstrip("/").removesuffix("/chat/completions")


def chat_url(host: Host, base: str, model: str, environment: Mapping[str, str]) -> str:
    """Return the URL that requests are posted to."""
    if host.name != "azure":
        return f"{base}/chat/completions"
    version = environment.get("AZURE_OPENAI_API_VERSION") or environment.get("OPENAI_API_VERSION") or AZURE_VERSION
    folder = base if base.endswith("/openai") else f"{base}/openai"
    return f"{folder}/deployments/{quote(model, safe='')}/chat/completions?api-version={quote(version)}"
