"""A real PostgreSQL server for tests and benchmarks, from Debian's package: in a temporary folder, for this process."""

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from itertools import count
from pathlib import Path
from typing import Any

USER, PASSWORD = "labeller", "not-a-real-password"
GUEST = "guest"
"""A role without rights."""
_NUMBERS = count()
Inside = Callable[[], AbstractContextManager[None]]


def programs() -> Path | None:
    """Return the folder of initdb and postgres, of the newest version; None if there is none."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: float(path.parts[-3]))
    on_path = shutil.which("initdb")
    return found[-1].parent if found else Path(on_path).parent if on_path else None


class PostgresServer:
    """A server that can be stopped and started again; it has a role with a password, and trusts its socket.

    It listens at `host`, and is started inside of a context, such as another network namespace.
    """

    def __init__(self, binaries: Path, folder: Path, host: str, inside: Inside) -> None:
        self._binaries, self._folder, self._data = binaries, folder, folder / "data"
        self._host, self._inside = host, inside
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = int(free.getsockname()[1])
        self._process: subprocess.Popen[bytes] | None = None
        # PostgreSQL does not run as root
        self._identity: dict[str, Any] = {}
        if os.getuid() == 0:
            owner = pwd.getpwnam("postgres")
            os.chown(folder, owner.pw_uid, owner.pw_gid)
            self._identity = {"user": owner.pw_uid, "group": owner.pw_gid, "extra_groups": []}

    def create(self) -> None:
        """Make the files of the server."""
        command = [str(self._binaries / "initdb"), "-D", str(self._data), "-U", "postgres", "-E", "UTF8", "--locale=C"]
        command += ["--no-sync", "--no-instructions", "--auth-local=trust", "--auth-host=scram-sha-256"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=self._folder, **self._identity)
        settings = {
            "listen_addresses": f"'{self._host}'",
            "port": self.port,
            "unix_socket_directories": f"'{self._folder}'",
            "shared_buffers": "'16MB'",
            "log_min_messages": "panic",
            "log_min_error_statement": "panic",
        }
        lines = "".join(f"{name} = {value}\n" for name, value in settings.items())
        with (self._data / "postgresql.conf").open("a") as file:
            file.write(lines)
        with (self._data / "pg_hba.conf").open("a") as file:
            file.write("host all all samenet scram-sha-256\n")

    def start(self) -> None:
        """Start the server, and wait until it answers; it ends with the thread that started it."""
        import psycopg

        ends_with_this_thread = ["setpriv", "--pdeathsig", "QUIT"] if shutil.which("setpriv") else []
        command = [*ends_with_this_thread, str(self._binaries / "postgres"), "-D", str(self._data)]
        with self._inside():
            self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, cwd=self._folder, **self._identity)
        while True:
            try:
                psycopg.connect(self._own("postgres")).close()
            except psycopg.OperationalError:
                if self._process.poll() is not None:
                    raise
                time.sleep(0.02)
            else:
                return

    def stop(self, *, crash: bool = False) -> None:
        """Stop the server: its clients lose their connections; with `crash`, it does not tidy up."""
        assert self._process is not None
        self._process.send_signal(signal.SIGQUIT if crash else signal.SIGINT)
        self._process.wait()
        self._process = None

    def new_ledger(self, *, with_password: bool = False) -> str:
        """Return the address of a new, empty ledger: a schema of its own in the database `team`."""
        options = f"options=-csearch_path%3Dledger{next(_NUMBERS)}"
        if with_password:
            return f"postgresql://{USER}:{PASSWORD}@{self._host}:{self.port}/team?{options}"
        return f"{self._own('team', USER)}&{options}"

    def _create_role_and_database(self) -> None:
        import psycopg

        with psycopg.connect(self._own("postgres"), autocommit=True) as connection:
            connection.execute(f"CREATE ROLE {USER} LOGIN PASSWORD '{PASSWORD}'")
            connection.execute(f"CREATE ROLE {GUEST} LOGIN")
            connection.execute(f"CREATE DATABASE team OWNER {USER}")

    def _own(self, database: str, user: str = "postgres") -> str:
        return f"postgresql://{user}@/{database}?host={self._folder}&port={self.port}"


@contextmanager
def postgres_server(host: str = "127.0.0.1", inside: Inside = nullcontext) -> Iterator[PostgresServer]:
    """Run a server until the end of the block."""
    binaries = programs()
    if binaries is None:
        raise RuntimeError("PostgreSQL is not installed")
    with tempfile.TemporaryDirectory(prefix="pcs-pg-") as folder:
        server = PostgresServer(binaries, Path(folder), host, inside)
        server.create()
        server.start()
        try:
            server._create_role_and_database()
            yield server
        finally:
            if server._process is not None:
                server.stop(crash=True)
