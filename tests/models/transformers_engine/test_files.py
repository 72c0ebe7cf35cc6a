"""Where a model's files are and which version they are; torch is not needed for that."""

import json
from pathlib import Path
from typing import Any

import pytest

from pcs_annotator.base.errors import ConfigError, MissingPackage
from pcs_annotator.models.local import download as files_module
from pcs_annotator.models.local import in_process as transformers_local
from pcs_annotator.models.local.download import ModelFiles, download, find_files
from pcs_annotator.models.resolve import resolve_model


def write_model(folder: Path, **settings: Any) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    config = {"architectures": ["LlamaForCausalLM"], "max_position_embeddings": 4096} | settings
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "model.safetensors").write_bytes(b"weights")
    return folder


def test_without_the_packages_the_error_has_the_pip_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transformers_local, "find_spec", lambda name: None)
    with pytest.raises(MissingPackage, match=r"needs torch.*pip install 'perceived-confidence\[transformers\]'"):
        resolve_model("transformers:org/model", {})


@pytest.mark.parametrize(
    ("settings", "longest", "context"),
    [
        ({}, None, 4096),
        ({}, 1024, 1024),
        ({}, 10**30, 4096),
        ({"text_config": {"max_position_embeddings": 512}}, None, 512),
        ({"max_position_embeddings": None, "n_positions": 77}, None, 77),
        ({"max_position_embeddings": None}, None, None),
    ],
)
def test_the_context_is_what_the_files_say(
    tmp_path: Path, settings: dict[str, Any], longest: int | None, context: int | None
) -> None:
    write_model(tmp_path, **settings)
    if longest is not None:
        (tmp_path / "tokenizer_config.json").write_text(json.dumps({"model_max_length": longest}))
    assert find_files(str(tmp_path), {}).context_tokens == context


def test_the_version_changes_with_every_file_that_shapes_answers_and_with_no_other(tmp_path: Path) -> None:
    first = find_files(str(write_model(tmp_path / "one")), {}).version
    assert find_files(str(write_model(tmp_path / "copy")), {}).version == first
    (tmp_path / "copy" / "README.md").write_text("a note")
    (tmp_path / "copy" / ".cache").mkdir()
    assert ModelFiles(tmp_path / "copy").version == first
    (tmp_path / "copy" / "chat_template.jinja").write_text("{{ messages }}")
    assert ModelFiles(tmp_path / "copy").version != first
    (tmp_path / "one" / "model.safetensors").write_bytes(b"weighty")
    assert ModelFiles(tmp_path / "one").version != first
    assert ModelFiles(tmp_path, "org/model", "0123456789abcdef0123").version == "0123456789ab"


def test_of_large_files_a_sample_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files_module, "WHOLE", 100)
    monkeypatch.setattr(files_module, "STEP", 64)
    monkeypatch.setattr(files_module, "SAMPLE", 8)
    weights = bytearray(1000)
    versions = []
    for changed in (None, 0, 65, 20, 995):
        write_model(tmp_path)
        content = weights.copy()
        if changed is not None:
            content[changed] = 1
        (tmp_path / "model.safetensors").write_bytes(content)
        versions.append(ModelFiles(tmp_path).version)
    same, start, second, between, end = versions
    assert same == between
    assert len({same, start, second, end}) == 4


def test_weights_are_complete_if_every_part_is_there(tmp_path: Path) -> None:
    write_model(tmp_path)
    assert ModelFiles(tmp_path).complete
    (tmp_path / "model.safetensors").unlink()
    assert not ModelFiles(tmp_path).complete
    parts = {"a": "model-1-of-2.safetensors", "b": "model-2-of-2.safetensors"}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": parts}))
    (tmp_path / "model-1-of-2.safetensors").write_bytes(b"x")
    assert not ModelFiles(tmp_path).complete
    with pytest.raises(ConfigError, match="no complete weights"):
        download(ModelFiles(tmp_path), {})
    (tmp_path / "model-2-of-2.safetensors").write_bytes(b"x")
    assert ModelFiles(tmp_path).complete
    assert download(ModelFiles(tmp_path), {}) == tmp_path


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"architectures": ["BertForMaskedLM"]}, "BertForMaskedLM"),
        ({"architectures": ["T5ForConditionalGeneration"], "is_encoder_decoder": True}, "T5"),
    ],
)
def test_a_model_that_continues_no_texts_is_refused(tmp_path: Path, settings: dict[str, Any], named: str) -> None:
    with pytest.raises(ConfigError, match=rf"not a causal language model \({named}"):
        find_files(str(write_model(tmp_path, **settings)), {})


def test_bad_folders_are_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"has no config\.json"):
        find_files(str(tmp_path), {})
    with pytest.raises(ConfigError, match=r"there is no folder .*absent"):
        find_files(str(tmp_path / "absent"), {})
    (tmp_path / "model.gguf").write_bytes(b"GGUF")
    with pytest.raises(ConfigError, match="llama-server"):
        find_files(str(tmp_path / "model.gguf"), {})
    for broken in ("{", "[]"):
        write_model(tmp_path)
        (tmp_path / "config.json").write_text(broken)
        with pytest.raises(ConfigError, match=r"config\.json"):
            find_files(str(tmp_path), {})
