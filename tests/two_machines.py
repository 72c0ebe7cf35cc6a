"""Two machines on one: network namespaces with a cable between them, and a node of one Ray cluster in each.

A process in one of them reaches the other only by the cable, and has a 127.0.0.1 of its own.
"""

import ctypes
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from pcs_annotator.core.ledger_address import without_password
from tests.postgres import PASSWORD, PostgresServer, postgres_server
from tests.stub import Behaviour, StubProcess, stub_process

ROOT = Path(__file__).resolve().parents[1]
RAY = Path(sys.executable).with_name("ray")
CLONE_NEWNET = 0x40000000
PORT = 6379
NAMES = ("head", "worker")
SETTINGS = """
[task]
labels = ["good", "bad"]
[ask]
models = ["{url}#m"]
answers = "hard"
concurrency = {in_flight}
[relations]
use = ["original"]
[learn]
optimiser = "lr"
folds = 3
resamples = 0
"""
QUIET = ["--num-cpus=1", "--object-store-memory=80000000", "--disable-usage-stats"]


def ip(*arguments: str) -> str:
    """Run `ip`, and return what it prints."""
    program = shutil.which("ip", path=f"{os.environ['PATH']}:/usr/sbin:/sbin")
    return subprocess.run([program or "ip", *arguments], check=True, capture_output=True, text=True).stdout


@dataclass
class Machine:
    """A network namespace, and its address on the cable."""

    name: str
    address: str
    namespace: str

    @contextmanager
    def inside(self) -> Iterator[None]:
        """Put this thread, the sockets that it opens and the processes that it starts on the machine."""
        libc = ctypes.CDLL(None, use_errno=True)
        before = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
        there = os.open(f"/run/netns/{self.namespace}", os.O_RDONLY)
        try:
            if libc.setns(there, CLONE_NEWNET):
                raise OSError(ctypes.get_errno(), "setns")
            yield
        finally:
            libc.setns(before, CLONE_NEWNET)
            os.close(before)
            os.close(there)

    def listening_socket(self, port: int) -> socket.socket:
        """Return a socket that waits for callers of this machine's 127.0.0.1."""
        with self.inside():
            return socket.create_server(("127.0.0.1", port), backlog=4096)

    def start(self, *command: str | Path, cwd: Path, **environment: str) -> subprocess.Popen[str]:
        """Start a process on the machine."""
        variables = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)]), **environment}
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        with self.inside():
            return subprocess.Popen([*command], cwd=cwd, env=variables, text=True, start_new_session=True, **pipes)  # type: ignore[call-overload]

    def pids(self, name: str = "") -> list[int]:
        """Return the processes of the machine that have some word in their command line."""
        pids = [int(pid) for pid in ip("netns", "pids", self.namespace).split()]
        return [pid for pid in pids if not _has_ended(pid) and name in _title(pid)]

    def kill(self, name: str = "") -> None:
        """Kill all processes of the machine (SIGKILL), which frees its sockets, or those with a word."""
        while pids := self.pids(name):
            for pid in pids:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.02)

    def remove(self) -> None:
        """Kill the machine's processes and remove it, if it is there."""
        with suppress(subprocess.CalledProcessError):
            self.kill()
            ip("netns", "del", self.namespace)


def _title(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
    except OSError:  # it has ended
        return ""


def _has_ended(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True


def reason_against() -> str:
    """Return why this machine cannot be two; empty if it can."""
    if not sys.platform.startswith("linux") or os.geteuid() != 0:
        return "network namespaces need Linux and root"
    try:
        ip("netns", "add", name := f"pcs-{os.getpid()}-probe")
        ip("netns", "del", name)
    except (OSError, subprocess.CalledProcessError) as error:
        return f"no network namespaces here: {getattr(error, 'stderr', '') or error}"
    return ""


@contextmanager
def cabled_machines() -> Iterator[list[Machine]]:
    """Make two machines; their processes are killed and they are removed at the end of the block."""
    # addresses for tests of devices (RFC 2544), which no network has
    head, worker = machines = [
        Machine(name, f"198.18.0.{number}", f"pcs-{os.getpid()}-{name}") for number, name in enumerate(NAMES, 1)
    ]
    _remove_left_behind()
    try:
        for machine in machines:
            ip("netns", "add", machine.namespace)
        ends = ["link", "add", "cable", "netns", head.namespace]
        ip(*ends, "type", "veth", "peer", "name", "cable", "netns", worker.namespace)
        for machine in machines:
            ip("-n", machine.namespace, "addr", "add", f"{machine.address}/30", "dev", "cable")
            for device in ("lo", "cable"):
                ip("-n", machine.namespace, "link", "set", device, "up")
        yield machines
    finally:
        for machine in machines:
            machine.remove()


def _remove_left_behind() -> None:
    """Remove the machines of processes that were killed."""
    for namespace in ip("netns", "list").split():
        prefix, _, rest = namespace.partition("-")
        pid, _, name = rest.partition("-")
        if prefix == "pcs" and name in NAMES and pid.isdecimal() and _has_ended(int(pid)):
            Machine(name, "", namespace).remove()


@dataclass
class Cluster:
    """Two machines, with a PostgreSQL server on the first."""

    head: Machine
    worker: Machine
    server: PostgresServer
    folder: Path  # of Ray's files
    login: dict[str, str]  # a token of its own, whatever this machine's user has

    @property
    def address(self) -> str:
        """The address for `--ray-address`."""
        return f"{self.head.address}:{PORT}"

    def start_node(self, machine: Machine, attempts: int = 3) -> None:
        """Start the machine's Ray node; on a busy machine, Ray may give up after 30 seconds."""
        where = [f"--address={self.address}"]
        if machine is self.head:
            where = ["--head", f"--port={PORT}", f"--temp-dir={self.folder}", "--include-dashboard=false"]
        command = [str(RAY), "start", *where, f"--node-ip-address={machine.address}", *QUIET]
        log = self.folder / f"{machine.name}.log"
        with machine.inside(), log.open("w") as output:  # a file, since Ray's processes keep what they inherit open
            variables = {**os.environ, **self.login, "PYTHONPATH": str(ROOT / "src")}
            done = subprocess.run(command, cwd=self.folder, env=variables, stdout=output, stderr=output, check=False)
        if done.returncode and attempts > 1:
            machine.kill("ray")
            self.start_node(machine, attempts - 1)
        else:
            assert done.returncode == 0, log.read_text()

    def start_missing(self) -> None:
        """Start the Ray nodes that do not run."""
        for machine in (self.head, self.worker):
            if not machine.pids("raylet"):
                self.start_node(machine)

    def ledger(self) -> str:
        """Return the address of a new ledger, without the password."""
        return str(without_password(self.server.new_ledger(with_password=True)))

    def start_pcs(self, folder: Path, *arguments: str) -> subprocess.Popen[str]:
        """Start a command on the first machine, in a folder."""
        variables = {"PGPASSWORD": PASSWORD, "COLUMNS": "200", **self.login}
        return self.head.start(RAY.with_name("pcs"), *arguments, cwd=folder, **variables)

    @contextmanager
    def stub(self, behaviour: Behaviour) -> Iterator[StubProcess]:
        """Run a stub that both machines reach at one address, each at its own 127.0.0.1."""
        first = self.head.listening_socket(0)
        port = first.getsockname()[1]
        with (
            first,
            self.worker.listening_socket(port) as second,
            stub_process(behaviour, sockets={self.head.name: first, self.worker.name: second}) as stub,
        ):
            stub.url = f"http://127.0.0.1:{port}/v1"
            yield stub


@contextmanager
def two_machines() -> Iterator[Cluster]:
    """Make two machines with PostgreSQL and without Ray; all of it is removed at the end of the block."""
    with (
        tempfile.TemporaryDirectory(prefix="ray-", ignore_cleanup_errors=True) as folder,
        cabled_machines() as (head, worker),
        postgres_server(head.address, head.inside) as server,
    ):
        login = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(16)}
        yield Cluster(head, worker, server, Path(folder), login)
