"""Measures `transformers:` models: graded votes of 4 variants of short texts, against one-by-one generation.

Run it with `.venv/bin/python -m benchmarks.transformers_speed`; it needs torch and transformers, and no network. It
makes its own model, with random weights and the shape of SmolLM2-135M (or 1.7B: `--size 1.7b`), and its own tokenizer;
`--model FOLDER` measures another one. On a GPU it asks all questions in less than 3 minutes; on a CPU a sample of them.

- *graded votes*: `ask` for all questions at once, as a run does with as many calls in flight. One reading of a question
  gives the probability of each label.
- *one by one*: `generate` for each question after the other, as in the examples of the transformers docs: the same
  system and user messages, asking for `<label>…</label>`, greedy, 8 new tokens, which such an answer takes.
- *a run*: the same questions through the asking engine with its ledger, 256 in flight.

On a CPU, processor time is measured rather than time on the clock, because others may use the machine.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaConfig, PreTrainedTokenizerFast

from pcs_annotator import Annotator, CollectSettings, Item, Task, collect
from pcs_annotator.asking.annotators.annotator import Question
from pcs_annotator.asking.annotators.prompt import build_messages
from pcs_annotator.core.chat import ChatModel, Request
from pcs_annotator.models import provider as sharing
from pcs_annotator.models.local.download import find_files
from pcs_annotator.models.local.in_process import TransformersModel
from pcs_annotator.models.local.transformers import pick_device, pick_dtype

# The shapes of SmolLM2-135M and SmolLM2-1.7B.
SHAPES = {
    "135m": {
        "hidden_size": 576,
        "intermediate_size": 1536,
        "num_hidden_layers": 30,
        "num_attention_heads": 9,
        "num_key_value_heads": 3,
    },
    "1.7b": {
        "hidden_size": 2048,
        "intermediate_size": 8192,
        "num_hidden_layers": 24,
        "num_attention_heads": 32,
        "num_key_value_heads": 32,
    },
}
CHAT = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
TASKS = [
    Task("What is the sentiment of this text?", ["negative", "neutral", "positive"]),
    Task("What is the sentiment of this text?", ["positive", "neutral", "negative"]),
    Task("How does the writer of this text feel about what is described?", ["negative", "neutral", "positive"]),
]
SUBJECTS = ["the train", "my new phone", "this restaurant", "the second season", "our landlord", "the weather up here"]
VERBS = [
    "was late again",
    "works better than I hoped",
    "made me laugh",
    "costs far too much",
    "is back",
    "saved my day",
]
ENDS = ["and I still cannot believe it", "but who cares", "thanks to everyone who helped", "as always on a Monday"]
NEW_TOKENS = 8


class Speed(NamedTuple):
    """Questions, and the seconds that they took."""

    questions: int
    seconds: float

    @property
    def rate(self) -> float:
        """Questions per second."""
        return self.questions / self.seconds


def short_texts(count: int) -> list[tuple[str, str]]:
    """Texts of 10 to 40 words, each with a rewrite: its sentences in another order."""
    rng = random.Random(17)
    texts = []
    for number in range(count):
        sentences = [
            f"{rng.choice(SUBJECTS)} {rng.choice(VERBS)} {rng.choice(ENDS)}.".capitalize()
            for _ in range(rng.randint(1, 4))
        ]
        texts.append((f"{' '.join(sentences)} #{number}", f"#{number} {' '.join(sentences[::-1])}"))
    return texts


def variants(texts: Sequence[tuple[str, str]]) -> list[tuple[Task, str]]:
    """Four questions about each text: as it is, rewritten, with the labels in another order, in other words."""
    return [
        question
        for text, rewrite in texts
        for question in ((TASKS[0], text), (TASKS[0], rewrite), (TASKS[1], text), (TASKS[2], text))
    ]


def make_model(folder: Path, questions: Sequence[tuple[Task, str]], dtype: Any, size: str = "135m") -> None:
    """Save a model with random weights, and a tokenizer trained on the questions."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=4096,
        special_tokens=["<|endoftext|>", "<|im_start|>", "<|im_end|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    # as if the marker in each question were not among the texts that real tokenizers are trained on
    texts = [task.instruction + " " + text for task, text in questions]
    frame = "\n".join(message.content for message in build_messages(TASKS[0], "text"))
    tokenizer.train_from_iterator([*texts, *[frame] * 20], trainer)
    made = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<|im_end|>", pad_token="<|endoftext|>")
    made.chat_template = CHAT
    made.save_pretrained(folder)
    torch.manual_seed(0)
    config = LlamaConfig(
        **SHAPES[size],
        vocab_size=49152,
        max_position_embeddings=8192,
        tie_word_embeddings=True,
        eos_token_id=made.eos_token_id,
    )
    with torch.device(pick_device(None)):
        model = AutoModelForCausalLM.from_config(config, dtype=dtype)
    model.save_pretrained(folder)


def requests_for(questions: Sequence[tuple[Task, str]], model: ChatModel) -> list[Request]:
    made = [Annotator(model).question(task, text, model) for task, text in questions]
    return [one.request for one in made if isinstance(one, Question)]


async def graded(model: ChatModel, requests: Sequence[Request], clock: Any) -> Speed:
    begun = clock()
    await asyncio.gather(*(model.ask(request) for request in requests))
    return Speed(len(requests), clock() - begun)


async def run_of(model: ChatModel, texts: Sequence[str], clock: Any) -> Speed:
    """Ask the first task about texts as a run does: a vote for each, stored in a ledger."""
    items = [Item(id=str(number), text=text) for number, text in enumerate(texts)]
    with tempfile.TemporaryDirectory() as folder:
        begun = clock()
        await collect(
            TASKS[0],
            items,
            [Annotator(model)],
            ledger=Path(folder, "ledger.db"),
            settings=CollectSettings(in_flight=256),
        )
        return Speed(len(items), clock() - begun)


def one_by_one(folder: Path, questions: Sequence[tuple[Task, str]], device: Any, clock: Any) -> Speed:
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=pick_dtype(None, device)).to(device).eval()

    def ask(task: Task, text: str) -> str:
        turns = [{"role": said.role, "content": said.content} for said in build_messages(task, text)]
        inputs = tokenizer.apply_chat_template(
            turns, add_generation_prompt=True, return_tensors="pt", return_dict=True
        ).to(device)
        with torch.inference_mode():
            answer = model.generate(**inputs, do_sample=False, max_new_tokens=NEW_TOKENS, min_new_tokens=NEW_TOKENS)
        return str(tokenizer.decode(answer[0, inputs["input_ids"].shape[1] :]))

    for task, text in questions[:2]:
        ask(task, text)
    begun = clock()
    for task, text in questions:
        ask(task, text)
    return Speed(len(questions), clock() - begun)


async def measure(folder: Path, questions: Sequence[tuple[Task, str]], rows: int, device: Any, clock: Any) -> None:
    model = TransformersModel(find_files(str(folder), {}), {"PCS_DEVICE": str(device)})
    requests = requests_for(questions, model)
    replies = [await model.ask(request) for request in requests[:4]]
    await graded(model, requests[: 1024 if device.type != "cpu" else 8], clock)
    lengths = [reply.usage.input_tokens or 0 for reply in replies]
    ((runner, _),) = sharing._shared.values()
    print(f"  tokens of the first questions {lengths}; shared start kept: {runner.engine().reader.shares}", flush=True)
    many = await graded(model, requests, clock)
    print(f"  graded votes     {many.rate:9.1f} questions/s ({many.questions} in {many.seconds:.1f} s)", flush=True)
    texts = [text for _, text in questions[:: 1 if device.type != "cpu" else 4]]
    try:
        run = await run_of(model, texts, clock)
        print(f"  a run            {run.rate:9.1f} questions/s ({run.questions} in {run.seconds:.1f} s)", flush=True)
    except ModuleNotFoundError as error:
        print(f"  a run            skipped: {error}")
    await model.close()
    alone = one_by_one(folder, questions[: rows * 4], device, clock)
    print(f"  one by one       {alone.rate:9.1f} questions/s ({alone.questions} in {alone.seconds:.1f} s)")
    print(f"  graded votes are {many.rate / alone.rate:.1f} × as fast as one-by-one generation (wanted: 8)")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--model", type=Path, help="folder of a model; by default one with random weights")
    parser.add_argument("--size", choices=list(SHAPES), default="135m", help="its size")
    parser.add_argument("--texts", type=int, help="how many texts (4 questions each)")
    options = parser.parse_args()
    device = pick_device(None)
    cpu = device.type == "cpu"
    clock = time.process_time if cpu else time.perf_counter
    questions = variants(short_texts(options.texts or (24 if cpu else 1000)))
    name = "CPU" if cpu else torch.cuda.get_device_name()
    with tempfile.TemporaryDirectory() as made:
        folder = options.model or Path(made, f"random-{options.size}")
        if options.model is None:
            make_model(folder, questions, pick_dtype(None, device), options.size)
        size = sum(file.stat().st_size for file in folder.glob("*.safetensors")) / pick_dtype(None, device).itemsize
        print(
            f"{name}, {torch.get_num_threads()} threads, {folder.name}: {size / 1e9:.2f}B, {pick_dtype(None, device)}"
        )
        asyncio.run(measure(folder, questions, 6 if cpu else 50, device, clock))
    return 0


if __name__ == "__main__":
    sys.exit(main())
