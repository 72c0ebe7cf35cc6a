"""The stub in a separate process."""

import http.client
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.stub.behaviour import Behaviour
from tests.stub.counters import Stats

_FOLDER = Path(__file__).resolve().parents[2]


class StubProcess:
    """A stub in another process, with the same `url`, `stats`, `change` and `reset` as `Stub`."""

    def __init__(self, root: str, pid: int) -> None:
        self.root = root
        self.url = f"{root}/v1"
        self.pid = pid

    def stats(self, *, full: bool = False) -> Stats:
        return Stats.from_json(self._call("GET", f"/__stats?full={int(full)}"))

    def change(self, **changes: Any) -> None:
        self._call("POST", "/__behaviour", json.dumps(changes))

    def reset(self) -> None:
        self._call("POST", "/__reset", "")

    def _call(self, method: str, path: str, body: str | None = None) -> dict[str, Any]:
        connection = http.client.HTTPConnection(urlsplit(self.root).netloc, timeout=30)
        try:
            connection.request(method, path, body)
            response = connection.getresponse()
            value: dict[str, Any] = json.loads(response.read())
        finally:
            connection.close()
        if response.status != 200:
            raise ValueError(value["error"]["message"])
        return value


@contextmanager
def stub_process(
    behaviour: Behaviour | None = None,
    *,
    max_seconds: float = 3600,
    port: int = 0,
    sockets: Mapping[str, socket.socket] | None = None,
) -> Iterator[StubProcess]:
    """Run a stub in a separate process, which ends with the block, with this process, or after `max_seconds`."""
    numbers = {machine: listening.fileno() for machine, listening in (sockets or {}).items()}
    given = json.dumps((behaviour or Behaviour()).to_json())
    command = [sys.executable, "-m", "tests.stub", "--behaviour", given]
    command += ["--max-seconds", str(max_seconds), "--parent", str(os.getpid()), "--port", str(port)]
    command += ["--sockets", json.dumps(numbers)]
    kept = tuple(numbers.values())
    with subprocess.Popen(command, cwd=_FOLDER, stdout=subprocess.PIPE, text=True, pass_fds=kept) as process:
        try:
            assert process.stdout is not None
            url = process.stdout.readline().strip()
            if not url:
                raise RuntimeError(f"the stub did not start (exit code {process.wait(timeout=10)})")
            yield StubProcess(url.removesuffix("/v1"), process.pid)
        finally:
            process.terminate()
            try:
                process.wait(timeout=5)
            except subprocess.TimeoutExpired:
                process.kill()
