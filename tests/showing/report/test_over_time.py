"""The table and the chart of fits."""

from pathlib import Path

from pcs_annotator.core.weights import Interval
from pcs_annotator.runs.fits import Version
from pcs_annotator.runs.paths import RunFolder
from pcs_annotator.showing.report.over_time import MOST_SHOWN, fits_chart, fits_of, fits_table, over_time
from pcs_annotator.showing.to_html import html_of
from tests.builders import the
from tests.showing.report.reading import Page


def fit(number: int, accuracy: float | None = 0.8, accepted: float | None = None, wrong: int = 0) -> Version:
    made, audited = f"2026-01-{number:02d}T10:00:00+00:00", 50 if wrong else 0
    ends = None if accuracy is None else Interval(accuracy - 0.1, accuracy + 0.1)
    error = Interval(0.01, 0.2) if wrong else None
    version = Version(number, made, 100 * number, accuracy, accepted, "id", in_use=number == 2, accuracy_interval=ends)
    return version._replace(audited=audited, wrong=wrong, error_interval=error)


def test_a_chart_needs_two_fits_and_shows_the_last_ones() -> None:
    assert over_time([fit(1)]) is None
    chart = the(fits_chart([fit(number) for number in range(1, 20)]))
    assert chart.axes.x.ticks == [float(number) for number in range(20 - MOST_SHOWN, 20)]


def test_the_chart_has_what_is_known_and_says_it_in_words() -> None:
    chart = the(fits_chart([fit(1, None), fit(2, 0.8, 0.4), fit(3, 0.9, 0.6, wrong=4)]))
    assert chart.description == (
        "3 fits. right, of gold rows that the fit did not see: 80 % to 90 %; accepted, of all rows: 40 % to 60 %; "
        "wrong, of accepted rows in an audit: 8 %."
    )
    drawn = Page(chart.inline())
    assert "version 3, 2026-01-03, 300 gold rows: 8 % wrong, of accepted rows in an audit" in drawn.text
    assert [len(drawn.with_class(kind)) for kind in ("c1", "c2", "c3")] == [7, 4, 4]  # lines, reaches, dots, legend


def test_the_table_has_the_columns_that_some_fit_has() -> None:
    table = fits_table([fit(1), fit(2)._replace(calls=1)])
    assert [column.title for column in table.columns][-1] == "cost so far"
    assert [row[-1] for row in table.rows] == ["–", "1 call"]
    assert [row[0] for row in table.rows] == ["1", "2, in use"]
    table = fits_table([fit(1)._replace(calls=5, usd=2.5), fit(2, wrong=1)])
    assert [row[-2:] for row in table.rows] == [["–", "$2.50"], ["1 of 50", "–"]]
    shown = Page(html_of(over_time([fit(1), fit(2)])))
    assert "How has it changed from fit to fit?" in shown.text


def test_a_damaged_fit_hides_the_chart_and_breaks_nothing(tmp_path: Path) -> None:
    versions = RunFolder(tmp_path).versions
    versions.mkdir(parents=True)
    (versions / "1.json").write_text("{")
    assert fits_of(RunFolder(tmp_path)) == []
