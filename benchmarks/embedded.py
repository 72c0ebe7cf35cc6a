"""Measures the embedded model: speed, fidelity to its weights, memory and quality, compared with `xllamacpp`.

Run it with `.venv/bin/python -m benchmarks.embedded`; it takes a few minutes. Both engines get the same questions
alternately, so that other load on the machine slows both; the ratio is steadier than the rates. Prompt wordings were
chosen on the even rows of the tweets and of the invented news; quality is reported on the odd rows of the tweets,
and on all news.
"""

from __future__ import annotations

import asyncio
import csv
import os
import resource
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

# One BLAS thread, set before numpy is imported: the embedded model runs several batches at once instead.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

from pcs_annotator import Annotator, Task
from pcs_annotator.asking.annotators.annotator import Question
from pcs_annotator.core.arrays import Codes, Floats
from pcs_annotator.core.chat import ChatModel, Reply, Request
from pcs_annotator.judging.metrics.figures import auroc
from pcs_annotator.models.local import llama
from pcs_annotator.models.local.download import pull
from pcs_annotator.models.local.embedded import (
    NumpyEngine,
    encoded,
    label_prompt,
    label_sequences,
    parts_of,
    processors,
)
from pcs_annotator.models.local.in_process import EmbeddedModel
from pcs_annotator.models.local.label_tree import Floats as Floats32
from pcs_annotator.models.local.label_tree import LabelTree
from pcs_annotator.models.local.runner import Style
from tests.judging.metrics.alone import accuracy

DATA = Path(os.environ.get("PCS_SHARED_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))
TWEETS = DATA / "texts" / "tweets_sentiment.csv"
TURNS, PER_TURN, THEIRS_PER_TURN = 5, 32, 8
STYLES: tuple[Style, ...] = ("chat", "plain")
NEWS = {
    "politics": """Lawmakers passed the new housing bill after a night of debate in the lower chamber.
The prime minister of Norrland will face a vote of no confidence next week.
Voters in three provinces go to the polls on Sunday to choose new governors.
The opposition accused the minister of hiding a report on prison conditions.
Diplomats from both countries met in secret to prepare a ceasefire agreement.
A former mayor announced that she will run for the senate in the spring.
Parliament rejected the government's plan to raise the pension age.
The president signed an order that limits how long officials may stay in office.
Thousands marched to the capital to demand a new election law.
The foreign secretary recalled the ambassador in protest against the border closure.
The coalition broke apart over the question of who should lead the interior ministry.
A court ruled that the party's campaign funds had been raised unlawfully.""",
    "sports": """The home side scored twice in the last five minutes to win the cup.
A broken ankle will keep the striker out for the rest of the season.
The young swimmer took half a second off the world record in the final.
The coach was sacked after the team lost its seventh match in a row.
Heavy rain stopped play at the tennis tournament for a second day.
The defending champions were beaten in overtime by a team from the second division.
She won gold in the marathon with a sprint in the last hundred metres.
The goalkeeper saved three penalties and sent his club to the semi-final.
The league fined two players for a fight during Saturday's basketball game.
The cyclist kept the yellow jersey after a hard stage in the mountains.
The batsman reached his century before lunch on the opening day.
The club signed a midfielder on loan until the end of the season.""",
    "business": """Shares in the carmaker fell nine percent after it cut its profit forecast.
The central bank raised interest rates by a quarter of a point.
The two retail chains agreed to merge in a deal worth four billion.
Unemployment fell to its lowest level in ten years, the labour office said.
The airline will cut two thousand jobs to bring down its costs.
Oil prices climbed as traders feared lower supplies this winter.
The brewer reported record sales in Asia for the third quarter.
Investors sold their bonds after inflation came in higher than expected.
The furniture maker filed for bankruptcy and will close all its shops.
The bank agreed to pay a fine of sixty million for misleading its customers.
Exports grew by four percent in May, helped by a weaker currency.
The startup raised fifty million from investors ahead of its stock market listing.""",
    "science": """Astronomers found a planet that circles two stars at once.
A new microscope lets researchers watch single molecules move inside living cells.
Engineers built a battery that charges in under five minutes.
The probe landed on the comet and sent its first pictures back to Earth.
Biologists discovered a frog species thought to be extinct for a century.
The software update fixes a flaw that let attackers read encrypted messages.
Fossils from the desert show that the dinosaur had feathers on its tail.
Physicists measured the mass of the particle more precisely than ever before.
A vaccine tested on mice protected them against four strains of the virus.
Researchers trained a computer program to predict how proteins fold.
The telescope recorded light from a galaxy that formed soon after the big bang.
Chemists made a plastic that breaks down in sea water within weeks.""",
}
SENTIMENT = Task(labels=["negative", "neutral", "positive"], instruction="What is the sentiment of this tweet?")
TOPIC = Task(labels=list(NEWS), instruction="What is the topic of this news item?")


class Items(NamedTuple):
    """Texts with gold for one task."""

    name: str
    task: Task
    texts: list[str]
    gold: Codes


def news_items() -> Items:
    texts = [text for lines in NEWS.values() for text in lines.splitlines()]
    gold = np.repeat(np.arange(len(NEWS), dtype=np.int8), [len(lines.splitlines()) for lines in NEWS.values()])
    return Items("news topics", TOPIC, texts, gold)


def tweet_items() -> Items | None:
    """The half of the tweets that was not used to choose wordings; None if there are no tweets."""
    if not TWEETS.is_file():
        print(f"The development data is not at {DATA} (set PCS_SHARED_DATA): the tweets are skipped.")
        return None
    with TWEETS.open(newline="") as file:
        rows = list(csv.DictReader(file))[1::2]
    gold = np.array([list(SENTIMENT.labels).index(row["label"]) for row in rows], np.int8)
    return Items("tweets", SENTIMENT, [row["text"] for row in rows], gold)


def requests_for(items: Items, model: ChatModel) -> list[Request]:
    made = [Annotator(model).question(items.task, text, model) for text in items.texts]
    return [one.request for one in made if isinstance(one, Question)]


def logs_of(reply: Reply) -> list[float]:
    """Return the log-probabilities of the labels, in order."""
    assert isinstance(reply.logprobs, tuple)
    return [log for _, log in reply.logprobs[0].alternatives]


async def ask_all(model: ChatModel, requests: Sequence[Request]) -> list[Reply]:
    return list(await asyncio.gather(*(model.ask(request) for request in requests)))


async def speed(items: Items) -> None:
    """Print the rates of our engine and of xllamacpp, with our short prompt."""
    ours = EmbeddedModel(style="plain")
    requests = requests_for(items, ours)
    path = pull("smollm2")
    engine = NumpyEngine(path)
    runs: dict[str, Callable[[int, int], Any]] = {"embedded": lambda start, end: ask_all(ours, requests[start:end])}
    same_prompt = None
    if find_spec("xllamacpp") is not None:
        asked = same_prompt = SamePrompt(path, engine)
        runs["xllamacpp, the embedded model's prompt"] = lambda start, end: asyncio.to_thread(
            asked.ask_all, requests[start:end]
        )
    else:
        print("xllamacpp is not installed: nothing to compare with")
    rates: dict[str, list[float]] = {name: [] for name in runs}
    for work in runs.values():  # load the model, and read the shared start of the prompts
        await work(len(requests) - 2, len(requests))
    for turn in range(TURNS):
        for name, work in runs.items():
            start = turn * PER_TURN % (len(requests) - PER_TURN)
            count = PER_TURN if name == "embedded" else THEIRS_PER_TURN
            begun = time.perf_counter()
            await work(start, start + count)
            rates[name].append(count / (time.perf_counter() - begun))
    print(f"\nSpeed: medians of {TURNS} turns on {processors()} processors, {items.name}")
    ours_rate = statistics.median(rates["embedded"])
    for name, values in rates.items():
        rate = statistics.median(values)
        print(f"  {name:40s} {rate:6.2f} questions/s   embedded is {ours_rate / rate:4.1f} ×")
    if same_prompt is not None:
        await agreement(ours, same_prompt, requests[: 8 * THEIRS_PER_TURN])
    await ours.close()


def gemm_speed(batch: int, rows: int, inner: int, columns: int, seconds: float = 2.0) -> float:
    """Return the GFLOP/s of products of this shape, as many at a time as there are processors."""
    left, right = np.ones((batch, rows, inner), np.float32), np.ones((inner, columns), np.float32)

    def multiply() -> int:
        until, times = time.perf_counter() + seconds, 0
        while time.perf_counter() < until:
            left @ right
            times += 1
        return times

    with ThreadPoolExecutor(processors()) as pool:
        times = sum(work.result() for work in [pool.submit(multiply) for _ in range(processors())])
    return times * 2 * batch * rows * inner * columns / seconds / 1e9


async def roofline(items: Items, count: int = 200) -> None:
    """Print what products of matrices allow, and how much of that the embedded model reaches."""
    model = EmbeddedModel(style="plain")
    requests, product, done = requests_for(items, model)[: count + 20], llama._product, [0.0, 0.0, 0.0]

    def counted(rows: Floats32, matrix: Floats32, tile: int) -> Floats32:
        begun = time.perf_counter()
        found = product(rows, matrix, tile)
        for at, number in enumerate((len(rows), len(rows) + -len(rows) % tile, time.perf_counter() - begun)):
            done[at] += number * (1 if at == 2 else 2 * matrix.size / 1e9)
        return found

    await ask_all(model, requests[count:])
    with patch.object(llama, "_product", counted):
        begun, cpu = time.perf_counter(), time.process_time()
        await ask_all(model, requests[:count])
        wall, cpu = time.perf_counter() - begun, time.process_time() - cpu
    await model.close()
    needed, computed, seconds = done
    print(f"\nRoofline: {count / wall:.1f} questions/s, each {computed / count:.1f} GFLOP ({needed / computed:.0%} "
          f"needed), so {computed / wall:.0f} GFLOP/s; {seconds / cpu:.0%} of the CPU time is products")  # fmt: skip
    print(f"  products alone, of large matrices {gemm_speed(1, 1024, 1024, 1024):.0f} GFLOP/s, of the model's shapes "
          f"{gemm_speed(6, llama.TILE, 576, 3072):.0f} GFLOP/s")  # fmt: skip


class SamePrompt:
    """Llama.cpp with the embedded model's prompt in plain style, and a cache for the start of the prompt."""

    def __init__(self, path: Path, engine: NumpyEngine) -> None:
        import xllamacpp  # not in `dev`: nothing but this needs it

        params = xllamacpp.CommonParams()
        params.model.path = str(path)
        params.n_ctx, params.n_parallel, params.verbosity = 2048, 1, -1
        params.warmup = params.ui = params.endpoint_slots = False
        self._server = xllamacpp.Server(params)
        self._vocabulary = engine.vocabulary

    def ask_all(self, requests: Sequence[Request]) -> list[list[float]]:
        """Return the answers, one after the other."""
        return [self.ask(request) for request in requests]

    def ask(self, request: Request) -> list[float]:
        """Return the log-probabilities of the labels' first tokens, among the likeliest thousand."""
        assert request.constraint is not None
        labels = request.constraint.choices
        prompt = label_prompt(self._vocabulary, "plain", parts_of(request), labels)
        payload = {
            "prompt": self._vocabulary.decode(prompt.head) + self._vocabulary.decode(prompt.tail),
            "n_predict": 1,
            "n_probs": 1000,
            "temperature": 0.0,
            "cache_prompt": True,
        }
        first = self._server.handle_completions(payload)["choices"][0]["logprobs"]["content"][0]["top_logprobs"]
        found = {entry["id"]: entry["logprob"] for entry in first}
        firsts = [sequence[0] for sequence in label_sequences(self._vocabulary, "plain", labels)]
        return [found.get(token, -20.0) for token in firsts]


async def agreement(ours: EmbeddedModel, theirs: SamePrompt, requests: Sequence[Request]) -> None:
    engine = NumpyEngine(pull("smollm2"))
    asked = [encoded(engine.vocabulary, request, "plain") for request in requests]
    mine = np.array([engine._read([(one.prompt, LabelTree(one.labels))])[0] for one in asked])
    raw = np.array(await asyncio.to_thread(theirs.ask_all, requests))
    other = raw - np.logaddexp.reduce(raw, axis=1, keepdims=True)
    same = (mine.argmax(axis=1) == other.argmax(axis=1)).mean()
    print(f"  same answer as xllamacpp on the same prompts: {same:.3f} of {len(mine)}")
    print(f"  median difference of log-probabilities: {np.median(np.abs(mine - other)):.3f} (it rounds to 8 bits)")
    replies = await ask_all(ours, requests)
    alone = [(await ours.ask(request)).logprobs for request in requests[:12]]
    alike = [one == reply.logprobs for one, reply in zip(alone, replies, strict=False)]
    print(f"  same to the last bit alone and in a batch: {sum(alike)} of {len(alike)}")


async def quality(items: Items) -> None:
    """Print accuracy and AUROC of each style, and of the two styles together."""
    print(f"\nQuality: {items.name}, n = {len(items.texts)}, {len(items.task.labels)} labels, 95 % bootstrap intervals")
    by_style: dict[str, Floats] = {}
    rng = np.random.default_rng(0)
    for style in STYLES:
        model = EmbeddedModel(style=style)
        replies = await ask_all(model, requests_for(items, model))
        by_style[model.name] = np.exp([logs_of(reply) for reply in replies])
        await model.close()
    by_style["both styles, averaged"] = np.mean(list(by_style.values()), axis=0)
    for name, scores in by_style.items():
        figures = []
        for metric in (accuracy, auroc):
            drawn = [rng.integers(len(scores), size=len(scores)) for _ in range(500)]
            low, high = np.quantile([metric(scores[rows], items.gold[rows]) for rows in drawn], (0.025, 0.975))
            figures.append(f"{metric(scores, items.gold):.3f} [{low:.3f}, {high:.3f}]")
        shares = np.bincount(scores.argmax(axis=1), minlength=scores.shape[1]) / len(scores)
        print(f"  {name:34s} accuracy {figures[0]}  AUROC {figures[1]}  answers {np.round(shares, 2).tolist()}")


def main() -> int:
    news, tweets = news_items(), tweet_items()
    begun = time.perf_counter()
    asyncio.run(quality(news))
    if tweets is not None:
        asyncio.run(quality(tweets))
    # Measured before xllamacpp is loaded, so that it is the peak of the embedded model alone.
    unit = 1 if sys.platform == "darwin" else 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1024**2
    print(f"\nPeak memory of the process with the embedded model: {peak:.0f} MB")
    asyncio.run(roofline(tweets or news))
    asyncio.run(speed(tweets or news))
    print(f"\n{time.perf_counter() - begun:.0f} s in all")
    return 0


if __name__ == "__main__":
    sys.exit(main())
