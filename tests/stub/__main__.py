"""`python -m tests.stub`: a stub server that prints its URL and stops after a while."""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import time
from contextlib import suppress
from dataclasses import fields
from typing import Any, get_args, get_type_hints

from tests.stub.behaviour import Behaviour
from tests.stub.server import HOST, StubServer


def parser() -> argparse.ArgumentParser:
    """Return the argument parser: every field of `Behaviour` is an option, such as `--latency` and `--share-429`."""
    line = argparse.ArgumentParser(prog="python -m tests.stub", description=__doc__)
    line.add_argument("--host", default=HOST, help=f"must be {HOST}")
    line.add_argument("--port", type=int, default=0, help="0 for a free one")
    line.add_argument("--max-seconds", type=float, default=600, help="stop after this time")
    line.add_argument("--parent", type=int, default=os.getppid(), help="stop when this is no longer the parent process")
    line.add_argument(
        "--behaviour", type=json.loads, default={}, help="fields as JSON; the options below take precedence"
    )
    hints = get_type_hints(Behaviour)
    for field in fields(Behaviour):
        name = "--" + field.name.removesuffix("_s").replace("_", "-")
        line.add_argument(name, dest=field.name, default=argparse.SUPPRESS, **_kind(hints[field.name]))
    return line


def _kind(hint: Any) -> dict[str, Any]:
    """Return the `add_argument` options for a field of this type."""
    if hint is bool:
        return {"action": argparse.BooleanOptionalAction}
    arguments = [argument for argument in get_args(hint) if argument is not type(None)]
    if arguments and isinstance(arguments[0], str):
        return {"choices": arguments}
    if hint == tuple[str, ...]:
        return {"nargs": "+"}
    return {"type": arguments[0] if arguments else hint}


async def serve(options: argparse.Namespace) -> None:
    """Serve until the time is up or the parent has ended."""
    names = {field.name for field in fields(Behaviour)}
    given = {name: value for name, value in vars(options).items() if name in names}
    behaviour = Behaviour().changed(options.behaviour | given)
    until = time.monotonic() + options.max_seconds
    async with StubServer(behaviour, host=options.host, port=options.port) as stub:
        print(stub.url, flush=True)
        gc.freeze()
        while time.monotonic() < until and os.getppid() == options.parent:
            await asyncio.sleep(min(0.25, max(0.0, until - time.monotonic())))


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        asyncio.run(serve(parser().parse_args()))
