import json
from pathlib import Path

import pytest

from pcs_annotator.base.errors import ConfigError
from pcs_annotator.runs.settings import Config
from pcs_annotator.runs.toml import config_from_dict, config_to_dict, read_config

GOOD = """
[relations]
use = ["original", "voice", "polite"]
rewriter = "groq:llama-3.1-8b-instant"

[relations.polite]
prompt = "Say it politely: {text}"
longest = 3
negations = "kept"
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "pcs.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_the_users_own_relation_is_read_with_its_expectation(tmp_path: Path) -> None:
    settings = read_config(written(tmp_path, GOOD), tmp_path).relations
    assert settings.use == ("original", "voice", "polite")
    assert settings.rewriter == "groq:llama-3.1-8b-instant"
    assert settings.own["polite"].prompt == "Say it politely: {text}"
    assert settings.own["polite"].expects.longest == 3.0


def test_every_section_is_read(tmp_path: Path) -> None:
    config = read_config(
        written(
            tmp_path,
            """
            [task]
            instruction = "Fake or real?"
            labels = ["fake", "real"]
            meanings = { fake = "invented" }
            [data]
            text_column = "title"
            [ask]
            models = ["ollama:llama3"]
            draws = 2
            concurrency = 8
            budget_usd = 5
            prices = { "ollama:llama3" = [0, 0.5] }
            [learn]
            optimiser = "lr"
            seed = 7
            """,
        ),
        tmp_path,
    )
    assert config.task.labels == ("fake", "real")
    assert config.task.meanings == {"fake": "invented"}
    assert config.data.text_column == "title"
    assert (config.ask.models, config.ask.draws, config.ask.concurrency) == (("ollama:llama3",), 2, 8)
    assert (config.ask.budget_usd, config.ask.prices) == (5.0, {"ollama:llama3": (0, 0.5)})
    assert (config.learn.optimiser, config.learn.seed, config.learn.folds) == ("lr", 7, 5)


def test_the_file_in_the_working_folder_is_found(tmp_path: Path) -> None:
    assert read_config(None, tmp_path) == Config()
    written(tmp_path, GOOD)
    assert read_config(None, tmp_path).relations.rewriter


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[relations.x]\nprompt = 3\n", r"line 2: relations\.x\.prompt.* 3.*text"),
        ("[relations.x]\nversion = '2'\n", r"line 1: relations\.x.*prompt"),
        ("[relations.x]\nprompt = ''\n", r"line 1: relations\.x.*prompt"),
        ("[ask]\ntogether = 'yes'\n", r"line 2: ask\.together.*'yes'.*true or false"),
        ("[relations]\n\nuse = 'voice'\n", r"line 3: relations\.use.*'voice'.*list"),
        ("[relations]\nuse = [1]\n", r"line 2: relations\.use.*\[1\].*list"),
        ("[relations]\nrewritter = ''\n", r"line 2: relations\.rewritter.*rewriter"),
        ("[relatoins]\nuse = []\n", r"line 1: relatoins.*ask, data, learn, relations, task"),
        ("relations = 3\n", r"line 1: relations.* 3.*\[relations\]"),
        (
            "[relations.x]\nprompt = 'Rewrite.'\nnegations = 'many'\n",
            r"line 3: relations\.x\.negations.*'many'.*'kept', 'doubled'",
        ),
        ("[relations.x]\nprompt = 'Rewrite.'\nlongest = 'long'\n", r"line 3: .*longest.*'long'.*number"),
        ("[ask]\ndraws = 1.5\n", r"line 2: ask\.draws.*1\.5.*whole number"),
        ("[ask]\ndraws = true\n", r"line 2: ask\.draws.*True.*whole number"),
        ("[ask]\ndraws = 0\n", r"line 2: ask\.draws is 0, must be at least 1"),
        ("[ask]\nmax_per_second = 0\n", r"line 2: ask\.max_per_second is 0, must be at least 0.001"),
        ("[ask]\nprices = 3\n", r"line 2: ask\.prices is 3, must be a table"),
        ("[ask]\nbudget_usd = 'much'\n", r"line 2: ask\.budget_usd.*'much'.*number"),
        ("[ask.prices]\n'my:model' = [1]\n", r"ask\.prices\.my:model.*\[1\].*2 numbers"),
        ("[task.meanings]\ngood = 1\n", r"line 2: task\.meanings\.good.* 1.*text"),
        ("[relations\n", r"TOML.*line 1"),
    ],
)
def test_every_error_names_file_line_and_key(text: str, problem: str, tmp_path: Path) -> None:
    path = written(tmp_path, text)
    with pytest.raises(ConfigError, match=problem) as caught:
        read_config(path, tmp_path)
    assert str(path) in str(caught.value)


def test_a_file_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"other\.toml.*No such file"):
        read_config(tmp_path / "other.toml", tmp_path)
    with pytest.raises(ConfigError, match="cannot be read"):
        read_config(tmp_path, tmp_path)
    path = tmp_path / "pcs.toml"
    path.write_bytes(b"[relations]\nrewriter = '\xff'\n")
    with pytest.raises(ConfigError, match="UTF-8"):
        read_config(path, tmp_path)


def test_a_key_written_with_dots_is_found_too(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"relations\.x\.prompt.* 1"):
        read_config(written(tmp_path, "[relations]\nx.prompt = 1\n"), tmp_path)


def test_settings_are_read_back_from_plain_values(tmp_path: Path) -> None:
    config = read_config(written(tmp_path, GOOD + "[ask.prices]\n'a:b' = [1, 2]\n"), tmp_path)
    again = config_from_dict(json.loads(json.dumps(config_to_dict(config))))
    assert again.relations == config.relations
    assert again.task == config.task


def test_settings_of_a_later_version_are_ignored() -> None:
    assert config_from_dict({"ask": {"draws": 3, "telepathy": True}, "magic": {}}).ask.draws == 3


def test_a_mark_that_windows_editors_put_first_is_no_part_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "pcs.toml").write_text("[ask]\ndraws = 3\n", encoding="utf-8-sig")
    assert read_config(None, tmp_path).ask.draws == 3


@pytest.mark.parametrize(
    ("setting", "problem"),
    [
        ("[ask]\nmax_per_second = 1e-300", "must be at least 0.001"),
        ("[ask]\ndraws = 1000000000", "must be at most 1000"),
        ("[learn]\nmax_error = 1.5", "must be less than 1"),
        ("[learn]\nmax_error = 0", "must be more than 0"),
        ("[learn]\ncertainty = 1.0", "must be less than 1"),
    ],
)
def test_every_bound_is_checked_where_settings_are_read(setting: str, problem: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=problem):
        read_config(written(tmp_path, setting), tmp_path)
