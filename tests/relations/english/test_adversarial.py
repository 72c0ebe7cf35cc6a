"""Sentences made to mislead the paper's three rules, each with what must not come out."""

from __future__ import annotations

import asyncio

import pytest

from pcs_annotator import Variant
from pcs_annotator.relations.base import Context, relations
from pcs_annotator.relations.checks.run import CheckedRelation

pytest.importorskip("spacy")

# For every rule, a sentence and after "=>" words that its rewrite must not have; "*": there must be no rewrite.
SENTENCES = {
    "voice": """
        The singer revealed the secret to her long marriage. => revealed by the singer to
        Gunmen seized two engineers and a nurse from their villa at dawn. => villa at dawn were
        The minister opposed the tax and preferred a loan. => *
        Dana Wells named best actor at the gala. => *
        Mayor Sued by Teachers Over Pay => Teachers Over Pay Sued
        Tom Hale Named Coach of the Year => Named by
        The mayor does not give a damn. => *
        Will Turner signed the contract. => will Turner
        Art Lowe coached the team. => art Lowe
        Grant Hill closed the shop. => grant Hill
        Hope Solo saved the penalty. => hope Solo
        Chase Bank closed 40 branches. => chase Bank
        Drake Bell sued Apple. => drake Bell
        NOT Systems sued the city. => NOT the
        The striker scored only one goal. => *
        Norwick beat Harlow 3-1 on Sunday. => 3-1 was
        The nurse gave the boy a book about the war. => war was given
        The police shot the man with the rifle. => shot by the police with
        She saw the man on the hill with a telescope. => telescope was
        The company turned down the offer from the bank in a letter. => letter was
        The cat slept all day. => *
        The soup smells good. => *
        The film became a hit. => *
        Nobody saw the thief. => *
        Every student read a book. => *
        He shrugged his shoulders. => *
        The actor lost his mind. => *
        The senator kicked the bucket. => *
        The army has two tanks. => *
        The jacket fits the boy. => *
        The law lacks teeth. => *
        The rooms cost 90 dollars. => *
        The firm let the workers go. => *
        The judge had the man arrested. => *
        Marcus and Lena married in May. => *
        The twins resemble their father. => *
        The bill passed the House 218-210. => *
        Did the court free the man? => *
        The storm did not damage two houses. => *
        The chef never burned three pans. => *
        All members did not support the plan. => *
        The mayor was elected by chance. => *
        The house was built by the river. => *
        Her bike was left by the gate. => *
        The book was written by hand. => *
        The law was passed by a vote of 5 to 4. => *
        The bag was found by noon. => *
        The dancers were paid by the hour. => *
        The man was killed by the police and his brother was arrested. => and his brother killed
        The town was hit by a storm and flooded. => *
        The roof was repaired by volunteers in the rain. => Volunteers in the rain
        The teacher heard the pupils laugh. => *
        The farmer saw the wolf eat the lamb. => *
        The aunt promised the girl to return. => promised by the aunt to return
        The waiter brought them soup. => *
        My uncle and I built the boat. => by my uncle and I
        Each of the boys broke a window. => *
        Only Lena read the letter. => *
        Lena only read the letter. => *
        No one but Lena read the letter. => *
        The crew left the ship and the harbour burned. => harbour was
        The bomb killed 12 and wounded 30. => *
        The ferry left Dover for Calais at noon. => *
        The match lasted two hours. => *
        The singer wants a house. => *
        He laughed his head off. => *
        The error cost the pilot his life. => *
    """,
    "double-negation": """
        Dana Wells named best actor at the gala. => *
        Lena Ford crowned queen of the fair. => *
        Every student read a book. => did not
        Few voters trust the press. => do not
        Nobody saw the thief. => did not
        Some flights are available. => not unavailable
        Both drivers were able to walk. => not unable
        The minister opposed the tax and preferred a loan. => did not
        The cat slept all day. => did not
        Will Turner signed the contract. => will Turner
        Art Lowe coached the team. => art Lowe
        Business Objects sells software. => business Objects
        Formula One boss Bernie Lane left. => formula One
        Time will tell. => Time
        Why the mayor left => *
        What a game! => *
        Never buy this phone. => *
        No refunds. => *
        Please send the form by Monday. => *
        Did the court free the man? => *
        Why I Left My Job => *
        5 Ways to Save Money => *
        Tom Hale Named Coach of the Year => *
        Mark my words. => *
    """,
    "synonym": """
        The mayor is able to attend but unwilling. => can attend but
        Stranger things have happened. => *
        So far the plan has worked. => *
        It is just not happening. => *
        The band played "Begin Again" and left. => Start
        She watched Big Little Lies all night. => Large
        The kids are alright. => *
        The big picture is clear. => *
        Old Trafford is a big stadium. => Former
        The troops will fire 300 shots. => dismiss
        The boy is ill at ease. => *
        The shop is close to the station. => shut
        He was about to leave. => around
        He has a big heart. => *
        The child's play was fun. => kid
        She bought her first house in the second week of May. => might
    """,
}
TABLE = [
    (rule, *line.strip().split(" => ")) for rule, lines in SENTENCES.items() for line in lines.strip().splitlines()
]


@pytest.fixture(scope="module")
def rewrites() -> dict[tuple[str, str], Variant]:
    """Return the rewrites of all sentences, parsed together."""

    async def all_of_them() -> list[Variant]:
        context = Context()
        rules = {name: CheckedRelation(relations.create(f"rule:{name}"), name) for name in SENTENCES}
        return await asyncio.gather(*(rules[rule].rewrite(text, context) for rule, text, _ in TABLE))

    return {(rule, text): variant for (rule, text, _), variant in zip(TABLE, asyncio.run(all_of_them()), strict=True)}


@pytest.mark.parametrize(("rule", "text", "wrong"), TABLE)
def test_no_wrong_rewrite_is_accepted(
    rewrites: dict[tuple[str, str], Variant], rule: str, text: str, wrong: str
) -> None:
    rewrite = rewrites[rule, text].text
    assert rewrite is None or (wrong != "*" and wrong not in rewrite)
