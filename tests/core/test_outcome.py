from dataclasses import replace

from pcs_annotator import Outcome
from pcs_annotator.core.outcome import Counts


def test_counts_add_up() -> None:
    real = Outcome(id="1", label="real", scores={"fake": 0.1, "real": 0.9}, confidence=None, decision="accept")
    silent = Outcome(id="2", label=None, scores={"fake": 0.5, "real": 0.5}, confidence=None, decision="review")
    unasked = Outcome(id="3", label="fake", scores={"fake": 0.9, "real": 0.1}, confidence=None, decision=None)
    both = Counts.of([real, silent]).plus(Counts.of([real, unasked]))
    assert both == Counts(rows=4, labels={"real": 2, "fake": 1}, decisions={"accept": 2, "review": 1})
    assert both.unlabelled == 1


def test_a_parent_is_right_if_gold_is_below_it_and_people_see_the_leaf() -> None:
    shares = {"war/far": 0.4, "war/near": 0.5, "sport/near": 0.1}
    parent = Outcome(
        id="1",
        label="war",
        scores=shares,
        confidence=0.9,
        decision="accept",
        probabilities=shares,
        details={"pcs_level": 1},
    )
    assert (parent.leaf, parent.is_right("war/far"), parent.is_right("sport/near")) == ("war/near", True, False)
    assert (parent.for_people.label, parent.for_people.confidence) == ("war/near", 0.5)
    plain = replace(parent, label="war/near", details={})
    assert plain.for_people is plain
    assert plain.is_right("war/near")
    assert not plain.is_right("war/near/other")
    silent = replace(parent, label=None, probabilities={}, details={})
    assert silent.leaf is None
    assert silent.for_people is silent


def test_labels_are_tied_only_where_no_confidence_decides() -> None:
    even = Outcome(id="1", label="a", scores={"a": 0.4, "b": 0.4, "c": 0.2}, confidence=None, decision="review")
    assert even.tied == ["a", "b"]
    assert replace(even, confidence=0.5).tied == []
    assert replace(even, label=None).tied == []
    assert replace(even, scores={"a": 0.5, "b": 0.4, "c": 0.1}).tied == []
