"""The encoding of a text file: its byte order mark, what the user says, UTF-8 if it fits, else a guess."""

import codecs
import re
import tomllib
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from importlib.resources import files
from itertools import chain
from typing import Any, NamedTuple

from pcs_annotator.base.errors import TableError

UTF8 = "utf-8"
BLOCK = 1024**2
SAMPLE = 16 * 1024  # how many bytes a guess is made from: lines with other letters than ASCII, from the whole file
BOMS = (
    (codecs.BOM_UTF8, UTF8),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # begins like the next one
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_MARKS = "‘’‚“”„«»‹›–—…€£§°•®©™·¡¿\xa0"
_TABLES = tomllib.loads(files(__package__).joinpath("encodings.toml").read_text(encoding="utf-8"))
_LATIN, _OTHER = (
    {name: [_TABLES["letters"][one] for one in languages.split()] for name, languages in _TABLES[table].items()}
    for table in ("latin", "other")
)
"""Encoding of one byte per letter → the letters of languages for which it is used; the likeliest first."""
_JAPANESE = ("cp932", "euc_jp")
_KANA = "".join(map(chr, range(0x3041, 0x30FF)))
_ASIAN = ("gb18030", "big5", "cp932", "euc_jp", "cp949", "tis_620")
_NAMES: Mapping[str, str] = {
    **{f"cp125{number}": f"Windows-125{number}" for number in range(9)},
    "cp932": "Shift-JIS",
    "cp949": "EUC-KR",
}


class Encoding(NamedTuple):
    """The encoding of a file."""

    name: str = UTF8  # as Python calls it
    bom: bool = False  # whether the file begins with a byte order mark
    guessed: bool = False  # whether neither the file nor the user says it

    @property
    def shown(self) -> str:
        """What people call it; `--encoding` takes that, too."""
        return _NAMES.get(self.name, self.name.upper().replace("_", "-"))


class NotText(ValueError):
    """The bytes are not a text in any encoding."""


def find_encoding(open: Callable[[], Any], file: str, wanted: str = "", most: int | None = None) -> Encoding:
    """Return the encoding of a file after a look at all of it, or at its first `most` bytes; bytes are `NotText`.

    An encoding that the user wants and that is unknown or does not fit, or one that cannot be guessed, is an error.
    """
    with open() as stream:
        head = stream.read(BLOCK)
    marked = next((name for bom, name in BOMS if head.startswith(bom)), "")
    if wanted:
        return _as_wanted(open, file, wanted, marked, most)
    if marked:
        _refuse_misfit(open, file, marked, f"begins like {Encoding(marked).shown}, but is not", most)
        return Encoding(marked, bom=True)
    if b"\0" in head:
        name = _two_bytes(head)
        _refuse_misfit(open, file, name, f"looks like {Encoding(name).shown}, but is not", most)
        return Encoding(name, guessed=True)
    if _misfit(open, UTF8, most) is None:
        return Encoding()
    return _guess(open, file, most)


def _as_wanted(open: Callable[[], Any], file: str, wanted: str, marked: str, most: int | None) -> Encoding:
    try:
        found = codecs.lookup(wanted)
        "".encode(wanted)  # `hex` and the like do not encode texts
    except LookupError:
        raise TableError(
            f"there is no encoding {wanted!r} (--encoding): use one such as utf-8, windows-1252, latin-1 or shift-jis"
        ) from None
    name = found.name.removesuffix("-sig")
    if marked and not marked.startswith(name):
        raise TableError(
            f"{file} begins with the mark of {Encoding(marked).shown}, not of {wanted}: leave --encoding out"
        )
    name = marked or name
    _refuse_misfit(open, file, name, f"is not in {wanted}", most)
    return Encoding(name, bom=bool(marked))


def _refuse_misfit(open: Callable[[], Any], file: str, name: str, problem: str, most: int | None) -> None:
    line = _misfit(open, name, most)
    if line is not None:
        raise TableError(
            f"{file} {problem} (line {line:,}): name another encoding with --encoding, or save the file as UTF-8"
        )


def _misfit(open: Callable[[], Any], name: str, most: int | None) -> int | None:
    """Return the first line that is not in an encoding; None if all are."""
    decoder = codecs.getincrementaldecoder(name)()
    lines, pending = 1, False
    for block in _blocks(open, most):
        if name == UTF8 and not pending and block.isascii():
            lines += block.count(b"\n")  # much faster
            continue
        try:
            text = decoder.decode(block)
        except UnicodeDecodeError as error:
            return lines + error.object[: error.start].count(b"\n")
        if "\0" in text:
            return lines + text[: text.index("\0")].count("\n")
        lines += text.count("\n")
        pending = bool(decoder.getstate()[0])
    try:
        decoder.decode(b"", final=most is None)
    except UnicodeDecodeError:
        return lines
    return None


def _blocks(open: Callable[[], Any], most: int | None) -> Iterator[bytes]:
    left = most
    with closing(open()) as stream:
        while block := stream.read(BLOCK if left is None else min(BLOCK, left)):
            yield block
            left = None if left is None else left - len(block)


def _two_bytes(head: bytes) -> str:
    """Return which of the encodings with two bytes per letter a text without a byte order mark is in."""
    whole = head[: len(head) // 2 * 2]
    for name in ("utf-16-le", "utf-16-be"):
        text = codecs.getincrementaldecoder(name)("replace").decode(whole)
        strange = sum(unicodedata.category(one) in ("Cc", "Cn", "Co", "Cs") for one in text if one not in "\t\r\n")
        if "\ufffd" not in text and not strange and re.search(r"[\r\n]", text):
            return name
    raise NotText


def _guess(open: Callable[[], Any], file: str, most: int | None) -> Encoding:
    """Return the likeliest encoding of a text that is not UTF-8."""
    utf8, others = _sample(open, most)
    name = _likeliest(b"\n".join(others)[: 2 * SAMPLE])
    if name:
        # in a text with one byte per letter, lines that are UTF-8 by chance are rare
        if utf8 > (0 if name in (*_LATIN, *_OTHER) else 0.1 * len(others)):
            line = _misfit(open, UTF8, most)
            raise TableError(
                f"{file}: some lines are UTF-8 and others are not (line {line:,}): save it again in one encoding, or "
                "force one with --encoding"
            )
        if _misfit(open, name, most) is None:
            return Encoding(name, guessed=True)
    raise TableError(
        f"{file} is not UTF-8, and its encoding cannot be guessed: name it with --encoding, or save the file as UTF-8"
    )


def _sample(open: Callable[[], Any], most: int | None) -> tuple[int, list[bytes]]:
    """Return how many lines with other letters than ASCII are UTF-8, and those that are not, up to some size."""
    utf8, others, rest = 0, list[bytes](), b""
    for block in chain(_blocks(open, most), [b"\n"]):
        *lines, rest = re.split(rb"[\r\n]+", rest + block)
        *cut, rest = _pieces(rest)
        for piece in chain(*map(_pieces, lines), cut):
            try:
                piece.decode()
                utf8 += not piece.isascii()
            except UnicodeDecodeError:
                others.append(piece)
        if sum(map(len, others)) > SAMPLE:
            break
    return utf8, others


def _pieces(line: bytes) -> Iterator[bytes]:
    """Yield a long line in pieces, cut between words if it has any: a word that is cut may look like no encoding."""
    while len(line) > SAMPLE:
        cut = max(line.rfind(sign, 0, SAMPLE) for sign in (b" ", b",", b";", b"\t")) + 1 or SAMPLE
        while cut > 1 and line[cut] & 0xC0 == 0x80:  # inside a letter of UTF-8
            cut -= 1
        yield line[:cut]
        line = line[cut:]
    yield line


def _likeliest(sample: bytes) -> str:
    """Return the encoding in which most letters are usual ones; empty if no encoding fits."""
    ascii_letters = len(re.findall(rb"[A-Za-z]", sample))
    latin = ascii_letters > len(re.findall(rb"[\x80-\xff]", sample))
    scores = {name: _usual(sample, name, languages) for name, languages in (_LATIN if latin else _OTHER).items()}
    best = max(scores, key=scores.__getitem__)
    if scores[best] >= (0.6 if latin else 0.8):
        return best
    for name in _JAPANESE:
        if _usual(sample, name, [_KANA]) > 0.2:  # no other language has them
            return name
    from charset_normalizer import from_bytes

    found = from_bytes(sample, cp_isolation=list(_ASIAN)).best()
    return "" if found is None else found.encoding


def _usual(sample: bytes, name: str, languages: Sequence[str]) -> float:
    """Return the share of letters beyond ASCII that are usual in a language, where they are usual."""
    try:
        text = codecs.getincrementaldecoder(name)().decode(sample)  # its last letter may be cut
    except UnicodeDecodeError:
        return 0
    around = zip(f" {text}", text, f"{text[1:]} ", strict=False)
    found = Counter("\0" if _misplaced(before, one, after) else one for before, one, after in around if one > "\x7f")
    marks = sum(found[mark] for mark in _MARKS)
    shares = [(marks + sum(found[letter] for letter in language)) / found.total() for language in languages]
    several = sum(found[letter] for letter in {*_MARKS, *"".join(languages)}) / found.total()
    return max(*shares, 0.95 * several)


def _misplaced(before: str, one: str, after: str) -> bool:
    """Return whether a capital follows a small letter, or a mark other than an apostrophe is inside a word."""
    if one.isalpha():
        return one.isupper() and before.islower()
    return one != "’" and before.isalpha() and after.isalpha() and one in _MARKS
