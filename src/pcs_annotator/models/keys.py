"""What looks like a key: such texts are never shown, stored or counted among a model's settings."""

from __future__ import annotations

import re

from pcs_annotator.base.errors import ConfigError

KEY_LIKE = re.compile(r"\b(?:sk|gsk|hf|pk|xai|key)[-_][\w*.\-]{6,}|\bAIza[\w*.\-]{10,}|(?<=Bearer )\S+")
CERTAIN_KEY = re.compile(r"\b(?:gsk_|hf_|xai-|sk-(?=[\w-]*\d))[\w-]{16,}|\bAIza[\w-]{20,}|(?<=Bearer )\S{16,}")
_HIDDEN = re.compile(rf"{CERTAIN_KEY.pattern}|[^/\s]+(?=@)|(?<=\?).*")
_SECRET_NAME = re.compile(
    r"(?:api|access|account|admin|auth|master|private|secret|service|subscription)key$"
    r"|^(?:api|access|auth|bearer|hf|hub|id|refresh|sas|security|session|x)*token$|hubapitoken$"
    r"|secret|passw|passphrase|credential|authorization|cookie|^bearer$|jwt$"
)


def is_secret_name(name: str) -> bool:
    """Return whether something with this name is a key or a password.

    >>> is_secret_name("OPENAI_API_KEY"), is_secret_name("x-api-key"), is_secret_name("max_tokens")
    (True, True, False)
    """
    return _SECRET_NAME.search(re.sub(r"[^a-z]", "", name.lower())) is not None


def hide_keys(address: str) -> str:
    """Return a URL or a model's name as it may be shown.

    >>> hide_keys("http://me:word@host/v1?key=1#m")
    'http://…@host/v1?…'
    """
    return _HIDDEN.sub("…", address)


def refuse_key(address: str, source: str, remedy: str = "set PCS_API_KEY instead") -> None:
    """Raise if a URL or a model's name has a key, a password or parameters in it; the message never shows them."""
    host = address.partition("://")[2].partition("/")[0]
    if "@" in host or "?" in address or CERTAIN_KEY.search(address):
        raise ConfigError(
            f"{source} has a key, a password or parameters (after ?) in it, which would be stored with every answer: "
            f"remove them and {remedy}"
        )
