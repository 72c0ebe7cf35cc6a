"""The page of the service: what it says."""

from pathlib import Path

import pytest

from pcs_annotator.verbs.fit import fit_run
from tests.faces.serve.running import running


@pytest.mark.asyncio
async def test_the_page_says_what_is_served_and_how_it_is(run: Path) -> None:
    async with running(run) as service:
        assert (await service.classify("Case 7 looks good."))[0] == 200
        status, page = await service.ask("GET", "/")
        metrics = (await service.ask("GET", "/metrics"))[1]
        assert status == 200
        for part in ("run@1", "ready", "curl http://127.0.0.1:", "Probability that the label is right", "429"):
            assert part in page
        calls = next(line.split()[1] for line in metrics.splitlines() if line.startswith("pcs_calls_total"))
        assert f"<td>{calls}, $" in page
        assert "Authorization" not in page
        assert (await service.ask("GET", "/assets/serve.js"))[0] == 200


@pytest.mark.asyncio
async def test_with_a_token_the_line_for_programs_sends_it(run: Path) -> None:
    async with running(run, token="a-token-of-seventeen") as service:
        assert (await service.ask("GET", "/"))[0] == 401
        status, page = await service.ask("GET", "/", headers={"Authorization": "Bearer a-token-of-seventeen"})
        assert (status, "Bearer $TOKEN" in page) == (200, True)


@pytest.mark.asyncio
async def test_from_the_second_fit_on_a_chart_shows_quality_over_time(run: Path) -> None:
    async with running(run) as service:
        assert "Quality over time" not in (await service.ask("GET", "/"))[1]
        fit_run(run, {"optimiser": "uniform"})
        page = (await service.ask("GET", "/"))[1]
        assert "Quality over time" in page
        assert "version 2" in page
        assert ".plot .dot" in (await service.ask("GET", "/assets/serve.css"))[1]
