"""What users install is what is here: wheel, source distribution, extras, container, and the files of a release."""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
import yaml

from pcs_annotator.version import __version__

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = sorted({*PROJECT["optional-dependencies"]} - {"dev", "docs", "transformers"})  # the last brings torch: large
PYTHONS = [f"3.{minor}" for minor in range(11, 15)]
PLATFORMS = {
    "x86-64": ["manylinux2014_x86_64", "manylinux_2_28_x86_64"],
    "aarch64": ["manylinux2014_aarch64", "manylinux_2_28_aarch64"],
}
PIP = ("-m", "pip", "--quiet", "--disable-pip-version-check", "--no-input")
CONTAINERS = ("Containerfile", "examples/docker/Dockerfile")


def interpreter(version: str) -> str:
    """Return a Python of this version; skip the test if this machine has none that starts."""
    known = sorted(map(str, Path.home().glob(f".pyenv/versions/{version}.*/bin/python")))
    places = [shutil.which(f"python{version}") or "", *known]
    if sys.version.startswith(f"{version}."):
        places.insert(0, sys.executable)
    for place in filter(None, places):
        asked = subprocess.run([place, "-c", "import venv"], capture_output=True, check=False)
        if asked.returncode == 0:
            return place
    pytest.skip(f"no Python {version} here")


def call(*command: str | Path, cwd: Path | None = None) -> str:
    """Run a command that must succeed, without our modules on its path, and return what it printed."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [str(part) for part in command], cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def environment_with(python: str, folder: Path, *packages: str) -> Path:
    """Make a clean environment with packages, and return its folder of programs."""
    call(python, "-m", "venv", folder)
    programs = folder / ("Scripts" if os.name == "nt" else "bin")
    if packages:
        call(programs / "python", *PIP, "install", *packages)
    return programs


@pytest.fixture(scope="module")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The wheel and the source distribution, as the release builds them."""
    folder = tmp_path_factory.mktemp("dist")
    try:
        programs = environment_with(sys.executable, folder / "building", "build>=1.2,<2")
    except AssertionError as error:
        pytest.skip(f"no package can be installed here: {error}")
    call(programs / "python", "-m", "build", "--outdir", folder / "made", ROOT)
    (wheel,), (source,) = (list((folder / "made").glob(pattern)) for pattern in ("*.whl", "*.tar.gz"))
    return wheel, source


def files_in(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return {name for name in archive.namelist() if not name.endswith("/RECORD")}


@pytest.mark.slow
def test_both_distributions_hold_every_file_of_the_package(distributions: tuple[Path, Path], tmp_path: Path) -> None:
    wheel, source = distributions
    call(sys.executable, *PIP, "wheel", "--no-deps", "--wheel-dir", tmp_path, source)
    (from_source,) = tmp_path.glob("*.whl")

    tracked = call("git", "ls-files", "src", cwd=ROOT).splitlines()
    assert {name.removeprefix("src/") for name in tracked} <= files_in(wheel)
    assert files_in(from_source) == files_in(wheel)


@pytest.mark.slow
@pytest.mark.parametrize("version", PYTHONS)
def test_the_wheel_works_in_a_clean_environment(version: str, distributions: tuple[Path, Path], tmp_path: Path) -> None:
    programs = environment_with(interpreter(version), tmp_path / "clean", str(distributions[0]))
    for script in PROJECT["scripts"]:
        assert call(programs / script, "--version") == f"pcs, version {__version__}\n"
    (tmp_path / "texts.csv").write_text("text\nBest pizza in town.\nCold and late.\n")
    options = ["--labels", "good,bad", "--model", "scripted:hash", "--relations", "original,frame", "--json"]
    found = json.loads(call(programs / "pcs", "run", "texts.csv", *options, "-o", "run", cwd=tmp_path))
    assert found["rows"] == 2
    assert (tmp_path / "run" / "report.html").exists()


@pytest.mark.slow
@pytest.mark.parametrize("extra", EXTRAS)
def test_every_extra_can_be_resolved(extra: str, distributions: tuple[Path, Path]) -> None:
    call(sys.executable, *PIP, "install", "--dry-run", "--ignore-installed", f"{distributions[0]}[{extra}]")


@pytest.mark.slow
@pytest.mark.parametrize("version", PYTHONS)
@pytest.mark.parametrize("platform", PLATFORMS)
def test_dependencies_have_wheels(
    platform: str, version: str, distributions: tuple[Path, Path], tmp_path: Path
) -> None:
    tags = [part for tag in PLATFORMS[platform] for part in ("--platform", tag)]
    target = ["--only-binary=:all:", "--python-version", version, *tags, "--target", str(tmp_path)]
    call(sys.executable, *PIP, "install", "--dry-run", "--ignore-installed", *target, str(distributions[0]))


def steps(container: str) -> list[tuple[str, str]]:
    """Return the steps of a container file as (instruction, arguments), with continued lines joined."""
    text = re.sub(r"\\\n\s*", "", (ROOT / container).read_text(encoding="utf-8"))
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [(name, arguments.strip()) for name, _, arguments in (line.partition(" ") for line in lines)]


@pytest.mark.parametrize("container", CONTAINERS)
def test_a_container_copies_what_exists_and_installs_extras_that_exist(container: str) -> None:
    for name, arguments in steps(container):
        if name == "COPY" and not arguments.startswith("--from"):
            *sources, _ = arguments.split()
            assert [path for path in sources if not (ROOT / path).exists()] == []
            assert {"/" + path.split("/")[0] for path in sources} <= {*sdist_paths(), "/pyproject.toml"}
        for extras in re.findall(r"\[([\w,]+)\]'", arguments):
            assert {*extras.split(",")} <= {*PROJECT["optional-dependencies"]}


def sdist_paths() -> list[str]:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    return list(tomllib.loads(text)["tool"]["hatch"]["build"]["targets"]["sdist"]["include"])


@pytest.mark.parametrize("container", CONTAINERS)
def test_a_container_starts_from_a_named_python_and_runs_pcs_without_rights(container: str) -> None:
    found = steps(container)
    given = dict(arguments.partition("=")[::2] for name, arguments in found if name == "ARG")
    images = [re.sub(r"\$\{(\w+)\}", lambda part: given[part[1]], text) for name, text in found if name == "FROM"]
    names = [name for name, _ in found]
    users = [arguments for name, arguments in found if name == "USER"]
    (entry,) = [json.loads(arguments) for name, arguments in found if name == "ENTRYPOINT"]

    assert all(re.match(r"python:3\.(1[1-4])-slim(-\w+)?( AS \w+)?$", image) for image in images)
    assert users
    assert users[-1] not in ("root", "0")
    assert names.index("USER") > max(place for place, name in enumerate(names) if name == "RUN")
    assert entry[0] in PROJECT["scripts"]
    assert "ADD" not in names  # would unpack archives and fetch addresses


def test_paths_that_a_container_uses_are_made_before() -> None:
    made = {"/build", "src"}
    for name, arguments in steps("Containerfile"):
        if name == "RUN":
            program, *rest = arguments.split()
            assert not program.startswith("/") or any(program.startswith(path) for path in made)
            made |= {part for part in rest if part.startswith("/")}
        elif name == "COPY" and arguments.startswith("--from"):
            assert arguments.split()[1] in made


@pytest.mark.slow
def test_the_container_is_built_and_starts() -> None:
    builder = shutil.which("podman") or shutil.which("docker")
    if builder is None:
        pytest.skip("neither podman nor docker is installed")
    call(builder, "build", "-t", "pcs-test", "-f", "Containerfile", ".", cwd=ROOT)
    assert __version__ in call(builder, "run", "--rm", "pcs-test", "--version")


def test_the_release_workflow_publishes_only_what_was_checked() -> None:
    text = (ROOT / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8")
    jobs = yaml.safe_load(text)["jobs"]
    publish = jobs.pop("publish")

    assert {*publish["needs"]} == {*jobs}
    assert publish["permissions"]["id-token"] == "write"  # trusted publishing: no password
    assert "password:" not in text
    assert "secrets." not in text
    assert not any("permissions" in job for job in jobs.values())
    for job in [publish, *jobs.values()]:
        for step in job["steps"]:
            assert ("uses" in step) != ("run" in step)
            assert "uses" not in step or re.fullmatch(r"[\w-]+/[\w-]+@(v\d+|release/v1)", step["uses"])


def test_the_release_workflow_calls_what_exists() -> None:
    text = (ROOT / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8")
    targets = re.findall(r"^([\w./-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)

    for target in re.findall(r"make ([\w./-]+)", text):
        assert target in targets
    for path in re.findall(r"(?:src|tests|\.ci)/[\w./]+", text):
        assert (ROOT / path).exists()


def test_an_audit_lists_the_parts_and_passes_no_version_that_it_could_not_ask_about() -> None:
    done = ("-o", ".venv/dev", "-o", ".venv/audit")
    steps = call("make", "--dry-run", *done, "audit", cwd=ROOT)
    assert "pip-audit --strict" in steps
    assert "cyclonedx-py environment" in steps


def test_the_citation_names_this_version() -> None:
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert cited["version"] == __version__
    assert cited["license"] == PROJECT["license"]
    assert cited["abstract"] == PROJECT["description"]


def test_links_of_the_security_page_and_of_contributing_lead_somewhere() -> None:
    for name in ("SECURITY.md", "CONTRIBUTING.md"):
        text = (ROOT / name).read_text(encoding="utf-8")
        paths = re.findall(r"\]\((?!https:)([^)#]+)", text) + re.findall(
            r"`((?:src|docs|tests|benchmarks)/[\w./]+)`", text
        )
        assert [path for path in paths if not (ROOT / path).exists()] == []
