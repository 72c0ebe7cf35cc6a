"""The functions of `scipy.special`, loaded at their first use: loading them takes a quarter of a second."""

from collections.abc import Callable
from typing import Any


def _late(name: str) -> Callable[..., Any]:
    def call(*arguments: Any, **more: Any) -> Any:
        from scipy import special

        return getattr(special, name)(*arguments, **more)

    return call


bdtr, bdtrin, betaincinv, betaln, chdtrc, chdtri, chndtrinc = map(
    _late, ("bdtr", "bdtrin", "betaincinv", "betaln", "chdtrc", "chdtri", "chndtrinc")
)
expit, ndtr, ndtri, stdtr, stdtrit, xlog1py, xlogy = map(
    _late, ("expit", "ndtr", "ndtri", "stdtr", "stdtrit", "xlog1py", "xlogy")
)
