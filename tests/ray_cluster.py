"""One small Ray cluster for the tests of a process, and ways to kill its actors."""

import os
import signal
import time
from pathlib import Path
from typing import Any
from unittest import mock

import pytest


def start_ray() -> Any:
    """Return the module `ray`, connected to a cluster of its own with two CPUs; the process's end stops it."""
    ray = pytest.importorskip("ray")
    if not ray.is_initialized():
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        how = {"include_dashboard": False, "log_to_driver": False, "logging_level": "ERROR", "namespace": "pcs"}
        slow_to_start = ("start_monitor", "start_log_monitor", "start_api_server")
        not_needed: dict[str, Any] = dict.fromkeys(slow_to_start, lambda node, **_: None)
        with mock.patch.multiple("ray._private.node.Node", **not_needed):
            ray.init("local", num_cpus=2, object_store_memory=80 * 2**20, _node_ip_address="127.0.0.1", **how)
    return ray


def actors(kind: str) -> list[int]:
    """Return the processes of the actors of a class on this process's cluster."""
    import ray

    node: Any = ray._private.worker._global_node
    raylet = node.all_processes["raylet"][0].process.pid
    return [pid for pid, title in _children(raylet) if title.startswith(f"ray::{kind}")]


def _children(parent: int) -> list[tuple[int, str]]:
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            title = (process / "cmdline").read_text().replace("\0", " ")
            if int((process / "stat").read_text().rpartition(")")[2].split()[1]) == parent:
                found.append((int(process.name), title))
        except OSError:  # it has ended
            continue
    return found


def kill_one(kind: str) -> int:
    """Kill one of the actors of a class, as soon as there is one, and return its process."""
    while not (found := actors(kind)):
        time.sleep(0.02)
    os.kill(found[0], signal.SIGKILL)
    return found[0]
