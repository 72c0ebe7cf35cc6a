"""The page without its script, and what it refuses."""

import json
import re
from dataclasses import replace
from html import escape, unescape
from html.parser import HTMLParser
from http.client import HTTPConnection
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlencode, urlsplit

import pytest

from pcs_annotator.base.errors import ConfigError
from pcs_annotator.faces.review.forms import QUEUES
from pcs_annotator.faces.review.layout import FOR_LABELS, TAKEN, guidelines_view, keys_of
from tests.builders import the
from tests.faces.review.made import ATTACK, OPTIONS, page_of, verdicts
from tests.simulated import MODELS, copy_run, simulated_models, simulated_run


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    text: str


class Client:
    """Somebody with a cookie but without a script."""

    def __init__(self, url: str, name: str = "Ana") -> None:
        self.host = urlsplit(url).netloc
        self.cookie = f"reviewer={name}" if name else ""

    def ask(self, path: str, body: str | bytes | None = None, **headers: str) -> Answer:
        connection = HTTPConnection(self.host, timeout=20)
        given = {"Cookie": self.cookie, **{name.replace("_", "-"): value for name, value in headers.items()}}
        connection.request("GET" if body is None else "POST", path, body, given)
        response = connection.getresponse()
        found = Answer(response.status, dict(response.getheaders()), response.read().decode())
        connection.close()
        return found

    def post(self, path: str, **fields: str) -> Answer:
        return self.ask(path, urlencode(fields))


class Tags(HTMLParser):
    """Scripts of a page, and what the policy would have to forbid in it."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.scripts: list[str | None] = []
        self.inline: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "script":
            self.scripts.append(dict(attrs).get("src"))
        self.inline += [f"{tag} {name}" for name, _ in attrs if name == "style" or name.startswith("on")]
        self.inline += [tag] if tag in ("style", "img", "iframe") else []
        self.inline += [f"{tag} {value}" for _, value in attrs if (value or "").startswith("javascript:")]


def fields_of(page: str) -> dict[str, str]:
    """Return what the form of a row sends along."""
    names = ("id", "lease", "version", "shown_by", "queue")
    return {name: unescape(re.findall(rf'name="{name}" value="([^"]*)"', page)[0]) for name in names}


def test_forms_work_without_a_script(run: Path) -> None:
    with page_of(run) as url:
        client = Client(url)
        first = client.ask("/?queue=random")
        saved = client.post("/verdict", **fields_of(first.text), label="bad", note="seen")
        assert (saved.status, saved.headers["location"]) == (303, "/?queue=random")
        second = client.ask(saved.headers["location"])
        assert fields_of(second.text)["id"] != fields_of(first.text)["id"]
        undone = client.post("/undo")
        assert undone.status == 303
        assert fields_of(first.text)["id"] in undone.headers["location"]
        again = client.post("/verdict", **fields_of(client.ask(undone.headers["location"]).text), skip="1")
        assert again.status == 303
    given = verdicts(run)
    assert [(one.label, one.queue, one.note, one.seconds) for one in given] == [
        ("bad", "random", "seen", None),
        (None, "random", "", None),
    ]


def test_the_script_gets_the_next_row_in_the_answer_to_a_verdict(run: Path) -> None:
    with page_of(run) as url:
        client = Client(url)
        first = fields_of(client.ask("/").text)
        body = urlencode({**first, "label": "good", "seconds": "1.5"})
        answer = json.loads(client.ask("/verdict", body, Accept="application/json").text)
        assert answer["message"] == f"Saved: good · row {first['id']}"
        assert fields_of(answer["main"])["id"] != first["id"]
    assert verdicts(run)[0].seconds == 1.5


@pytest.mark.parametrize("queue", ["random", "audit"])
def test_a_row_of_a_sample_shows_nobodys_answer_before_the_verdict(
    promising_run: Path, tmp_path: Path, queue: str
) -> None:
    run = copy_run(promising_run, tmp_path / "run")
    with page_of(run) as url:
        client = Client(url)
        page = client.ask(f"/?queue={queue}").text
        main = page[page.index("<main") : page.index("</main>")]
        assert "comes after your verdict" in main
        assert not re.search(r"[Pp]roposed|simulated:|confidence|class=.(bar|number|mark\b)|<svg|id=.answers", main)
        row = fields_of(page)
        body = urlencode({**row, "label": "good"})
        saved = json.loads(client.ask("/verdict", body, Accept="application/json").text)["message"]
        assert re.fullmatch(rf"Saved: good · row {row['id']} · models: (good|bad) \(\d\.\d\d\)", saved)
        skipped = fields_of(client.ask(f"/?queue={queue}").text)
        answer = client.ask("/verdict", urlencode({**skipped, "skip": "1"}), Accept="application/json").text
        assert json.loads(answer)["message"] == f"Skipped · row {skipped['id']}"
        here = fields_of(client.ask(f"/?queue={queue}").text)["id"]
        for name, known in ((skipped["id"], False), (row["id"], True)):  # back to the rows before
            page = client.ask(f"/step?{urlencode({'id': here, 'by': '-1'})}").text
            here = fields_of(page)["id"]
            assert (here, "simulated:" in page) == (name, known)
    assert [(one.blind, one.queue) for one in verdicts(run)] == [(True, queue)] * 2


def test_a_step_back_before_any_row_was_seen_shows_the_next_one(run: Path) -> None:
    with page_of(run) as url:
        assert fields_of(Client(url).ask("/step?by=-1").text)["id"]


def test_labels_keep_the_order_of_the_task_and_the_proposal_is_marked(run: Path) -> None:
    with page_of(run) as url:
        client = Client(url)
        pages = [client.ask(f"/row?id=t{row}").text for row in range(40, 70)]
    orders = {tuple(re.findall(r'name="label" value="([^"]*)"', page)) for page in pages}
    assert orders == {("good", "bad", "&lt;b&gt;neither&lt;/b&gt;")}
    proposed = [re.findall(r'value="(\w+)"[^>]* data-proposed', page) for page in pages]
    assert {one[0] for one in proposed} == {"good", "bad"}
    assert all(len(one) == 1 for one in proposed)


def test_a_name_is_asked_for_once(run: Path) -> None:
    with page_of(run) as url:
        nobody = Client(url, "")
        for path in ("/", "/people", "/row?id=t1"):
            assert nobody.ask(path).headers["location"] == "/reviewer"
        named = nobody.post("/reviewer", name="  Ana   Müller ")
        assert named.headers["set-cookie"].startswith("reviewer=Ana%20M%C3%BCller;")
        assert "SameSite=strict" in named.headers["set-cookie"]
        for name in ("", " ", "x" * 61, "a\0b"):
            assert nobody.post("/reviewer", name=name).status == 400
        for cookie, name in (("Ana%1B%5B2J%E2%80%AE%0ALee", "Ana [2J Lee"), ("%07", "")):
            page = Client(url, cookie).ask("/")
            assert name in page.text if name else page.headers["location"] == "/reviewer"
    with page_of(run, reviewer="Ben") as url:
        assert "Ben" in Client(url, "").ask("/").text


@pytest.mark.parametrize(
    ("change", "status", "message"),
    [
        ({"id": "nowhere"}, 404, "nowhere"),
        ({"label": "ugly"}, 400, "&#x27;ugly&#x27; is not one of the labels"),
        ({"version": "seven"}, 400, "version=&#x27;seven&#x27; is not a number"),
        ({"lease": "0123456789abcdef"}, 409, "was not in your hands when it was shown"),
        ({"lease": ""}, 409, "was not in your hands when it was shown"),
        ({"version": "9"}, 409, "was judged since it was shown to you"),
        ({"queue": "longest"}, 400, "queue=&#x27;longest&#x27; is not one of learn, random"),
        ({"shown_by": "nobody"}, 400, "shown_by=&#x27;nobody&#x27; is not one of learn, random"),
    ],
)
def test_a_verdict_that_cannot_be_is_refused_in_a_sentence(
    run: Path, change: dict[str, str], status: int, message: str
) -> None:
    with page_of(run) as url:
        client = Client(url)
        fields = {**fields_of(client.ask("/").text), "label": "good"}
        answer = client.post("/verdict", **{**fields, **change})
    assert (answer.status, message in answer.text) == (status, True)
    assert verdicts(run) == []


def test_what_is_no_form_or_too_large_or_from_another_site_is_refused(run: Path) -> None:
    with page_of(run) as url:
        client = Client(url)
        assert client.ask("/verdict", b"\xff\xfe=1").status == 400
        assert client.ask("/verdict", "&".join(f"a{number}=1" for number in range(500))).status == 400
        assert client.ask("/verdict", "note=" + "x" * 300_000).status == 413
        assert client.ask("/undo", "", Origin="http://elsewhere.example").status == 403
        assert client.ask("/assets/../app.py").status == 404
    assert verdicts(run) == []


def test_every_answer_has_a_strict_policy_and_nothing_inline(run: Path) -> None:
    with page_of(run) as url:
        client = Client(url)
        for path in ("/", "/row?id=attack", "/people", "/reviewer", "/row?id=nowhere"):
            answer = client.ask(path)
            assert answer.headers["content-security-policy"].startswith("default-src 'self'")
            tags = Tags(answer.text)
            assert tags.inline == [], path
            assert tags.scripts == ["/assets/review.js"], path


def test_a_row_shows_why_its_variants_and_every_vote(run: Path) -> None:
    with page_of(run) as url:
        page = Client(url).ask("/row?id=t90").text
    assert "<ins>" in page  # what the relation `frame` has changed
    assert page.count("simulated:") >= 3
    assert "paper 0" in page
    assert "<strong>Judge</strong>" in page
    assert QUEUES["chosen"].use in page
    order = page[page.index(">order</th>") :]
    assert re.search(r"<del>[^<]*good", order)


def test_no_row_shows_what_coders_said_and_every_row_its_variants(tmp_path: Path) -> None:
    simulated_run(tmp_path, rows=300, gold_rows=15, coders=("anna", "ben"))
    with page_of(tmp_path / "run") as url:
        client = Client(url)
        pages = [client.ask(f"/row?id=t{row}").text for row in range(0, 300, 7)]
    assert all("286 left" in page for page in pages)  # on one of 15 rows, coders differ
    assert not any("gold_anna" in page or "gold_ben" in page for page in pages)
    assert not any("no variant recorded" in page for page in pages)


def test_variants_that_cannot_be_read_are_not_called_missing(run: Path) -> None:
    with page_of(run) as url:
        (run / "variables/label/variants.parquet").write_bytes(b"nothing")
        page = Client(url).ask("/row?id=t90").text
    assert "variants.parquet is damaged or not a file of variants" in page
    assert "no variant recorded" not in page


def test_guidelines_of_ones_own_are_shown_as_text_and_nothing_more(run: Path, tmp_path: Path) -> None:
    file = tmp_path / "guidelines.md"
    file.write_text(f"# Rules\n\n{ATTACK}\n\n![x](http://elsewhere.example/x.png) [y](javascript:alert(1))\n")
    with page_of(run, replace(OPTIONS, guidelines=file)) as url:
        page = Client(url).ask("/").text
    assert "<h3>Rules</h3>" in page
    assert "&lt;img src=x" in page
    assert not re.search(r"<img|href=\"javascript", page)


def test_markdown_has_lists_tables_and_links_to_new_tabs() -> None:
    page = guidelines_view("- one\n- two\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n[there](https://example.org)\n")
    assert "<li>one</li>" in page
    assert "<td>2</td>" in page
    assert '<a href="https://example.org" target="_blank" rel="noopener noreferrer">' in page


def test_labels_have_digits_then_letters_that_the_page_does_not_use_itself() -> None:
    keys = keys_of([f"label {number}" for number in range(40)])
    assert list(keys.values())[:10] == [*"123456789a"]
    assert list(keys.values())[30:] == [""] * 10
    assert not set(FOR_LABELS) & set(TAKEN)


@pytest.mark.parametrize("keys", ["xy", "xxy", "xys", "xy "])
def test_keys_that_cannot_be_are_refused(keys: str) -> None:
    with pytest.raises(ConfigError, match=f"--keys '{keys}': give one key for each of a, b, c, all different"):
        keys_of(["a", "b", "c"], keys)


def test_a_run_without_gold_has_scores_and_no_confidence(tmp_path: Path) -> None:
    simulated_run(tmp_path, rows=12, gold_rows=0)
    with page_of(tmp_path / "run") as url:
        client = Client(url)
        page = client.ask("/?queue=doubtful").text
        assert re.search(r"score \d\.\d\d, not calibrated", page)
        assert "no promise" in page
        end = client.ask("/?queue=audit").text
        assert "Nothing is left for you in “Audit”" in end
        assert "No label is accepted, so there is nothing to check" in end
        assert "Random</a>:" in end
        assert "Conflicts</a>:" not in end
        assert "No row has verdicts of two people yet" in client.ask("/people").text


def test_the_rows_of_a_promise_about_the_whole_table_have_a_queue_of_their_own(run: Path) -> None:
    with page_of(run) as url:
        page = Client(url).ask("/?queue=finish").text
        assert "Start with pcs finish." in page
        assert "<b>Finish</b><span" not in page  # it is not offered
        assert "Nothing is left for you in “Stream”" in Client(url).ask("/?queue=stream").text
    plan = {"by_people": ["t90", "t91", "gone"], "goal": "at most 5 % of all labels are wrong"}
    (run / "finish.json").write_text(json.dumps(plan))
    with page_of(run) as url:
        page = Client(url).ask("/?queue=finish").text
        assert "<b>0</b> of 2 rows, then at most 5 % of all labels are wrong" in page
        assert "<b>Finish</b><span" in page


def test_a_run_with_gold_for_every_row_has_nothing_to_review(tmp_path: Path) -> None:
    simulated_run(tmp_path, rows=12, gold_rows=12)
    with page_of(tmp_path / "run") as url:
        page = Client(url).ask("/?queue=learn").text
    assert "Every row has a gold label or a verdict" in page
    assert "Random</a>:" not in page


def test_prompts_and_replies_are_a_page_of_their_own_without_a_script(run: Path) -> None:
    with simulated_models(MODELS[:1]), page_of(run) as url:
        client = Client(url)
        where = unescape(the(re.search(r'href="(/evidence[^"]*)"', client.ask("/row?id=attack").text))[1])
        page = client.ask(where).text
        assert page.count("<pre ") == 6 * 3  # system, user and reply, of two questions to three models
        assert "Decide which one of the given labels fits the text best." in page
        assert escape(ATTACK) in page
        assert Tags(page).inline == []
        assert Tags(page).scripts == ["/assets/review.js"]
        parts = json.loads(client.ask(where, Accept="application/json").text)
        assert parts["main"] in page


def test_a_blind_row_has_no_prompts_and_a_run_without_its_models_says_why(run: Path) -> None:
    with page_of(run) as url:
        client = Client(url)
        blind = client.ask("/?queue=random").text
        assert "/evidence" not in blind
        assert "you judge this row first" in client.ask(f"/evidence?id={fields_of(blind)['id']}").text
        assert "Not shown: no model is called" in client.ask("/evidence?id=t80").text
        assert client.ask("/evidence?id=nowhere").status == 404
    (run / "ledger.db").unlink()
    with simulated_models(), page_of(run) as url:
        assert "Not shown: the ledger is gone." in Client(url).ask("/evidence?id=t80").text
