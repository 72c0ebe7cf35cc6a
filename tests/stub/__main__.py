"""`python -m tests.stub`: a stub server that prints its URL and stops after a while."""

import argparse
import asyncio
import gc
import json
import os
import socket
import time
from contextlib import suppress

from tests.stub.behaviour import Behaviour
from tests.stub.server import HOST, StubServer


def parser() -> argparse.ArgumentParser:
    line = argparse.ArgumentParser(prog="python -m tests.stub", description=__doc__)
    line.add_argument("--host", default=HOST, help=f"must be {HOST}")
    line.add_argument("--port", type=int, default=0, help="0 for a free one")
    line.add_argument("--max-seconds", type=float, default=600, help="stop after this time")
    line.add_argument("--parent", type=int, default=os.getppid(), help="stop when this is no longer the parent process")
    fields = "fields of tests.stub.behaviour.Behaviour, as JSON"
    line.add_argument("--behaviour", type=json.loads, default={}, help=fields)
    line.add_argument("--sockets", type=json.loads, default={}, help="machine → number of an open socket, as JSON")
    return line


async def serve(options: argparse.Namespace) -> None:
    """Serve until the time is up or the parent has ended."""
    behaviour = Behaviour().changed(options.behaviour)
    until = time.monotonic() + options.max_seconds
    sockets = {machine: socket.socket(fileno=number) for machine, number in options.sockets.items()}
    async with StubServer(behaviour, host=options.host, port=options.port, sockets=sockets) as stub:
        print(stub.url, flush=True)
        gc.freeze()
        while time.monotonic() < until and os.getppid() == options.parent:
            await asyncio.sleep(min(0.25, max(0.0, until - time.monotonic())))


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        asyncio.run(serve(parser().parse_args()))
