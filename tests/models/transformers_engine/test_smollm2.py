"""The embedded model's weights in `transformers`: two independent forward passes agree."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pcs_annotator.core.chat import QuestionParts
from pcs_annotator.models.local import embedded as prompts
from pcs_annotator.models.local.download import WEIGHTS, is_intact, weights_path
from pcs_annotator.models.local.embedded import NumpyEngine
from pcs_annotator.models.local.label_tree import LabelQuestion, LabelTree
from pcs_annotator.models.local.llama import read_gguf

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from pcs_annotator.models.local.transformers import Reader  # noqa: E402

PATH = weights_path("smollm2")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not is_intact(PATH, WEIGHTS["smollm2"]), reason="needs `pcs models pull embedded:smollm2`"),
]
TEXTS = [
    "What a lovely day in the park with everybody!",
    "The train was late again, and nobody said why.",
    "The film was long, but the music was good.",
    "Shares of the airline fell after it cut its profit forecast for the year.",
    "",
]
LABELS = ["positive", "negative", "very positive", "very negative", "neutral"]
NAMES = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}


def llama_from_gguf(path: Path) -> Any:
    """The model in a GGUF file as `LlamaForCausalLM`, in float32."""
    file = read_gguf(path)
    settings = file.settings
    heads, groups = settings["llama.attention.head_count"], settings["llama.attention.head_count_kv"]
    config = transformers.LlamaConfig(
        vocab_size=len(settings["tokenizer.ggml.tokens"]),
        hidden_size=settings["llama.embedding_length"],
        intermediate_size=settings["llama.feed_forward_length"],
        num_hidden_layers=settings["llama.block_count"],
        num_attention_heads=heads,
        num_key_value_heads=groups,
        rms_norm_eps=settings["llama.attention.layer_norm_rms_epsilon"],
        rope_theta=settings["llama.rope.freq_base"],
        tie_word_embeddings=True,
    )
    weights = {
        "model.embed_tokens.weight": file.floats("token_embd.weight"),
        "model.norm.weight": file.floats("output_norm.weight"),
    }
    for layer in range(config.num_hidden_layers):
        for theirs, ours in NAMES.items():
            matrix = file.floats(f"blk.{layer}.{theirs}.weight")
            if theirs in ("attn_q", "attn_k"):
                # GGUF has the two numbers of a rotated pair side by side, transformers half a head apart
                count = heads if theirs == "attn_q" else groups
                pairs = matrix.reshape(count, -1, 2, matrix.shape[-1])
                matrix = pairs.transpose(0, 2, 1, 3).reshape(matrix.shape)
            weights[f"model.layers.{layer}.{ours}.weight"] = matrix
    model = transformers.LlamaForCausalLM(config).eval()
    found = model.load_state_dict(
        {name: torch.from_numpy(np.array(matrix, np.float32)) for name, matrix in weights.items()}, strict=False
    )
    assert not found.unexpected_keys
    assert set(found.missing_keys) <= {"lm_head.weight"}
    model.tie_weights()
    return model


@pytest.mark.parametrize("style", ["chat", "plain"])
def test_both_engines_give_the_same_probabilities(style: Any) -> None:
    engine = NumpyEngine(PATH)
    vocabulary = engine.vocabulary
    tree = LabelTree(prompts.label_sequences(vocabulary, style, LABELS))
    parts = QuestionParts("What is the sentiment of this text?", "", "")
    made = [prompts.label_prompt(vocabulary, style, parts._replace(text=text), LABELS) for text in TEXTS]
    asked = [LabelQuestion(prompt, tree) for prompt in made]
    ours = np.exp([logs for _, logs in engine.label_logprobs(asked)])
    engine.close()
    reader = Reader(llama_from_gguf(PATH))
    assert reader.shares
    found = dict(reader.read(asked))
    theirs = np.exp(np.stack([np.asarray(found[number]) for number in range(len(made))]))
    assert theirs == pytest.approx(ours, abs=2e-3)
    assert np.ptp(ours, axis=0).max() > 0.05
