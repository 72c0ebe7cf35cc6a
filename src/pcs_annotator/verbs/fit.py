"""`pcs fit` and `pcs use` in a run folder, and opening one: where the model changes, the report is written, too."""

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec

from pcs_annotator.runs import fitting
from pcs_annotator.runs.run_result import RunResult
from pcs_annotator.showing.report.page import write_report

P = ParamSpec("P")


def _reported(command: Callable[P, RunResult]) -> Callable[P, RunResult]:
    """Return the command, which also writes the report of a fit."""

    @wraps(command)
    def reported(*given: P.args, **how: P.kwargs) -> RunResult:
        result = command(*given, **how)
        if result.to_label is not None:  # the model is another now
            write_report(result)
        return result

    return reported


fit_run = _reported(fitting.fit_again)
use_version = _reported(fitting.use_version)
open_run = _reported(fitting.open_run)
