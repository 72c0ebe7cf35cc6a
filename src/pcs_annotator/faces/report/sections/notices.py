"""What a user should know about models and gold before believing anything."""

from __future__ import annotations

from pcs_annotator.faces.report.formats import counted
from pcs_annotator.faces.report.markup import Markup, section, sentence, tag, user_text
from pcs_annotator.faces.report.view import View


def notices(view: View) -> Markup:
    """Return the flags of the fit, or that there are none."""
    told = view.result.learned.model.weights.diagnostics
    entries = [
        tag("li", tag("span", flag.kind, class_="chip warn"), " ", user_text(flag.detail, "span"))
        for flag in told.flags
    ]
    unlabelled = view.result.unlabelled
    if unlabelled:
        text = f"{counted(unlabelled, 'row has', 'rows have')} no label, because nobody gave a usable answer."
        entries.append(tag("li", tag("span", "no label", class_="chip warn"), " ", text))
    calm = sentence("Nothing to report: no model is silent or always says the same, and every row has a label.")
    return section("notices", "What to look at", tag("ul", *entries, class_="notices") if entries else calm)
