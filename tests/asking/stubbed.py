"""Asynchronous tests with a stub server in this process."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Any

from tests.stub import Behaviour, Stub, StubServer


def stub_of(stub: Stub, folder: Path) -> Stub:
    return stub


def stubbed(
    behaviour: Behaviour, made: Callable[[Stub, Path], Any] = stub_of
) -> Callable[[Callable[..., Awaitable[None]]], Callable[..., None]]:
    """Return a decorator for tests whose first argument is the stub, or what is made of it and the test's folder."""

    def decorate(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
        _, *others = signature(test).parameters.values()
        wants_folder = "tmp_path" in signature(test).parameters

        @wraps(test)
        def run(tmp_path: Path, **more: Any) -> None:
            async def main() -> None:
                async with StubServer(behaviour) as stub:
                    folder = {"tmp_path": tmp_path} if wants_folder else {}
                    await test(made(stub, tmp_path), **folder, **more)

            asyncio.run(main())

        path = Parameter("tmp_path", Parameter.POSITIONAL_OR_KEYWORD)
        others = [parameter for parameter in others if parameter.name != "tmp_path"]
        run.__signature__ = Signature([path, *others])  # type: ignore[attr-defined]  # what pytest looks at
        del run.__wrapped__  # else it looks at this
        return run

    return decorate
