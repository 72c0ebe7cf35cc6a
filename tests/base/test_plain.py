from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import orjson
import pytest

from pcs_annotator.base.plain import from_plain, to_plain
from pcs_annotator.core.arrays import Codes, Floats


class Ends(NamedTuple):
    low: float
    high: float


@dataclass
class Written:
    word: str

    def to_dict(self) -> dict[str, str]:
        return {"is": self.word}

    @classmethod
    def from_dict(cls, values: Mapping[str, str]) -> "Written":
        return cls(values["is"])


@dataclass(frozen=True)
class Everything:
    name: str
    ends: Ends
    pair: tuple[str, Ends]
    many: tuple[Ends, ...]
    by_name: Mapping[str, Ends | None]
    rows: Sequence[Ends]
    anything: Any = None
    written: Written | None = None
    size: int = field(init=False, default=3)
    later: int = 7


@dataclass
class Arrays:
    values: Floats
    codes: Codes


def test_a_value_survives_json() -> None:
    ends = Ends(0.0, 1.5)
    value = Everything(
        "é", ends, ("a", ends), (ends, ends), {"x": ends, "y": None}, [ends], [1, {"a": 2}], Written("w")
    )
    plain = orjson.loads(orjson.dumps(to_plain(value)))
    assert plain["many"] == [{"low": 0.0, "high": 1.5}] * 2
    assert plain["written"] == {"is": "w"}
    assert "size" not in plain
    assert from_plain(Everything, plain) == value


def test_a_field_that_was_not_written_keeps_its_default() -> None:
    plain = to_plain(Everything("a", Ends(0, 1), ("a", Ends(0, 1)), (), {}, []))
    del plain["later"], plain["written"]
    assert from_plain(Everything, plain).later == 7


@pytest.mark.parametrize("values", [[], [[0.5, 1.0]]])
def test_arrays_keep_their_type(values: list[Any]) -> None:
    plain = to_plain(Arrays(np.array(values, dtype=np.float64), np.array([1, 2])))
    assert plain == {"values": values, "codes": [1, 2]}
    back = from_plain(Arrays, plain)
    assert back.values.dtype.name == "float64"
    assert back.codes.tolist() == [1, 2]
    assert to_plain(np.int64(3)) == 3
