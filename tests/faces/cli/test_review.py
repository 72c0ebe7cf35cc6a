"""`pcs review` as a process of its own: what it refuses, and what is left of it after a kill."""

import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from html import unescape
from http.client import HTTPConnection, HTTPException
from itertools import count
from pathlib import Path
from random import Random
from threading import Timer
from urllib.parse import urlencode, urlsplit

import pytest

from pcs_annotator.core.events import Verdict
from pcs_annotator.faces import web
from pcs_annotator.reviewing.session import Review
from pcs_annotator.runs.draw_registry import read_events
from tests.command_line import Pcs
from tests.simulated import copy_run, simulated_run

pytestmark = pytest.mark.system

Captured = pytest.CaptureFixture[str]
FIELDS = ("id", "lease", "version", "shown_by", "queue")


@pytest.fixture
def run(small_run: Path, tmp_path: Path) -> Path:
    return copy_run(small_run, tmp_path / "run")


REVIEW = ("review", "--port", "0", "--no-browser")


@contextmanager
def reviewing(run: Path, *more: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Start `pcs review`; yields the process and its address."""
    command = [sys.executable, "-m", "pcs_annotator", "review", str(run), "--port", "0", "--no-browser", *more]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    try:
        yield process, next(line.split()[0] for line in process.stderr if line.startswith("http"))
    finally:
        process.kill()
        process.wait(30)
        process.stderr.close()


def test_what_cannot_be_reviewed_is_refused_in_a_sentence(run: Path, pcs: Pcs, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "nowhere is not a run folder" in pcs.refused(*REVIEW, "nowhere")
    assert "give one key for each of" in pcs.refused(*REVIEW, run, "--keys", "xyz")
    assert "so a token is needed" in pcs.refused(*REVIEW, run, "--host", "0.0.0.0")
    assert "PCS_NO_SUCH_TOKEN has no token" in pcs.refused(*REVIEW, run, "--token-env", "PCS_NO_SUCH_TOKEN")
    assert "cannot be read" in pcs.refused(*REVIEW, run, "--guidelines", "nowhere.md")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        assert "is in use" in pcs.refused(*REVIEW, run, "--port", str(taken.getsockname()[1]))
    monkeypatch.setattr(web, "find_spec", lambda name: None)
    assert "pip install 'perceived-confidence[web]'" in pcs.refused(*REVIEW, run)


def test_a_folder_is_reviewed_by_one_page_at_a_time_and_ctrl_c_ends_it(run: Path, pcs: Pcs) -> None:
    with reviewing(run, "--reviewer", "Ana") as (process, url):
        with closing(HTTPConnection(urlsplit(url).netloc, timeout=20)) as connection:
            row = judge_one(connection, "good")
        assert "is being reviewed already" in pcs.refused(*REVIEW, run)
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0
    with Review.open(run) as review:
        assert review.progress("Ana").verdicts == 1
    assert [event.id for event in read_events(run / "draws.jsonl") if isinstance(event, Verdict)] == [row]


def judge_one(connection: HTTPConnection, label: str) -> str:
    """Judge the next row as a browser without script does; returns its ID once the server has answered."""
    connection.request("GET", "/?queue=random")
    page = connection.getresponse().read().decode()
    fields = {name: unescape(re.findall(rf'name="{name}" value="([^"]*)"', page)[0]) for name in FIELDS}
    connection.request("POST", "/verdict", urlencode({**fields, "label": label}))
    answer = connection.getresponse()
    answer.read()
    assert answer.status == 303
    return fields["id"]


@pytest.mark.slow
def test_after_twenty_kills_every_verdict_that_was_answered_is_there(tmp_path: Path) -> None:
    simulated_run(tmp_path, rows=500, gold_rows=20)
    run, rng, answered = tmp_path / "run", Random(0), []
    for _ in range(20):
        with reviewing(run, "--reviewer", "Ana", "--refit-every", "5") as (process, url):
            killer = Timer(rng.uniform(0, 0.05), process.kill)
            with suppress(OSError, HTTPException), closing(HTTPConnection(urlsplit(url).netloc, timeout=20)) as there:
                for number in count(1):
                    answered.append(judge_one(there, rng.choice(["good", "bad"])))
                    if number == 10:
                        killer.start()  # and go on judging until it is dead
            killer.join()
    given = [event.id for event in read_events(run / "draws.jsonl") if isinstance(event, Verdict)]
    assert len(answered) >= 200
    assert set(answered) <= set(given)
    assert len(given) == len(set(given)) <= len(answered) + 20  # one at most was stored before each kill, unanswered
