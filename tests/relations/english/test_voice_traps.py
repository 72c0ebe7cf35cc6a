"""Invented sentences whose voice is easily changed wrongly, by what makes them hard: left alone, or turned right."""

from __future__ import annotations

import asyncio

import pytest

from pcs_annotator import Variant
from pcs_annotator.relations.base import Context, relations

LEFT_ALONE = {
    "phrases that may belong to the object or to the verb": """
        Nicole Kidman Reveals the Secret to Her Long Marriage
        Kidnappers seized two Americans and a Briton from their central Baghdad villa at dawn yesterday.
        Police shot a man with a rifle.
        The scientist watched the birds with a telescope.
        Gunmen attacked the village from a helicopter.
        Clinics tested the drug on mice in March.
        Iceland recognises the new state with its old borders.
        The chef cooked the fish with lemon.
        The firm closed the road for repairs.
        A boxer punched a man in the head.
        Colleagues praised the mayor's plan in the council.
        The bank delivers more food to the poor than three years ago.
        UK scientists advise heart attack-susceptible to get flu shot
        AP - Insurgents ambushed a supply convoy in northern Mali on Saturday, killing four drivers.
        Gunmen seized an engineer who worked with the army from his home.
        The mayor lost a seat over a typing error.
        A courier is dodging arrest hiding in the hills
        The firm has proposed dozens of (cheap) fixes.
        Voters could give this zero stars they would.
        The singer looks happy on the cover.
        The probe Ada hurtled Tuesday toward the moon.
        Children would like a cheap gift for the holidays.
        A paper reports British spy involved in a theft
        The minister praised the envoy. Praised him twice.
    """,
    "clauses within a sentence": """
        Officials said a storm damaged the pier.
        Prices rose because a storm damaged the refinery.
        In March, the city banned plastic bags.
        The ministry said that gunmen had kidnapped two engineers.
        But the court rejected the appeal.
        "The court rejected the appeal."
    """,
    "particles, adverbs and scores": """
        She put the offer down.
        The jury threw the case out.
        He turned the radio off.
        The plane broke down mid ceremony.
        The singer sang the song beautifully.
        The team played the game badly.
        The ground is shifting underfoot again.
        Only the mayor opposed the plan.
        The bank only rejected the loan.
        The council approved only one plan.
        Leeds beat Derby 3-1 on Sunday.
        Japan wins baseball final, 10-6
    """,
    "infinitives and joined verbs": """
        The firm hired a lawyer to fight the claim.
        Workers left the plant to join the march.
        The mayor met the governor to discuss the budget.
        The senator opposed the tax and preferred a fee.
        The rebels took the town and burned it.
        The clerk stamped the form, smiled and left.
        Adam Air hits severe problems; may be shut down in weeks
        Speaking in Rome, the pope condemned the attack.
        A jury ordered the firm to pay damages after finding that it had cheated.
        She hates the party for the same reason we all do.
    """,
    "verbs without a passive and idioms": """
        The film became a hit.
        Turner remained chairman.
        Stress tests prove a sobering idea.
        The box contains ten books.
        The bill includes a tax.
        This phone lacks a camera.
        Microsoft joins the Linux Foundation!
        The president survived a vote of confidence.
        I don't give a damn about the rules.
        The coach kicked the bucket.
        The message spoke volumes.
        The council painted the bridge red.
    """,
    "participles and nouns that look like verbs": """
        Tom Hanks named best actor
        Actor Chris Hall named new host
        Broadband users kicked off service for constant questioning
        Qatari diplomat detained on Boston bound flight
        Cargo vessel grounded south of Malta
        Two dozen workers hurt by smoke, officials say
        Study suggests sleeping parasites mutated to evade defences
        Nordstrom posts lower quarterly profit
        Award show producers try new host
    """,
    "names that look like words": """
        Will Smith sued the studio.
        NOT Technologies sued Apple.
        Giants beat Eagles on Sunday.
        Arroyo declares state of emergency
    """,
    "two objects": """
        The plan would give the new director responsibility for spending.
        Trump offers Flynn security adviser job
        Johansson sent the champion home.
        The nurse taught men how to cook.
        The waiter gave us the menu.
    """,
    "number, negation and pronouns": """
        Apple introduces iPhone and Apple TV
        Apple Introduces iPhone and Apple TV
        The zoo bought a lion or tigers.
        Jason never passed a bill.
        The firm is moving all of its production to Peru.
        Oprah interviewed the man she married.
        My wife and I enjoyed it.
        They hated them.
        I would avoid this place if you are staying downtown.
    """,
}
TURNED = {
    "Art Howe praised the pitcher.": "The pitcher was praised by Art Howe.",
    "Rose Byrne welcomed the crowd.": "The crowd was welcomed by Rose Byrne.",
    "I love this place.": "This place is loved by me.",
    "Boeing and Honda have developed a van.": "A van has been developed by Boeing and Honda.",
    "Danish officials questioned the clerk.": "The clerk was questioned by Danish officials.",
    "The mayor is reviewing the plan.": "The plan is being reviewed by the mayor.",
}
ROWS = {family: [line.strip() for line in lines.split("\n") if line.strip()] for family, lines in LEFT_ALONE.items()}


@pytest.fixture(scope="module")
def variants() -> dict[str, Variant]:
    async def rewritten(texts: list[str]) -> list[Variant]:
        rule, context = relations.create("rule:voice"), Context()
        return await asyncio.gather(*(rule.rewrite(text, context) for text in texts))

    texts = [*(text for rows in ROWS.values() for text in rows), *TURNED]
    return dict(zip(texts, asyncio.run(rewritten(texts)), strict=True))


@pytest.mark.parametrize("family", ROWS)
def test_what_is_not_sure_is_left_alone(family: str, variants: dict[str, Variant]) -> None:
    assert {text: variants[text].text for text in ROWS[family] if variants[text].status == "changed"} == {}


@pytest.mark.parametrize(("text", "expected"), TURNED.items())
def test_what_is_sure_is_turned_right(text: str, expected: str, variants: dict[str, Variant]) -> None:
    assert variants[text].text == expected
