"""The names that users may rely on: a change here is a change for them."""

import json
import re
import subprocess
import sys

import pytest

import pcs_annotator

PUBLIC = [
    "ABSTAINED",
    "NOT_ASKED",
    "PCS",
    "Annotator",
    "BookResult",
    "CollectSettings",
    "Decision",
    "Example",
    "Expectation",
    "Item",
    "LoadedRun",
    "Optimiser",
    "Outcome",
    "Outcomes",
    "PCSClassifier",
    "PcsError",
    "PcsWarning",
    "PromptedRelation",
    "Relation",
    "RelationOptions",
    "RunResult",
    "Task",
    "UserError",
    "Variant",
    "Votes",
    "Weights",
    "aevaluate",
    "alabel",
    "arun",
    "collect",
    "compare",
    "estimate",
    "evaluate",
    "fit_weights",
    "label",
    "load_run",
    "optimiser",
    "provider",
    "relation",
    "relation_values",
    "run",
    "score",
]
# public names for things that bear another name themselves
ALIASES = {"Decision": "Literal", "optimiser": "register", "provider": "register"}
HEAVY = ["aiohttp", "langchain", "numpy", "pandas", "polars", "pyarrow", "rich", "scipy", "sklearn", "spacy", "torch"]


def in_a_fresh_interpreter(code: str) -> object:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def test_public_names_are_these() -> None:
    assert pcs_annotator.__all__ == PUBLIC


def test_public_names_are_sorted_as_ruff_sorts_them() -> None:
    def constants_then_classes_then_the_rest(name: str) -> tuple[int, str]:
        return (0 if name.isupper() else 1 if name[0].isupper() else 2, name)

    assert sorted(PUBLIC, key=constants_then_classes_then_the_rest) == PUBLIC


@pytest.mark.parametrize("name", PUBLIC)
def test_public_name_resolves_to_the_thing_it_names(name: str) -> None:
    # looked up as on first use, for another test may have loaded it already
    thing = pcs_annotator.__getattr__(name)

    assert getattr(thing, "__name__", name) == ALIASES.get(name, name)
    assert getattr(pcs_annotator, name) is thing


def test_every_public_name_can_be_imported_at_once() -> None:
    code = "import json; from pcs_annotator import *; print(json.dumps(sorted(set(dir()))))"

    assert set(PUBLIC) <= set(in_a_fresh_interpreter(code))  # type: ignore[call-overload]


def test_unknown_attribute_is_refused_like_that_of_any_module() -> None:
    with pytest.raises(AttributeError, match="module 'pcs_annotator' has no attribute 'nonsense'"):
        pcs_annotator.nonsense  # noqa: B018  # looking is what is tested


def test_importing_loads_nothing_heavy() -> None:
    code = (
        "import json, sys, pcs_annotator; dir(pcs_annotator); "
        f"print(json.dumps([name for name in {HEAVY} if name in sys.modules]))"
    )

    assert in_a_fresh_interpreter(code) == []


def test_dir_lists_public_names_before_they_are_loaded() -> None:
    listed = in_a_fresh_interpreter("import json, pcs_annotator; print(json.dumps(dir(pcs_annotator)))")

    assert isinstance(listed, list)
    assert set(PUBLIC) <= set(listed)
    assert listed == sorted(listed)


def test_version_is_one_that_packaging_understands() -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+(\.dev\d+|rc\d+)?", pcs_annotator.__version__)
