"""Reads and writes the settings of `runs/settings.py`; every error in a `pcs.toml` names the line and the key."""

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from pcs_annotator.base.errors import ConfigError
from pcs_annotator.base.fields import settings_in
from pcs_annotator.base.plain import from_plain
from pcs_annotator.core.ledger_address import without_password
from pcs_annotator.core.passages import VALUE
from pcs_annotator.core.variant import Expectation
from pcs_annotator.runs.settings import Config, LearnSettings, OwnRelation, TaskSettings, sections

CONFIG_NAME = "pcs.toml"
TAKEN = ("label", "id", "text", "gold")


def variable_problem(name: str, labels: Sequence[str], kind: str = "one") -> str:
    """Return what is wrong with a variable; empty if nothing is."""
    if not re.fullmatch(r"[^\W\d]\w*", name) or name.casefold() in TAKEN:
        return "is not a name for a variable: use letters, digits and _, and not label, gold, text or id"
    if kind == "value" and tuple(labels) != (VALUE,):
        return 'has kind = "value", which has no labels: say what to look for in its instruction'
    if labels and kind in ("passages", "value"):
        return ""
    if kind == "passages":
        return 'needs the types of its passages: labels = ["…"]'
    return "" if len(labels) > 1 or ".." in "".join(labels) else 'needs at least two labels: labels = ["…", "…"]'


def read_config(path: Path | None, folder: Path, learn: LearnSettings | None = None) -> Config:
    """Return the settings of a file, else of `pcs.toml` in the folder, else the defaults, with those in `learn`."""
    learn = learn or LearnSettings()
    if path is None:
        path = folder / CONFIG_NAME
        if not path.exists():
            return Config(learn=learn)
    try:
        source = path.read_text(encoding="utf-8-sig")  # Windows editors add a mark
        data = tomllib.loads(source)
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: not UTF-8 text ({error.reason}): save it as UTF-8") from None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ConfigError(f"{path}: not valid TOML: {error}") from None
    return _Reader(path, source).config(data, learn)


def config_to_dict(config: Config) -> dict[str, Any]:
    """Return plain values for JSON, without a password in the address of the ledger."""
    values = asdict(config)
    values["ask"]["ledger"] = without_password(config.ask.ledger)
    for section, name in (("learn", "by"), ("learn", "tolerance"), ("data", "pair")):
        if not values[section][name]:
            del values[section][name]
    for task in (values["task"], *values["variables"].values()):
        for name, usual in (("format", "text"), ("match", "overlap")):
            if task[name] == usual:
                del task[name]
    codebook = {name: values.pop(name) for name in ("part", "variables")}
    return {**values, "codebook": codebook} if config.variables else values


def config_from_dict(values: Mapping[str, Any]) -> Config:
    """Return the settings that `config_to_dict` wrote; unknown ones from another version are ignored."""
    config = Config(**{name: kind(**known_settings(kind, values.get(name, {}))) for name, kind in sections().items()})
    if book := values.get("codebook"):
        tasks = book["variables"].items()
        variables = {name: TaskSettings(**known_settings(TaskSettings, task)) for name, task in tasks}
        config = replace(config, variables=variables, part=book["part"])
    own_relations = values.get("relations", {}).get("own", {})
    relations = {name: from_plain(OwnRelation, entry) for name, entry in own_relations.items()}
    return replace(config, relations=replace(config.relations, own=relations))


def known_settings(section: type, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return those of some stored values that are settings of a section, checked; others, from another version, go."""
    keys = {option.key for option in settings_in(section)}
    stored = {key: value for key, value in values.items() if key in keys}
    made = section(**stored)
    return {key: getattr(made, key) for key in stored}


class _Reader:
    """Turns parsed TOML into settings, and finds the line of a key for error messages."""

    def __init__(self, path: Path, source: str) -> None:
        self.path, self.lines = path, source.splitlines()

    def config(self, data: Mapping[str, Any], learn: LearnSettings) -> Config:
        """Return all sections; those of `learn` that are not given stay."""
        config = Config(learn=learn)
        self._refuse_unknown((), data, {**sections(), "variables": None})
        for name in data:
            table = dict(self._table((name,), data[name]))
            if name == "variables":
                variables = {key: self._variable((name, key), task) for key, task in table.items()}
                config = replace(config, variables=variables)
                continue
            tables = {key: entry for key, entry in table.items() if name == "relations" and isinstance(entry, dict)}
            others = {key: value for key, value in table.items() if key not in tables}
            values = self._checked((name,), others, sections()[name])
            if tables:
                values["own"] = {key: self._own_relation((name, key), entry) for key, entry in tables.items()}
            config = replace(config, **{name: replace(getattr(config, name), **values)})
        return config

    def _variable(self, where: tuple[str, ...], data: Mapping[str, Any]) -> TaskSettings:
        task = TaskSettings(**self._checked(where, self._table(where, data), TaskSettings))
        if problem := variable_problem(where[-1], task.labels, task.kind):
            raise self._error(where, problem)
        if task.kind == "value" and not task.instruction:
            raise self._error(where, 'needs a question: instruction = "How much money does the text say was paid?"')
        return task

    def _own_relation(self, where: tuple[str, ...], data: Mapping[str, Any]) -> OwnRelation:
        if not str(data.get("prompt", "")).strip():
            raise self._error(where, 'needs a prompt: prompt = "Rewrite … {text} …"')
        values = self._checked(where, data, OwnRelation, Expectation)
        texts = {name: values.pop(name) for name in ("prompt", "version") if name in values}
        return OwnRelation(expects=Expectation(**values), **texts)

    def _checked(self, where: tuple[str, ...], data: Mapping[str, Any], *kinds: type) -> dict[str, Any]:
        options = {option.key: option for kind in kinds for option in settings_in(kind)}
        self._refuse_unknown(where, data, options)
        for key, value in data.items():
            if problem := options[key].problem(value):
                raise self._error((*where, key, *problem.keys), problem.what)
        return dict(data)

    def _table(self, where: tuple[str, ...], value: Any) -> Mapping[str, Any]:
        if not isinstance(value, dict):
            raise self._error(where, f"is {value!r}, must be a table: [{'.'.join(where)}]")
        return value

    def _refuse_unknown(self, where: tuple[str, ...], data: Mapping[str, Any], names: Mapping[str, Any]) -> None:
        for name in data:
            if name not in names:
                raise self._error((*where, name), f"is not a setting; known here: {', '.join(sorted(names))}")

    def _error(self, where: tuple[str, ...], problem: str) -> ConfigError:
        line = self._line(where)
        where_from = f"{self.path}, line {line}" if line else str(self.path)
        return ConfigError(f"{where_from}: {'.'.join(where)} {problem}")

    def _line(self, where: tuple[str, ...]) -> int:
        """Return the line of a key, or of the table it belongs to; 0 when it is not found."""
        table, key, line_of_table = "", where[-1], 0
        for number, line in enumerate(self.lines, 1):
            header = re.match(r"\s*\[++([^\]]+)\]", line)
            if header:
                table = header[1].replace('"', "").replace("'", "").replace(" ", "")
                if table == ".".join(where):
                    return number
                if table == ".".join(where[:-1]):
                    line_of_table = number
            elif table == ".".join(where[:-1]) and re.match(rf"\s*[\"']?{re.escape(key)}[\"']?\s*[=.]", line):
                return number
        return line_of_table
