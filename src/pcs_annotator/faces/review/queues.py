"""The queues, as people choose them: what each is good for, and what its verdicts may be used for."""

from collections.abc import Mapping
from typing import NamedTuple

from pcs_annotator.core.review import Queue


class QueueText(NamedTuple):
    """A queue in words."""

    title: str  # its name
    purpose: str  # what it is good for
    use: str  # what its verdicts may be used for
    estimates: bool  # whether anything may be estimated from its verdicts


QUEUES: Mapping[Queue, QueueText] = {
    "learn": QueueText(
        "Learn",
        "Rows that teach most come first, one in ten is drawn at random. Start here.",
        "Teaches weights; every draw has a known probability, so label shares can be estimated.",
        True,
    ),
    "random": QueueText(
        "Random",
        "A simple random sample, for a promise and for plain statistics.",
        "Supports a promise; teaches weights; fit for every estimate.",
        True,
    ),
    "audit": QueueText(
        "Audit",
        "Accepted rows at random, to check whether the promise holds.",
        "Confirms or revokes the promise; nothing is learned from it.",
        True,
    ),
    "doubtful": QueueText(
        "Doubtful first",
        "The least certain rows in a fixed order, to clean up a result.",
        "Corrects labels and teaches weights; unfit for estimates.",
        False,
    ),
    "finish": QueueText(
        "Finish",
        "What pcs finish leaves to people, the least certain rows first; then the whole table has few errors.",
        "Gives the certificate of pcs finish; corrects labels and teaches weights; unfit for estimates.",
        False,
    ),
    "stream": QueueText(
        "Stream",
        "Texts that pcs serve and pcs label left for people, and some that were accepted, drawn at random.",
        "Teaches weights; those drawn at random support the promise, or withdraw it.",
        False,
    ),
    "conflicts": QueueText(
        "Conflicts",
        "Rows on which reviewers differ; your verdict settles them.",
        "Settles labels; unfit for estimates.",
        False,
    ),
    "chosen": QueueText(
        "Chosen",
        "Rows that you went to.",
        "Corrects labels and teaches weights; unfit for estimates.",
        False,
    ),
}
TO_CHOOSE: tuple[Queue, ...] = ("learn", "random", "audit", "doubtful", "finish", "stream", "conflicts")
