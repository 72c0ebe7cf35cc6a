"""How many questions a new text takes, when the asking stops as soon as the label is certain."""

from __future__ import annotations

from collections.abc import Mapping

from pcs_annotator.faces.report.bars import bar
from pcs_annotator.faces.report.formats import percent
from pcs_annotator.faces.report.markup import (
    Child,
    Column,
    Markup,
    figure,
    joined,
    section,
    sentence,
    table,
    tag,
    user_text,
)
from pcs_annotator.faces.report.view import View


def saved(view: View) -> Markup:
    """Return the share of questions that new texts will take, by model and by relation."""
    spending = view.result.learned.spending
    if spending is None:
        told = sentence(
            "Not known: it takes a calibrated confidence, and so at least 10 gold rows of two classes, to tell when "
            "enough has been asked."
        )
        return section("saved", "Calls saved on new texts", told)
    return section(
        "saved",
        "Calls saved on new texts",
        sentence(
            joined(
                "Of all questions, a new text takes ",
                tag("strong", percent(spending.questions, 1)),
                ": pcs label asks the votes that weigh most first, and stops when no open one can change the label. "
                "The label is the same as if everybody had been asked.",
            )
        ),
        tag(
            "div",
            figure("Questions asked of each model", _chart("Model", spending.by_annotator)),
            figure("Texts that must be seen through each relation", _chart("Relation", spending.by_relation)),
            class_="pair",
        ),
        sentence("Measured on the recorded votes of all rows of this run.", kind="note"),
    )


def _chart(title: str, shares: Mapping[str, float]) -> Markup:
    rows: list[list[Child]] = [
        [user_text(name), bar(share), percent(share, 1)]
        for name, share in sorted(shares.items(), key=lambda pair: -pair[1])
    ]
    return table([Column(title), Column("", "chart"), Column("asked", "number")], rows, kind="bars")
