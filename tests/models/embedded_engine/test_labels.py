from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from pcs_annotator.models.local.embedded import label_log_probabilities
from pcs_annotator.models.local.label_tree import LabelTree
from pcs_annotator.models.local.llama import Network, Piece, read_gguf

END = 2
PROMPT = [11, 12, 13, 14]


@pytest.fixture(scope="module")
def network(tiny: Path) -> Network:
    return Network(read_gguf(tiny))


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


def test_labels_of_one_token_append_nothing_to_the_prompt() -> None:
    assert LabelTree([[20, END], [21, END]]).appended == []


def test_tokens_after_the_last_fork_are_not_read() -> None:
    tree = LabelTree([[20, 30, 31, 32, END], [20, 40, 41, END], [21, 50, 51, END]])
    assert tree.appended == [20]


def test_the_order_of_labels_does_not_matter(network: Network) -> None:
    labels = [[20, 30], [21], [20, 31, 5]]
    assert scores(network, labels)[::-1] == pytest.approx(scores(network, labels[::-1]), abs=1e-4)
