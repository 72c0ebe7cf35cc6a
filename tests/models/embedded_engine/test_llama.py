"""The embedded model's file, its forward pass, and labels read as a tree."""

import struct
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from pcs_annotator.models.local.embedded import label_log_probabilities
from pcs_annotator.models.local.label_tree import LabelTree
from pcs_annotator.models.local.llama import Network, Piece, from_q4_1, from_q8_0, read_gguf
from tests.models.embedded_engine.tiny import LAYERS, WIDTH, tokens

END = 2
PROMPT = [11, 12, 13, 14]


@pytest.fixture(scope="module")
def network(tiny: Path) -> Network:
    return Network(read_gguf(tiny))


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


def test_reading_in_two_parts_gives_the_same_as_reading_at_once(network: Network) -> None:
    tokens = list(range(5, 45))
    (whole,) = network.read_pieces([Piece.after(network.empty_cache(), tokens)])
    (first,) = network.read_pieces([Piece.after(network.empty_cache(), tokens[:17])])
    (second,) = network.read_pieces([Piece.after(first.cache, tokens[17:])])
    np.testing.assert_allclose(second.states, whole.states, atol=1e-4)
    np.testing.assert_allclose(second.cache.keys, whole.cache.keys, atol=1e-4)


def test_results_are_the_same_to_the_last_bit_whatever_else_is_in_the_batch(network: Network) -> None:
    rng = np.random.default_rng(0)
    (head,) = network.read_pieces([Piece.after(network.empty_cache(), [7, 8, 9])])
    pieces = [Piece.after(head.cache, rng.integers(3, 250, size).tolist()) for size in (1, 30, 7, 90, 120, 2)]
    alone = [network.read_pieces([piece])[0].states for piece in pieces]
    together = [answer.states for answer in network.read_pieces(pieces)]
    backwards = [answer.states for answer in network.read_pieces(pieces[::-1])][::-1]
    for states, *others in zip(alone, together, backwards, strict=True):
        assert all((states == other).all() for other in others)


def test_logits_of_some_tokens_are_those_of_the_whole_vocabulary(network: Network) -> None:
    (answer,) = network.read_pieces([Piece.after(network.empty_cache(), [5, 6, 7])], tile=1)
    whole = network.logits(answer.states)
    np.testing.assert_allclose(network.logits(answer.states, [3, 200]), whole[:, [3, 200]], rtol=1e-5)


def test_layers_follow_the_formulas(network: Network, tiny: Path) -> None:
    """One token, written out in double precision with weights straight from the file."""
    file = read_gguf(tiny)

    def weight(name: str) -> np.ndarray:
        return file.floats(f"{name}.weight").astype(float)

    def norm(state: np.ndarray, name: str) -> np.ndarray:
        return state / np.sqrt((state**2).mean() + 1e-5) * weight(name)

    state = weight("token_embd")[42]
    for layer in range(3):
        # The first token sees only itself: attention returns its own value, the same for both heads.
        value = weight(f"blk.{layer}.attn_v") @ norm(state, f"blk.{layer}.attn_norm")
        state = state + weight(f"blk.{layer}.attn_output") @ np.tile(value, 2)
        fed = norm(state, f"blk.{layer}.ffn_norm")
        gate, up = weight(f"blk.{layer}.ffn_gate") @ fed, weight(f"blk.{layer}.ffn_up") @ fed
        state = state + weight(f"blk.{layer}.ffn_down") @ (gate / (1 + np.exp(-gate)) * up)
    (answer,) = network.read_pieces([Piece.after(network.empty_cache(), [42])])
    np.testing.assert_allclose(answer.states[0], norm(state, "output_norm"), rtol=1e-3, atol=1e-4)


def scores(network: Network, labels: Sequence[Sequence[int]]) -> list[float]:
    tree = LabelTree([[*label, END] for label in labels])
    (answer,) = network.read_pieces([Piece.after(network.empty_cache(), PROMPT, tree)])
    found: list[float] = label_log_probabilities(tree, network, answer.states).tolist()
    return found


def step_by_step(network: Network, labels: Sequence[Sequence[int]]) -> list[float]:
    """The same, by asking the model again after every token."""
    sequences = [(*label, END) for label in labels]
    found = []
    for sequence in sequences:
        total = 0.0
        for length in range(len(sequence)):
            start = sequence[:length]
            allowed = sorted({other[length] for other in sequences if other[:length] == start and len(other) > length})
            (answer,) = network.read_pieces([Piece.after(network.empty_cache(), [*PROMPT, *start])])
            logits = network.logits(answer.states, allowed)[0].astype(float)
            total += logits[allowed.index(sequence[length])] - np.log(np.exp(logits).sum())
        found.append(total)
    return found


@pytest.mark.parametrize(
    "labels",
    [
        [[20], [21], [22]],
        [[20, 30], [20, 31], [21]],
        [[20], [20, 30], [20, 30, 40], [20, 30, 41, 50]],
        [[20, 30, 40], [20, 30, 41], [21, 30, 40], [21, 30, 41], [22]],
        [[20]],
    ],
)
def test_one_reading_gives_the_same_as_step_by_step(network: Network, labels: list[list[int]]) -> None:
    found = scores(network, labels)
    assert found == pytest.approx(step_by_step(network, labels), abs=1e-3)
    assert np.exp(found).sum() == pytest.approx(1, abs=1e-5)


def test_tokens_after_the_last_fork_are_not_read() -> None:
    assert LabelTree([[20, END], [21, END]]).appended == []
    assert LabelTree([[20, 30, 31, 32, END], [20, 40, 41, END], [21, 50, 51, END]]).appended == [20]
