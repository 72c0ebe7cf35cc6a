"""CoNLL files: a token and its tag in each line, and an empty line after each text; passages are in BIO tags.

Every sentence is a text, also where `-DOCSTART-` says that several belong together: its tokens joined by blanks or, if
it has these tokens, what the comment `# text = …` says. Its id is what `# id = …` or `# sent_id = …` says. The first
column has tokens, the last one tags, which may also be IOB1, IOBES or BILOU.
"""

import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice, pairwise
from typing import NamedTuple

from pcs_annotator.base.errors import TableError
from pcs_annotator.core.passages import Passage, written
from pcs_annotator.tables import source_files
from pcs_annotator.tables.arrow import pa
from pcs_annotator.tables.passage_files import ANY_TYPE
from pcs_annotator.tables.source_files import OpenedTable, SourceFile
from pcs_annotator.tables.text_files import Encoding, find_encoding

_COMMENT = re.compile(r"# *([\w ]+?) *= ?(.*)")
_TAG = re.compile(r"(O)|([BIESLU])-(\S.*)")
_TOKEN = re.compile(r"[^\s!-/:-@\[-`{-~¡«»¿\u2010-\u205e\u3001-\u303f\uff01-\uff0f]+|\S")  # a word, or a sign alone


_Token = tuple[str, str, str]  # its letters, the sign of its tag (B, I, O, …) and the type, which is empty after O


class ConllPage(NamedTuple):
    """Texts as CoNLL, and how many of their passages it cannot hold."""

    text: str
    left_out: int  # because they overlap with another one, or have nothing but white space


def open_conll(file: SourceFile, limit: int | None = None) -> OpenedTable:
    """Return texts with their ids, where the file has some, and their passages as gold cells hold them."""
    file.refuse_empty()
    with file.explained():
        file.refuse_other_kind()
        encoding = find_encoding(file, limit)

    def batches(schema: pa.Schema) -> Iterator[pa.Table]:
        rows = _rows(file, encoding)
        while batch := list(islice(rows, source_files.BATCH_ROWS)):
            yield pa.table([[row.get(name) for row in batch] for name in schema.names], schema=schema)

    return OpenedTable(source_files.text_schema(("id", "text", "gold"), file.name), None, batches, note=encoding.note)


def _rows(file: SourceFile, encoding: Encoding) -> Iterator[Mapping[str, str | None]]:
    comments, tokens = dict[str, str](), list[_Token]()
    with file.explained(), io.TextIOWrapper(encoding.stream(file), encoding="utf-8-sig") as lines:
        for number, line in enumerate(chain(lines, [""]), 1):
            if not line.strip() or line.startswith("-DOCSTART-"):
                if tokens:
                    yield _row(comments, tokens)
                comments, tokens = {}, []
            elif comment := _COMMENT.match(line):
                comments[comment[1]] = comment[2]
            elif token := _token(line):
                tokens.append(token)
            elif not line.startswith("#"):
                problem = f"line {number} has no token with a tag such as B-claim, I-claim or O ({line.strip()[:60]!r})"
                raise TableError(f"{file.name}, {problem}: correct it; an empty line stands between texts")


def _token(line: str) -> _Token | None:
    """Return the token in a line; None if there is none."""
    cells = line.rstrip("\r\n").split("\t") if "\t" in line else re.split(" +", line.strip(" \r\n"))
    tag = _TAG.fullmatch(cells[-1].strip())
    if len(cells) < 2 or tag is None or not cells[0].strip():
        return None
    return cells[0].strip(), tag[1] or tag[2], tag[3] or ""


def _row(comments: Mapping[str, str], tokens: Sequence[_Token]) -> Mapping[str, str | None]:
    forms = [form for form, *_ in tokens]
    text = comments.get("text", "")
    spans = _spans(forms, text)
    if spans is None:
        text = " ".join(forms)
        spans = _spans(forms, text) or []
    passages, going_on = list[Passage](), ""  # the type of the passage that the next token may belong to
    for (start, end), (_, sign, type_) in zip(spans, tokens, strict=True):
        if going_on == type_ != "" and sign in "IEL":
            passages[-1] = passages[-1]._replace(end=end)
        elif type_:  # IOB1 begins with I, too
            passages.append(Passage(start, end, type_))
        going_on = type_ if sign in "BI" else ""
    return {"id": comments.get("id") or comments.get("sent_id"), "text": text, "gold": written(passages, ANY_TYPE)}


def _spans(forms: Sequence[str], text: str) -> list[tuple[int, int]] | None:
    """Return where tokens are in their text; None if it does not consist of them and white space."""
    spans, end = list[tuple[int, int]](), 0
    for form in forms:
        start = text.find(form, end)
        if start < 0 or text[end:start].strip():
            return None
        end = start + len(form)
        spans.append((start, end))
    return None if text[end:].strip() else spans


def conll_page(rows: Iterable[tuple[str, str, Sequence[Passage]]]) -> ConllPage:
    """Return texts as CoNLL with BIO tags, given id, text and passages of each, the surest passage first.

    A token has one tag: of passages that overlap, the first stays. Ends of lines in texts become blanks, and passages
    lose the white space at their borders.
    """
    blocks, left_out = list[str](), 0
    for name, text, passages in rows:
        kept: list[Passage] = []
        for passage in passages:
            apart = all(passage.end <= other.start or other.end <= passage.start for other in kept)
            if apart and text[passage.start : passage.end].strip():
                kept.append(passage)
        left_out += len(passages) - len(kept)
        about, content = (re.sub(r"[\r\n]", " ", part) for part in (name, text))  # positions stay
        blocks += [f"# id = {about}\n# text = {content}\n", *_tagged(text, kept), "\n"]
    return ConllPage("".join(blocks), left_out)


def _tagged(text: str, passages: Sequence[Passage]) -> Iterator[str]:
    """Yield a line for each token; the borders of passages, which do not overlap, split tokens."""
    type_at = {passage.start: passage.type for passage in passages}
    borders = {border for passage in passages for border in (passage.start, passage.end)}
    for start, end in pairwise(sorted({0, len(text), *borders})):
        for count, match in enumerate(_TOKEN.finditer(text, start, end)):
            tag = f"{'I' if count else 'B'}-{type_at[start]}" if start in type_at else "O"
            yield f"{match[0]}\t{tag}\n"
