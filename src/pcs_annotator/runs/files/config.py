"""The settings of `pcs.toml`, read and checked; every error names the file, the line and the key."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, get_args, get_origin, get_type_hints

from pcs_annotator.base.errors import ConfigError
from pcs_annotator.base.removed import removed
from pcs_annotator.core.ledger_address import without_password
from pcs_annotator.core.variant import Expectation

CONFIG_NAME = "pcs.toml"
LARGEST = 1e100


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnRelation:
    """The table `[relations.NAME]`: a relation that the user defines.

    Attributes:
        prompt: The prompt for the rewriter; `{text}` is replaced by the text.
        version: Version of the prompt; change it whenever you change the prompt.
        expects: What its rewrites may do to a text; in the file, the fields of `Expectation` are keys of this table.
    """

    prompt: str
    version: str = "1"
    expects: Expectation = field(default_factory=Expectation)


@dataclass(frozen=True, slots=True, kw_only=True)
class RelationSettings:
    """The section `[relations]`: how texts are rewritten.

    Attributes:
        use: Relations to use, by name; empty for those that suit the models: `original` and `order` for models that
            give log-probabilities, more ways to put the question for others (`pcs plan` shows the choice).
        rewriter: The model that rewrites texts, as `provider:model`; empty to rewrite by rules.
        judge: Whether to also ask the rewriter if each rewrite means the same as the text.
        own: Relations that the user defines, each in a table `[relations.NAME]`.
    """

    use: tuple[str, ...] = ()
    rewriter: str = ""
    judge: bool = False
    own: Mapping[str, OwnRelation] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSettings:
    """The section `[task]`: what the models decide.

    Attributes:
        instruction: The question to the models, in a sentence; empty for a question made from the labels.
        labels: The label set; empty for the labels found in the gold column.
        meanings: What labels mean, in a table `[task.meanings]` with a text per label; only where a name is not enough.
        wordings: Other instructions that ask for the same decision, for the relations `wording`, `wording:2` and so on;
            after them, or if there are none, sentences are put around the instruction.
        written_wording: The instruction that the relation `llm:wording` asks with; empty to have the rewriter write it.
        ordered: Whether the labels are listed from the lowest to the highest, so that a near miss is a smaller
            disagreement than a far one (weighted κ, ordinal α). The models are not told.
    """

    instruction: str = ""
    labels: tuple[str, ...] = ()
    meanings: Mapping[str, str] = field(default_factory=dict)
    wordings: tuple[str, ...] = ()
    written_wording: str = ""
    ordered: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DataSettings:
    """The section `[data]`: the columns of the data file, and how it is read.

    Attributes:
        text_column: The column of texts; empty for one named `text` or similar, or the only column.
        id_column: The column of ids, or `row` to number the rows from 1, unless there is a column of that name; empty
            for `id`, else rows are numbered.
        gold_column: The column of gold labels, which may be partly empty; empty for `gold`, for what most people say in
            columns `gold_<name>` (none where they tie), or for `label` or `labels`.
        encoding: The encoding of a text file, such as `windows-1252`; empty to guess it, if it is not UTF-8.
        sheet: The sheet of a workbook, by name or number; empty for the first with a header and rows.
    """

    text_column: str = ""
    id_column: str = ""
    gold_column: str = ""
    encoding: str = ""
    sheet: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AskSettings:
    """The section `[ask]`: which models are asked, how, and at what cost.

    Attributes:
        models: Models to ask, as `provider:model`; at least one is needed, here or on the command line.
        answers: `graded` answers keep the probability of every label, from models that give log-probabilities; `hard`
            answers keep the label only. `auto` is `graded`, except that hard answers already paid for are kept.
        letters: Whether labels are listed as A, B, C … and answered by letter instead of by name.
        questions: Relations to ask a model under, in a table `[ask.questions]` with a list per `provider:model`; a
            model that is not listed is asked under all.
        draws: How many times each question is asked.
        concurrency: Maximum number of simultaneous calls per model; 64 if not set.
        executor: Where calls are made: `local` asks live from this machine; `batch` sends them to the providers' batch
            APIs, which cost half as much and take up to a day per wave; `ray` asks from the machines of a Ray cluster.
        workers: Number of workers on the cluster; one per CPU (for models on GPUs, per GPU) if not set.
        ray_address: Address of the Ray cluster; if not set, that in `RAY_ADDRESS`, else this machine.
        max_per_second: Maximum number of calls per second, to all models and from all workers together; no limit if not
            set.
        timeout: Seconds to wait for a server's answer before asking again; slow servers on your own machine may need
            more. Models in this process (`embedded:`, `llama:`, `transformers:`) are waited for.
        budget_usd: Maximum cost of all calls in the run folder in US dollars, those of earlier commands included; no
            limit if not set.
        budget_per_day_usd: Maximum cost per day, likewise; a day begins at midnight UTC.
        max_calls: Maximum number of calls in one command; no limit if not set.
        max_tokens: Maximum number of tokens, in and out, in one command; no limit if not set.
        ledger: Where answers are kept, so that none is paid for twice: a file that several runs may share, or a
            PostgreSQL server for a team, as `postgresql://user@host/database`; `ledger.db` in the run folder if not
            set. A relative path starts from the folder of this file.
        prices: US dollars per million input tokens and per million output tokens, in a table `[ask.prices]` with a pair
            per `provider:model`; only for models whose price is unknown.
    """

    models: tuple[str, ...] = ()
    answers: Literal["auto", "graded", "hard"] = "auto"
    letters: bool = False
    questions: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    draws: int = 1
    concurrency: int | None = None
    executor: Literal["local", "batch", "ray"] = "local"
    workers: int | None = None
    ray_address: str = ""
    max_per_second: float | None = None
    timeout: float = 60.0
    budget_usd: float | None = None
    budget_per_day_usd: float | None = None
    max_calls: int | None = None
    max_tokens: int | None = None
    ledger: str = field(default="", repr=False)  # it may have a password
    prices: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _check_numbers(
            self,
            {name: 1 for name in ("draws", "concurrency", "workers")}
            | dict.fromkeys(("budget_usd", "budget_per_day_usd", "max_calls", "max_tokens"), 0),
        )
        _check_choices(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnSettings:
    """The section `[learn]`: how weights, confidence and decisions are learned from gold labels.

    Attributes:
        optimiser: The optimiser that learns the weights, by name, such as `lr`; `auto` chooses one by cross-validation.
        folds: Number of folds in every cross-validation.
        seed: Seed for everything random.
        resamples: Number of bootstrap resamples behind every interval; 0 for no intervals.
        calibration: How scores become probabilities; `none` leaves them as they are.
        max_error: Maximum share of wrong labels, between 0 and 1: of the accepted labels or of all rows, depending on
            `promise`.
        certainty: Share of fits, over draws of the gold rows, in which `error-among-accepted` must hold, between 0 and
            1; `accepted-and-wrong` holds on average.
        promise: What `max_error` is a share of: the accepted labels (`error-among-accepted`), or all rows, where it
            counts labels that are both accepted and wrong (`accepted-and-wrong`).
        per_label: Whether the promise must hold for each label separately.
        sets: Whether to also list, for every row, the labels that cannot be ruled out.
    """

    optimiser: str = "auto"
    folds: int = 5
    seed: int = 0
    resamples: int = 200
    calibration: Literal["softmax", "temperature", "none"] = "softmax"
    max_error: float | None = 0.05  # None: no promise, no decisions
    certainty: float = 0.9
    promise: Literal["error-among-accepted", "accepted-and-wrong"] = "error-among-accepted"
    per_label: bool = False
    sets: bool = False

    def __post_init__(self) -> None:
        _check_numbers(self, {"folds": 2, "seed": 0, "resamples": 0})
        _check_choices(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """All settings of a `pcs.toml`."""

    task: TaskSettings = field(default_factory=TaskSettings)
    data: DataSettings = field(default_factory=DataSettings)
    ask: AskSettings = field(default_factory=AskSettings)
    relations: RelationSettings = field(default_factory=RelationSettings)
    learn: LearnSettings = field(default_factory=LearnSettings)


def read_config(path: Path | None, folder: Path, learn: LearnSettings | None = None) -> Config:
    """Return the settings of a file; without a path, those of `pcs.toml` in the folder, else the defaults.

    `learn` has the defaults of the section `[learn]`.
    """
    learn = learn or LearnSettings()
    if path is None:
        path = folder / CONFIG_NAME
        if not path.exists():
            return Config(learn=learn)
    try:
        source = path.read_text(encoding="utf-8")
        data = tomllib.loads(source)
    except FileNotFoundError:
        raise ConfigError(f"{path}: there is no such file") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: not UTF-8 text ({error.reason}): save it as UTF-8") from None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path}: not valid TOML: {error}") from None
    except RecursionError:
        raise ConfigError(f"{path}: nested too deeply") from None
    return _Reader(path, source, learn).config(data)


def config_to_dict(config: Config) -> dict[str, Any]:
    """Return plain values for JSON, without a password in the address of the ledger."""
    values = asdict(config)
    values["ask"]["ledger"] = without_password(config.ask.ledger)
    return values


def config_from_dict(values: Mapping[str, Any]) -> Config:
    """Return the settings that `config_to_dict` wrote; unknown ones from another version are ignored."""
    sections = get_type_hints(Config)
    return Config(**{name: kind(**_known(kind, name, values.get(name, {}))) for name, kind in sections.items()})


def known_learn_settings(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return those of some values that are settings of `[learn]`; unknown ones from another version are ignored."""
    return _known(LearnSettings, "learn", values)


def _known(kind: type, section: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return those of some stored values that are settings of a section, after checking their types."""
    reader, hints = _Reader(Path("stored settings"), "", LearnSettings()), get_type_hints(kind)
    # what was removed since then gets its default
    given = {name: value for name, value in values.items() if name in hints and not removed(name, value)}
    own = {"own": {key: _own_from_dict(entry) for key, entry in given.pop("own").items()}} if "own" in given else {}
    return own | {name: reader.typed((section, name), value, hints[name]) for name, value in given.items()}


def _own_from_dict(values: Mapping[str, Any]) -> OwnRelation:
    return OwnRelation(**{**values, "expects": Expectation(**values["expects"])})


class _Reader:
    """Turns parsed TOML into settings, and finds the line of a key for error messages."""

    def __init__(self, path: Path, source: str, learn: LearnSettings) -> None:
        self.path, self.lines, self.learn = path, source.splitlines(), learn

    def config(self, data: Mapping[str, Any]) -> Config:
        """Return all sections."""
        sections = get_type_hints(Config)
        self._refuse_unknown((), data, set(sections))
        given = {name: self._section(name, sections[name], value) for name, value in data.items()}
        return Config(**{"learn": self.learn, **given})

    def _section(self, name: str, kind: type, value: Any) -> Any:
        section = dict(self._table((name,), value))
        if kind is RelationSettings:
            own = {key: section.pop(key) for key, entry in list(section.items()) if isinstance(entry, dict)}
            relations = {key: self._own_relation((name, key), entry) for key, entry in own.items()}
            return RelationSettings(own=relations, **self._filled(kind, (name,), section))
        filled = self._filled(kind, (name,), section)
        try:
            return replace(self.learn, **filled) if kind is LearnSettings else kind(**filled)
        except ConfigError as error:
            raise ConfigError(f"{self.path}: [{name}] {error}") from None

    def _own_relation(self, where: tuple[str, ...], data: Mapping[str, Any]) -> OwnRelation:
        if not str(data.get("prompt", "")).strip():
            raise self._error(where, 'needs a prompt: prompt = "Rewrite … {text} …"')
        own = {name: data[name] for name in ("prompt", "version") if name in data}
        rest = {name: value for name, value in data.items() if name not in own}
        self._refuse_unknown(where, data, {"prompt", "version", *get_type_hints(Expectation)})
        expects = Expectation(**self._filled(Expectation, where, rest))
        return OwnRelation(expects=expects, **self._filled(OwnRelation, where, own))

    def _filled(self, kind: type, where: tuple[str, ...], data: Mapping[str, Any]) -> dict[str, Any]:
        """Return the keyword arguments of a dataclass, each checked against the type of its field."""
        hints = {name: hint for name, hint in get_type_hints(kind).items() if name != "own"}
        self._refuse_unknown(where, data, set(hints))
        return {name: self.typed((*where, name), value, hints[name]) for name, value in data.items()}

    def typed(self, where: tuple[str, ...], value: Any, hint: Any) -> Any:
        """Return the value of a setting after checking its type."""
        if isinstance(hint, UnionType):
            if value is None:
                return None
            hint = next(part for part in get_args(hint) if part is not NoneType)
        origin, inner = get_origin(hint), get_args(hint)
        if origin is Mapping:
            table = self._table(where, value)
            return {key: self.typed((*where, key), entry, inner[1]) for key, entry in table.items()}
        fits, wanted = _FITS[origin or hint](value, inner)
        if not fits:
            gone = removed(where[-1], value)
            raise self._error(where, f"{value!r} {gone}" if gone else f"is {value!r}, must be {wanted}")
        return tuple(value) if isinstance(value, list) else float(value) if hint is float else value

    def _table(self, where: tuple[str, ...], value: Any) -> Mapping[str, Any]:
        if not isinstance(value, dict):
            raise self._error(where, f"is {value!r}, must be a table: [{'.'.join(where)}]")
        return value

    def _refuse_unknown(self, where: tuple[str, ...], data: Mapping[str, Any], known: set[str]) -> None:
        for name in data:
            if name not in known:
                unknown = f"is not a setting; known here: {', '.join(sorted(known))}"
                raise self._error((*where, name), removed("setting", ".".join((*where, name))) or unknown)

    def _error(self, where: tuple[str, ...], problem: str) -> ConfigError:
        line = self._line(where)
        place = f"{self.path}, line {line}" if line else str(self.path)
        return ConfigError(f"{place}: {'.'.join(where)} {problem}")

    def _line(self, where: tuple[str, ...]) -> int:
        """Return the line of a key, or of the table it belongs to; 0 when it is not found."""
        table, key, found = "", where[-1], 0
        for number, line in enumerate(self.lines, 1):
            header = re.match(r"\s*\[+([^\]]+)\]", line)
            if header:
                table = header[1].replace('"', "").replace("'", "").replace(" ", "")
                if table == ".".join(where):
                    return number
                if table == ".".join(where[:-1]):
                    found = number
            elif table == ".".join(where[:-1]) and re.match(rf"\s*[\"']?{re.escape(key)}[\"']?\s*[=.]", line):
                return number
        return found


def _check_numbers(settings: Any, least: Mapping[str, float]) -> None:
    for name, low in least.items():
        value = getattr(settings, name)
        if value is not None and value < low:
            raise ConfigError(f"{name} is {value}, must be at least {low}")


def _check_choices(settings: Any) -> None:
    """Refuse values that none of a file's readers would accept; Python does not check a `Literal`."""
    for name, hint in get_type_hints(type(settings)).items():
        value, choices = getattr(settings, name), get_args(hint)
        if get_origin(hint) is Literal and value not in choices:
            gone = removed(name, value)
            known = ", ".join(map(repr, choices))
            raise ConfigError(f"{name} {value!r} {gone}" if gone else f"{name} is {value!r}, must be one of {known}")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < LARGEST


def _fits_tuple(value: Any, inner: tuple[Any, ...]) -> tuple[bool, str]:
    if inner[-1] is Ellipsis:
        return isinstance(value, list) and all(isinstance(one, str) for one in value), "a list of names"
    fits = isinstance(value, list) and len(value) == len(inner) and all(map(_is_number, value))
    return fits, f"a list of {len(inner)} numbers"


_FITS: Mapping[Any, Callable[[Any, tuple[Any, ...]], tuple[bool, str]]] = {
    str: lambda value, inner: (isinstance(value, str), "a text in quotes"),
    bool: lambda value, inner: (isinstance(value, bool), "true or false"),
    int: lambda value, inner: (type(value) is int, "a whole number"),
    float: lambda value, inner: (_is_number(value), "a number"),
    tuple: _fits_tuple,
    Literal: lambda value, inner: (value in inner, f"one of {', '.join(map(repr, inner))}"),
}
"""Type of a setting → whether a value fits it, and a description of the values that do."""
