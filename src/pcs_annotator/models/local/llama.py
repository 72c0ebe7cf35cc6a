"""A Llama-like model in numpy: its weights from a GGUF file, and its forward pass, from tokens to requested logits.

GGUF is a header, key-value pairs, a table of tensors, and their data; all numbers are little-endian. Only files whose
hash is known are read, so that what they contain is not checked.

Only what is needed is computed: the keys and values of the shared start of prompts are cached, the last layer runs only
for the positions whose logits are read, and only the requested rows of the output matrix are multiplied.

Several pieces are packed into one matrix without padding between them. BLAS may add in another order if a matrix has
another number of rows; so products are computed in tiles of a fixed number of rows, the last one filled with zeros, and
a question gets the same answer, to the last bit, whichever others are in the batch.
"""

import mmap
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pcs_annotator.models.local.label_tree import Floats, Ints, LabelTree

Bytes = npt.NDArray[np.uint8]
ALIGNMENT = 32
BLOCK = 32  # weights that share a scale, in both quantised formats read here
STRING, ARRAY = 8, 9
SCALARS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d"}


class Tensor(NamedTuple):
    """A tensor's shape as it is multiplied (outputs, inputs), GGML's code of its number format, and its first byte."""

    shape: tuple[int, ...]
    kind: int
    start: int


@dataclass(frozen=True, slots=True)
class GgufFile:
    """An open GGUF file; weights are read from disk on demand."""

    settings: Mapping[str, Any]
    tensors: Mapping[str, Tensor]
    data: mmap.mmap

    def raw(self, name: str) -> Bytes:
        """Return a tensor's bytes, one row of blocks per row of the tensor; valid while the file is open."""
        shape, kind, start = self.tensors[name]
        rows, columns = shape if len(shape) > 1 else (1, shape[0])
        weights_per_block, bytes_per_block, _ = FORMATS[kind]
        width = columns // weights_per_block * bytes_per_block
        return np.frombuffer(self.data, np.uint8, count=rows * width, offset=start).reshape(rows, width)

    def floats(self, name: str) -> Floats:
        """Return a tensor in float32."""
        tensor = self.tensors[name]
        return FORMATS[tensor.kind][2](self.raw(name)).reshape(tensor.shape)


def from_q4_1(raw: Bytes) -> Floats:
    """Return rows of blocks of 32 four-bit weights, each with a scale and a minimum in half precision."""
    blocks = raw.reshape(len(raw), -1, 20)
    ends = np.ascontiguousarray(blocks[..., :4]).view("<f2").astype(np.float32)
    packed = blocks[..., 4:]
    weights = np.concatenate([packed & 15, packed >> 4], axis=-1).astype(np.float32)
    weights *= ends[..., :1]
    weights += ends[..., 1:]
    return weights.reshape(len(raw), -1)


def from_q8_0(raw: Bytes) -> Floats:
    """Return rows of blocks of 32 eight-bit weights, each with a scale in half precision."""
    blocks = raw.reshape(len(raw), -1, 34)
    scale = np.ascontiguousarray(blocks[..., :2]).view("<f2").astype(np.float32)
    weights = np.ascontiguousarray(blocks[..., 2:]).view(np.int8).astype(np.float32)
    return (weights * scale).reshape(len(raw), -1)


# GGML's code of a number format → weights and bytes per block, and the way from rows of bytes to rows of float32.
FORMATS: Mapping[int, tuple[int, int, Callable[[Bytes], Floats]]] = {
    0: (1, 4, lambda raw: raw.view("<f4").astype(np.float32)),
    3: (BLOCK, 20, from_q4_1),
    8: (BLOCK, 34, from_q8_0),
}


def read_gguf(path: Path) -> GgufFile:
    """Return the opened file."""
    with path.open("rb") as file:
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    reader = _GgufReader(data, 4)
    _version, tensor_count, setting_count = reader.scalar(4), reader.scalar(10), reader.scalar(10)
    settings: dict[str, Any] = {}
    for _ in range(setting_count):
        key = reader.string()
        settings[key] = reader.value(reader.scalar(4))
    tensors: dict[str, Tensor] = {}
    for _ in range(tensor_count):
        name = reader.string()
        shape = tuple(reader.scalar(10) for _ in range(reader.scalar(4)))
        tensors[name] = Tensor(shape[::-1], reader.scalar(4), reader.scalar(10))
    start = -(-reader.position // ALIGNMENT) * ALIGNMENT
    tensors = {name: tensor._replace(start=start + tensor.start) for name, tensor in tensors.items()}
    return GgufFile(settings, tensors, data)


@dataclass(slots=True)
class _GgufReader:
    data: mmap.mmap
    position: int

    def scalar(self, kind: int) -> Any:
        form = SCALARS[kind]
        (value,) = struct.unpack_from(form, self.data, self.position)
        self.position += struct.calcsize(form)
        return value

    def string(self) -> str:
        length = self.scalar(10)
        start = self.position
        self.position += length
        return self.data[start : self.position].decode()

    def value(self, kind: int) -> Any:
        if kind == STRING:
            return self.string()
        if kind != ARRAY:
            return self.scalar(kind)
        inner, count = self.scalar(4), self.scalar(10)
        if inner in SCALARS:
            values = np.frombuffer(self.data, SCALARS[inner].replace("?", "B"), count, self.position)
            self.position += values.nbytes
            return values.tolist()
        return [self.value(inner) for _ in range(count)]


# Two to four short texts: large enough for BLAS to be fast, small enough not to be mostly zeros.
TILE = 96


class Shape(NamedTuple):
    """The sizes of the model."""

    layers: int
    width: int
    heads: int
    key_heads: int
    head_width: int


class Layer(NamedTuple):
    """The matrices of one layer, ready for `rows @ matrix`, multiplied by the weights of the norms."""

    query_key_value: Floats
    output: Floats
    gate_up: Floats
    down: Floats


class KVCache(NamedTuple):
    """Keys and values of tokens that were read before: (layer, head, token, head width) each."""

    keys: Floats
    values: Floats

    @property
    def length(self) -> int:
        """Number of tokens."""
        return self.keys.shape[2]


@dataclass(frozen=True, slots=True)
class Piece:
    """Tokens to read after those in a cache."""

    tokens: Ints  # the tokens' numbers
    positions: Ints  # the position of each, counted from the start of the prompt
    visible: npt.NDArray[np.bool_]  # whether a token (row) sees another of this piece (column); all see cached ones
    wanted: Ints  # rows whose hidden state is returned
    cache: KVCache  # the tokens before

    @classmethod
    def after(cls, cache: KVCache, tokens: Sequence[int], tree: LabelTree | None = None) -> "Piece":
        """Return text after a cache, then what a tree appends; states from the last token of the text on are wanted."""
        tree = tree or LabelTree([])
        count, extra, last = len(tokens), len(tree.appended), cache.length + len(tokens) - 1
        visible = np.tri(count + extra, dtype=bool)
        visible[count:, count:] = tree.visible
        return cls(
            tokens=np.array([*tokens, *tree.appended], np.int64),
            positions=np.array([*range(cache.length, last + 1), *(last + depth for depth in tree.depths)], np.int64),
            visible=visible,
            wanted=np.arange(count - 1, count + extra),
            cache=cache,
        )


class ReadPiece(NamedTuple):
    """The result of reading a piece: the states of its `wanted` rows, and a cache that includes its tokens."""

    states: Floats
    cache: KVCache


class Network:
    """A model's weights in float32, and the computations with them."""

    def __init__(self, file: GgufFile) -> None:
        settings = file.settings
        heads = settings["llama.attention.head_count"]
        width = settings["llama.embedding_length"]
        self.shape = Shape(
            settings["llama.block_count"], width, heads, settings["llama.attention.head_count_kv"], width // heads
        )
        self._epsilon = np.float32(settings["llama.attention.layer_norm_rms_epsilon"])
        # The embedding, which is also the output matrix, stays quantised: a question needs only a few of its rows.
        self._embedding = np.array(file.raw("token_embd.weight"))
        self._embedding_floats: Floats | None = None
        self._layers = _layers(file, self.shape)
        self._last_norm = file.floats("output_norm.weight")
        half = self.shape.head_width // 2
        self._frequencies = settings["llama.rope.freq_base"] ** (-np.arange(half, dtype=np.float64) / half)

    def empty_cache(self) -> KVCache:
        """Return a cache without tokens."""
        shape = self.shape
        empty = np.zeros((shape.layers, shape.key_heads, 0, shape.head_width), np.float32)
        return KVCache(empty, empty)

    def read_pieces(self, pieces: Sequence[Piece], tile: int = TILE) -> list[ReadPiece]:
        """Return the result of reading each piece; pieces share matrix products, but do not see each other.

        A product has `tile` rows; 1 for generating text, where a tile would be nearly empty.
        """
        edges = [0, *np.cumsum([len(piece.tokens) for piece in pieces]).tolist()]
        states = from_q8_0(self._embedding[np.concatenate([piece.tokens for piece in pieces])])
        rotation = self._rotation(np.concatenate([piece.positions for piece in pieces]))
        works = [
            _Work(piece, self._extended(piece), slice(*edge))
            for piece, edge in zip(pieces, pairwise(edges), strict=True)
        ]
        wanted = np.concatenate([work.piece.wanted + work.rows.start for work in works])
        for number, layer in enumerate(self._layers):
            last = number == self.shape.layers - 1
            queries, keys, values = self._split(_product(self._norm(states), layer.query_key_value, tile), rotation)
            seen = [work.attend(number, queries, keys, values, last=last) for work in works]
            states = states[wanted] if last else states
            states = states + _product(np.concatenate(seen), layer.output, tile)
            states += _feed_forward(layer, self._norm(states), tile)
        states = self._norm(states) * self._last_norm
        ends = np.cumsum([len(piece.wanted) for piece in pieces])[:-1]
        return [ReadPiece(part, work.cache) for part, work in zip(np.split(states, ends), works, strict=True)]

    def logits(self, states: Floats, tokens: Sequence[int] | Ints | None = None) -> Floats:
        """Return the logits of some tokens, or of the whole vocabulary: (state, token)."""
        if tokens is not None:
            return states @ from_q8_0(self._embedding[np.asarray(tokens)]).T
        if self._embedding_floats is None:
            self._embedding_floats = from_q8_0(self._embedding)
        return states @ self._embedding_floats.T

    def _norm(self, states: Floats) -> Floats:
        mean = np.einsum("tw,tw->t", states, states) / np.float32(states.shape[1])
        return states * (1 / np.sqrt(mean + self._epsilon))[:, np.newaxis]

    def _rotation(self, positions: Ints) -> tuple[Floats, Floats]:
        angles = positions[:, np.newaxis] * self._frequencies
        return np.cos(angles).astype(np.float32)[:, np.newaxis], np.sin(angles).astype(np.float32)[:, np.newaxis]

    def _split(self, mixed: Floats, rotation: tuple[Floats, Floats]) -> tuple[Floats, Floats, Floats]:
        """Return queries and keys, both rotated by their positions, and values: (token, head, head width)."""
        shape = self.shape
        columns = (shape.heads + shape.key_heads) * shape.head_width
        both = mixed[:, :columns].reshape(len(mixed), -1, 2, shape.head_width // 2)
        cos, sin = rotation
        rotated = np.empty_like(both)
        rotated[:, :, 0] = both[:, :, 0] * cos - both[:, :, 1] * sin
        rotated[:, :, 1] = both[:, :, 1] * cos + both[:, :, 0] * sin
        heads = rotated.reshape(len(mixed), -1, shape.head_width)
        values = mixed[:, columns:].reshape(len(mixed), shape.key_heads, shape.head_width)
        return heads[:, : shape.heads], heads[:, shape.heads :], values

    def _extended(self, piece: Piece) -> KVCache:
        """Return a copy of the piece's cache with room for its own tokens."""
        before = piece.cache.length
        size = (self.shape.layers, self.shape.key_heads, before + len(piece.tokens), self.shape.head_width)
        cache = KVCache(np.empty(size, np.float32), np.empty(size, np.float32))
        cache.keys[:, :, :before] = piece.cache.keys
        cache.values[:, :, :before] = piece.cache.values
        return cache


class _Work(NamedTuple):
    """A piece while it passes through the layers: the rows of its tokens, and a cache with room for them."""

    piece: Piece
    cache: KVCache
    rows: slice

    def attend(self, layer: int, queries: Floats, keys: Floats, values: Floats, *, last: bool) -> Floats:
        """Return the attention output of the piece's tokens over themselves and the cache: (token, width)."""
        before = self.piece.cache.length
        all_keys, all_values = self.cache.keys[layer], self.cache.values[layer]
        all_keys[:, before:] = keys[self.rows].transpose(1, 0, 2)
        all_values[:, before:] = values[self.rows].transpose(1, 0, 2)
        wanted = self.piece.wanted if last else slice(None)
        asking, hidden = queries[self.rows][wanted], ~self.piece.visible[wanted]
        count, heads, width = asking.shape
        groups = len(all_keys)
        # Heads that share keys are stacked in one matrix.
        stacked = asking.reshape(count, groups, heads // groups, width).transpose(1, 2, 0, 3).reshape(groups, -1, width)
        weights = stacked @ all_keys.transpose(0, 2, 1)
        weights = weights.reshape(groups, heads // groups, count, -1)
        np.copyto(weights[..., before:], -np.inf, where=hidden)
        weights -= weights.max(axis=-1, keepdims=True)
        np.exp(weights, out=weights)
        weights /= weights.sum(axis=-1, keepdims=True)
        seen = weights.reshape(groups, -1, weights.shape[-1]) @ all_values
        return seen.reshape(groups, heads // groups, count, width).transpose(2, 0, 1, 3).reshape(count, -1)


def _product(rows: Floats, matrix: Floats, tile: int) -> Floats:
    """Return `rows @ matrix`, computed in tiles with the same number of rows."""
    count, width = rows.shape
    missing = -count % tile
    if missing:
        rows = np.concatenate([rows, np.zeros((missing, width), np.float32)])
    tiles = rows.reshape(-1, tile, width) if tile > 1 else rows[np.newaxis]
    return (tiles @ matrix).reshape(-1, matrix.shape[1])[:count]


def _feed_forward(layer: Layer, states: Floats, tile: int) -> Floats:
    gate, up = np.split(_product(states, layer.gate_up, tile), 2, axis=1)
    # silu(x) = x / (1 + e⁻ˣ); clipped, because e⁻ˣ overflows in float32 where the result is 0 anyway.
    gated = np.maximum(gate, np.float32(-80))
    np.negative(gated, out=gated)
    np.exp(gated, out=gated)
    gated += 1
    np.divide(gate, gated, out=gated)
    gated *= up
    return _product(gated, layer.down, tile)


def _layers(file: GgufFile, shape: Shape) -> list[Layer]:
    hidden = file.settings["llama.feed_forward_length"]
    mixed = (shape.heads + 2 * shape.key_heads) * shape.head_width
    sizes = [(shape.width, mixed), (shape.width, shape.width), (shape.width, 2 * hidden), (hidden, shape.width)]
    ends = np.cumsum([rows * columns for rows, columns in sizes])
    # One block for all layers: small ones would come from the thread's heap, which does not shrink when they are freed.
    block = np.empty((shape.layers, ends[-1]), np.float32)
    layers = []
    for number, room in enumerate(block):
        parts = np.split(room, ends[:-1])
        layer = Layer(*(part.reshape(size) for part, size in zip(parts, sizes, strict=True)))
        _fill(layer, file, number, shape)
        layers.append(layer)
    return layers


def _fill(layer: Layer, file: GgufFile, number: int, shape: Shape) -> None:
    def matrix(name: str) -> Floats:
        return file.floats(f"blk.{number}.{name}.weight")

    # GGUF stores the two numbers of a rotated pair side by side; separated, they are rotated without copies.
    apart = np.concatenate([np.arange(0, shape.head_width, 2), np.arange(1, shape.head_width, 2)])
    query = matrix("attn_q").reshape(shape.heads, shape.head_width, -1)[:, apart].reshape(-1, shape.width)
    key = matrix("attn_k").reshape(shape.key_heads, shape.head_width, -1)[:, apart].reshape(-1, shape.width)
    scale = np.float32(shape.head_width**-0.5)
    mixed = np.concatenate([query * scale, key, matrix("attn_v")])
    layer.query_key_value[:] = (mixed * matrix("attn_norm")).T
    layer.output[:] = matrix("attn_output").T
    layer.gate_up[:] = (np.concatenate([matrix("ffn_gate"), matrix("ffn_up")]) * matrix("ffn_norm")).T
    layer.down[:] = matrix("ffn_down").T
