"""How well and how fast quotations are placed that models have changed: 10,000 of them in 100 invented texts.

A text has 10,000 characters; a third of its sentences are an earlier one with a word or a number changed. Two thirds of
the quotations are passages of it, of 1 to 60 words. Each of nine changes has a chance of one in four: three dots for
its middle, one to three wrong letters, other quotation marks, line breaks, ligatures, capitals, double spaces, a final
stop, or marks around it. The others are not in the text: of another text, with one digit changed, invented, or its own
words in reverse order, with one change more. A passage whose letters stand twice in the text is not asked for,
as nobody could tell which is meant. Run it with `python -m benchmarks.placing [QUOTATIONS [SEED]]`; the results are in
`benchmarks/results/placing.md`.
"""

from __future__ import annotations

import re
import sys
import time
from collections import Counter
from collections.abc import Callable
from functools import lru_cache
from itertools import pairwise
from random import Random
from typing import NamedTuple

from pcs_annotator.core.letters import letters_in
from pcs_annotator.core.passages import LEAST_OVERLAP, Passage, overlap
from pcs_annotator.core.placing import Places, Span

CHARACTERS, PER_TEXT = 10_000, 100
COMMON = re.findall(
    r"\S+",
    """
    the of and to a in that is was for on with as by it at from which were be not an this are had but or their one
    after before under while when where because although between during without against about every some no more
    """,
)
STEMS = re.findall(
    r"\S+",
    """
    account act address affect agree aim allow amend appeal appoint approach argue arrest arrive assess assist
    attack attend award balance ban bank bargain begin benefit bill blame board bond border borrow branch break
    bridge brief budget build burden burn call campaign cancel carry case cast cause chair challenge charge check
    claim clear climb collect comment commit compare compete complain concern conduct confirm consult contain
    contest contract control convict cost council count court cover craft credit cross cut damage deal debate decide
    decline defend delay deliver demand deny depart deposit design detain develop direct discover dismiss dispute
    district divide doctor doubt draft draw drift drop earn effect elect employ end enter equip escape estimate
    exceed exchange expand expect expert explain export express extend factor fail farm fear field fight figure file
    film filter final finance find firm fish fit fix flat flight float flood flow follow force forest form found
    freight front fuel fund gain garden gather grant group grow guard guess guide harbour harm head hold host house
    hunt import improve inflict inform inspect install insult intend invest invite island issue join judge jump keep
    kill labour land last launch law lead learn lease lend letter level lift limit link list loan local lock look
    loss mail manage mark market master match matter measure meet member mention merge meter minister miss model
    monitor motion mount move murder need neighbour note notice object offer office open oppose order own pact paint
    park part party pass patient pay peak permit person pick plan plant play plead point poll port post power prefer
    prepare present press prevent price print prison process produce profit project promise protect protest prove
    provide publish pull pump push question race raid rail raise rank reach react record recover reduce refer reform
    refuse region reject relate release remain remind remove rent repair repeat replace report request rescue
    reserve resign resist result retain retire return reveal review reward ride right rise risk river road rule sail
    sample save school search seat secure seek sell senate send sentence serve settle share shift ship shop short
    show sign silver site skill sort sound speak spend sport spread staff stand start state station stay steal stop
    store storm street stress strike study suffer suggest supply support survey suspect switch target tax teach test
    thank threat touch tour town track trade train transfer travel treat trial trust turn union unit uphold urge
    vessel victim view village visit voice vote wage wait walk warn waste watch water weapon weigh welcome win wish
    witness wonder work worry worth wound write yield
    """,
)
ENDINGS = ("", "", "", "s", "ed", "ing", "er", "ment", "able")
NAMES = re.findall(
    r"\S+",
    """
    Adams Baker Clarke Dietrich Eriksen Fischer Garcia Hansen Ibrahim Jensen Kowalski Larsen Müller Novák O’Brien
    Peréz Quinn Rossi Schmidt Tanaka Ueda Vogel Wagner Young Zimmermann Aarhus Bergen Cork Dresden Exeter Florence
    Geneva Hull
    """,
)
LIGATURES = {"ffi": "ﬃ", "ffl": "ﬄ", "ff": "ﬀ", "fi": "ﬁ", "fl": "ﬂ"}
DOTS = re.compile(r" ?(?:\[\.\.\.\]|\(…\)|…|\.\.\.) ?")
TRUE, VERDICTS = "in the text", ("right", "none", "wrong")
Change = Callable[[str, Random], str]
Place = Callable[[str], Span | None]


class Asked(NamedTuple):
    """A quotation, and the passage that it is of; None if it is of none."""

    kind: str
    quotation: str
    passage: Span | None


@lru_cache(maxsize=2)
def letters_of(text: str) -> str:
    return letters_in(text)


def bare(text: str) -> str:
    return letters_in(text).strip(".,;:!?")


def word(rng: Random) -> str:
    if rng.random() < 0.4:
        return rng.choice(COMMON)
    return rng.choice(NAMES) if rng.random() < 0.08 else rng.choice(STEMS) + rng.choice(ENDINGS)


def number(rng: Random) -> str:
    return rng.choice([f"{rng.randrange(2, 999)}", f"{rng.randrange(1000, 9_999_999):,}", f"{rng.random() * 90:.1f}"])


def sentence(rng: Random) -> str:
    """Return a sentence with, now and then, a number, a comma, a clause between dashes, a hyphen or a quotation."""
    words = [word(rng) for _ in range(rng.randrange(5, 26))]
    changes: list[Change] = [
        lambda text, rng: f"{number(rng)} {text}",
        lambda text, rng: f"{text},",
        lambda text, rng: f"{text} – {word(rng)} {word(rng)} –",
        lambda text, rng: f"{text}-{word(rng)}",
        lambda text, rng: f"“{text}”",
        lambda text, rng: f"{text}’s",
        lambda text, rng: f"{text} ({word(rng)})",
    ]
    for _ in range(rng.randrange(4)):
        position = rng.randrange(1, len(words))
        words[position] = rng.choice(changes)(words[position], rng)
    joined = " ".join(words)
    return joined[0].upper() + joined[1:] + rng.choice("....?!")


def varied(text: str, rng: Random) -> str:
    """Return a sentence of which one or two words, or a number, are others."""
    words = text.split()
    for _ in range(rng.choice([1, 1, 2])):
        position = rng.randrange(len(words))
        words[position] = number(rng) if words[position][0].isdigit() else word(rng)
    return " ".join(words)


def invented(rng: Random) -> str:
    sentences = [sentence(rng)]
    while sum(map(len, sentences)) < CHARACTERS:
        new = varied(rng.choice(sentences), rng) if rng.random() < 1 / 3 else sentence(rng)
        sentences.append(new + rng.choice([" ", " ", " ", "\n", "\n\n"]))
    return " ".join(sentences)[:CHARACTERS]


def mistyped(text: str, rng: Random) -> str:
    """Return a quotation with one to three wrong letters, by its length; another digit would be another number."""
    letters = list(text)
    spots = [spot for spot, char in enumerate(letters[:-1]) if char.isalpha() and letters[spot + 1].isalpha()]
    most = 1 if len(text) < 40 else 2 if len(text) < 90 else 3
    if len(letters_in(text)) < 14 or len(text.split()) < 2:  # short ones are placed only if they are right
        return text
    for spot in sorted(rng.sample(spots, min(rng.randint(1, most), len(spots))), reverse=True):
        kind = rng.randrange(4)
        if kind == 0:
            letters[spot] = rng.choice("abcdefghijklmnopqrstuvwxyz")
        elif kind == 1:
            letters.insert(spot, rng.choice("abcdefghijklmnopqrstuvwxyz"))
        elif kind == 2:
            del letters[spot]
        else:
            letters[spot : spot + 2] = letters[spot + 1], letters[spot]
    return "".join(letters)


def straight(text: str, _: Random) -> str:
    return text.translate(str.maketrans("“”’–", '""\'-'))


def broken(text: str, rng: Random) -> str:
    return re.sub(r"\s+", lambda _: rng.choice(["\n", " ", " ", "\n  "]), text)


def ligated(text: str, _: Random) -> str:
    for letters, ligature in LIGATURES.items():
        text = text.replace(letters, ligature)
    return text


def recased(text: str, rng: Random) -> str:
    return rng.choice([text.upper(), text.lower(), text[:1].upper() + text[1:]])


def spaced(text: str, rng: Random) -> str:
    return re.sub(" ", lambda _: rng.choice([" ", "  ", "\u00a0"]), text)


def stopped(text: str, _: Random) -> str:
    return text.rstrip(".,;") + "."


def wrapped(text: str, rng: Random) -> str:
    before, after = rng.choice(['""', "“”", "''", "«»", ("... ", "..."), ("[…] ", " […]")])
    return before + text + after


def abbreviated(text: str, rng: Random) -> str:
    """Return a quotation of some length with dots for its middle."""
    words = text.split()
    if len(words) < 14:
        return text
    first, last = (rng.randint(4, len(words) // 3) for _ in range(2))
    return " ".join(words[:first]) + rng.choice([" … ", "...", " [...] ", " (…) "]) + " ".join(words[-last:])


CHANGES: dict[str, Change] = {
    change.__name__: change
    for change in (abbreviated, mistyped, straight, broken, ligated, recased, spaced, stopped, wrapped)
}


def passage_of(text: str, rng: Random) -> Span:
    """Return some words of a text, of which longer ones are rarer."""
    words = [match.span() for match in re.finditer(r"\S+", text)]
    count = max(1, min(60, round(rng.lognormvariate(2.3, 0.8))))
    first = rng.randrange(len(words) - count)
    return words[first][0], words[first + count - 1][1]


def true_one(text: str, rng: Random) -> Asked:
    """Return a passage as a model may quote it; if it, or a part between dots, stands twice, it is not asked for."""
    letters = letters_of(text)
    while True:
        start, end = passage_of(text, rng)
        passage = quotation = text[start:end]
        names = [name for name in CHANGES if rng.random() < 1 / 4]
        for name in names:
            quotation = CHANGES[name](quotation, rng)
            if name == "abbreviated":
                passage = quotation
            if name == "mistyped" and letters.count(bare(quotation)) > letters_in(passage).count(bare(quotation)):
                break  # the wrong letters are right elsewhere
        else:
            parts = map(bare, DOTS.split(passage))
            if all(letters.find(part) == letters.rfind(part) for part in parts):
                return Asked(" ".join(names), quotation, (start, end))


def absent_one(text: str, other: str, rng: Random) -> Asked:
    """Return a quotation that is not in the text."""
    kind = rng.choice(["of another text", "number changed", "number changed", "invented", "words in reverse"])
    while True:
        source = other if kind == "of another text" else text
        start, end = passage_of(source, rng)
        quotation = source[start:end]
        if kind == "number changed":
            digits = [spot for spot, char in enumerate(quotation) if char.isdecimal()]
            if not digits:
                continue
            spot = rng.choice(digits)
            quotation = quotation[:spot] + str((int(quotation[spot]) + rng.randint(1, 9)) % 10) + quotation[spot + 1 :]
        elif kind == "invented":
            quotation = " ".join(word(rng) for _ in quotation.split())
        elif kind == "words in reverse":
            words = quotation.split()
            if len(words) < 4:  # "by the house" and "house, by" are one wrong letter apart
                continue
            quotation = " ".join(reversed(words))
        change = rng.choice([name for name in CHANGES if name != "abbreviated"])  # the dots may stand for the number
        quotation = CHANGES[change](quotation, rng)
        if re.sub(r"\W", "", letters_in(quotation)) not in re.sub(r"\W", "", letters_of(text)):
            return Asked(kind, quotation, None)


def verdict(asked: Asked, placed: Span | None) -> str:
    if placed is None:
        return "none"
    if asked.passage is None:
        return "wrong"
    right = overlap(Passage(*placed, ""), Passage(*asked.passage, "")) >= LEAST_OVERLAP
    return "right" if right else "wrong"


class Results(NamedTuple):
    """What became of the quotations."""

    verdicts: Counter[tuple[str, str]]  # by kind and verdict; all true ones are one kind
    milliseconds: float  # of CPU per quotation

    def count(self, verdict: str) -> int:
        """Return of how many quotations this is the verdict."""
        return sum(count for (_, word), count in self.verdicts.items() if word == verdict)

    @property
    def placed(self) -> float:
        """Return the share of the passages that are placed where they stand."""
        return self.verdicts[TRUE, "right"] / sum(self.verdicts[TRUE, word] for word in VERDICTS)


def measured(quotations: int, finder: Callable[[str], Place] = lambda text: Places(text).of, seed: int = 0) -> Results:
    """Place so many quotations, two thirds of which are in their texts."""
    verdicts, seconds = Counter[tuple[str, str]](), 0.0
    texts = [invented(Random(f"{seed} {number}")) for number in range(quotations // PER_TEXT + 1)]
    for text, other in pairwise(texts):
        rng = Random(f"{seed} {text[:100]}")
        asked = [true_one(text, rng) if rng.random() < 2 / 3 else absent_one(text, other, rng) for _ in range(PER_TEXT)]
        begin = time.process_time()
        place = finder(text)
        spans = [place(quotation) for _, quotation, _ in asked]
        seconds += time.process_time() - begin
        for question, span in zip(asked, spans, strict=True):
            verdicts[question.kind if question.passage is None else TRUE, verdict(question, span)] += 1
    return Results(verdicts, 1000 * seconds / quotations)


def window_of(text: str) -> Place:
    """Return what places by the window of the quotation's length that `rapidfuzz` finds, after exact search."""
    from rapidfuzz.fuzz import partial_ratio_alignment

    lower = text.lower()  # of these texts as long

    def place(quotation: str) -> Span | None:
        if (start := text.find(quotation)) >= 0:
            return start, start + len(quotation)
        window = partial_ratio_alignment(quotation.lower(), lower, score_cutoff=85)
        return (window.dest_start, window.dest_end) if window else None

    return place


def worst_cases() -> dict[str, tuple[str, str]]:
    """Return texts of 100,000 characters with quotations of up to 10,000 that may take long."""
    rng = Random("long")
    text = " ".join(invented(rng) for _ in range(11))[: 10 * CHARACTERS]
    passage = text[3 * CHARACTERS : 4 * CHARACTERS]
    agreed = "The council met on Monday and agreed. "
    return {
        "a passage that cuts two words": (text, passage.strip()),
        "a passage with 400 wrong letters": (text, passage.replace("e", "a", 400)),
        "of another text": (text, invented(rng)),
        "aaaa…, and a b in the quotation": ("a" * 10 * CHARACTERS, "a" * CHARACTERS + "b"),
        "aaaa aaaa …": ("aaaa " * 2 * CHARACTERS, "aaaa " * 1_999 + "aa"),
        "one sentence again and again": (agreed * 2_600, agreed.replace("agreed", "agred") * 260),
        "spaces": (" " * 10 * CHARACTERS, " " * CHARACTERS + "and more"),
        "dots": (text, "aaaaaaaa..." * 900),
    }


def main(quotations: int = 10_000, seed: int = 0) -> None:
    finders: dict[str, Callable[[str], Place]] = {
        "Places": lambda text: Places(text).of,
        "exact, else window of rapidfuzz": window_of,
    }
    for name, finder in finders.items():
        results = measured(quotations, finder, seed)
        passages = sum(results.verdicts[TRUE, word] for word in VERDICTS)
        print(
            f"{name}: {results.placed:.2%} of {passages:,} passages placed; {results.count('wrong')} of {quotations:,} "
            f"at a wrong place; {results.milliseconds:.2f} ms per quotation"
        )
        for kind in sorted({kind for kind, _ in results.verdicts}):
            print(f"  {kind:<16}" + "".join(f"{word:>8} {results.verdicts[kind, word]:>5}" for word in VERDICTS))
    for name, (text, quotation) in worst_cases().items():
        places, begin = Places(text), time.process_time()
        places.of("quite another one")
        middle = time.process_time()
        places.of(quotation)
        end = time.process_time()
        print(
            f"{name:<36}{1000 * (middle - begin):>6.0f} ms for the text{1000 * (end - middle):>6.1f} ms for it",
            flush=True,
        )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
