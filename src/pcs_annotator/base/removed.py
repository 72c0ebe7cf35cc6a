"""Names that earlier versions had, with what to use instead; registries, settings and the command line look here."""

from collections.abc import Mapping
from typing import NoReturn

_INSTEAD: Mapping[tuple[str, str], str] = {
    ("relation", "llm:wording"): "use 'wording' instead, with an instruction of your own in wordings under [task]",
    ("setting", "task.written_wording"): "write it into wordings, and use the relation wording instead of llm:wording",
    ("relation", "punctuation"): "use 'frame' or 'case' instead",
    ("relation", "contraction"): "use 'case' or 'frame' instead",
    ("relation", "cleft"): "use 'frame' or 'case' instead",
    ("relation", "attribution"): "use 'frame' or 'case' instead",
    ("relation", "back-translation"): "use 'paraphrase' or 'register' instead",
    ("relation", "number-format"): "use 'frame' or 'case' instead",
    ("setting", "relations.similarity"): "use judge = true instead",
    ("setting", "ask.letters"): "labels are always asked for by name, so delete this line",
    ("setting", "relations.joint"): "every rewrite has a call of its own now, so delete this line",
    ("option", "--stop"): "asking always stops when no answer can change the label, so leave it out",
    ("option", "--level"): "asking stops when no answer can change the label, however probable it is, so leave it out",
    ("option", "--ask-all"): "use --ask all instead",
    ("option", "--prune"): "pcs relations value VOTES shows which questions are worth asking",
    ("command", "pcs ledger repair"): "sqlite3 LEDGER .recover | sqlite3 saved.db saves what can be read",
    ("command", "pcs ledger export"): "sqlite3 -header -csv LEDGER 'SELECT * FROM calls' > calls.csv writes its calls",
    ("command", "pcs table"): "pcs paper RUN writes results and methods for a paper",
    ("option", "--table"): "export the table of a database as CSV or Parquet, and name that file",
    ("setting", "task.ordered"): 'use kind = "scale" instead of ordered = true',
    ("setting", "data.table"): "export the table of a database as CSV or Parquet, and name that file",
    ("source", "hf"): "name a file of it, hf://datasets/OWNER/NAME/FILE",
    ("source", "sentiment"): "name the file itself, with --gold-column sentiment",
    ("model provider", "llama"): "start llama-server -m FILE.gguf, and use http://127.0.0.1:8080/v1#NAME",
    ("tool", "argilla"): "use label-studio, or pcs review",
    ("route", "/v1/jobs"): "label files with pcs label FILE --run RUN",
    ("command", "pcs relations audit"): "pcs relations try NAME TEXT shows a rewrite with every check",
    ("command", "pcs relations check"): "pcs run FILE --labels a,b --model scripted:hash --relations NAMES makes the "
    "rewrites without a call, and its report has how many texts each relation changed",
    ("option", "--excel"): "pcs label DATA --run RUN -o labels.xlsx writes the labels as a workbook",
    ("option", "--design"): "pcs relations value VOTES and pcs compare show which questions are worth asking",
    ("option", "--calls"): "pcs relations value VOTES and pcs compare show which questions are worth asking",
    ("option", "--free"): "pcs relations value VOTES and pcs compare show which questions are worth asking",
    ("option", "--audit"): "pcs review RUN draws accepted rows to check, in its queue audit",
    ("option", "--verdicts"): "pcs review RUN takes verdicts on accepted rows, in its queue audit",
    ("option", "--shard"): "use --executor ray, or run parts of the table with one --ledger, and then the whole table",
    ("command", "pcs merge"): "pcs run DATA --ledger LEDGER labels the whole table from the answers in one ledger",
    ("command", "pcs find"): "sort labels.csv by its column p_LABEL; pcs fit RUN --max-error .1 --per-label promises "
    "how many accepted rows of each label are wrong at most",
    ("optimiser", "least-squares"): "use 'lr' instead",
    ("optimiser", "lr-authors"): "use 'lr' instead",
    ("optimiser", "ga-auroc"): "use 'ga', or GeneticAlgorithm(objective='auroc') in Python",
    ("optimiser", "ga-brier"): "use 'ga', or GeneticAlgorithm(objective='brier') in Python",
    ("name", "xlsx"): "write .csv, which has one row per figure and opens in any spreadsheet program",
    ("name", "optimisers"): "pcs evaluate VOTES --methods lr,ga,auto,logit,uniform compares them",
    ("method", "PCS.save"): "pickle a fitted PCS; or make it again, as its answers are in the ledger",
    ("method", "PCS.load"): "pickle a fitted PCS; or make it again, as its answers are in the ledger",
    ("calibration", "isotonic"): "use 'softmax' instead",
}
"""Kind and name → what to use instead. A value of a setting or an argument has its name as its kind."""


def removed(kind: str, name: object) -> str:
    """Return that something of an earlier version was removed, and what to use instead; empty for any other name."""
    instead = _INSTEAD.get((kind, str(name)))
    return f"was removed: {instead}" if instead else ""


class RemovedMethod:
    """A method of an earlier version: using it is an error that says what to use instead."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = f"{owner.__name__}.{name}"

    def __get__(self, instance: object, owner: type) -> NoReturn:
        raise AttributeError(f"{self._name} {removed('method', self._name)}")
