from pathlib import Path

import numpy as np
import pytest

from pcs_annotator.models.local.llama import Network, Piece, read_gguf


@pytest.fixture(scope="module")
def network(tiny: Path) -> Network:
    return Network(read_gguf(tiny))


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
    for one, two, three in zip(alone, together, backwards, strict=True):
        assert (one == two).all()
        assert (one == three).all()


def test_position_and_order_matter_to_the_model(network: Network) -> None:
    answers = network.read_pieces([Piece.after(network.empty_cache(), tokens) for tokens in ([5, 6, 7], [6, 5, 7])])
    assert not np.allclose(answers[0].states, answers[1].states)


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
