"""The `pcs` command: loads the verb, and turns every error into one clear sentence."""

import io
import json
import logging
import os
import signal
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from threading import Event

import click

from pcs_annotator.base.errors import ConfigError, DriftFound, PcsError, PcsWarning
from pcs_annotator.base.stopping import handling_stops, stoppable
from pcs_annotator.faces.cli.ending import ExitCode, complain
from pcs_annotator.version import __version__

PURPOSES: dict[str, dict[str, str]] = {
    "Start": {
        "demo": "take a tour with the embedded model, offline",
        "init": "inspect a data file and write a commented pcs.toml",
        "plan": "show calls, tokens and cost of a run; no model is called",
        "models": "list models, download one, or check that they answer",
    },
    "Label": {
        "run": "rewrite, ask, learn and label; resumes after an interruption",
        "fit": "learn again from recorded votes; no model is called",
        "label": "label new texts with a fitted run",
        "serve": "label texts over HTTP with a fitted run",
        "report": "write the report of a run, one HTML file",
        "status": "show how far a running command is, or how the last one ended",
    },
    "People": {
        "gold": "say how many gold rows are needed, and draw them",
        "review": "decide about rows in a browser; it learns from you",
        "finish": "say which rows people must label until the table is good enough",
        "exchange": "hand rows to Label Studio, and read the answers back",
    },
    "Conclusions": {
        "estimate": "estimate shares, differences and regressions from the labels",
        "paper": "write results and methods of a run for a paper: Markdown, LaTeX or CSV",
    },
    "Research": {
        "evaluate": "compare PCS with simpler methods on the same votes",
        "compare": "compare two runs, prompts, models or panels",
        "relations": "list relations, try one on a text, or measure what each is worth",
        "experiment": "make the tables and figures of the PCS paper from your data",
    },
    "Upkeep": {
        "versions": "list the fits of a run, or go back to an earlier one",
        "forget": "delete a text that was labelled later, and all answers about it",
        "ledger": "inspect, copy or clean up the record of paid calls",
    },
}
VERBS = {verb: about for verbs in PURPOSES.values() for verb, about in verbs.items()}


class LazyGroup(click.Group):
    """A group that imports a verb only when it is used, so that `pcs --help` stays fast."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the verbs in the order in which users need them."""
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command of a verb, or None if there is no such verb."""
        if cmd_name not in VERBS:
            return None
        command: click.Command = import_module(f"pcs_annotator.faces.cli.{cmd_name}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of verbs without importing them."""
        longest = max(map(len, VERBS))
        for purpose, verbs in PURPOSES.items():
            with formatter.section(purpose):
                formatter.write_dl([(verb.ljust(longest), about) for verb, about in verbs.items()])


class _JsonLines(logging.Formatter):
    """An event as a line of JSON: time, level, logger and message, and its numbers if it has names for them."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        event = {"time": self.formatTime(record), "level": record.levelname, "logger": record.name}
        numbers = record.args if isinstance(record.args, dict) else {}
        return json.dumps({**event, "message": record.getMessage(), **numbers}, default=str)


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="pcs")
@click.option(
    "--log-level",
    envvar="PCS_LOG",
    type=click.Choice(["debug", "info"]),
    help="Log decisions (info) and requests (debug) to stderr; never texts or keys.  [env: PCS_LOG]",
)
@click.option(
    "--log-json", envvar="PCS_LOG_JSON", is_flag=True, help="Log events as lines of JSON.  [env: PCS_LOG_JSON]"
)
@click.pass_context
def pcs(context: click.Context, log_level: str | None, log_json: bool) -> None:
    """Label texts with language models, and know which labels to trust."""
    if log_level is None and not log_json:
        return
    logger, handler = logging.getLogger("pcs_annotator"), logging.StreamHandler()
    form = _JsonLines() if log_json else logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s")
    handler.setFormatter(form)
    before = logger.level
    logger.setLevel((log_level or "info").upper())
    logger.addHandler(handler)
    context.call_on_close(lambda: logger.removeHandler(handler))
    context.call_on_close(lambda: logger.setLevel(before))


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    words = sys.argv[1:] if arguments is None else arguments
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # for terminals that lack letters, such as those of ASCII
    try:
        _refuse_other_bytes(words)
        with stoppable() as stopped, _stopped_like_ctrl_c(stopped), _warnings_in_a_line():
            return pcs.main(args=words, prog_name="pcs", standalone_mode=False, obj=tuple(words)) or 0
    except (click.exceptions.Abort, KeyboardInterrupt):
        with suppress(OSError):  # the terminal may be gone
            click.echo("interrupted; all answers are kept, and the same command resumes", err=True)
        return ExitCode.INTERRUPTED
    except (BrokenPipeError, SystemExit):  # click exits by itself when a pipe is closed
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115  # Python flushes it at the end
        return ExitCode.INTERRUPTED
    except click.ClickException as error:
        error.show()
        return ExitCode.USER
    except Exception as error:
        message = _for_the_user(error)
        if message:
            complain(f"error: {message}")
            return ExitCode.DRIFT if isinstance(error, DriftFound) else ExitCode.USER
        if os.environ.get("PCS_DEBUG"):
            raise
        complain(f"error: a bug in pcs, please report it: {type(error).__name__}: {error}")
        click.echo("       set PCS_DEBUG=1 to see the traceback", err=True)
        return ExitCode.BUG


def _for_the_user(error: Exception) -> str:
    if isinstance(error, PcsError):
        return str(error)
    if isinstance(error, MemoryError):
        return "not enough memory: use fewer rows (--limit), or a machine with more of it"
    if isinstance(error, OSError):
        where = f" ({error.filename})" if error.filename else ""
        return f"{error.strerror or error}{where}: check the file, its permissions and the disk"
    return ""


def _refuse_other_bytes(arguments: Sequence[str]) -> None:
    for argument in arguments:
        if not argument.isascii() and argument.encode("utf-8", "replace").decode() != argument:
            raise ConfigError(f"{argument!r} is not UTF-8 text: correct it; a file with such a name must be renamed")


@contextmanager
def _warnings_in_a_line() -> Iterator[None]:
    """Print each of our warnings once, without the place in the code."""
    shown: set[str] = set()

    def show(message: Warning | str, category: type[Warning], *where: object, **more: object) -> None:
        if str(message) not in shown and issubclass(category, PcsWarning):
            shown.add(str(message))
            complain(f"warning: {message}")

    with warnings.catch_warnings():
        warnings.simplefilter("always", PcsWarning)
        warnings.showwarning = show
        yield


@contextmanager
def _stopped_like_ctrl_c(stopped: Event) -> Iterator[None]:
    """Let SIGTERM and SIGHUP do what Ctrl-C does, unless they are ignored, as under nohup."""

    def stop(*_: object) -> None:
        stopped.set()
        raise KeyboardInterrupt

    with handling_stops(stop, lambda was: was in (signal.SIG_DFL, signal.default_int_handler)):
        yield
