"""One forward pass against asking step by step, for models of many kinds with random weights."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from pcs_annotator.models.local.label_tree import LabelQuestion, LabelTree, Prompt  # noqa: E402
from pcs_annotator.models.local.transformers import Reader  # noqa: E402

pytestmark = pytest.mark.slow
WORDS = 300
END = 2
SIZES = {"vocab_size": WORDS, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
GROUPED = SIZES | {"intermediate_size": 64, "num_key_value_heads": 2}
OLD = {"vocab_size": WORDS, "n_embd": 32, "n_layer": 2, "n_head": 4}
# name of the config's class, its settings, whether the starts of prompts can be shared
KINDS: list[tuple[str, dict[str, Any], bool]] = [
    ("LlamaConfig", GROUPED, True),
    ("Qwen3Config", GROUPED | {"head_dim": 8}, True),
    ("MistralConfig", GROUPED | {"sliding_window": 16}, True),
    ("Gemma2Config", GROUPED | {"head_dim": 8, "sliding_window": 16}, True),
    ("MixtralConfig", GROUPED | {"num_local_experts": 4}, True),
    ("GPT2Config", OLD, True),
    ("OPTConfig", SIZES | {"ffn_dim": 64, "word_embed_proj_dim": 32}, True),
    ("BloomConfig", {"vocab_size": WORDS, "hidden_size": 32, "n_layer": 2, "n_head": 4}, False),
    ("MambaConfig", {"vocab_size": WORDS, "hidden_size": 32, "num_hidden_layers": 2, "state_size": 4}, False),
]
LABELS = ((20, 30, END), (20, 31, 40, END), (20, 31, 41, END), (21, END))
SHAPES = ((5, 4), (5, 9), (0, 7), (3, 1), (12, 20), (5, 4))


def random_model(kind: str, settings: dict[str, Any]) -> Any:
    torch.manual_seed(0)
    model = transformers.AutoModelForCausalLM.from_config(getattr(transformers, kind)(**settings)).eval()
    with torch.no_grad():
        for weights in model.parameters():
            if weights.dim() > 1:
                weights.mul_(5.0)
    return model


def questions(labels: Sequence[Sequence[int]] = LABELS) -> list[LabelQuestion]:
    rng = np.random.default_rng(1)
    tree = LabelTree(labels)
    start = tuple(rng.integers(3, WORDS - 1, 12).tolist())
    return [
        LabelQuestion(Prompt(start[:head], tuple(rng.integers(3, WORDS - 1, tail).tolist())), tree)
        for head, tail in SHAPES
    ]


def step_by_step(model: Any, prompt: Prompt, labels: Sequence[Sequence[int]]) -> list[float]:
    """The same by asking the model again after every token."""
    found = []
    for label in labels:
        total = 0.0
        for length, token in enumerate(label):
            start = label[:length]
            allowed = sorted({other[length] for other in labels if other[:length] == start})
            with torch.inference_mode():
                tokens = torch.tensor([[*prompt.head, *prompt.tail, *start]])
                logits = model(tokens, use_cache=False).logits[0, -1].double()
            total += (logits[token] - logits[allowed].logsumexp(0)).item()
        found.append(total)
    return found


@pytest.mark.parametrize(("kind", "settings", "shares"), KINDS, ids=[kind for kind, *_ in KINDS])
def test_one_pass_gives_what_step_by_step_gives(kind: str, settings: dict[str, Any], shares: bool) -> None:
    model = random_model(kind, settings)
    reader = Reader(model)
    assert reader.shares is shares
    asked = questions()
    found = dict(reader.read(asked))
    assert sorted(found) == list(range(len(asked)))
    for number, question in enumerate(asked):
        logs = found[number]
        assert logs is not None
        assert logs == pytest.approx(step_by_step(model, question.prompt, LABELS), abs=1e-4)
        assert np.exp(logs).sum() == pytest.approx(1, abs=1e-5)


def test_answers_depend_on_the_question_and_not_on_the_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    model = random_model(*KINDS[0][:2])
    reader, asked = Reader(model), questions()
    together = dict(reader.read(asked))
    monkeypatch.setattr(reader._heads, "_most", 1)
    for number, question in enumerate(asked):
        ((_, alone),) = reader.read([question])
        assert alone == pytest.approx(together[number], abs=1e-5)
    assert len({tuple(np.round(np.asarray(logs), 3)) for logs in together.values()}) == len(SHAPES)


def test_the_shared_start_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    model = random_model(*KINDS[0][:2])
    reader, asked = Reader(model), questions()
    widths: list[int] = []
    forward = model.forward

    def counted(tokens: Any, **more: Any) -> Any:
        widths.append(tokens.numel())
        return forward(tokens, **more)

    monkeypatch.setattr(model, "forward", counted)
    list(reader.read(asked))
    starts = {question.prompt.head for question in asked} - {()}
    assert len(widths) == len(starts) + 1
    widths.clear()
    list(reader.read(asked))
    assert len(widths) == 1


def test_memory_that_runs_out_makes_batches_smaller(monkeypatch: pytest.MonkeyPatch) -> None:
    model = random_model(*KINDS[0][:2])
    reader, asked = Reader(model), questions()
    wanted = dict(reader.read(asked))
    sizes: list[int] = []
    forward = model.forward

    def small(tokens: Any, **more: Any) -> Any:
        if len(tokens) > 2 or tokens.shape[1] > 18:
            raise torch.OutOfMemoryError("too much")
        sizes.append(len(tokens))
        return forward(tokens, **more)

    monkeypatch.setattr(model, "forward", small)
    found = dict(reader.read(asked))
    lost = [number for number, logs in found.items() if logs is None]
    assert [SHAPES[number] for number in lost] == [(12, 20)]
    for number in set(found) - set(lost):
        assert found[number] == pytest.approx(wanted[number], abs=1e-5)
    assert max(sizes) == 2


def test_longer_prompts_than_a_sliding_window_are_read_right() -> None:
    model = random_model("MistralConfig", GROUPED | {"sliding_window": 8})
    reader = Reader(model)
    asked = questions()
    for number, logs in reader.read(asked):
        assert logs is not None
        assert logs == pytest.approx(step_by_step(model, asked[number].prompt, LABELS), abs=1e-4)
