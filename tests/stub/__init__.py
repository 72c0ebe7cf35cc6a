"""A stub of an OpenAI-compatible (and Anthropic) chat server on real sockets, for tests and benchmarks.

It runs in this process, or in a separate one, so that CPU measurements of the client exclude the server:

    async with StubServer(Behaviour(latency_s=0.2, share_429=0.2)) as stub:
        ...  # ask stub.url + "/chat/completions"
        assert stub.stats().asked_again == 0

    with stub_process(Behaviour(rate=100)) as stub:
        ...  # the same url, stats(), change(...) and reset()

    python -m tests.stub --port 0 --latency 0.2 --rate 100

Every decision is a hash of the seed, the question and its attempt number; only the token bucket uses a clock.
"""

from tests.stub.behaviour import Behaviour
from tests.stub.counters import Stats
from tests.stub.process import StubProcess, stub_process
from tests.stub.server import Stub, StubServer

__all__ = ["Behaviour", "Stats", "Stub", "StubProcess", "StubServer", "stub_process"]
