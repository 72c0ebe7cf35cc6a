"""`PCS`: the paper's class, as printed in its Listing 1."""

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, Self

from pcs_annotator.base.concurrency import run_sync
from pcs_annotator.base.errors import ConfigError, warn_user
from pcs_annotator.core.task import Task
from pcs_annotator.core.variant import ORIGINAL
from pcs_annotator.core.weights import Weights
from pcs_annotator.runs import classic_dataset as classic
from pcs_annotator.runs.ask import CollectSettings
from pcs_annotator.runs.executors import Panel
from pcs_annotator.runs.own_objects import RelationLike, as_relations, name_annotators
from pcs_annotator.runs.resolve_config import DEFAULT as PAPERS_RELATIONS
from pcs_annotator.runs.resolve_config import WITHOUT_REWRITER

DEFAULT_LEDGER = "ledger.db"


class LearnedTask(NamedTuple):
    """The task, and the weights learned for it."""

    task: Task
    weights: Weights


class Secrets(dict[str, str]):
    """Environment variables whose values are never shown."""

    def __repr__(self) -> str:
        return "<keys, not shown>"


class PCS:
    """Labels texts with the paper's Perceived Confidence Score.

    Nothing is read, asked or learned before the first `annotate` or `fit`. No question is asked twice: every answer is
    kept in a ledger beside the dataset. A fitted object can be pickled, without its keys.

    Args:
        prompt: What to decide; its `<label>` tags name the labels.
        dataset_path: A CSV file with the columns `label` and `text`; rows without a label are not used for learning.
            If None, all votes count the same.
        annotators: Models: the paper's bare names, `provider:model`, a URL, LangChain chat models, functions.
        textmutator: The model that rewrites texts; None or "" for rules, which call no model.
        GROQ_API_KEY: The key for Groq; by default taken from the environment, or from `.env` in the working folder.
        OPENAI_API_KEY: The same for OpenAI.
        ANTHROPIC_API_KEY: The same for Anthropic.
        HUGGINGFACE_API_KEY: The same for Hugging Face.
        generate_annotations: Whether to ask the models about the dataset and write the answers to
            `<dataset>_annotations.csv`. If False, the answers are read from that file.
        Optimizer: How weights are learned: `"LR"`, `"GA"`, or any other optimiser by its name.
        relations: How texts are rewritten; by default the paper's voice, double negation and synonym, or with rules
            case, frame and typo.
        ledger: Where answers are kept; by default `<dataset>_ledger.db`, or `ledger.db` in the working folder.
        budget_usd: The most that one call of `fit`, `annotate` or `annotate_many` may cost.
        settings: How to ask: concurrency, retries, prices, checks. By default answers are labels, as in the paper;
            `CollectSettings(answers="graded")` keeps the probability of every label from models that give
            log-probabilities, which is worth more than all rewrites together, and suits `Optimizer="auto"`.
        seed: Random seed for learning.
    """

    def __init__(  # noqa: PLR0913, PLR0917  # the paper's signature
        self,
        prompt: str,
        dataset_path: str | os.PathLike[str] | None = None,
        annotators: object | Sequence[object] = (),
        textmutator: object | None = None,
        GROQ_API_KEY: str | None = None,
        OPENAI_API_KEY: str | None = None,
        ANTHROPIC_API_KEY: str | None = None,
        HUGGINGFACE_API_KEY: str | None = None,
        generate_annotations: bool = False,
        Optimizer: str = "LR",
        *,
        relations: Sequence[RelationLike] | None = None,
        ledger: str | os.PathLike[str] | None = None,
        budget_usd: float | None = None,
        settings: CollectSettings | None = None,
        seed: int = 0,
    ) -> None:
        self.prompt = prompt
        self.dataset_path = dataset_path
        self.annotators = tuple(annotators) if isinstance(annotators, list | tuple) else (annotators,)
        self.textmutator = textmutator or None
        self.generate_annotations = generate_annotations
        self.Optimizer = Optimizer
        self.ledger = ledger
        self.budget_usd = budget_usd
        self.settings = settings or CollectSettings(answers="hard")
        self.seed = seed
        usual = PAPERS_RELATIONS if self.textmutator or self.settings.rewriter else WITHOUT_REWRITER
        chosen = as_relations(usual if relations is None else relations)
        self._relations: dict[str, RelationLike] = {ORIGINAL: ORIGINAL}
        self._relations |= {relation if isinstance(relation, str) else relation.name: relation for relation in chosen}
        # HF_TOKEN is the variable of Hugging Face that takes precedence
        keys = {"GROQ_API_KEY": GROQ_API_KEY, "OPENAI_API_KEY": OPENAI_API_KEY, "ANTHROPIC_API_KEY": ANTHROPIC_API_KEY}
        keys["HF_TOKEN"] = HUGGINGFACE_API_KEY
        self._keys = Secrets({name: key for name, key in keys.items() if key})
        self._learned: LearnedTask | None = None

    def __repr__(self) -> str:
        names = [annotator.name for annotator in name_annotators(self.annotators)]
        fitted = "not fitted" if self._learned is None else "fitted"
        return f"{type(self).__name__}({self.dataset_path!r}, annotators={names}, {fitted})"

    def __getstate__(self) -> dict[str, Any]:
        # keys must not get into pickles
        return {**vars(self), "_keys": Secrets(), "settings": replace(self.settings, environment=None)}

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels, in the order of the scores."""
        return tuple(self._known().task.labels)

    @property
    def weights(self) -> Weights:
        """The weight of each annotator (`by_annotator`) and each relation (`by_relation`)."""
        return self._known().weights

    @property
    def relations(self) -> tuple[str, ...]:
        """Names of the relations: the original text, then `mr1`, `mr2` and so on."""
        return tuple(self._relations)

    def register_mr(self, name: str, function_or_prompt: RelationLike) -> None:
        """Add your own relation: texts are rewritten with it too, and it gets a weight.

        It is a function (sync or async) that returns the rewritten text, or None if it does not apply; or a prompt for
        the textmutator, perhaps with `{text}`, whose rewrites must pass the meaning checks. In files, its name is the
        next `mr`.
        """
        if not isinstance(name, str) or not name.strip() or {"|", "+", "\n"} & set(name):
            raise ConfigError(f"{name!r} is not a valid relation name: use a word without | and +")
        if name in self._relations:
            raise ConfigError(f"there is already a relation {name!r}: choose another name")
        if isinstance(function_or_prompt, str) and self.textmutator is None:
            raise ConfigError(f"relation {name!r} is a prompt, which needs a model: name one as textmutator")
        self._relations[name] = classic.own_relation(name, function_or_prompt)
        self._learned = None

    def fit(self) -> Self:
        """Read the dataset, ask about it if `generate_annotations` is set, and learn the weights."""
        return run_sync(self.afit)

    async def afit(self) -> Self:
        """Async version of `fit`."""
        self._learned = await self._learn()
        return self

    def annotate(self, text: str) -> dict[str, float]:
        """Return label → score for a text; the scores sum to 1."""
        return run_sync(lambda: self.aannotate(text))

    async def aannotate(self, text: str) -> dict[str, float]:
        """Async version of `annotate`."""
        return (await self.aannotate_many([text]))[0]

    def annotate_many(self, texts: Sequence[str]) -> list[dict[str, float]]:
        """Return label → score for each text; all questions are asked concurrently."""
        return run_sync(lambda: self.aannotate_many(texts))

    async def aannotate_many(self, texts: Sequence[str]) -> list[dict[str, float]]:
        """Async version of `annotate_many`."""
        if isinstance(texts, str):
            raise ConfigError("annotate_many takes a list of texts: use annotate for a single text")
        listed = list(texts)
        for number, text in enumerate(listed, 1):
            if not isinstance(text, str):
                raise ConfigError(f"text {number} is a {type(text).__name__}: for several texts use annotate_many")
        if self._learned is None:
            await self.afit()
        learned = self._known()
        return await classic.score_texts(self._panel(learned.task), listed, learned.weights)

    def _known(self) -> LearnedTask:
        if self._learned is None:
            raise ConfigError("not fitted yet: call fit() first")
        return self._learned

    def _panel(self, task: Task) -> Panel:
        relations = list(self._relations.values())
        ledger = self.ledger or DEFAULT_LEDGER
        if self.ledger is None and self.dataset_path is not None:
            ledger = classic.beside(Path(self.dataset_path), DEFAULT_LEDGER)
        settings = self.settings
        if self.budget_usd is not None:
            settings = replace(settings, budget=replace(settings.budget, usd=self.budget_usd))
        environment = classic.with_keys(settings.environment, self._keys)
        settings = replace(settings, rewriter=self.textmutator or settings.rewriter, environment=environment)
        address = ledger if isinstance(ledger, str) else Path(ledger)
        return Panel(task=task, annotators=self.annotators, relations=relations, ledger=address, settings=settings)

    async def _learn(self) -> LearnedTask:
        if not isinstance(self.prompt, str) or not self.prompt.strip():
            raise ConfigError("the prompt is empty: say what to decide, as in 'Is this <label>Fake</label> or …'")
        if not self.annotators:
            raise ConfigError("no models: name at least one model, as in annotators=['groq:llama-3.1-8b-instant']")
        if self.dataset_path is None:
            panel = self._panel(Task(self.prompt, classic.labels_of(self.prompt)))
            warn_user("no dataset given, so all votes count the same")
            return LearnedTask(panel.task, Weights.uniform(classic.no_votes(panel)))
        path = Path(self.dataset_path)
        dataset, labels = classic.read_classic_dataset(path, self.prompt)
        panel = self._panel(Task(self.prompt, labels))
        answers = classic.beside(path, "annotations.csv")
        weights = await classic.learn_weights(
            panel, dataset, answers, self.Optimizer, self.seed, self.generate_annotations
        )
        return LearnedTask(panel.task, weights)
