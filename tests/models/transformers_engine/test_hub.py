"""Models on a hub: from the cache without a connection, and downloaded from a hub on this machine."""

import json
import os
import threading
from collections.abc import Iterator
from hashlib import sha1
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from pcs_annotator.base.errors import ConfigError
from pcs_annotator.core.chat import Constraint
from pcs_annotator.models.local.download import download, find_files
from pcs_annotator.models.local.in_process import TransformersModel
from pcs_annotator.models.resolve import resolve_model
from pcs_annotator.verbs.models import missing_weights, pull_weights
from tests.models.stub import question, run
from tests.models.transformers_engine.random_models import save_llama

pytestmark = pytest.mark.slow
COMMIT = "0123456789abcdef0123456789abcdef01234567"
REPO = "org/tiny"


class Hub(ThreadingHTTPServer):
    """Serves one model as the hub does."""

    def __init__(self, folder: Path) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.folder = folder
        self.fetched: list[str] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    server: Hub

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        path = unquote(self.path.partition("?")[0])
        files = sorted(file.name for file in self.server.folder.iterdir())
        if path.startswith(f"/api/models/{REPO}/revision/"):
            return self._send(
                json.dumps({"id": REPO, "sha": COMMIT, "siblings": [{"rfilename": name} for name in files]}).encode()
            )
        if path.startswith(f"/api/models/{REPO}/tree/"):
            listed = [
                {"type": "file", "path": name, "oid": "0" * 40, "size": (self.server.folder / name).stat().st_size}
                for name in files
            ]
            return self._send(json.dumps(listed).encode())
        prefix, _, rest = path.partition("/resolve/")
        name = rest.partition("/")[2]
        if prefix == f"/{REPO}" and name in files:
            if self.command == "GET":
                self.server.fetched.append(name)
            return self._send((self.server.folder / name).read_bytes())
        self.send_response(404)
        self.send_header("X-Error-Code", "EntryNotFound" if prefix == f"/{REPO}" else "RepoNotFound")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _send(self, body: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("ETag", f'"{sha1(body).hexdigest()}"')
        self.send_header("X-Repo-Commit", COMMIT)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    # the client waits 23 s in all before it gives up
    monkeypatch.setattr("huggingface_hub.utils._http.time.sleep", lambda seconds: None)
    server = Hub(save_llama(tmp_path / "served"))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_name_on_the_hub_is_downloaded_once_and_then_needs_no_connection(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (hub.folder / "model.onnx").write_bytes(b"the same in another format")
    here = {"HF_ENDPOINT": hub.url, "HF_HUB_CACHE": str(tmp_path / "cache"), "PCS_DEVICE": "cpu"}
    for name, value in here.items():
        monkeypatch.setenv(name, value)
    model = resolve_model(f"transformers:{REPO}", here)
    assert isinstance(model, TransformersModel)
    assert (model.name, model.identity) == (f"transformers:{REPO}", f"transformers:{REPO}@{COMMIT[:12]}")
    assert model.context_tokens is not None
    assert hub.fetched == ["config.json"]
    assert missing_weights([f"transformers:{REPO}", "openai:gpt-4o"]) == [f"transformers:{REPO}"]
    folder = pull_weights(f"transformers:{REPO}")
    assert "model.safetensors" in hub.fetched
    assert "model.onnx" not in hub.fetched
    assert len(hub.fetched) == len(set(hub.fetched))
    assert missing_weights([f"transformers:{REPO}"]) == []
    hub.fetched.clear()
    offline = {**here, "HF_ENDPOINT": "http://127.0.0.1:1"}
    again = resolve_model(f"transformers:{REPO}", offline)
    reply = run(again.ask(question("x", constraint=Constraint(choices=["positive", "negative"]))))
    assert reply.text in ("positive", "negative")
    run(again.close())
    assert hub.fetched == []
    assert download(find_files(REPO, offline), offline) == folder


def test_a_model_that_is_nowhere_says_what_to_do(hub: Hub, tmp_path: Path) -> None:
    cache = {"HF_HUB_CACHE": str(tmp_path / "cache")}
    with pytest.raises(ConfigError, match=r"the hub does not give out transformers:org/none .*HF_TOKEN"):
        find_files("org/none", cache | {"HF_ENDPOINT": hub.url})
    (hub.folder / "config.json").unlink()
    with pytest.raises(ConfigError, match="check the name"):
        find_files(REPO, cache | {"HF_ENDPOINT": hub.url})
    for unreachable in ({"HF_ENDPOINT": "http://127.0.0.1:1"}, {"HF_HUB_OFFLINE": "1"}):
        with pytest.raises(ConfigError, match=r"neither a folder.*hf download org/tiny --local-dir FOLDER") as caught:
            find_files(REPO, cache | unreachable)
        assert str(tmp_path / "cache") in str(caught.value)


def test_a_hub_that_goes_away_during_the_download_says_so(hub: Hub, tmp_path: Path) -> None:
    here = {"HF_ENDPOINT": hub.url, "HF_HOME": str(tmp_path / "home")}
    files = find_files(REPO, here)
    assert files.folder.is_relative_to(tmp_path / "home" / "hub")
    with pytest.raises(ConfigError, match="cannot be downloaded"):
        download(files, here | {"HF_ENDPOINT": "http://127.0.0.1:1"})
    os.remove(hub.folder / "model.safetensors")
    for environment in (here, here | {"HF_HUB_OFFLINE": "1"}):
        with pytest.raises(ConfigError, match="has no complete weights"):
            download(files, environment)


def test_weights_in_the_older_format_are_downloaded_if_there_are_no_others(hub: Hub, tmp_path: Path) -> None:
    (hub.folder / "model.safetensors").rename(hub.folder / "pytorch_model.bin")
    here = {"HF_ENDPOINT": hub.url, "HF_HOME": str(tmp_path / "home")}
    assert (download(find_files(REPO, here), here) / "pytorch_model.bin").is_file()
