"""pyarrow, loaded when something of it is first used: it takes half a second, and many commands read no table."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

__all__ = ["arrow_csv", "pa", "parquet", "pc"]


class _Lazy(ModuleType):
    """Stands for a module, and imports it as soon as one of its attributes is needed."""

    def __getattr__(self, name: str) -> Any:
        found = getattr(import_module(self.__name__), name)
        setattr(self, name, found)
        return found


if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.compute as pc
    from pyarrow import csv as arrow_csv
    from pyarrow import parquet
else:
    pa, pc = _Lazy("pyarrow"), _Lazy("pyarrow.compute")
    arrow_csv, parquet = _Lazy("pyarrow.csv"), _Lazy("pyarrow.parquet")
