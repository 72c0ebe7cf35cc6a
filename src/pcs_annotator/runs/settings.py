"""Every setting of a run, written once: its key in `pcs.toml`, type, default, meaning and command-line option.

The classes are the table, and their docstrings say what each setting means. `pcs.toml` is checked against it; options,
help, documentation, and signatures and docstrings of Python functions are made from it.
"""

from collections.abc import Callable, Mapping, MutableMapping
from dataclasses import dataclass, field
from functools import cache
from inspect import signature
from typing import Any, Literal, TypeVar, get_type_hints

from pcs_annotator.base.fields import TABLES, Setting, SettingsSection, setting, settings_in
from pcs_annotator.core.numbers import steps_of
from pcs_annotator.core.passages import VALUE, Extraction, Format
from pcs_annotator.core.variant import Expectation

T = TypeVar("T")
LIMITS = ("budget_usd", "budget_per_day_usd", "max_calls", "max_tokens", "prices")
EXECUTION = ("executor", "workers", "ray_address", "max_per_second")
SPENDING = (*LIMITS, *EXECUTION)  # settings of a run that may be others for new texts


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSettings(SettingsSection):
    """The section `[task]`: what the models decide.

    Attributes:
        instruction: What to decide, in one sentence; default: a question made from the labels.
        labels: The labels; default: those in the gold column.
        meanings: What labels mean, in a table `[task.meanings]` with a text per label; only where a name is not enough.
        wordings: Other instructions that ask for the same decision, for the relations `wording`, `wording:2` and so on;
            after them, or if there are none, sentences are put around the instruction.
        examples: Texts with their labels for every prompt, each in a table `[[task.examples]]` with `text`, `label` and
            perhaps `why`. Rows with the same text are not learned from: they would be too easy.
        examples_from: A table of examples with the columns text, label and perhaps why; or gold, to show with each text
            the 8 gold rows most like it, never the text itself (gold:4 for 4). In pcs.toml, a relative path starts from
            its folder.
        nearest: Show only so many of your examples with each text, those most like it; 0 shows all of them.
        candidates: Ask about N labels per text, those most like it by name, meaning and known texts; 0 asks about 30
            if there are more than 50 labels, else about all.
        known: Texts with their labels by which candidates are found, as in `[[task.examples]]`; default: the gold rows
            when the run starts.
        definitions: A sentence per label, in a table `[task.definitions]`, shown under the relation `definitions` only;
            default: a model writes them once, from the question, the labels and a few gold rows.
        defined_by: Hashes of the gold rows that it was shown, which are not learned from; a run records them.
        codebook: A table with a row per label: label, definition, and perhaps example, example 2, … and instruction.
        kind: What a text gets: one of the labels (one); any number of them (many), which needs `[variables.NAME]`; the
            median of labels listed from the lowest to the highest (scale); or one of the paths such as economy/taxes,
            perhaps only its parent (tree); a number in a range, 0..120 or 0..1:0.01 (number); quotations of the types
            in labels (passages), or a value that it states (value), which need `[variables.NAME]`. Models are not told
            of the order.
        format: What a value is, a text, a number or a date, so that equal ones are known as such.
        match: When a passage is right: if it has half of its characters in common with a gold one of its type
            (overlap), or the same borders (exact).
    """

    instruction: str = setting("", "--instruction TEXT")
    labels: tuple[str, ...] = setting((), "--labels A,B")
    meanings: Mapping[str, str] = field(default_factory=dict)
    wordings: tuple[str, ...] = ()
    examples: tuple[Mapping[str, str], ...] = ()
    examples_from: str = setting("", "--examples FILE|gold", name="examples")
    nearest: int = setting(0, least=0)
    candidates: int = setting(0, least=0)
    known: tuple[Mapping[str, str], ...] = ()
    codebook: str = setting("", "--codebook FILE")
    definitions: Mapping[str, str] = field(default_factory=dict)
    defined_by: tuple[str, ...] = ()
    kind: Literal["one", "many", "scale", "tree", "pair", "number", "passages", "value"] = setting("one", "--kind")
    format: Format = "text"
    match: Literal["overlap", "exact"] = "overlap"

    def __post_init__(self) -> None:
        SettingsSection.__post_init__(self)
        if self.kind == "number" and self.labels:
            object.__setattr__(self, "labels", steps_of(self.labels))
        if self.kind == "value" and not self.labels:
            object.__setattr__(self, "labels", (VALUE,))

    @property
    def extraction(self) -> Extraction | None:
        """What is looked for in texts; None if texts get labels."""
        if self.kind == "value":
            return Extraction((VALUE,), self.format)
        return Extraction(tuple(self.labels), exact=self.match == "exact") if self.kind == "passages" else None


@dataclass(frozen=True, slots=True, kw_only=True)
class DataSettings(SettingsSection):
    """The section `[data]`: the columns of the data file, and how it is read.

    Attributes:
        text_column: The column of texts; default: `text` or similar, or the only column.
        pair: Two columns of texts to compare: labels are a, b and tie, or others in this order; `order` swaps them.
        id_column: The column of ids, or `row` to number the rows, unless a column has that name; default: `id`, or row
            numbers.
        gold_column: The column of gold labels, may be partly empty; default: `gold`, what most people say in columns
            of `coders`, `label` or `labels`.
        coders: One column per human coder; default: those called `gold_<name>`.
        encoding: The encoding of a text file, such as windows-1252; default: UTF-8 if it fits, else a guess.
        sheet: The sheet of a workbook, by name or number; default: the first with a header and rows.
    """

    text_column: str = setting("", "--text-column NAME")
    pair: tuple[str, ...] = setting((), "--pair A,B")
    id_column: str = setting("", "--id-column NAME")
    gold_column: str = setting("", "--gold-column NAME")
    coders: tuple[str, ...] = setting((), "--coders A,B")
    encoding: str = setting("", "--encoding NAME")
    sheet: str = setting("", "--sheet NAME")


@dataclass(frozen=True, slots=True, kw_only=True)
class AskSettings(SettingsSection):
    """The section `[ask]`: which models are asked, how, and at what cost.

    Attributes:
        models: Models to ask, as provider:model; at least one.
        objects: Those of them that are Python functions or objects; a run records it.
        answers: Keep the probability of every label, from models that give log-probabilities (graded), or the label
            only (hard); auto is graded, except that hard answers already paid for are kept.
        questions: Relations to ask a model under, in a table `[ask.questions]` with a list per `provider:model`; a
            model that is not listed is asked under all.
        together: Ask about all variables of a codebook in one call; otherwise, at a higher price, in one for each.
        draws: How many times each question is asked.
        concurrency: Maximum number of simultaneous calls per model; default: 64.
        executor: Where calls are made: live from this machine (local), in batches at half the price that take up to a
            day per wave (batch), or from the machines of a Ray cluster (ray).
        workers: Number of workers on the Ray cluster; default: one per CPU, or per GPU for models on GPUs.
        ray_address: Address of the Ray cluster, such as auto or HOST:6379; default: $RAY_ADDRESS, else a new one.
        max_per_second: Maximum number of calls per second, to all models and from all workers together.
        timeout: Seconds to wait for a server's answer of up to 2,000 tokens before asking again; longer ones get more.
        max_wait: Give up on a server that has only refused (429) for this many seconds.
        budget_usd: Maximum cost of all calls in the run folder in US dollars, earlier commands included.
        budget_per_day_usd: Maximum cost of the run folder per day, from midnight UTC, in US dollars.
        max_calls: Maximum number of calls in one command.
        max_tokens: Maximum number of tokens, in and out, in one command.
        ledger: Where answers are kept, so that none is paid for twice: a file that several runs may share, or a
            PostgreSQL server, postgresql://user@host/database; default: ledger.db in the run folder. In pcs.toml, a
            relative path starts from its folder.
        prices: US dollars per million tokens in and per million tokens out, for models whose price is unknown.
    """

    models: tuple[str, ...] = setting((), "--model MODEL")
    objects: tuple[str, ...] = ()
    answers: Literal["auto", "graded", "hard"] = setting("auto", "--answers")
    questions: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    together: bool = setting(True, "--separately", off="Ask about each variable of a codebook in a call of its own.")
    draws: int = setting(1, "--draws N", least=1, most=1000)
    concurrency: int | None = setting(None, "--concurrency N", least=1, most=100_000)
    executor: Literal["local", "batch", "ray"] = setting("local", "--executor")
    workers: int | None = setting(None, "--workers N", least=1)
    ray_address: str = setting("", "--ray-address ADDRESS")
    max_per_second: float | None = setting(None, "--max-per-second N", least=0.001, most=1e6)
    timeout: float = setting(60.0, above=0, most=86_400)
    max_wait: float = setting(900.0, above=0, most=86_400)
    budget_usd: float | None = setting(None, "--budget USD", least=0)
    budget_per_day_usd: float | None = setting(None, "--budget-per-day USD", least=0)
    max_calls: int | None = setting(None, "--max-calls N", least=0)
    max_tokens: int | None = setting(None, "--max-tokens N", least=0)
    ledger: str = setting("", "--ledger ADDRESS", secret=True)
    prices: Mapping[str, tuple[float, float]] = setting(dict, "--price MODEL=IN,OUT")


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnRelation:
    """The table `[relations.NAME]`: a relation that the user defines.

    Attributes:
        prompt: The prompt for the rewriter; `{text}` is replaced by the text.
        version: Version of the prompt; change it whenever you change the prompt.
        expects: What its rewrites may do to a text; in the file, the fields of `Expectation` are keys of this table.
    """

    prompt: str = ""
    version: str = "1"
    expects: Expectation = field(default_factory=Expectation, metadata=TABLES)


@dataclass(frozen=True, slots=True, kw_only=True)
class RelationSettings(SettingsSection):
    """The section `[relations]`: how texts are rewritten.

    Attributes:
        use: Relations to ask under; default: those that suit the models, which pcs plan shows.
        rewriter: The model that rewrites texts, as provider:model; default: rules do.
        own: Relations that the user defines, each in a table `[relations.NAME]`.
    """

    use: tuple[str, ...] = setting((), "--relations A,B", name="relations")
    rewriter: str = setting("", "--rewriter MODEL")
    own: Mapping[str, OwnRelation] = field(default_factory=dict, metadata=TABLES)


GoldSample = Literal["unknown", "random", "chosen"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnSettings(SettingsSection):
    """The section `[learn]`: how weights, confidence and decisions are learned from gold labels.

    Attributes:
        optimiser: How weights are learned: auto combines votes and texts; lr and ga are the paper's; uniform and
            majority learn nothing.
        text: Learn from the texts too, from 50 gold rows on: a model of their words joins the votes as far as it helps.
        folds: Number of folds in every cross-validation.
        seed: Seed for everything random.
        resamples: Number of bootstrap resamples behind every interval; 0 for no intervals.
        calibration: How scores become probabilities; none leaves them as they are. `auto` learns probabilities at once.
        max_error: Maximum share of wrong labels: of the accepted ones, or what `promise` says.
        certainty: How sure the promise must be: the share of fits, each with other gold rows, in which it holds.
        promise: What the maximum error is a share of: accepted labels, with certainty; accepted labels on average,
            which accepts more; or, on a scale, accepted labels off by two steps or more.
        gold_sample: How you chose the gold rows in the data: at random; some other way (chosen), which supports no
            promise; or unknown, which assumes random and says so beside every promise.
        per_label: Make the promise for each label separately.
        tolerance: By how much an accepted number may be off; default: a twentieth of its range.
        by: Make the promise for each group of texts separately, and show figures for each: a column of the data, or
            `language`, which is detected if there is no such column.
        sets: Also list, for every row, the labels that cannot be ruled out; a scale has an interval instead.
    """

    optimiser: str = setting("auto", "--optimiser NAME")
    text: bool = setting(True, "--no-text", off="Learn from the votes alone, not from the texts.")
    folds: int = setting(5, least=2, most=100)
    seed: int = setting(0, "--seed N", least=0)
    resamples: int = setting(200, least=0, most=100_000)
    calibration: Literal["softmax", "none"] = setting("softmax", "--calibration")
    max_error: float | None = setting(0.05, "--max-error SHARE", above=0, below=1)  # None: no promise, no decisions
    certainty: float = setting(0.9, "--certainty SHARE", above=0, below=1)
    promise: Literal["error-among-accepted", "false-discoveries", "off-by-more-than-one"] = setting(
        "error-among-accepted", "--promise"
    )
    gold_sample: Literal["unknown", "random", "chosen"] = setting("unknown", "--gold-sample")
    per_label: bool = setting(False, "--per-label")
    tolerance: float = setting(0.0, "--tolerance X", least=0.0)
    by: str = setting("", "--by COLUMN")
    sets: bool = setting(False, "--sets")


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """All settings of a `pcs.toml`."""

    task: TaskSettings = field(default_factory=TaskSettings)
    data: DataSettings = field(default_factory=DataSettings)
    ask: AskSettings = field(default_factory=AskSettings)
    relations: RelationSettings = field(default_factory=RelationSettings)
    learn: LearnSettings = field(default_factory=LearnSettings)
    # a codebook: each variable in a table `[variables.NAME]` with the keys of `[task]`; empty for a single task
    variables: Mapping[str, TaskSettings] = field(default_factory=dict)
    part: str = ""  # which variable is this run's task, and after a `=` which of its labels; empty for all of them


@cache
def sections() -> Mapping[str, type]:
    """Return the sections of a `pcs.toml`."""
    return {name: kind for name, kind in get_type_hints(Config).items() if isinstance(kind, type) and kind is not str}


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandSettings:
    """What a single command does with its data; none of it is in `pcs.toml`.

    Attributes:
        limit: Use only the first N rows.
        to_label: Write N rows to to_label.csv for a person to label, if nothing can be promised yet.
        spreadsheet_safe: Put an apostrophe before cells that a spreadsheet would run as a formula.
        gold_wins: Accept gold labels that contradict each other; yours win over those of the data.
        replace: Start anew, and keep what was there under a dated name.
        fresh: Ask everything again, and pay again; the old ledger is kept.
        wait: While another process uses the ledger, wait for it (default), or else stop.
    """

    limit: int | None = setting(None, "--limit N", least=1)
    to_label: int = setting(30, "--to-label N", least=0)
    spreadsheet_safe: bool = setting(False, "--spreadsheet-safe")
    gold_wins: bool = setting(False, "--gold-wins")
    replace: bool = setting(False, "--replace")
    fresh: bool = setting(False, "--fresh")
    wait: bool = setting(True, "--no-wait", off="Stop if another process uses the ledger.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Saving(SettingsSection):
    """How to spend less on new texts; limits, prices and executor are those of the run where they are not given.

    Attributes:
        ask: Ask until no answer can change the label (needed), or every question (all).
        on_drift: If the texts differ from the gold rows: leave all for review, decide as if they did not (accept), or
            stop (fail); `pcs label` ends with exit code 4 unless it accepts.
        audit: The share of accepted texts that people are to see too, so that errors among them are found.
        keep_texts: Keep texts for review in the run folder; otherwise only `pcs review` of the run's own rows is left.
        keep_days: Delete texts that wait for review, or were reviewed, after N days.
    """

    ask: Literal["needed", "all"] = setting("needed", "--ask")
    on_drift: Literal["review", "accept", "fail"] = setting("review", "--on-drift")
    audit: float = setting(0.05, "--audit SHARE", least=0.0, most=1.0)
    keep_texts: bool = setting(True, "--keep-no-texts", off="Keep no texts: they cannot be reviewed.")
    keep_days: int | None = setting(None, "--keep-days N", least=1)
    max_calls: int | None = None
    max_tokens: int | None = None
    budget_usd: float | None = None
    budget_per_day_usd: float | None = None
    prices: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    executor: str | None = None
    workers: int | None = None
    ray_address: str | None = None
    max_per_second: float | None = None


@cache
def all_settings() -> Mapping[str, tuple[str, Setting]]:
    """Return option by option: its name in Python → its section, empty if it is not in `pcs.toml`, and the setting."""
    groups = [*sections().items(), ("", CommandSettings), ("", Saving)]
    return {option.name: (name, option) for name, kind in groups for option in settings_in(kind) if option.option}


def take(make: Callable[..., T], values: MutableMapping[str, Any]) -> T:
    """Return `make` called with those of the values that are its parameters; they are taken out of `values`."""
    taken = {name: values.pop(name) for name in signature(make).parameters if name in values}
    return make(**{name: value for name, value in taken.items() if value is not None})


def take_settings(values: MutableMapping[str, Any]) -> dict[str, Any]:
    """Return those of the values that are settings of `pcs.toml`, by name; they are taken out of `values`."""
    return {name: values.pop(name) for name, (section, _) in all_settings().items() if section and name in values}
