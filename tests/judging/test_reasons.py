import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pcs_annotator import Votes, Weights, score
from pcs_annotator.base.text import short_names
from pcs_annotator.judging.reasons import reasons
from pcs_annotator.judging.score import choose
from tests.judging.strategies import any_votes, weights_for

F, R, M = 0, 1, 2
SILENT, UNASKED = -1, -2
MODELS = ["openai:gpt-4o-mini", "llama", "qwen", "mistral", "gemma", "phi"]


def panel(item: object, relations: list[str] | None = None, models: list[str] | None = None) -> Votes:
    """One item: annotator × relation, or annotator × relation × draw."""
    codes = np.array([item], dtype=np.int8)
    return Votes(
        codes=codes,
        ids=["i"],
        annotators=(models or MODELS)[: codes.shape[1]],
        relations=(relations or ["original", "voice", "double-negation", "synonym"])[: codes.shape[2]],
        labels=["Fake", "Real", "Mixed"],
    )


def why(votes: Votes, best: int | None = None) -> str:
    scores = score(votes, Weights.uniform(votes))
    chosen = choose(scores, votes.labels)
    if best is not None:
        scores, chosen = np.eye(3)[[best]], np.array([best], dtype=np.int8)
    return reasons(votes, scores, chosen)[0]


@pytest.mark.parametrize(
    ("item", "sentence"),
    [
        ([[SILENT, UNASKED], [SILENT, SILENT]], "no model gave a usable answer"),
        ([[UNASKED, UNASKED]], "no model has answered"),
        ([[F, F, SILENT, SILENT], [SILENT] * 4, [SILENT] * 4], "only 2 of 12 questions were answered"),
        ([[F, SILENT, SILENT, UNASKED]], "only 1 of 3 questions was answered"),
        ([[F, F], [R, R]], "Fake and Real are tied"),
        ([[F], [R], [M]], "Fake, Real and Mixed are tied"),
        ([[F, F, F, F]] * 3, "all 12 answers say Fake"),
        ([[F, F, F, UNASKED], [F, F, UNASKED, UNASKED]], "all 5 answers say Fake"),
        ([[R, R]], "both answers say Real"),
        ([[R]], "the only answer says Real"),
        ([[F, F, R, F], [F, F, R, F], [F, F, F, F]], "2 of 3 models changed their answer under double negation"),
        ([[F, F, R, F], [F, F, R, F]], "both models changed their answer under double negation"),
        ([[F, R, F, F], [F, R, F, F], [F, R, F, F]], "all 3 models changed their answer under voice"),
        ([[F, F, F, R]], "the model changed its answer under synonym"),
        ([[F, F, F, R], [F, F, F, SILENT]], "gpt-4o-mini changed its answer under synonym"),
        ([[R, F], [R, F], [F, UNASKED]], "both comparable models changed their answer under voice"),
        (
            [[F, R, F, F], [F, R, F, F], [F, F, F, F], [F, UNASKED, F, F]],
            "2 of 3 comparable models changed their answer under voice",
        ),
        ([[F, F], [R, R], [R, R]], "gpt-4o-mini says Fake, the others Real"),
        ([[F, F], [R, R], [R, R], [UNASKED, SILENT]], "gpt-4o-mini says Fake, llama and qwen Real"),
        ([[F, F], [F, F], [R, R], [R, R], [R, R]], "gpt-4o-mini and llama say Fake, the others Real"),
        ([[F, F], [M, M], [R, R], [R, R]], "gpt-4o-mini says Fake, llama Mixed, the others Real"),
        ([[F, F, R], [R, R, R], [R, R, R]], "on the original text gpt-4o-mini says Fake, the others Real"),
        ([[R, R, R, F], [R, R, R, R], [R, R, R, R]], "1 of 12 answers says Fake"),
        ([[R, R, R, F], [R, R, M, R], [R, R, R, R]], "2 of 12 answers do not say Real"),
        ([[R, F, R], [R, R, F], [R, R, R]], "2 of 9 answers say Fake"),
    ],
)
def test_sentences_by_hand(item: object, sentence: str) -> None:
    assert why(panel(item)) == sentence


@pytest.mark.parametrize(
    ("item", "best", "sentence"),
    [
        ([[F, F]] * 3, R, "all 6 answers say Fake, but the models' known errors point to Real"),
        ([[F]], R, "the only answer says Fake, but the models' known errors point to Real"),
        ([[F], [M]], R, "no answer says Real, but the models' known errors point to it"),
        ([[F, F], [F, F], [F, F], [F, F], [R, R]], R, "4 models say Fake, gemma Real"),
        ([[F, F, R], [F, R, F], [F, F, F]], R, "no model says Real on the original text"),
        ([[F, F, F], [SILENT, R, R]], R, "gpt-4o-mini says Fake on the original text, not Real"),
        ([[R, F, M]], R, "the model changed its answer under voice"),
    ],
)
def test_labels_that_class_aware_scores_chose_are_explained(item: object, best: int, sentence: str) -> None:
    assert why(panel(item), best) == sentence


@pytest.mark.parametrize(
    ("item", "best", "sentence"),
    [
        ([[[F, R, M]], [[F, R, M]]], F, "only 2 of 6 answers say Fake"),
        ([[[F, F, R]], [[R, R, R]]], R, "on the original text gpt-4o-mini most often says Fake, llama Real"),
        ([[[F, F, R]], [[F, M, M]], [[R, R, R]], [[R, R, R]]], R,
         "on the original text gpt-4o-mini most often says Fake, llama Mixed, the others Real"),
        # a model split between the label and another neither supports nor contradicts the label
        ([[[F, R]], [[F, F]]], R, "only 1 of 4 answers says Real"),
    ],
)  # fmt: skip
def test_several_draws_show_which_model_contradicts_itself(item: object, best: int, sentence: str) -> None:
    assert why(panel(item), best) == sentence


def test_without_the_original_text_answers_are_counted() -> None:
    rewrites = ["voice", "synonym", "noise", "expansion"]
    assert why(panel([[R, R, R, F]], rewrites)) == "1 of 4 answers says Fake"
    assert why(panel([[R, F, M, R]], rewrites)) == "only 2 of 4 answers say Real"


@pytest.mark.parametrize(
    ("names", "short"),
    [
        (["openai:gpt", "groq:llama"], ["gpt", "llama"]),
        (["openai:gpt", "azure:gpt", "qwen"], ["openai:gpt", "azure:gpt", "qwen"]),
        (["openai:gpt", "gpt"], ["openai:gpt", "gpt"]),
        (["ollama:llama3:8b", "llama3:70b"], ["llama3:8b", "llama3:70b"]),
        (["http://localhost:8000/v1"], ["http://localhost:8000/v1"]),
        (["b:c", "a:b:c"], ["c", "a:b:c"]),
    ],
)
def test_a_provider_is_dropped_where_names_stay_unique(names: list[str], short: list[str]) -> None:
    assert short_names(names) == short


@given(st.data())
def test_every_item_has_one_sentence_and_its_numbers_are_true(data: st.DataObject) -> None:
    votes = data.draw(any_votes())
    scores = score(votes, data.draw(weights_for(votes)))
    best = choose(scores, votes.labels)
    sentences = reasons(votes, scores, best)
    assert len(sentences) == len(votes)
    for row, sentence in enumerate(sentences):
        assert sentence
        codes = votes.codes[row]
        said = codes[codes >= 0]
        assert (sentence == "no model gave a usable answer") == (not len(said) and bool((codes == SILENT).any()))
        if found := re.fullmatch(r"(?:only )?(\d+) of (\d+) answers says? (\w+)", sentence):
            label = votes.labels.index(found[3])
            assert [int(found[1]), int(found[2])] == [(said == label).sum(), len(said)]
        if re.fullmatch(r"(all \d+|both) answers say \w+", sentence):
            assert (said == best[row]).all()


def test_answers_that_agree_say_how_probable_they_find_the_label_if_they_are_graded() -> None:
    votes = panel([[R, R], [R, R]])
    grades = np.full((1, 2, 2, 1, 3), np.nan)
    grades[0, 0, 0, 0], grades[0, 0, 1, 0], grades[0, 1, 0, 0] = [0.2, 0.8, 0], [0.1, 0.1, 0], [0, 0, 0]
    assert why(replace(votes, grades=grades), R) == "all 4 answers say Real, with a probability of 65 % on average"
    alone = replace(votes.select(annotators=MODELS[:1], relations=["original"]), grades=grades[:, :1, :1])
    assert why(alone, R) == "the only answer says Real, with a probability of 80 %"
    nothing = replace(votes, grades=np.full_like(grades, np.nan))
    assert why(nothing, R) == why(votes, R) == "all 4 answers say Real"
