"""Quotes from the letters without a model: two functions answer in its place, by rules that are often wrong."""

import json
import re
from pathlib import Path

import pcs_annotator

ASKS = re.compile(r"(?:So )?(?:please|could|may I|I would like|we ask|I ask)\b", re.IGNORECASE)
WRONG = re.compile(r"\b(?:not|no longer|again|broken|rude|mould|mice|drips|noise|loud|smells|weeks|rubbish|wrong)\b")
ABOUT = re.compile(r"\b(?:I|we|my|our)\b", re.IGNORECASE)
BACK = re.compile(r"\b(?:back|refund|reduced|claim)\b")
SUM = re.compile(r"(?:€ ?|EUR )(\d[\d,.]*\d)|(\d[\d,.]*\d) euros")


def careful(question: str) -> str:
    """Quote sentences with telling words, without their stop; take the sum that somebody wants to have back."""
    sentences = sentences_in(question)
    if '"value"' in question:
        return value_in(" ".join(filter(BACK.search, sentences)))
    return quoted({sentence.strip(".?"): type_of(sentence) for sentence in sentences})


def hasty(question: str) -> str:
    """Quote sentences up to their first comma, as complaints unless they are about the writer; take the first sum."""
    sentences = sentences_in(question)[1:-1]
    if '"value"' in question:
        return value_in(" ".join(sentences))
    others = {sentence: "" if ABOUT.search(sentence) else "complaint" for sentence in sentences}
    return quoted({sentence.split(",")[0]: type_of(sentence) or type_ for sentence, type_ in others.items()})


def sentences_in(question: str) -> list[str]:
    """Return the sentences of the letter, which stands between the last two marks in the question."""
    mark = re.findall(r"\[text \w+\]", question)[-1]
    return re.split(r"(?<=[.?])\s+|\n", question.split(mark)[-2].strip())


def type_of(sentence: str) -> str:
    """Return the type of a sentence; empty if it has none."""
    return "request" if ASKS.match(sentence) else "complaint" if WRONG.search(sentence) else ""


def quoted(types: dict[str, str]) -> str:
    """Return a reply with sentences and their types."""
    return json.dumps([{"type": type_, "quotation": sentence} for sentence, type_ in types.items() if type_])


def value_in(text: str) -> str:
    """Return a reply with the first sum in a text."""
    found = SUM.search(text)
    return json.dumps({"quotation": found[0], "value": found[1] or found[2]} if found else {})


if __name__ == "__main__":
    here = Path(__file__).parent
    book = pcs_annotator.run(here / "letters.csv", "runs/letters", config=here / "pcs.toml", models=[careful, hasty])
    print(book)
    print("next: open runs/letters/report.html, or pcs review runs/letters")
