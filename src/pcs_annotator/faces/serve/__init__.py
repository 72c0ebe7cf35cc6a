"""The HTTP service: routes, bodies, counters, and the same as tools of an assistant."""

from dataclasses import dataclass

from pcs_annotator.base.fields import setting


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a service takes on.

    Attributes:
        max_queue: Most texts at a time, in progress and waiting.
        max_text: Most characters of a text.
        seconds: Longest time for a request; answers that come later are kept for the next one.
        refit_every: Learn from verdicts on these texts after every N of them; 0: only when you run pcs fit.
    """

    max_queue: int = setting(1024, "--max-queue N", least=1)
    max_text: int = setting(100_000, "--max-text N", least=1)
    seconds: float = setting(120.0, "--timeout SECONDS", least=1)
    refit_every: int = setting(0, "--refit-every N", least=0)
