"""Does PCS help at every sampling temperature? Annotators are then called `<model>@<temperature>`."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pcs_annotator.core.result_table import Content, Experiment, ResultTable, best_in_rows
from pcs_annotator.judging.evaluation.experiments.study import Study, compared

COLUMNS = ("Dataset", "Temperature", "LLM", "Zero-shot or MV", "PCS")
_NAMED = re.compile(r"@(\d+(?:\.\d+)?)\Z")


def by_temperature(annotators: Sequence[str]) -> dict[str, list[str]]:
    """Return temperature → annotators, in rising order; those whose name has none come under an empty one.

    >>> by_temperature(["a@0.7", "a@0", "b@0"])
    {'0': ['a@0', 'b@0'], '0.7': ['a@0.7']}
    """
    found: dict[str, list[str]] = {}
    for name in annotators:
        match = _NAMED.search(name)
        found.setdefault(match[1] if match else "", []).append(name)
    return dict(sorted(found.items(), key=lambda one: float(one[0] or -1)))


def temperatures(study: Study) -> Experiment:
    """Return PCS beside one call per model at every temperature that was recorded."""
    notes = study.notes()
    rows: list[list[Content]] = []
    for bench in study.benches:
        groups = by_temperature(bench.plain.annotators)
        groups.pop("", None)
        if not groups:
            notes.append(
                f"{bench.dataset}: no annotator is called <model>@<temperature>, so temperatures cannot be told apart."
            )
        for degree, models in groups.items():
            panels = [[name] for name in models] + ([models] if len(models) > 1 else [])
            for panel in panels:
                figures = [bench.alone(notes, panel), bench.pcs(notes, study.settings.optimiser, panel)]
                rows.append([bench.dataset, degree, " + ".join(map(_bare, panel)), *figures])
    summary = []
    for degree in sorted({str(row[1]) for row in rows}, key=float):
        chosen = [row for row in rows if row[1] == degree]
        found = compared([row[4] for row in chosen], [row[3] for row in chosen])
        summary.append((f"Temperature {degree}: average relative improvement, paired t-test", found.sentence))
    table = ResultTable(
        name="temperature",
        title="PCS against one call per model, by sampling temperature (AUROC)",
        columns=COLUMNS,
        rows=[*rows, *study.refused_rows(len(COLUMNS))],
        summary=summary,
        notes=notes,
        best=best_in_rows(rows, [3, 4]),
    )
    return Experiment(name="temperature", tables=[table])


def _bare(name: str) -> str:
    return _NAMED.sub("", name)
