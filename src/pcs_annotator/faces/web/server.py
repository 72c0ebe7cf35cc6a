"""Runs a web app behind a guard: opens the port, prints the address, stops gracefully."""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import signal
import socket
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

import uvicorn
from starlette.types import ASGIApp

from pcs_annotator.base.errors import ConfigError
from pcs_annotator.base.stopping import handling_stops
from pcs_annotator.faces.web.guard import Guard, Rules, host_name

SECONDS_TO_FINISH = 30  # how long requests in flight may take after a signal to stop
SHORTEST_TOKEN = 16
LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
NEW_TOKEN = "python -c 'import secrets; print(secrets.token_urlsafe())'"


@dataclass(frozen=True, slots=True, kw_only=True)
class Listening:
    """An open port."""

    socket: socket.socket = field(repr=False)  # the port
    url: str  # its address, for people
    rules: Rules = field(repr=False)  # whom to let in; `replace` it for other limits


def listen(host: str, port: int, token: str = "", names: Sequence[str] = ()) -> Listening:
    """Open a port; 0 picks a free one.

    Clients must know the token; only a loopback address needs none. `names` are further names that they may use for
    this server, such as that of a proxy, with its port if that is not the usual one.
    """
    _check_token(token)
    opened, address = _open(host, port)
    public = not address.is_loopback
    if public and not token:
        opened.close()
        raise ConfigError(
            f"{host} can be reached by other machines, so a token is needed: make one ({NEW_TOKEN}), put it into an "
            "environment variable and name that with --token-env; without --host, only this machine can connect. "
            "Put a proxy with TLS in front, because a token must not cross a network in clear text"
        )
    number = opened.getsockname()[1]
    allowed = LOOPBACK | {host_name(name) for name in (host, str(address), *names)}
    # nobody can list the names of a machine, and behind a token other names do no harm
    anybody = address.is_unspecified and not names
    origins = frozenset(name.lower() for name in names)
    rules = Rules(names=frozenset() if anybody else allowed, token=token, cookie=f"pcs-{number}", origins=origins)
    shown = f"[{address}]" if address.version == 6 else host
    return Listening(socket=opened, url=f"http://{shown}:{number}", rules=rules)


def _check_token(token: str) -> None:
    if token and (len(token) < SHORTEST_TOKEN or not token.isascii() or not token.isprintable() or " " in token):
        raise ConfigError(
            f"the token needs {SHORTEST_TOKEN} or more letters and digits, without spaces: make one with {NEW_TOKEN}"
        )


def _open(host: str, port: int) -> tuple[socket.socket, ipaddress.IPv4Address | ipaddress.IPv6Address]:
    try:
        family, kind, protocol, _, where = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except (OSError, UnicodeError, OverflowError) as error:
        raise ConfigError(f"{host!r} is not a name or an address of this machine ({error}): correct --host") from None
    opened = socket.socket(family, kind, protocol)
    try:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        opened.bind(where)
        opened.listen(2048)
    except OSError as error:
        opened.close()
        why = {
            errno.EADDRINUSE: "is in use",
            errno.EACCES: "may not be opened by this user",
            errno.EADDRNOTAVAIL: "cannot be opened, because this machine has no such address",
        }.get(error.errno or 0, f"cannot be opened ({error.strerror})")
        raise ConfigError(
            f"port {port} of {host} {why}: choose another one with --port; --port 0 picks a free one"
        ) from None
    return opened, ipaddress.ip_address(str(where[0]).partition("%")[0])


class _Server(uvicorn.Server):
    """Uvicorn, which says when it begins to stop, and does not treat a signal to stop as an error."""

    def __init__(self, config: uvicorn.Config, on_stop: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_stop = on_stop

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._on_stop()
        await super().shutdown(sockets)

    def capture_signals(self) -> AbstractContextManager[None]:  # type: ignore[override]  # theirs is a generator
        return handling_stops(self.handle_exit, lambda was: was is not signal.SIG_IGN)


async def serve(
    app: ASGIApp,
    listening: Listening,
    say: Callable[[str], None],
    *,
    verbose: bool = False,
    on_stop: Callable[[], None] = lambda: None,
) -> None:
    """Answer requests until SIGINT, SIGTERM, SIGHUP or a cancellation; then finish those in flight.

    There is no lifespan: open what the app needs before, and close it after. Errors are JSON if the app has
    `exception_handlers=ERROR_HANDLERS`. `say` takes lines for the terminal: the address, errors, and with `verbose` one
    per request. `on_stop` is called when the server begins to stop, so that endless answers can end.
    """
    config = uvicorn.Config(
        Guard(app, listening.rules, say, verbose=verbose),
        http="httptools",
        ws="none",
        loop="asyncio",
        lifespan="off",
        log_config=None,
        log_level="critical",
        access_log=False,
        server_header=False,
        timeout_keep_alive=75,  # longer than that of common proxies, so that they close first
        timeout_graceful_shutdown=SECONDS_TO_FINISH,
    )
    say(f"{listening.url}  (Ctrl-C stops)")
    server = _Server(config, on_stop)
    with listening.socket:
        try:
            await server.serve(sockets=[listening.socket])
        except asyncio.CancelledError:
            await server.shutdown([listening.socket])
            raise
