import json
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pcs_annotator import Outcome
from pcs_annotator.base.errors import LabelError, PcsError, TableError
from pcs_annotator.core.passages import VALUE, Extraction, Passage, written
from pcs_annotator.tables.chunks import Columns, open_stream, read_source
from pcs_annotator.tables.conll import conll_page
from pcs_annotator.tables.label_studio import Control, RowToAnswer, labelling_interface, read_answers, tasks_page
from pcs_annotator.tables.passage_files import ANY_TYPE, gold_passages

TEXT = "The moon is cheese, says Ann Lee. The moon is far."
CLAIM, PERSON = Passage(0, 18, "claim"), Passage(25, 32, "Person")
BOTH, ONE_TYPE = Extraction(types=("claim", "Person")), Extraction(types=("claim",))
CONTROL = Control("spans", "passages", ("claim", "Person"), {"claim": "what may be wrong"})


def gold(cell: object, extraction: Extraction = BOTH, text: str = TEXT) -> tuple[Passage, ...] | None:
    return gold_passages(cell, text, extraction, "news.csv, row 2")


def in_table(path: Path, column: str | None = None) -> list[tuple[str, str, tuple[Passage, ...] | None]]:
    """Return id, text and passages of every row of a file."""
    rows = read_source(path, Columns(gold=column))
    cells = zip(rows.items, rows.gold, strict=True)
    return [(item.id, item.text, gold_passages(cell, item.text, ANY_TYPE, path.name)) for item, cell in cells]


@pytest.mark.parametrize(
    "cell",
    [
        written([PERSON, CLAIM], BOTH),
        [{"start": 25, "end": 32, "label": "person"}, {"start": 0, "end": 18, "labels": ["CLAIM"]}],
        [{"start_offset": 0, "end_offset": 18, "label": "claim"}, {"type": "Person", "quotation": "Ann Lee"}],
        [[0, 18, "claim"], [25, 32, "Person"], [0, 18, "claim"]],
        '{"claim": ["The moon is cheese"], "person": ["Ann Lee"]}',
        "Claim: The moon is cheese\n\nperson: Ann Lee",
        [
            {"start": 0, "end": 18, "type": "claim", "text": "The  moon\\nis cheese"},
            {"quotation": "Ann Lee", "type": "Person"},
        ],
    ],
)
def test_a_cell_says_passages_in_many_ways(cell: object) -> None:
    assert gold(cell) == (CLAIM, PERSON)
    assert gold(written(gold(cell) or (), BOTH)) == (CLAIM, PERSON)


def test_where_there_is_one_type_quotations_alone_are_enough_and_repeated_ones_mean_the_next_place() -> None:
    assert gold("The moon is cheese", ONE_TYPE) == gold('["The moon is cheese"]', ONE_TYPE) == (CLAIM,)
    assert (
        gold('{"quotation": "The moon is cheese"}', ONE_TYPE) == gold("claim: The moon is cheese", ONE_TYPE) == (CLAIM,)
    )
    places = (Passage(0, 8, "claim"), Passage(34, 42, "claim"))
    assert gold("The moon\nThe moon", ONE_TYPE) == gold('["The moon", "The moon", "The moon"]', ONE_TYPE) == places
    assert gold("note: this", ONE_TYPE, "A note: this.") == (Passage(2, 12, "claim"),)


def test_nothing_is_not_the_same_as_no_label() -> None:
    unlabelled: list[object] = [None, "", "  ", "null", float("nan")]
    assert [gold(cell) for cell in unlabelled] == [None] * 5
    nothing: list[object] = ["[]", "[ ]", "None", [], "{}", '{"claim": []}']
    assert [gold(cell) for cell in nothing] == [()] * 6


@pytest.mark.parametrize(
    ("cell", "words"),
    [
        (
            '[{"start": 0, "end": 90, "type": "claim"}]',
            "the text has 50 characters, and no passage from 0 to 90: count",
        ),
        ('[{"start": -1, "end": 4, "type": "claim"}]', "no passage from -1 to 4"),
        ('[{"start": 4, "end": 4, "type": "claim"}]', "no passage from 4 to 4"),
        ('[{"start": 1.5, "type": "claim"}]', "no passage from 1.5 to None"),
        ('[[0, 8, "place"]]', "'place' is not a type of passages; write 'claim' or 'Person'"),
        ('[[0, 8, "claims"]]', "did you mean 'claim'"),
        ('[{"start": 0, "end": 8}]', "a passage has no type; write 'claim' or 'Person'"),
        (
            '[{"start": 0, "end": 3, "type": "claim", "text": "moon"}]',
            "from 0 to 3 the text has 'The', not 'moon': correct",
        ),
        ("claim: The sun", "'The sun' is not in the text: copy"),
        ("The moon", "a passage has no type"),
        ("[1, 2]", r"1 is not a passage: write \[\{"),
        ('[{"type": "claim"}]', "is not a passage"),
        ('[{"start": 0', "is not valid JSON"),
        ("[[0, 18, 'claim']]", "is not valid JSON"),
        (
            '[[0, 18, "claim"], [4, 18, "claim"]]',
            r"'The moon is cheese' \(0–18\) and 'moon is cheese' \(4–18\) are nearly",
        ),
    ],
)
def test_what_is_wrong_with_a_cell_is_said_with_its_row(cell: str, words: str) -> None:
    with pytest.raises(LabelError, match=rf"^news.csv, row 2: .*{words}"):
        gold(cell)


def test_passages_may_overlap_a_little_or_have_other_types() -> None:
    assert gold([[0, 18, "claim"], [12, 32, "claim"], [0, 17, "Person"]]) is not None


KEYS = st.sampled_from(["start", "end", "type", "text", "labels", "claim"])
CELLS = st.recursive(
    st.none() | st.integers() | st.floats() | st.text(max_size=5),
    lambda part: st.lists(part) | st.dictionaries(KEYS, part),
    max_leaves=8,
)


@given(CELLS)
def test_any_cell_is_read_or_refused(cell: object) -> None:
    for spelled in (cell, json.dumps(cell)):
        try:
            passages = gold(spelled)
        except LabelError:
            continue
        assert all(0 <= start < end <= len(TEXT) and type_ in BOTH.types for start, end, type_, _ in passages or ())


def test_a_value_is_normalised_and_placed_where_the_text_has_these_words() -> None:
    number, date = Extraction(types=(VALUE,), format="number"), Extraction(types=(VALUE,), format="date")
    assert gold("€ 1,200.50", number, "It cost € 1,200.50.") == (Passage(8, 18, VALUE, "1200.5"),)
    assert gold(1200.5, number, "It cost € 1,200.50.") == (Passage(0, 0, VALUE, "1200.5"),)
    assert [gold(cell, date) for cell in ("none", "[]", "")] == [(), (), None]
    assert [passage.value for passage in gold("3 March 2024", date) or ()] == ["2024-03-03"]
    with pytest.raises(LabelError, match="row 2: '3/4/2024' is no unambiguous date: write it like 2024-03-31, none if"):
        gold("3/4/2024", date)


CONLL = """\
-DOCSTART- -X- -X- O

# sent_id = s1
# a remark
EU NNP I-NP B-ORG
rejects VBZ I-VP O
# NN I-NP O
German JJ I-NP I-MISC
lamb NN I-NP I-MISC
Ann NNP I-NP B-PER
Lee NNP I-NP B-PER

# id = s2
# text = Ann Lee’s moon.
Ann\tB-PER
Lee\tE-PER
’s\tO
moon\tS-big thing
.\tO
"""


def test_every_sentence_of_a_conll_file_is_a_text(tmp_path: Path) -> None:
    path = tmp_path / "news.bio"
    path.write_bytes(CONLL.replace("\n", "\r\n").encode("utf-8-sig"))
    [first, second] = in_table(path)
    assert first[:2] == ("s1", "EU rejects # German lamb Ann Lee")
    quoted = [(first[1][start:end], type_) for start, end, type_, _ in first[2] or ()]
    assert quoted == [("EU", "ORG"), ("German lamb", "MISC"), ("Ann", "PER"), ("Lee", "PER")]
    assert second == ("s2", "Ann Lee’s moon.", (Passage(0, 7, "PER"), Passage(10, 14, "big thing")))
    other = tmp_path / "other.conll"
    other.write_text("# text = Anna\nAnn\tO\n\n\nLee\tO\n", encoding="utf-8")
    assert in_table(other) == [("1", "Ann", ()), ("2", "Lee", ())]
    assert len(open_stream(tmp_path, Columns()).read().items) == 4


@pytest.mark.parametrize("line", ["moon", "moon\t", "\tO", "moon\tclaim", "moon B-"])
def test_a_broken_line_of_a_conll_file_is_named(tmp_path: Path, line: str) -> None:
    (tmp_path / "a.iob2").write_text(f"The O\n{line}\n", encoding="utf-8")
    with pytest.raises(TableError, match=r"^a.iob2, line 2 has no token with a tag such as .*: correct it"):
        in_table(tmp_path / "a.iob2")


LETTERS = st.text(st.sampled_from("aé’.#-= \t\n\r👍…\u00a0\u2028ा"), min_size=1, max_size=30)


def passages_in(text: str) -> st.SearchStrategy[list[Passage]]:
    position, types = st.integers(0, len(text)), st.sampled_from(["a b", "Ü"])
    passages = st.builds(lambda a, b, type_: Passage(min(a, b), max(a, b), type_), position, position, types)
    return st.lists(passages.filter(lambda passage: passage.start < passage.end))


@given(st.data(), st.lists(LETTERS, max_size=3))
def test_conll_brings_the_same_passages_back(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, texts: list[str]
) -> None:
    rows = [(f"id {number}", text, data.draw(passages_in(text))) for number, text in enumerate(texts)]
    page, left_out = conll_page(rows)
    path = tmp_path_factory.mktemp("conll") / "out.conll"
    path.write_text(page + "# id = end\nend\tO\n", encoding="utf-8", newline="")
    back = {name: (text, passages or ()) for name, text, passages in in_table(path)}
    count = 0
    for name, text, passages in rows:
        if text.strip():
            text_back, passages_back = back[name]
            assert text_back == text.replace("\r", " ").replace("\n", " ")
            trimmed = [trimmed_to_words(text, passage) for passage in passages]
            assert set(passages_back) <= set(trimmed)
            count += len(passages_back)
    assert count == sum(len(passages) for *_, passages in rows) - left_out


def trimmed_to_words(text: str, passage: Passage) -> Passage:
    words = text[passage.start : passage.end]
    start = passage.start + len(words) - len(words.lstrip())
    return passage._replace(start=start, end=start + len(words.strip()))


def test_of_overlapping_passages_the_first_is_written_and_borders_split_words() -> None:
    page, left_out = conll_page([("a", "moonlight far", [Passage(0, 4, "x"), Passage(2, 9, "y"), Passage(4, 9, "x")])])
    assert page == "# id = a\n# text = moonlight far\nmoon\tB-x\nlight\tB-x\nfar\tO\n\n"
    assert left_out == 1


def mark(passage: Passage, text: str = TEXT, control: str = "spans") -> dict[str, object]:
    [region] = Control(control, "passages").marks(text, {passage: None})
    return region


def task(*answers: Sequence[Passage] | None, number: int = 1, text: str = TEXT) -> dict[str, object]:
    annotations = [
        {"completed_by": number, "was_cancelled": marks is None, "result": [mark(each, text) for each in marks or ()]}
        for number, marks in enumerate(answers)
    ]
    data = {"text": text, "source": "Blog", "pcs_queue": "random", "pcs_id": f"n{number}"}
    return {"id": number, "data": data, "annotations": annotations, "predictions": []}


def in_project(folder: Path, *tasks: object) -> Path:
    path = folder / "project-1.json"
    path.write_text(json.dumps(tasks), encoding="utf-8")
    return path


def test_marks_of_a_label_studio_project_are_a_column(tmp_path: Path) -> None:
    relation = {"type": "relation", "from_id": "a", "to_id": "b"}
    first = task([CLAIM, PERSON])
    first["annotations"][0]["result"].append(relation)  # type: ignore[index]  # a dict of lists of dicts
    path = in_project(tmp_path, first, task([], number=2), task(None, number=3))
    expected = [("n1", TEXT, (CLAIM, PERSON)), ("n2", TEXT, ()), ("n3", TEXT, None)]
    assert in_table(path, "spans") == expected
    assert open_stream(path, Columns()).schema.names == ["id", "text", "source", "spans"]
    # with the positions that JSON-MIN has, and as answers about a run
    assert [answer.label for answer in read_answers(path, CONTROL)] == [written([CLAIM, PERSON], BOTH), "[]", None]
    short = {"pcs_id": "n1", "text": TEXT, "spans": [mark(CLAIM)["value"]], "annotator": 1}
    path = in_project(tmp_path, short)
    assert [answer.label for answer in read_answers(path, CONTROL)] == [written([CLAIM], BOTH)]
    assert [passages for *_, passages in in_table(path, "spans")] == [(CLAIM,)]


def test_what_more_than_half_of_several_people_mark_counts_and_a_tie_says_nothing(tmp_path: Path) -> None:
    wider = CLAIM._replace(end=19)
    agreed = task([CLAIM, PERSON], [wider], [wider], number=1)
    path = in_project(tmp_path, agreed, task([CLAIM], [], number=2), task([CLAIM], None, number=3))
    assert [passages for *_, passages in in_table(path, "spans")] == [(wider,), None, (CLAIM,)]


def test_a_project_that_does_not_fit_is_refused_or_any_other_list(tmp_path: Path) -> None:
    wrong = mark(CLAIM)
    wrong["value"] = {"start": 0, "end": 4, "text": "moon", "labels": ["claim"]}
    broken = task([CLAIM]) | {"annotations": [{"result": [wrong]}]}
    with pytest.raises(PcsError, match=r"^project-1.json, task 1: from 0 to 4 the text has 'The', not 'moon'"):
        in_table(in_project(tmp_path, broken), "spans")
    with pytest.raises(TableError, match="task 1 has no text: call the data that people read 'text'"):
        in_table(in_project(tmp_path, task([CLAIM]) | {"data": {"a": "x", "b": "y"}}), "spans")
    other = in_project(tmp_path, task([]) | {"text": "Fine.", "gold": "[]"})
    assert in_table(other) == [("1", "Fine.", ())]


def test_proposed_passages_go_to_label_studio_with_their_scores_and_come_back(tmp_path: Path) -> None:
    outcome = Outcome(id="a", label=None, scores={}, confidence=None, decision="review")
    row = RowToAnswer(text=TEXT, outcome=outcome, passages=[(CONTROL, {CLAIM: 0.9, PERSON: 0.6})])
    [sent] = json.loads(tasks_page([row], "pcs 1"))
    [prediction] = sent["predictions"]
    assert (prediction["score"], [part["score"] for part in prediction["result"]]) == (0.6, [0.9, 0.6])
    assert prediction["result"][0]["value"] == {
        "start": 0,
        "end": 18,
        "text": "The moon is cheese",
        "labels": ["claim"],
    }
    path = in_project(tmp_path, sent | {"id": 1, "annotations": [{"id": 1, "result": prediction["result"]}]})
    assert in_table(path, "spans") == [("a", TEXT, (CLAIM, PERSON))]
    control = ElementTree.fromstring(labelling_interface([CONTROL])).find("Labels")
    assert control is not None
    assert control.attrib == {"name": "spans", "toName": "text", "choice": "single"}
    assert [label.attrib["value"] for label in control.iter("Label")] == ["claim", "Person"]


def test_nested_cells_of_json_and_of_tables_in_memory_are_gold(tmp_path: Path) -> None:
    path = tmp_path / "doccano.jsonl"
    lines = [{"id": 7, "text": TEXT, "label": [[0, 18, "claim"]]}, {"id": 8, "text": TEXT, "label": []}]
    path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    assert in_table(path) == [("7", TEXT, (CLAIM,)), ("8", TEXT, ())]
    spans = pa.table({"text": [TEXT], "spans": [[{"start": 0, "end": 18, "label": "claim"}]]})
    [cell] = open_stream(spans, Columns(gold="spans")).read().gold
    assert gold(cell) == (CLAIM,)
