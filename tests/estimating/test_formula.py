import numpy as np
import pytest

from pcs_annotator.base.errors import ConfigError, UndefinedMetric
from pcs_annotator.estimating.formula import Factor, FormulaData, parse_formula

COLUMNS = {
    "party": np.array(["x", "y", "z", "x"], dtype=object),
    "followers": np.array(["1", "2", "", "4"], dtype=object),
    "year": np.array(["2020", "2021", "2020", "2021"], dtype=object),
    "same": np.array(["7", "7", "7", "7"], dtype=object),
    "an age": np.array([1.0, 2.0, 3.0, np.nan]),
}
ALL = np.ones(4, dtype=np.bool_)


def data() -> FormulaData:
    return FormulaData(COLUMNS, ("hateful", "offensive", "fine"))


def coded(text: str) -> tuple[list[list[list[float]]], tuple[str, ...]]:
    formula = parse_formula(text)
    rows = data().complete(formula, 4)
    terms = data().coded(formula, rows)
    size = int(rows.sum()), max(one.values.shape[1] for one in terms)
    values = [np.broadcast_to(one.values, (*size, one.values.shape[2])) for one in terms]
    return np.concatenate(values, axis=2).tolist(), tuple(name for one in terms for name in one.names)


def test_a_formula_is_understood() -> None:
    found = parse_formula("hateful ~ party * log(followers) + `an age` + C(year)")
    assert found.outcome == Factor("hateful")
    assert [":".join(map(str, term)) for term in found.terms] == [
        "party", "log(followers)", "party:log(followers)", "an age", "C(year)",
    ]  # fmt: skip
    assert found.intercept
    assert not parse_formula("hateful ~ 0 + party").intercept
    assert parse_formula("hateful ~ 1").terms == ()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("party", "must have the form outcome ~ column"),
        ("a ~ b ~ c", "must have the form"),
        ("a ~ ", "must have the form"),
        ("a ~ exp(b)", "there is no function exp; there are C, log, log1p, sqrt"),
        ("a ~ (b", "'(b' is not understood"),
    ],
)
def test_what_is_not_understood_is_named(text: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why.replace("(", r"\(")):
        parse_formula(text)


def test_texts_are_categories_and_numbers_are_numbers() -> None:
    values, names = coded("hateful ~ party + followers")
    assert names == ("(intercept)", "party=y", "followers")
    assert values == [[[1, 0, 1]], [[1, 1, 2]], [[1, 0, 4]]]


def test_categories_are_all_told_apart_without_an_intercept() -> None:
    values, names = coded("hateful ~ 0 + C(year)")
    assert names == ("year=2020", "year=2021")
    assert values[0] == [[1, 0]]


def test_a_column_of_numbers_can_be_categories() -> None:
    assert coded("hateful ~ C(`an age`)")[1] == ("(intercept)", "an age=2.0", "an age=3.0", "an age=nan")


def test_functions_and_products_are_computed() -> None:
    values, names = coded("hateful ~ log1p(followers):party")
    assert names == ("(intercept)", "log1p(followers):party=y")
    assert values[1][0][1] == pytest.approx(np.log(3))


def test_a_label_explains_as_a_column_per_label() -> None:
    values, names = coded("followers ~ hateful * party")
    assert names == ("(intercept)", "hateful", "party=y", "hateful:party=y")
    assert values[1] == [[1, 1, 1, 1], [1, 0, 1, 0], [1, 0, 1, 0]]
    assert coded("followers ~ label")[1] == ("(intercept)", "label=offensive", "label=fine")


def test_a_formula_knows_what_it_names() -> None:
    assert parse_formula("hateful ~ party * log(followers)").names == {"hateful", "party", "followers"}


def test_rows_with_an_empty_cell_are_incomplete() -> None:
    assert data().complete(parse_formula("hateful ~ followers"), 4).tolist() == [True, True, False, True]
    assert data().complete(parse_formula("hateful ~ `an age` + party"), 4).tolist() == [True, True, True, False]


def test_the_outcome_may_be_a_column_of_numbers() -> None:
    assert data().numbers(Factor("an age"), ~np.isnan(COLUMNS["an age"])).tolist() == [1, 2, 3]
    with pytest.raises(ConfigError, match="column 'party' has texts such as 'x': the outcome must be numbers"):
        data().numbers(Factor("party"), ALL)


@pytest.mark.parametrize(
    ("text", "why"), [("hateful ~ log(party)", "column 'party' has texts, so log(party) cannot be computed")]
)
def test_columns_that_cannot_be_used_are_named(text: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why.replace("(", r"\(").replace(")", r"\)")):
        coded(text)


def test_a_logarithm_of_zero_is_refused() -> None:
    zero = FormulaData({"n": np.array(["0", "1"], dtype=object)}, ("a", "b"))
    with pytest.raises(ConfigError, match="undefined for some values of 'n', such as 0: try log1p"):
        zero.complete(parse_formula("a ~ log(n)"), 2)


@pytest.mark.parametrize("text", ["hateful ~ same", "hateful ~ 0 + same", "hateful ~ C(same)"])
def test_a_constant_is_refused(text: str) -> None:
    with pytest.raises(UndefinedMetric, match="is the same in all rows: leave it out"):
        coded(text)


def test_too_many_categories_are_refused() -> None:
    many = FormulaData({"text": np.array([f"t{row}" for row in range(60)], dtype=object)}, ("a", "b"))
    with pytest.raises(ConfigError, match="has 60 different texts, at most 50 can be told apart"):
        many.coded(parse_formula("a ~ text"), np.ones(60, dtype=np.bool_))


def test_infinite_numbers_are_texts() -> None:
    odd = FormulaData({"n": np.array(["inf", "1"], dtype=object)}, ("a", "b"))
    assert odd.coded(parse_formula("a ~ n"), np.ones(2, dtype=np.bool_))[1].names == ("n=inf",)
