"""What people really have in their files: no relation raises, and none presents half a text as the whole."""

import asyncio
from pathlib import Path

import pytest

from pcs_annotator import Relation, RelationOptions, Variant
from pcs_annotator.core.chat import Reply, Request
from pcs_annotator.relations.base import Context
from pcs_annotator.relations.combine import choose_relations, known_relations
from pcs_annotator.tables.find import as_arrow

ODD = {
    "empty": "",
    "blank": " \n\t ",
    "one word": "Amazing",
    "a link": "https://example.org/a?b=c&d=e",
    "code": "def f(x):\n    return {'a': x[0]}  # done",
    "SQL": "SELECT name FROM users WHERE id = 3; DROP TABLE users;",
    "Spanish": "El gobierno anunció ayer que no subirá los impuestos este año.",
    "Chinese": "政府昨天宣布今年不会提高税收。",
    "Arabic": "أعلنت الحكومة أمس أنها لن ترفع الضرائب هذا العام.",
    "emoji": "😂😂😂 🎉",
    "surrogate": "The mayor spoke \ud800 today.",
    "control": "The \x00 mayor \x07 spoke.",
    "no blanks": "x" * 5_000,
    "one sign": "?",
    "quotes": '"""',
    "braces": "{text} {0} %s {",
}
LONG = "The council approved the plan on Monday. It rained a lot in May. " * 60

FREE = [relation.name for relation in known_relations() if "rewriter" not in relation.needs]
BY_MODEL = [relation.name for relation in known_relations() if "rewriter" in relation.needs]


async def parrot(request: Request) -> Reply:
    """Answer with the last message, as weak models do."""
    return Reply(text=request.messages[-1].content)


def rewritten(name: str, text: str) -> Variant:
    async def main() -> Variant:
        (relation,) = choose_relations([name], RelationOptions(rewriter=True))
        return await relation.rewrite(text, Context(ask=parrot))

    return asyncio.run(main())


@pytest.mark.parametrize("name", [*FREE, *BY_MODEL])
@pytest.mark.parametrize("kind", ODD)
def test_odd_texts_give_a_variant_with_a_reason_and_never_an_error(name: str, kind: str) -> None:
    variant = rewritten(name, ODD[kind])
    if variant.text is None:
        assert variant.reason
    elif variant.status == "changed":
        assert variant.text.split() != ODD[kind].split()


@pytest.mark.parametrize("name", [name for name in FREE if name.startswith("rule:")])
@pytest.mark.parametrize("kind", ["code", "SQL", "empty", "a link", "emoji"])
def test_rules_do_not_apply_to_what_is_not_prose(name: str, kind: str) -> None:
    assert rewritten(name, ODD[kind]).status == "not_applicable"


@pytest.mark.parametrize("name", BY_MODEL)
def test_a_rewrite_that_drops_the_end_is_rejected(name: str) -> None:
    async def lazy(request: Request) -> Reply:
        return Reply(text="The plan was approved by the council on Monday.")

    async def main(relation: Relation) -> Variant:
        return await relation.rewrite(LONG, Context(ask=lazy))

    (relation,) = choose_relations([name], RelationOptions(rewriter=True))
    assert asyncio.run(main(relation)).text is None


@pytest.mark.parametrize("length", [10_000, pytest.param(90_000, marks=pytest.mark.slow)])
def test_the_longest_articles_pass_through_every_rule(length: int, shared_data: Path) -> None:
    texts: list[str] = as_arrow(shared_data / "texts" / "politifact_articles.csv")["text"].to_pylist()
    article = max(texts, key=len)[:length]
    assert len(article) == length

    async def main() -> list[Variant]:
        context = Context()
        return [await relation.rewrite(article, context) for relation in choose_relations(FREE, RelationOptions())]

    for variant in asyncio.run(main()):
        assert variant.text is None or len(variant.text) > 0.9 * len(article)
