"""Reads what the embedded model needs from a GGUF file: settings, vocabulary and weights.

The format is a header, key-value pairs, a table of tensors, and their data; all numbers are little-endian. Only files
whose hash is known are read, so that what they contain is not checked.
"""

import mmap
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pcs_annotator.models.local.label_tree import Floats

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
