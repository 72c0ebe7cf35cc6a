import subprocess
import sys
import warnings
from collections.abc import Callable
from importlib.metadata import EntryPoint
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import pcs_annotator
from pcs_annotator import Optimiser, PcsWarning, UserError
from pcs_annotator.base.errors import UnknownNameError
from pcs_annotator.base.registry import Registry
from pcs_annotator.judging.fit_weights import optimisers
from tests.builders import simulated_votes

GROUP = "pcs_annotator.optimisers"

Install = Callable[..., None]


class Colour:
    """Something to register."""


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Install:
    """Pretend that a package with these entry points is installed."""

    def pretend(**points: str) -> None:
        found = [EntryPoint(name, value, "colours") for name, value in points.items()]
        monkeypatch.setattr(
            "pcs_annotator.base.registry.entry_points", lambda group: found if group == "colours" else []
        )

    return pretend


def colours() -> Registry[object]:
    return Registry("colour", "colours")


def test_decorator_registers_a_class_and_leaves_it_as_it_is() -> None:
    registry = colours()

    decorated = registry.register("red")(Colour)

    assert decorated is Colour
    assert registry.names() == ["red"]


def test_every_request_creates_a_new_thing() -> None:
    registry = colours()
    registry.register("red")(Colour)

    one, other = registry.create("red"), registry.create("red")

    assert isinstance(one, Colour)
    assert one is not other


def test_function_is_a_factory_too() -> None:
    registry = colours()

    @registry.register("blue")
    def blue() -> str:
        return "a blue thing"

    assert registry.create("blue") == "a blue thing"


def test_names_are_sorted() -> None:
    registry = colours()
    for name in ("red", "blue", "green"):
        registry.register(name)(Colour)

    assert registry.names() == ["blue", "green", "red"]


def test_name_taken_by_another_thing_is_refused() -> None:
    registry = colours()
    registry.register("red")(Colour)

    with pytest.raises(ValueError, match=r"colour 'red'.*Colour"):
        registry.register("red")(type("Other", (), {}))
    assert isinstance(registry.create("red"), Colour)


def test_registering_the_same_thing_again_is_harmless() -> None:
    registry = colours()
    registry.register("red")(Colour)
    registry.register("red")(Colour)

    assert registry.names() == ["red"]


def test_unknown_name_suggests_the_nearest_and_lists_all() -> None:
    registry = colours()
    for name in ("magenta", "blue"):
        registry.register(name)(Colour)

    with pytest.raises(UnknownNameError) as caught:
        registry.create("magneta")

    parts = ["colour", "'magneta'", "did you mean 'magenta'", "blue, magenta"]
    assert [part for part in parts if part not in str(caught.value)] == []
    assert isinstance(caught.value, UserError)


def test_unknown_name_far_from_all_suggests_nothing() -> None:
    registry = colours()
    registry.register("blue")(Colour)

    with pytest.raises(UnknownNameError, match=r"colour.*'xyz'.*blue") as caught:
        registry.create("xyz")
    assert "did you mean" not in str(caught.value)


def test_plug_ins_are_looked_up_once_and_only_when_a_name_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    lookups: list[str] = []

    def nothing_installed(group: str) -> list[EntryPoint]:
        lookups.append(group)
        return []

    monkeypatch.setattr("pcs_annotator.base.registry.entry_points", nothing_installed)
    registry = colours()
    registry.register("red")(Colour)
    assert lookups == []

    registry.names()
    registry.create("red")

    assert lookups == ["colours"]


def test_plug_in_cannot_take_the_name_of_a_built_in(install: Install) -> None:
    registry = colours()
    registry.register("red")(Colour)
    install(red="collections:OrderedDict")

    with pytest.warns(PcsWarning, match="colour 'red' from 'collections:OrderedDict'.*already"):
        registry.names()
    assert isinstance(registry.create("red"), Colour)


def test_a_built_in_is_found_without_looking_for_plug_ins(install: Install) -> None:
    registry = colours()
    registry.register("red")(Colour)
    install(bad="no_such_package:Thing")
    assert isinstance(registry.create("red"), Colour)


def test_broken_plug_in_does_not_affect_the_others(install: Install) -> None:
    registry = colours()
    install(bad="no_such_package:Thing", worse="collections:NoSuchThing", good="collections:OrderedDict")

    with pytest.warns(PcsWarning) as caught:
        names = registry.names()

    assert names == ["good"]
    messages = [str(one.message) for one in caught]
    assert [("'bad'" in message, "'worse'" in message) for message in messages] == [(True, False), (False, True)]


def test_module_named_as_a_plug_in_registers_what_it_decorates(
    install: Install, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry = colours()
    home = ModuleType("home_of_colours")
    home.colour = registry.register  # type: ignore[attr-defined]  # a module is a bag of names
    monkeypatch.setitem(sys.modules, "home_of_colours", home)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "colour_plug_in", raising=False)
    (tmp_path / "colour_plug_in.py").write_text(
        "from home_of_colours import colour\n@colour('violet')\nclass Violet: ...\n@colour('teal')\nclass Teal: ...\n"
    )
    install(violet="colour_plug_in")

    assert registry.names() == ["teal", "violet"]
    assert type(registry.create("violet")).__name__ == "Violet"


def test_installed_package_adds_its_optimiser_and_its_broken_one_is_ignored() -> None:
    fresh: Registry[Optimiser] = Registry("optimiser", GROUP)

    with pytest.warns(PcsWarning, match="optimiser 'broken' from 'pcs_example_plugin:DoesNotExist'"):
        names = fresh.names()

    assert names == ["first-come"]
    assert fresh.create("first-come").needs_gold is False


def test_broken_plug_in_is_reported_only_once() -> None:
    fresh: Registry[Optimiser] = Registry("optimiser", GROUP)
    with pytest.warns(PcsWarning, match="'broken'"):
        fresh.names()

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert fresh.names() == ["first-come"]


def test_built_ins_and_plug_ins_are_listed_together() -> None:
    assert {"lr", "ga", "uniform", "first-come"} <= set(optimisers.names())
    assert "broken" not in optimisers.names()


def test_optimiser_of_an_installed_package_fits_weights() -> None:
    votes, gold = simulated_votes([0.9, 0.6], items=30)

    with pytest.warns(PcsWarning, match="model-0.*100 %"):
        weights = pcs_annotator.fit_weights(votes, gold, optimiser="first-come")

    assert weights.by_annotator == {"model-0": 1.0, "model-1": 0.0}
    np.testing.assert_allclose(weights.relation_weights, 0.25)
    assert weights.diagnostics.optimiser == "first-come"


def test_a_name_of_a_built_in_is_taken_even_before_the_built_ins_are_loaded() -> None:
    code = (
        "from pcs_annotator import optimiser\n"
        "try:\n    optimiser('lr')(type('Mine', (), {}))\nexcept ValueError as error:\n    print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "'lr' is already registered" in done.stdout


def test_threads_that_ask_at_the_same_time_all_get_an_answer() -> None:
    code = (
        "from concurrent.futures import ThreadPoolExecutor\n"
        "from pcs_annotator.judging.fit_weights import optimisers\n"
        "with ThreadPoolExecutor(8) as pool:\n"
        "    print(len(list(pool.map(optimisers.create, ['uniform', 'auto', 'ga', 'lr'] * 4))))"
    )
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "16"
