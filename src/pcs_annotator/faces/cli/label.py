"""`pcs label`: label new texts with a fitted run."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from pcs_annotator.base.errors import ConfigError
from pcs_annotator.base.text import counted
from pcs_annotator.core.result_names import DECISION, LABEL
from pcs_annotator.faces.cli import learned_view, options, run_view
from pcs_annotator.runs import resolve_config
from pcs_annotator.runs.paths import RunFolder, variables_in
from pcs_annotator.runs.run_request import RunRequest
from pcs_annotator.runs.settings import Saving
from pcs_annotator.showing import answer
from pcs_annotator.showing import blocks as b
from pcs_annotator.showing.findings import texts_cut
from pcs_annotator.showing.formats import percent
from pcs_annotator.showing.report.sections.summary import promise
from pcs_annotator.tables.source_files import STDIO
from pcs_annotator.verbs import label

OUT = "File to write (.xlsx, .csv, .tsv, .jsonl, .parquet), or - for standard output; default:"


@click.command("label", cls=options.ManyOptions)
@click.argument("data", type=options.TABLE)
@click.option("--run", "folder", type=options.PATH, required=True, help="Folder of the fitted run.")
@click.option("-o", "--out", type=options.PATH, help=f"{OUT} DATA-labels.csv beside DATA.")
@options.options_in(RunRequest, "format")
@options.reading_options
@options.options_for("text_column", "pair", "id_column")
@options.MOVED_LEDGER
@options.saving_options
@options.options_for("on_drift", "audit", "keep_texts", "keep_days")
@options.execution_options
@options.options_for("limit", "replace", "spreadsheet_safe", "wait")
@options.printing
def command(*, data: Path | str, folder: Path, out: Path | None, **choices: Any) -> int:
    """Label the texts of DATA with the models, rewrites and weights of a fitted run.

    Asks the questions with the most weight first, and stops asking about a text when no further answer can change its
    label.
    """
    if options.wanted("json") and out == STDIO:
        raise ConfigError("-o - and --json both write to standard output: leave one of them out")
    saving = options.take(Saving, choices)
    request = RunRequest(
        data=data,
        folder=folder,
        config=resolve_config.settings_of(options.take_settings(choices)),
        progress=options.shown(),
        say=options.saying(),
        **choices,
    )
    path = out or label.default_out(data)
    if variables_in(RunFolder(folder)):
        return run_view.label_and_show(request, path, saving, labelled_json)
    with options.gathered_warnings() as notes:
        labelled = label.label(request, path, saving)
    promised = promise(labelled.model, labelled.drift, labelled.counts)
    options.show(labelled_json, labelled_shown, labelled, notes, details=lambda *_: [promised], stderr=path == STDIO)
    differ = labelled.drift is not None and labelled.drift.found and saving.on_drift != "accept"
    return run_view.ended({"": labelled}, differ=differ)


def labelled_json(labelled: label.Labelled, notes: Sequence[str]) -> dict[str, Any]:
    """Return everything that `labelled_shown` shows as plain values."""
    tally = labelled.tally
    return {
        "rows": labelled.counts.rows,
        "rows_without_label": labelled.unlabelled,
        "label_counts": dict(labelled.counts.labels),
        "decisions": dict(labelled.counts.decisions),
        "calls": tally.calls,
        "known_already": tally.from_ledger,
        "questions": tally.questions,
        "questions_spared": tally.spared,
        **learned_view.promise_json(labelled),
        "look_at": [flag._asdict() for flag in texts_cut(tally.cut, labelled.counts.rows)],
        "warnings": list(notes),
        "out": str(labelled.out),
        "label_column": LABEL,
    }


def labelled_shown(labelled: label.Labelled, notes: Sequence[str]) -> list[b.Block]:
    """Return how many rows got each label, which may be used, what was asked, and what to do next."""
    counts, tally, drift = labelled.counts, labelled.tally, labelled.drift
    differ = [note for note in notes if drift is not None and drift.found and drift.sentence in note]
    cut = [flag.detail for flag in texts_cut(tally.cut, counts.rows)]
    asked, calls = answer.cost(tally.calls, tally.from_ledger, ())
    if labelled.frugal is not None and tally.spared:
        share = percent(tally.spared, tally.spared + tally.questions)
        calls = f"{calls}; {share} of the questions were spared, because the label was settled"
    lines: list[answer.Line] = [
        *(("warning", b.Styled(note, "caution")) for note in differ),
        answer.labelled(counts),
        answer.usable(labelled.model, counts),
        *answer.look_at([*(note for note in notes if note not in differ), *cut]),
        (asked, calls),
    ]
    if labelled.out != STDIO:
        lines.append(("labels", f"{labelled.out} (column {LABEL})"))
    if review := counts.decisions.get("review", 0):
        lines.append(("next", f"check the {'row' if review == 1 else counted(review, 'row')} with {DECISION} = review"))
    return [b.Answer(lines)]
