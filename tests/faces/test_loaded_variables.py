"""`load_run` of a codebook: all variables of further texts, for the price of one."""

import asyncio
import pickle
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow as pa
import pytest

from pcs_annotator import load_run
from pcs_annotator.base.errors import ConfigError
from pcs_annotator.core.chat import ChatModel, Request
from pcs_annotator.faces.loaded_run import NO_TEXT, NOT_TEXT
from pcs_annotator.models.provider import providers
from pcs_annotator.models.scripted import ScriptedModel
from pcs_annotator.runs.run_request import RunRequest
from pcs_annotator.runs.settings import Config
from pcs_annotator.verbs.fit import open_book
from pcs_annotator.verbs.label import label
from tests.faces.review.coded import FRAMES, ONE, Coder, make_codebook, truth
from tests.made_once import made_once
from tests.simulated import copy_run

pytestmark = pytest.mark.system  # whole runs

PARTS = ["topic", *(f"frames={one}" for one in FRAMES), "tone", "event"]
CALLS: Counter[str] = Counter()


class Counting(Coder):
    """Counts the calls, and is silent about some texts."""

    def open(self, model: str, environment: object) -> ChatModel:
        inner = super().open(model, environment)
        assert isinstance(inner, ScriptedModel)
        script = inner._script
        assert callable(script)

        def answer(request: Request) -> str:
            CALLS[model] += 1
            said = str(script(request))
            return re.sub("<tone>.*</tone>", "<tone>?</tone>", said) if "Text 705" in str(request.messages) else said

        return ScriptedModel(answer, name=f"coder:{model}")


@pytest.fixture
def folder(tmp_path_factory: pytest.TempPathFactory, tmp_path: Path) -> Iterator[Path]:
    made = made_once(tmp_path_factory, "codebook", make_codebook) / "run"
    CALLS.clear()
    with mock.patch.dict(providers._factories, {"coder": Counting}):
        yield copy_run(made, tmp_path / "run")


def loaded_from(folder: Any) -> Any:  # what is about several variables has other types
    return load_run(folder)


def test_several_texts_get_all_variables_with_shared_calls(folder: Path) -> None:
    texts = [f"Text {row} is new." for row in range(700, 720)]
    with loaded_from(folder) as loaded:
        found = loaded.label(texts, ids=[f"n{row}" for row in range(20)])
        paid = CALLS.total()
        assert loaded.label(texts[0])["topic"][0].label == found["topic"][0].label
    assert list(found) == list(loaded.results) == PARTS
    assert [one.id for one in found["tone"]][:2] == ["n0", "n1"]
    assert sum(one.label == truth("topic", row) for row, one in enumerate(found["topic"], 700)) >= 12
    assert {one.label for one in found["frames=conflict"]} == {"yes", "no"}
    assert found["tone"][5].label is None
    assert 0 < paid <= 4 * len(texts), "two models, two questions, and not six times as many"
    assert CALLS.total() == paid, "a text that is known costs nothing"


def test_a_table_gets_the_columns_that_the_command_gives(folder: Path, tmp_path: Path) -> None:
    table = pa.table({"text": [f"Text {row} is new." for row in range(700, 712)], "n": range(12)})
    request = RunRequest(data=table, folder=folder, config=Config())
    label(request, tmp_path / "out.parquet")
    written = pa.parquet.read_table(tmp_path / "out.parquet")
    with loaded_from(open_book(folder)) as loaded:  # takes what `run` returns, too
        found = loaded.label_table(table)
        assert loaded.label_schema(table.schema) == found.schema
        assert loaded.label_table(table.slice(0, 0)).schema == found.schema
    assert found.column_names == [*written.column_names, "pcs_error"]
    for name in written.column_names:
        assert found[name].to_pylist() == written[name].to_pylist(), name
    errors = found["pcs_error"].to_pylist()
    assert errors[5].startswith("tone: ")
    assert [one for place, one in enumerate(errors) if place != 5] == [None] * 11


def test_rows_without_a_text_say_so_and_raise_nothing(folder: Path) -> None:
    table = {"text": [b"Text 700 is new.", None, b"\xff\xfe"]}
    with loaded_from(folder) as loaded:
        found = loaded.label_table(table)
    assert found["pcs_error"].to_pylist() == [None, NO_TEXT, NOT_TEXT]
    assert found["pcs_tone_low"].to_pylist()[0] in ONE["tone"]
    assert found["pcs_frames"].to_pylist()[1:] == [None, None]


def test_it_can_be_awaited_and_sent_to_other_processes(folder: Path) -> None:
    with loaded_from(folder) as loaded:
        here = loaded.label(["Text 701 is new."])
        with pickle.loads(pickle.dumps(loaded)) as copy:
            assert copy.folder == folder
            assert asyncio.run(copy.alabel(["Text 701 is new."])) == here


def test_half_a_codebook_is_refused(folder: Path) -> None:
    (folder / "variables/tone" / "votes.parquet").unlink()
    with pytest.raises(ConfigError, match="half a run"):
        load_run(folder)


def test_a_copy_of_a_gold_text_has_golds_labels_for_all_variables(folder: Path) -> None:
    texts = [f" Text {row} tells a story. " for row in range(30)]
    with loaded_from(folder) as loaded:
        table, found = loaded.label_table(texts), loaded.label(texts)
    for name in ("topic", "tone", "event", "frames"):
        expected = [truth(name, row).replace("; ", ";") for row in range(30)]
        assert table[f"pcs_{name}_final"].to_pylist() == expected
    assert [outcome.label for outcome in found["topic"]] == [truth("topic", row) for row in range(30)]
    assert table["pcs_topic"].to_pylist() != table["pcs_topic_final"].to_pylist()
