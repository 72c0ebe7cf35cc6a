"""`PCS`: the paper's class, as printed in its Listing 1."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, Self
from weakref import WeakKeyDictionary

from pcs_annotator.base.concurrency import run_sync
from pcs_annotator.base.errors import ConfigError, GoldError, TableError, warn_user
from pcs_annotator.core.ledger_address import LedgerAddress
from pcs_annotator.core.task import Task
from pcs_annotator.core.variant import ORIGINAL
from pcs_annotator.core.weights import Weights
from pcs_annotator.runs import learn
from pcs_annotator.runs.ask import CollectSettings
from pcs_annotator.runs.classic import asking, files
from pcs_annotator.runs.executors import Panel
from pcs_annotator.runs.own_objects import as_relations, is_relation
from pcs_annotator.runs.resolve_config import DEFAULT as PAPERS_RELATIONS
from pcs_annotator.tables.files import read_json, write_json
from pcs_annotator.version import __version__

DEFAULT_LEDGER = "ledger.db"


class LearnedTask(NamedTuple):
    """The task, and the weights learned for it."""

    task: Task
    weights: Weights


class Registered(NamedTuple):
    """The arguments of `register_mr`; `how` is None for a function, because a saved file cannot hold it."""

    how: asking.OwnRelation | None
    checked: bool | None


class PCS:
    """Labels texts with the paper's Perceived Confidence Score.

    Nothing is read, asked or learned before the first `annotate` or `fit`. No question is asked twice: every answer is
    kept in a ledger beside the dataset.

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
        relations: How texts are rewritten; by default the paper's voice, double negation and synonym.
        ledger: Where answers are kept; by default `<dataset>_ledger.db`, or `ledger.db` in the working folder.
        budget_usd: The most that one call of `fit`, `annotate` or `annotate_many` may cost.
        settings: How to ask: concurrency, retries, prices, checks. By default answers are labels, as in the paper;
            `CollectSettings(answers="graded")` keeps the probability of every label from models that give
            log-probabilities, which is worth more than all rewrites together, and suits `Optimizer="auto"`.
        seed: Random seed for learning.

    Examples:
        >>> PCS("Label the news as <label>Fake</label> or <label>Real</label>.", "news.csv", ["llama3-8b-8192"])
        PCS(dataset_path='news.csv', annotators=['llama3-8b-8192'], textmutator=None, Optimizer='LR', not fitted)
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
        relations: Sequence[asking.OwnRelation] | None = None,
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
        self._relations = tuple(as_relations(PAPERS_RELATIONS if relations is None else relations))
        self._own: dict[str, Registered] = {}
        self._keys = asking.Secrets(
            GROQ_API_KEY=GROQ_API_KEY or "",
            OPENAI_API_KEY=OPENAI_API_KEY or "",
            ANTHROPIC_API_KEY=ANTHROPIC_API_KEY or "",
            HUGGINGFACE_API_KEY=HUGGINGFACE_API_KEY or "",
        )
        self._learned: LearnedTask | None = None
        self._loaded_from = ""
        self._locks: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()

    def __repr__(self) -> str:
        shown = {
            "dataset_path": None if self.dataset_path is None else os.fspath(self.dataset_path),
            "annotators": asking.annotator_names(self.annotators) if self.annotators else [],
            "textmutator": None if self.textmutator is None else asking.annotator_names([self.textmutator])[0],
            "Optimizer": self.Optimizer,
        }
        listed = ", ".join(f"{name}={value!r}" for name, value in shown.items())
        return f"{type(self).__name__}({listed}, {'not fitted' if self._learned is None else 'fitted'})"

    def __getstate__(self) -> dict[str, Any]:
        # keys must not get into pickles; a lock belongs to an event loop of this process
        state = {name: value for name, value in vars(self).items() if name not in ("_keys", "_locks")}
        return {**state, "settings": replace(self.settings, environment=None)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _keys=asking.Secrets(), _locks=WeakKeyDictionary())

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
        given = [one if isinstance(one, str) else one.name for one in self._relations]
        return (ORIGINAL, *(name for name in given if name != ORIGINAL), *self._own)

    def register_mr(self, name: str, function_or_prompt: asking.OwnRelation, *, checked: bool | None = None) -> None:
        """Add your own relation: texts are rewritten with it too, and it gets a weight.

        Args:
            name: Its name in `weights.by_relation`; in files it is the next `mr`.
            function_or_prompt: A function (sync or async) that returns the rewritten text, or None if it does not
                apply; or a prompt for the textmutator, optionally with `{text}` as placeholder.
            checked: Whether rewrites must pass the meaning checks; by default only those of a prompt must.

        Raises:
            ConfigError: The name is taken, or a prompt is given and there is no textmutator.
        """
        self._refuse_name(name)
        if isinstance(function_or_prompt, str):
            if not function_or_prompt.strip():
                raise ConfigError(f"relation {name!r}: the prompt is empty: say how to rewrite a text")
            if self.textmutator is None:
                raise ConfigError(f"relation {name!r} is a prompt, which needs a model: name one as textmutator")
        elif is_relation(function_or_prompt):
            if function_or_prompt.name != name:
                raise ConfigError(f"the relation is named {function_or_prompt.name!r}: register it under that name")
        elif not callable(function_or_prompt):
            raise ConfigError(
                f"relation {name!r}: give a function that takes a text, or a prompt, not {function_or_prompt!r}"
            )
        self._own[name] = Registered(function_or_prompt, checked)
        if not self._loaded_from:
            self._learned = None

    def fit(self) -> Self:
        """Read the dataset, ask about it if `generate_annotations` is set, and learn the weights."""
        return run_sync(self.afit)

    async def afit(self) -> Self:
        """Async version of `fit`."""
        async with self._lock():
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
        given = _texts(texts)
        learned = await self._ready()
        if not given:
            return []
        asked = await asking.ask_texts(self._panel(learned.task), given)
        asked.warn_unanswered()
        asked.warn_silent()
        return asking.scores_by_label(asked.votes, learned.weights)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write prompt, labels, models, relations and weights as JSON, fitting first if needed; keys are not saved.

        Objects and functions are saved by name only.
        """
        learned = run_sync(self._ready)
        objects = {one.name: Registered(one, None) for one in self._relations if not isinstance(one, str)}
        models = zip(asking.annotator_names(self.annotators), map(_name_or_none, self.annotators), strict=True)
        values = {
            "version": __version__,
            "prompt": learned.task.instruction,
            "labels": list(learned.task.labels),
            "annotators": [{"name": name, "model": model} for name, model in models],
            "textmutator": _name_or_none(self.textmutator),
            "own_textmutator": self.textmutator is not None and not isinstance(self.textmutator, str),
            "relations": [one for one in self._relations if isinstance(one, str)],
            "own": {
                name: {"prompt": _name_or_none(one.how), "checked": one.checked}
                for name, one in {**objects, **self._own}.items()
            },
            "weights": learned.weights.to_dict(),
            "Optimizer": self.Optimizer,
        }
        write_json(Path(path), values)

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        *,
        annotators: Sequence[object] | None = None,
        textmutator: object | None = None,
        **more: Any,
    ) -> Self:
        """Load what `save` wrote, ready to annotate; the dataset is not needed.

        Args:
            path: The saved file.
            annotators: The same models again, if they are objects or functions rather than names.
            textmutator: The same for the model that rewrites.
            more: Keys, `ledger`, `budget_usd` and `settings`, as for the constructor; the ledger is `ledger.db` in the
                working folder unless another is named.
        """
        try:
            values = read_json(Path(path))
            learned = LearnedTask(Task(values["prompt"], values["labels"]), Weights.from_dict(values["weights"]))
            own = {name: Registered(entry["prompt"], entry["checked"]) for name, entry in values["own"].items()}
            models = {entry["name"]: entry["model"] for entry in values["annotators"]}
            known = {"Optimizer": values["Optimizer"], "relations": values["relations"]}
            rewriter, is_object = values["textmutator"], values["own_textmutator"]
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise TableError(f"{path} was not written by PCS.save: name another file, or save again") from error
        if is_object and textmutator is None:
            raise ConfigError(f"{path}: the textmutator is an object, not saved: pass textmutator=…")
        chosen = _annotators(path, models, annotators)
        made = cls(
            learned.task.instruction, None, chosen, rewriter if textmutator is None else textmutator, **known, **more
        )
        made._own, made._learned, made._loaded_from = own, learned, os.fspath(path)
        return made

    def _known(self) -> LearnedTask:
        if self._learned is None:
            raise ConfigError("not fitted yet: call fit() first")
        return self._learned

    def _refuse_name(self, name: str) -> None:
        if not isinstance(name, str) or not name.strip() or {"|", "+", "\n"} & set(name):
            raise ConfigError(f"{name!r} is not a valid relation name: use a word without | and +")
        awaited = name in self._own and self._own[name].how is None
        if self._loaded_from and not awaited:
            raise ConfigError(
                f"{self._loaded_from} has no weight for a relation {name!r}: create a PCS with the dataset and fit it"
            )
        if name in self.relations and not awaited:
            raise ConfigError(f"there is already a relation {name!r}: choose another name")

    def _lock(self) -> asyncio.Lock:
        """Return the running loop's lock, so that concurrent callers fit only once."""
        return self._locks.setdefault(asyncio.get_running_loop(), asyncio.Lock())

    async def _ready(self) -> LearnedTask:
        if self._learned is None:
            async with self._lock():
                if self._learned is None:
                    self._learned = await self._learn()
        return self._learned

    def _panel(self, task: Task) -> Panel:
        """Return the models, relations and settings to ask with."""
        missing = [name for name, entry in self._own.items() if entry.how is None]
        if missing:
            raise ConfigError(f"relation {missing[0]!r} is a function, not saved: call register_mr with it again")
        own = [
            asking.own_relation(name, entry.how, entry.checked)
            for name, entry in self._own.items()
            if entry.how is not None
        ]
        given = [relation for relation in self._relations if relation != ORIGINAL]
        settings = self.settings
        if self.budget_usd is not None:
            settings = replace(settings, budget=replace(settings.budget, usd=self.budget_usd))
        return Panel(
            task=task,
            annotators=self.annotators,
            relations=(ORIGINAL, *given, *own),
            ledger=self._ledger_path(),
            settings=replace(
                settings,
                rewriter=self.textmutator or settings.rewriter,
                environment=asking.environment_with(self._keys, settings.environment),
            ),
        )

    def _ledger_path(self) -> LedgerAddress:
        if self.ledger is not None:
            return self.ledger if isinstance(self.ledger, str) else Path(self.ledger)
        return (
            Path(DEFAULT_LEDGER) if self.dataset_path is None else files.beside(Path(self.dataset_path), DEFAULT_LEDGER)
        )

    async def _learn(self) -> LearnedTask:
        if self._loaded_from:
            raise ConfigError(
                f"loaded from {self._loaded_from} without a dataset: create a PCS with dataset_path to fit"
            )
        if not isinstance(self.prompt, str) or not self.prompt.strip():
            raise ConfigError("the prompt is empty: say what to decide, as in 'Is this <label>Fake</label> or …'")
        optimiser = asking.optimiser_named(self.Optimizer)
        names = asking.annotator_names(self.annotators)
        if self.dataset_path is None:
            return self._unlearned(names)
        dataset = files.read_classic_dataset(Path(self.dataset_path), self.prompt)
        rows = dataset.rows(labelled=learn.needs_gold(optimiser))
        if not rows:
            raise GoldError(f"{dataset.name}: the column 'label' is empty: label some rows (30 are a start)")
        panel = self._panel(Task(self.prompt, dataset.labels))
        relations = asking.relation_names(panel)
        path = files.beside(Path(self.dataset_path), "annotations.csv")
        if self.generate_annotations:
            votes = await asking.ask_about(panel, dataset, rows, path)
        else:
            votes, rows = files.read_answers(path, dataset, rows, names, relations)
        gold = [dataset.gold[row] for row in rows]
        weights = await asyncio.to_thread(asking.learned_weights, votes, gold, optimiser, self.seed)
        return LearnedTask(panel.task, weights)

    def _unlearned(self, names: Sequence[str]) -> LearnedTask:
        task = Task(self.prompt, files.labels_of_prompt(self.prompt))
        warn_user("no dataset given, so all votes count the same")
        return LearnedTask(task, asking.equal_weights(names, asking.relation_names(self._panel(task))))


def _texts(texts: Sequence[str]) -> list[str]:
    if isinstance(texts, str):
        raise ConfigError("annotate_many takes a list of texts: use annotate for a single text")
    given = list(texts)
    for number, text in enumerate(given, 1):
        if not isinstance(text, str):
            raise ConfigError(
                f"text {number} is a {type(text).__name__}, not a str; for several texts use annotate_many"
            )
    return given


def _name_or_none(given: object) -> str | None:
    return given if isinstance(given, str) else None


def _annotators(
    path: str | os.PathLike[str], models: Mapping[str, str | None], given: Sequence[object] | None
) -> list[object]:
    """Return the given annotators, or else those with saved names; `models` are all that have weights."""
    if given is None:
        objects = [name for name, model in models.items() if model is None]
        if objects:
            raise ConfigError(f"{path}: the model {objects[0]!r} is an object, not saved: pass annotators=[…]")
        return list(models.values())
    if sorted(asking.annotator_names(given)) != sorted(models):
        raise ConfigError(f"{path} has weights for {', '.join(models)}: pass exactly these as annotators")
    return list(given)
