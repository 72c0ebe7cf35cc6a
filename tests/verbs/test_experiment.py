from pathlib import Path

import pytest

from pcs_annotator.base.errors import ConfigError
from pcs_annotator.verbs.experiment import named_sources

pytestmark = pytest.mark.system


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_a_source_has_the_name_of_its_file_or_the_one_given_before_it() -> None:
    Path("a=b.csv").write_text("text\nA day.\n", encoding="utf-8")
    assert named_sources(["news=a=b.csv", "a=b.csv"]) == {"news": Path("a=b.csv"), "a=b": Path("a=b.csv")}
    with pytest.raises(ConfigError, match=r"'a=b'.*NAME=PATH"):
        named_sources(["a=b.csv", "a=b.csv"])
