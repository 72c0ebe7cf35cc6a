from __future__ import annotations

from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import response_schema_conformance, status_code_conformance

CHECKS = [not_a_server_error, response_schema_conformance, status_code_conformance]


@pytest.mark.parametrize("examples", [4, pytest.param(100, marks=pytest.mark.slow)])
@pytest.mark.parametrize("mode", list(GenerationMode))
def test_no_request_gets_a_server_error_or_an_answer_that_is_not_described(
    url: str, mode: GenerationMode, examples: int
) -> None:
    limited = settings(
        max_examples=examples,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    schema = schemathesis.openapi.from_url(f"{url}/openapi.json")
    checked = 0
    for found in schema.get_all_operations():
        assert isinstance(found, Ok)
        if mode is GenerationMode.NEGATIVE and found.ok().method != "post":
            continue  # there is hardly a wrong way to ask

        @limited
        @given(found.ok().as_strategy(generation_mode=mode))
        def check(case: schemathesis.Case[Any]) -> None:
            nonlocal checked
            case.call_and_validate(checks=CHECKS, timeout=20)
            checked += 1

        check()
    assert checked >= 2 * examples
