import struct
from pathlib import Path

import numpy as np
import pytest

from pcs_annotator.models.local.llama import from_q4_1, from_q8_0, read_gguf
from tests.models.embedded_engine.tiny import LAYERS, WIDTH, tokens


def test_settings_and_weights_are_read_as_written(tiny: Path) -> None:
    file = read_gguf(tiny)
    assert file.settings["llama.block_count"] == LAYERS
    assert file.settings["tokenizer.ggml.tokens"] == tokens()
    assert file.floats("blk.0.ffn_down.weight").shape == (WIDTH, 96)
    assert file.floats("output_norm.weight").mean() == pytest.approx(1, abs=0.1)


def test_four_bit_blocks_have_the_low_halves_first() -> None:
    raw = struct.pack("<ee", 0.5, -1.0) + bytes([0x21, *[0] * 15])
    floats = from_q4_1(np.frombuffer(raw, np.uint8)[np.newaxis])
    assert floats.shape == (1, 32)
    assert floats[0, [0, 1, 16, 17]].tolist() == [-0.5, -1.0, 0.0, -1.0]


def test_eight_bit_blocks_are_scaled() -> None:
    raw = struct.pack("<e", 0.25) + struct.pack("<32b", 4, -8, *[0] * 30)
    assert from_q8_0(np.frombuffer(raw, np.uint8)[np.newaxis])[0, :3].tolist() == [1.0, -2.0, 0.0]
