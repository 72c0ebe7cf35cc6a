"""The part of HTTP/1.1 that chat clients need: keep-alive, and bodies with a Content-Length."""

from __future__ import annotations

import asyncio
import socket
import struct
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from tests.stub.server import Stub

MAX_BODY = 8 * 2**20
MAX_BATCH = 128 * 2**20
MAX_HEAD = 64 * 2**10


class Request(NamedTuple):
    method: str
    path: str  # with the query
    head: bytes  # everything before the empty line
    lower: bytes  # the head in lower case
    body: bytes = b""
    machine: str = ""  # where the caller is
    fault: int = 0  # HTTP status for refusing a request that was not read to its end, else 0

    def header(self, name: bytes) -> str:
        """Return the value of a header, or ""; the name is in lower case."""
        start = self.lower.find(b"\r\n" + name + b":")
        if start < 0:
            return ""
        start += len(name) + 3
        end = self.head.find(b"\r\n", start)
        return self.head[start : end if end >= 0 else None].strip().decode("latin-1")

    def length(self) -> int | None:
        """Return the length of the body; None if no header has it."""
        stated = self.header(b"content-length")
        if stated.isdecimal():
            return int(stated)
        return None if stated or self.header(b"transfer-encoding") else 0


class Reply(NamedTuple):
    """What to send, when, and what to do with the connection."""

    data: bytes  # with the status line; possibly none
    status: int = 0  # of a complete reply, else 0
    delay: float = 0.0  # seconds to wait before sending
    # what to do after sending: `linger` closes after giving the caller time to read, `half` only says that no more is
    # sent, `hang` never sends
    then: Literal["keep", "close", "linger", "reset", "half", "hang"] = "keep"
    question: bytes = b""  # hash of the question, for the counters; empty for other requests
    paid: bool = False  # whether a real server would charge for this answer


class Connection(asyncio.Protocol):
    """A caller's connection: each request is answered before the next is read."""

    def __init__(self, server: Stub, machine: str = "") -> None:
        self._server, self._machine = server, machine
        self._loop = asyncio.get_running_loop()
        self._buffer = bytearray()
        self._needed = 0
        self._most = MAX_BODY
        self._deaf = False
        self._reply: Reply | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._server.opened(self)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._reply is not None:
            self._server.abandoned(self._reply)
            self._reply = None
        self._server.closed(self)

    def abort(self) -> None:
        self._transport.abort()

    def data_received(self, data: bytes) -> None:
        if self._deaf:
            return
        if self._reply is None and not self._buffer:
            self._next(data)
            return
        self._buffer += data
        if len(self._buffer) > self._most + 2 * MAX_HEAD:
            self.abort()
        elif self._reply is None and len(self._buffer) >= self._needed:
            self._next(self._taken())

    def _taken(self) -> bytes:
        data = bytes(self._buffer)
        self._buffer.clear()
        return data

    def _next(self, data: bytes) -> None:
        request = self._cut(data)
        if request is None:
            return
        self._reply = reply = self._server.handle(request._replace(machine=self._machine))
        if reply.then == "hang":
            return
        if reply.delay > 0:
            self._timer = self._loop.call_later(reply.delay, self._send)
        else:
            self._send()

    def _cut(self, data: bytes) -> Request | None:
        """Return the first request in the data once it is complete; the rest waits in the buffer."""
        end = data.find(b"\r\n\r\n")
        if end < 0:
            self._buffer += data
            if len(data) > MAX_HEAD:
                self.abort()
            return None
        head = data[:end]
        words = head[: head.find(b"\r\n")].decode("latin-1").split(" ")
        request = Request(words[0], words[1] if len(words) > 1 else "", head, head.lower())
        length = request.length()
        self._most = MAX_BATCH if "/files" in request.path or "/batches" in request.path else MAX_BODY
        if length is None or length > self._most:
            return request._replace(fault=411 if length is None else 413)
        needed = end + 4 + length
        if len(data) < needed:
            self._buffer += data
            self._needed = needed
            return None
        self._needed = 0
        if len(data) > needed:
            self._buffer += data[needed:]
        return Request(words[0], request.path, head, request.lower, data[end + 4 : needed])

    def _send(self) -> None:
        reply, self._reply, self._timer = self._reply, None, None
        assert reply is not None
        if reply.data:
            self._transport.write(reply.data)
        self._server.sent(reply)
        if reply.then == "keep":
            if self._buffer:
                self._loop.call_soon(self._resume)
            return
        if reply.then == "half":
            self._deaf = True
            self._transport.write_eof()
            return
        if reply.then == "linger":
            # A caller that is still sending would get a reset instead of the reply.
            self._deaf = True
            self._timer = self._loop.call_later(1.0, self._transport.close)
            return
        if reply.then == "reset":
            linger = struct.pack("ii", 1, 0)
            self._transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        self._transport.close()

    def _resume(self) -> None:
        if self._reply is None and not self._transport.is_closing():
            self._next(self._taken())
