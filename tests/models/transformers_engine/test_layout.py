"""How the prompts of a batch are laid out."""

from pcs_annotator.models.local.label_tree import LabelQuestion, LabelTree, Prompt, lay_out, lay_out_whole

END = 2
TREE = LabelTree([(20, 30, END), (20, 31, 40, END), (20, 31, 41, END), (21, END)])
ALONE = LabelTree([(20, END), (21, END)])
BATCH = [
    LabelQuestion(Prompt((5, 6), (7, 8, 9)), TREE),
    LabelQuestion(Prompt((5,), (7,)), ALONE),
    LabelQuestion(Prompt((), (7, 8)), TREE),
]


def sequences_seen(token: int) -> list[list[int]]:
    """For each row of a tree with several forks, what a token sees, in the order of positions."""
    layout = lay_out(BATCH)
    most = layout.before
    columns = layout.tokens.shape[1]
    found = []
    for row, question in enumerate(BATCH):
        padded = [0] * (most - len(question.prompt.head)) + list(question.prompt.head)
        everything = [*padded, *layout.tokens[row].tolist()]
        column = columns - 1 - layout.extra + token
        found.append([everything[other] for other in layout.visible[row, column].nonzero()[0]])
    return found


def test_every_token_sees_what_leads_to_it_and_nothing_else() -> None:
    assert (TREE.appended, TREE.parents, TREE.depths) == ([20, 31], [0, 1], [1, 2])
    assert sequences_seen(0) == [[5, 6, 7, 8, 9], [5, 7], [7, 8]]
    assert [sequences_seen(1)[row] for row in (0, 2)] == [[5, 6, 7, 8, 9, 20], [7, 8, 20]]
    assert [sequences_seen(2)[row] for row in (0, 2)] == [[5, 6, 7, 8, 9, 20, 31], [7, 8, 20, 31]]


def test_positions_count_from_the_start_of_the_prompt() -> None:
    layout = lay_out(BATCH)
    assert layout.places.tolist() == [[2, 3, 4, 5, 6], [0, 0, 1, 0, 0], [0, 0, 1, 2, 3]]
    assert layout.tokens.tolist() == [[7, 8, 9, 20, 31], [0, 0, 7, 0, 0], [0, 7, 8, 20, 31]]
    assert layout.heads == [(5, 6), (5,), ()]
    assert layout.head_of_row == [0, 1, 2]
    assert layout.visible.any(axis=-1).all()
    assert layout.visible.shape[-1] % 8 == 0


def test_branches_do_not_see_each_other() -> None:
    tree = LabelTree([(20, 30, END), (20, 31, END), (21, 30, END), (21, 31, END)])
    layout = lay_out([LabelQuestion(Prompt((), (7,)), tree)])
    assert layout.tokens.tolist() == [[7, 20, 21]]
    assert layout.visible[0].tolist() == [[True, False, False], [True, True, False], [True, False, True]]
    whole = lay_out_whole([LabelQuestion(Prompt((), (7,)), tree)])
    assert whole.tokens.tolist() == [[7, 20], [7, 21]]
    assert list(zip(whole.row[0, 1:], whole.column[0, 1:], strict=True)) == [(0, 1), (1, 1)]
