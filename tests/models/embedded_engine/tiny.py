"""Writes a model with a few thousand random weights to a GGUF file, field by field."""

import struct
from pathlib import Path
from typing import Any

import numpy as np

WIDTH, HEADS, KEY_HEADS, LAYERS, HIDDEN = 64, 2, 1, 3, 96
SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
MERGES = ("Ġ n", "e w", "Ġ t", "e x", "ex t")


def byte_signs() -> list[str]:
    """The printable characters that represent the 256 bytes in such vocabularies."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = iter(range(256, 512))
    return [chr(byte) if byte in plain else chr(next(others)) for byte in range(256)]


def tokens() -> list[str]:
    return [*SPECIAL, *byte_signs(), *(merge.replace(" ", "") for merge in MERGES)]


def write_tiny(path: Path) -> Path:
    rng = np.random.default_rng(3)
    vocabulary = tokens()
    settings: dict[str, Any] = {
        "llama.block_count": LAYERS,
        "llama.context_length": 512,
        "llama.embedding_length": WIDTH,
        "llama.feed_forward_length": HIDDEN,
        "llama.attention.head_count": HEADS,
        "llama.attention.head_count_kv": KEY_HEADS,
        "llama.attention.layer_norm_rms_epsilon": 1e-5,
        "llama.rope.freq_base": 10000.0,
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "smollm",
        "tokenizer.ggml.tokens": vocabulary,
        "tokenizer.ggml.token_type": [3] * len(SPECIAL) + [1] * (len(vocabulary) - len(SPECIAL)),
        "tokenizer.ggml.merges": list(MERGES),
    }
    keys = WIDTH // HEADS * KEY_HEADS
    shapes = {"token_embd": (len(vocabulary), WIDTH), "output_norm": (WIDTH,)}
    for layer in range(LAYERS):
        shapes |= {
            f"blk.{layer}.attn_norm": (WIDTH,),
            f"blk.{layer}.attn_q": (WIDTH, WIDTH),
            f"blk.{layer}.attn_k": (keys, WIDTH),
            f"blk.{layer}.attn_v": (keys, WIDTH),
            f"blk.{layer}.attn_output": (WIDTH, WIDTH),
            f"blk.{layer}.ffn_norm": (WIDTH,),
            f"blk.{layer}.ffn_gate": (HIDDEN, WIDTH),
            f"blk.{layer}.ffn_up": (HIDDEN, WIDTH),
            f"blk.{layer}.ffn_down": (WIDTH, HIDDEN),
        }
    weights = {name: rng.normal(1 if "norm" in name else 0, 0.2, shape) for name, shape in shapes.items()}
    path.write_bytes(_file(settings, weights))
    return path


def _file(settings: dict[str, Any], weights: dict[str, Any]) -> bytes:
    head = b"GGUF" + struct.pack("<IQQ", 3, len(weights), len(settings))
    head += b"".join(_text(key) + _value(value) for key, value in settings.items())
    table, data = b"", b""
    for name, tensor in weights.items():
        raw = q8_0(tensor) if name == "token_embd" else tensor.astype("<f4").tobytes()
        kind = 8 if name == "token_embd" else 0
        table += _text(f"{name}.weight") + struct.pack("<I", tensor.ndim)
        table += struct.pack(f"<{tensor.ndim}Q", *tensor.shape[::-1]) + struct.pack("<IQ", kind, len(data))
        data += raw + bytes(-len(raw) % 32)
    head += table
    return head + bytes(-len(head) % 32) + data


def q8_0(tensor: Any) -> bytes:
    blocks = tensor.reshape(-1, 32)
    scales = (np.abs(blocks).max(axis=1, keepdims=True) / 127).astype("<f2")
    whole = np.round(blocks / scales.astype(float)).astype(np.int8)
    return np.concatenate([scales.view(np.uint8), whole.view(np.uint8)], axis=1).tobytes()


def _text(text: str) -> bytes:
    raw = text.encode()
    return struct.pack("<Q", len(raw)) + raw


def _value(value: Any) -> bytes:
    match value:
        case str():
            return struct.pack("<I", 8) + _text(value)
        case float():
            return struct.pack("<If", 6, value)
        case int():
            return struct.pack("<II", 4, value)
        case [str(), *_]:
            return struct.pack("<IIQ", 9, 8, len(value)) + b"".join(_text(text) for text in value)
    return struct.pack("<IIQ", 9, 5, len(value)) + struct.pack(f"<{len(value)}i", *value)
