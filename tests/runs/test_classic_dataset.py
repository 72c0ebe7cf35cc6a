"""Datasets of the paper's class: labels from the prompt and the column, and errors that name the row."""

import gzip
from pathlib import Path

import pytest

from pcs_annotator import UserError
from pcs_annotator.base.errors import LabelError, TableError
from pcs_annotator.runs.classic_dataset import beside, read_classic_dataset
from pcs_annotator.tables.chunks import Dataset

PROMPT = "Label the news as <label>Fake</label> or <label>Real</label>."
UNTAGGED = "Is this news true?"


def read(tmp_path: Path, content: str | bytes, prompt: str = PROMPT) -> tuple[Dataset, tuple[str, ...]]:
    path = tmp_path / "dataset.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return read_classic_dataset(path, prompt)


def test_labels_match_in_any_case_and_the_prompts_spelling_wins(tmp_path: Path) -> None:
    dataset, labels = read(tmp_path, "label,text\nFAKE,One.\n real ,Two.\n,Three.\n")
    assert labels == ("Fake", "Real")
    assert dataset.gold == ("FAKE", "real", None)


def test_without_tags_the_labels_are_those_of_the_column_in_their_most_common_spelling(tmp_path: Path) -> None:
    content = "label,text\nreal,a\nReal,b\nReal,c\nfake,d\nother,e\n"
    assert read(tmp_path, content, UNTAGGED)[1] == ("Real", "fake", "other")


def test_a_label_that_is_probably_none_must_be_named_in_the_prompt(tmp_path: Path) -> None:
    content = "label,text\nreal,a\nfake,b\nnone,c\n"
    with pytest.raises(
        LabelError, match=r"column label: 'none' may mean .* or name all labels in the prompt as <label>"
    ):
        read(tmp_path, content, UNTAGGED)
    prompt = "Answer <label>real</label>, <label>fake</label> or <label>none</label>."
    assert read(tmp_path, content, prompt)[0].gold == ("real", "fake", "none")


def test_a_single_tag_spells_its_label_and_the_column_gives_the_others(tmp_path: Path) -> None:
    prompt = "Answer <label>FAKE</label> or otherwise, in the form <label>…</label>."
    assert read(tmp_path, "label,text\nfake,a\nreal,b\n", prompt)[1] == ("FAKE", "real")


@pytest.mark.parametrize(
    "content",
    [
        b"\xef\xbb\xbflabel,text\nFake,Caf\xc3\xa9.\n",
        b"label;text\nFake;Caf\xc3\xa9.\n",
        b"label\ttext\nFake\tCaf\xc3\xa9.\n",
        b"label|text\nFake|Caf\xc3\xa9.\n",
        b"Text , LABEL\nCaf\xc3\xa9.,Fake\n",
        b"id,label,text,more\r\n1,Fake,Caf\xc3\xa9.,x\r\n",
    ],
)
def test_byte_order_mark_delimiter_and_case_of_the_header_do_not_matter(tmp_path: Path, content: bytes) -> None:
    dataset, _ = read(tmp_path, content)
    assert [item.text for item in dataset.items] == ["Café."]
    assert dataset.gold == ("Fake",)


ROWS = "".join(f"Fake,Text {row}.\n" for row in range(1, 17))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (f"label,text\n{ROWS}Flase,Text.\n", r"row 18, column label: 'Flase' .*'Fake', 'Real'"),
        (f'label,text\n{ROWS}Real,"Open.\nFake,a\nReal,b\n', r"row 18: .*quote"),
        (f'text,label\n"Open.\n{"x,Fake" + chr(10)}y,Real\n",Real\n', r"row 2: .*quote"),
        (f"label,text\n{ROWS}Real,one,two\n", r"row 18: .*2 columns, got 3"),
        ("label,text\nlabel,text\nFake,a\n", r"row 2 .*header"),
        ("label,text\n", r"no rows"),
        ("", r"is empty.*header"),
        ("label,title\nFake,a\n", r"no column 'text'.* 'label', 'title': rename"),
        ("gold,text\nFake,a\n", r"no column 'label'.* 'gold', 'text': rename"),
        (b"\x00\x01\x02\xff", r"not a text file"),
    ],
)
def test_a_broken_file_gives_one_sentence_with_the_remedy(tmp_path: Path, content: str | bytes, words: str) -> None:
    with pytest.raises(UserError, match=words) as caught:
        read(tmp_path, content)
    assert "dataset.csv" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_prose_over_several_lines_is_not_taken_for_an_open_quote(tmp_path: Path) -> None:
    content = 'label,text\nReal,"He said:\nreal, as it was, and\nfake."\nFake,"a\nReal,x\nb\nc"\n'
    assert len(read(tmp_path, content)[0].items) == 2


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("label,text\nFake,a\nfake,b\n", r"two labels.* 'fake': name all labels in the prompt"),
        ("label,text\n,a\n", r"no labels: name all labels in the prompt"),
        ("label,text\n" + "".join(f"l{row},a\n" for row in range(51)), r"51 different values"),
    ],
)
def test_a_column_that_gives_no_label_set_names_the_remedy(tmp_path: Path, content: str, words: str) -> None:
    with pytest.raises(LabelError, match=words):
        read(tmp_path, content, UNTAGGED)


def test_no_file_and_a_folder_are_named(tmp_path: Path) -> None:
    with pytest.raises(TableError, match=r"no file .*nowhere\.csv"):
        read_classic_dataset(tmp_path / "nowhere.csv", PROMPT)
    with pytest.raises(TableError, match="folder"):
        read_classic_dataset(tmp_path, PROMPT)


def test_a_compressed_dataset_is_read_and_its_files_are_placed_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "news.csv.gz"
    path.write_bytes(gzip.compress(b"label,text\nFake,a\n"))
    assert len(read_classic_dataset(path, PROMPT)[0].items) == 1
    assert beside(path, "annotations.csv") == tmp_path / "news_annotations.csv"
