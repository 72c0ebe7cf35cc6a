"""Shares and means, overall or by group, and differences between groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from pcs_annotator.base.errors import ConfigError
from pcs_annotator.core.arrays import Array, Floats
from pcs_annotator.judging.estimating.regression import LabelRegression
from pcs_annotator.studies.estimating.answers import Estimated, Question, adjusted, in_three_ways, line_of
from pcs_annotator.studies.estimating.evidence import Evidence, study_of
from pcs_annotator.studies.estimating.groups import groups_of


def shares(evidence: Evidence, question: Question) -> Estimated:
    """Return the share of every label, or the mean of a numeric code, overall or by group, and differences."""
    study = study_of(evidence, larger=question.larger, cluster=question.cluster)
    groups = groups_of(evidence, study, question)
    larger = groups._replace(left=np.ones(len(groups.names)))
    lines, differences, bounded = [], [], question.values is None
    for name, values in _targets(evidence.labels, question).items():
        means, middle = _mean_of(values, groups.members), float(np.unique(values).mean())
        found = in_three_ways(study, means)
        for place, group in enumerate(groups.names):
            one = groups.of(found, {place: 1.0}, middle)
            lines.append(line_of(name, group, one, int(groups.gold_rows[place]), bounded=bounded))
        if groups.pairs:  # whether groups differ is asked about more than these rows (Cochran, 1977, 2.14)
            found = in_three_ways(replace(study, whole=False), means)
        for first, second in groups.pairs:
            between = f"{groups.names[second]} − {groups.names[first]}"
            one = larger.of(found, {second: 1.0, first: -1.0}, middle)
            rows = int(groups.gold_rows[[first, second]].sum())
            differences.append(line_of(name, between, one, rows, test=True))
    return Estimated(
        kind="share" if bounded else "mean",
        lines=lines,
        differences=adjusted(differences),
        missing=groups.missing,
        rows=len(evidence.expected),
        labels=evidence.labels,
        notes=[*evidence.notes, *groups.notes],
    )


def _targets(labels: Sequence[str], question: Question) -> dict[str, Floats]:
    """Return what to estimate → the value of every label."""
    if question.values is not None:
        unknown = set(question.values) ^ set(labels)
        if unknown:
            raise ConfigError(f"every label needs one number, and {sorted(unknown)[0]!r} is missing or no label")
        return {"mean": np.array([question.values[label] for label in labels])}
    found = {}
    for name in question.of or labels:
        found[name] = label_values(name, labels)
    return found


def label_values(expression: str, labels: Sequence[str]) -> Floats:
    """Return for every label whether it is named in an expression: a label, or several joined by `+`."""
    parts = [expression] if expression in labels else [part.strip() for part in expression.split("+")]
    if unknown := set(parts) - set(labels):
        raise ConfigError(f"{sorted(unknown)[0]!r} is no label; the labels are {', '.join(labels)}")
    return np.array([float(label in parts) for label in labels])


def _mean_of(values: Floats, members: Array) -> LabelRegression:
    """Return the regression whose coefficients are the means of groups of rows."""
    return LabelRegression(explanatory=[members], outcome=values[np.newaxis, :, np.newaxis])
