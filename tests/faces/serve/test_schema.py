from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from pcs_annotator.faces.serve import openapi

pytestmark = pytest.mark.system


def test_every_field_of_the_reply_is_explained() -> None:
    def unexplained(schema: dict[str, Any]) -> list[str]:
        here = [name for name, one in schema.get("properties", {}).items() if "description" not in one]
        inside = [one.get("items", one) for one in schema.get("properties", {}).values()]
        return [*here, *(name for one in inside for name in unexplained(one))]

    schemas = openapi.document(("good", "bad"))["components"]["schemas"]
    assert unexplained(schemas["ClassifyRequest"]) == unexplained(schemas["Classified"]) == []


@pytest.mark.parametrize("examples", [4, pytest.param(100, marks=pytest.mark.slow)])
@pytest.mark.parametrize("mode", ["positive", "negative"])
def test_no_request_gets_a_server_error_or_an_answer_that_is_not_described(url: str, mode: str, examples: int) -> None:
    # imported here because it takes half a second, in every test process
    import schemathesis
    from schemathesis.checks import not_a_server_error
    from schemathesis.core.result import Ok
    from schemathesis.specs.openapi.checks import response_schema_conformance, status_code_conformance

    expected = [not_a_server_error, response_schema_conformance, status_code_conformance]
    limited = settings(
        max_examples=examples, phases=[Phase.explicit, Phase.generate], suppress_health_check=list(HealthCheck)
    )
    schema = schemathesis.openapi.from_url(f"{url}/openapi.json")
    checked = 0
    for found in schema.get_all_operations():
        assert isinstance(found, Ok)
        if mode == "negative" and found.ok().method != "post":
            continue  # there is hardly a wrong way to ask

        @limited
        @given(found.ok().as_strategy(generation_mode=schemathesis.GenerationMode(mode)))
        def check(case: schemathesis.Case[Any]) -> None:
            nonlocal checked
            case.call_and_validate(checks=expected, timeout=20)
            checked += 1

        check()
    assert checked >= examples  # one route takes a body
