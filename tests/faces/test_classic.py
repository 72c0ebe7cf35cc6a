"""The paper's class: its listing as printed, its files, its relations, and its errors on bad input."""

import asyncio
import csv
import math
import pickle
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path

import pytest

from pcs_annotator import PCS, CollectSettings, PcsWarning, UserError
from pcs_annotator.base.errors import AccessDenied, ConfigError, LabelError, TableError, UnknownNameError
from pcs_annotator.core.chat import Request
from pcs_annotator.models.scripted import ScriptedModel
from pcs_annotator.relations.function import FunctionRelation
from tests.stub import Behaviour, StubProcess, StubServer, stub_process

PROMPT = "Label the news as <label>Fake</label> or <label>Real</label>."
PAPERS_MODELS = ["llama3-8b-8192", "mistralai/Mistral-7B-Instruct-v0.3"]
ALIENS = "Aliens landed in New York yesterday."
WHO = ("The mayor", "A farmer", "The old bank", "The school", "A baker")
DID = ("bought", "painted", "sold", "closed")
WHAT = ("five buses", "the bridge", "a red barn", "two boats", "the library")
GOLD = {row: "Fake" if blake2b(b"%d" % row).digest()[0] % 2 else "Real" for row in range(100)}

# few rows and models that answer by hash: most tests do not depend on the weights
pytestmark = pytest.mark.filterwarnings(
    "ignore:.*(decides alone|say nothing about the gold):pcs_annotator.base.errors.PcsWarning"
)


@pytest.fixture(autouse=True)
def without_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GROQ_API_KEY", "OPENAI_API_KEY", "ANTHROPIC_API_KEY", "HUGGINGFACE_API_KEY", "HF_TOKEN"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="module")
def server() -> Iterator[StubProcess]:
    with stub_process(Behaviour()) as stub:
        yield stub


@pytest.fixture
def stub(server: StubProcess, monkeypatch: pytest.MonkeyPatch) -> StubProcess:
    server.change(**Behaviour().to_json())
    server.reset()
    monkeypatch.setenv("GROQ_BASE_URL", server.url)
    monkeypatch.setenv("HUGGINGFACE_BASE_URL", server.url)
    return server


def texts(count: int) -> list[str]:
    made = [f"{who} {did} {what} yesterday." for what in WHAT for did in DID for who in WHO]
    return made[:count]


def write_dataset(count: int = 40, name: str = "dataset.csv") -> Path:
    with Path(name).open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(["label", "text"])
        rows.writerows((GOLD[row], text) for row, text in enumerate(texts(count)))
    return Path(name)


def cells(name: str = "dataset_annotations.csv") -> list[dict[str, str]]:
    with Path(name).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def model(name: str, wrong: float, garbage: tuple[str, ...] = ()) -> ScriptedModel:
    """A model that knows the gold labels and is wrong in a share of its answers; garbage for some texts."""
    gold = {text: GOLD[row] for row, text in enumerate(texts(100))}

    def answer(request: Request) -> str:
        asked = request.messages[-1].content
        if any(f"\n{text}\n" in asked for text in garbage):
            return "I would rather talk about the weather."
        label = next((label for text, label in gold.items() if text in asked), "Fake")
        if blake2b(f"{name}{asked}".encode()).digest()[0] < 256 * wrong:
            label = "Real" if label == "Fake" else "Fake"
        return label

    return ScriptedModel(answer, name=name)


def panel(*, garbage: tuple[str, ...] = (), optimizer: str = "LR", **more: object) -> PCS:
    """Two models and three rewrites by functions: 8 votes a row, no network."""
    pcs = PCS(
        PROMPT,
        "dataset.csv",
        [model("good", 0.1, garbage), model("poor", 0.4)],
        generate_annotations=True,
        Optimizer=optimizer,
        relations=[],
        **more,  # type: ignore[arg-type]  # whatever a test gives
    )
    for opening in ("Indeed", "Notably", "Frankly"):
        pcs.register_mr(opening.lower(), lambda text, opening=opening: f"{opening}, {text}")  # type: ignore[misc]
    return pcs


def is_distribution(scores: dict[str, float]) -> bool:
    finite = all(type(value) is float and math.isfinite(value) for value in scores.values())
    return finite and sum(scores.values()) == pytest.approx(1) and min(scores.values()) >= 0


@pytest.mark.parametrize("optimizer", ["LR", "GA"])
def test_the_papers_listing_runs_as_printed_and_with_the_other_optimizer(stub: StubProcess, optimizer: str) -> None:
    write_dataset(12)
    pcs = PCS(
        prompt="Label the news as <label>Fake</label> or <label>Real</label>.",
        dataset_path="dataset.csv",
        annotators=["llama3-8b-8192", "mistralai/Mistral-7B-Instruct-v0.3"],
        textmutator="llama-3.1-8b-instant",
        GROQ_API_KEY="your_key",
        generate_annotations=True,
    )
    pcs.Optimizer = optimizer
    result = pcs.annotate("Aliens landed in New York yesterday.")
    assert list(result) == ["Fake", "Real"]
    assert is_distribution(result)
    assert pcs.relations == ("original", "voice", "double-negation", "synonym")
    assert Path("dataset_ledger.db").exists()


def test_the_constructor_reads_no_file_and_calls_no_model(stub: StubProcess) -> None:
    pcs = PCS(PROMPT, "nowhere.csv", PAPERS_MODELS, "llama-3.1-8b-instant", "your_key", generate_annotations=True)
    assert stub.stats().requests == 0
    with pytest.raises(TableError, match=r"no file nowhere\.csv"):
        pcs.annotate(ALIENS)


def test_nothing_is_asked_again_by_a_second_object_or_a_second_call(stub: StubProcess) -> None:
    write_dataset(10)
    first = PCS(PROMPT, "dataset.csv", PAPERS_MODELS, "llama-3.1-8b-instant", "your_key", generate_annotations=True)
    scores = first.annotate(ALIENS)
    paid = stub.stats().requests
    second = PCS(PROMPT, "dataset.csv", PAPERS_MODELS, "llama-3.1-8b-instant", "your_key", generate_annotations=True)
    assert second.annotate(ALIENS) == first.annotate(ALIENS) == scores
    assert stub.stats().requests == paid


def test_given_keys_win_over_the_environment(stub: StubProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    write_dataset(4)
    stub.change(key="the-right-one")
    monkeypatch.setenv("GROQ_API_KEY", "an-old-one")
    monkeypatch.setenv("HF_TOKEN", "an-old-one")
    given = PCS(
        PROMPT,
        "dataset.csv",
        PAPERS_MODELS,
        "llama-3.1-8b-instant",
        GROQ_API_KEY="the-right-one",
        HUGGINGFACE_API_KEY="the-right-one",
        generate_annotations=True,
    )
    assert is_distribution(given.annotate(ALIENS))
    other = PCS(PROMPT, "dataset.csv", PAPERS_MODELS, generate_annotations=True, ledger="other.db")
    with pytest.raises(AccessDenied) as caught:
        other.annotate(ALIENS)
    assert "an-old-one" not in str(caught.value)


def test_keys_of_the_working_folder_are_read(stub: StubProcess) -> None:
    stub.change(key="from-file")
    Path(".env").write_text("GROQ_API_KEY=from-file\n")
    with pytest.warns(PcsWarning, match="all votes count the same"):
        assert is_distribution(PCS(PROMPT, None, PAPERS_MODELS[0], relations=[]).annotate(ALIENS))


def test_keys_appear_in_no_repr_and_no_pickle(stub: StubProcess) -> None:
    write_dataset(6)
    pcs = PCS(PROMPT, "dataset.csv", PAPERS_MODELS, "llama-3.1-8b-instant", "gsk-secret", generate_annotations=True)
    pcs.fit()
    assert "gsk-secret" not in repr(pcs) + repr(vars(pcs))
    assert b"gsk-secret" not in pickle.dumps(pcs)
    pcs.settings = CollectSettings(environment={"GROQ_API_KEY": "gsk-secret", "GROQ_BASE_URL": stub.url})
    pickled = pickle.dumps(pcs)
    assert b"gsk-secret" not in pickled
    pcs.settings = CollectSettings()
    again = pickle.loads(pickled)
    assert again.annotate(ALIENS) == pcs.annotate(ALIENS)


@pytest.mark.parametrize("textmutator", [None, ""])
def test_without_a_textmutator_rules_rewrite(textmutator: str | None) -> None:
    write_dataset(12)
    models = ["scripted:hash", "scripted:hash:2"]
    pcs = PCS(PROMPT, "dataset.csv", models, textmutator, generate_annotations=True)
    assert pcs.relations == ("original", "case", "frame", "typo")
    assert is_distribution(pcs.annotate("The mayor opened the bridge."))
    assert cells()[0]["text_mr2"] == f"The text reads: {texts(1)[0]}"


def test_weights_are_learned_and_the_better_model_weighs_more() -> None:
    write_dataset(60)
    pcs = panel().fit()
    weights = pcs.weights.by_annotator
    assert weights["good"] > 0.7
    assert list(pcs.weights.by_relation) == ["original", "indeed", "notably", "frankly"]


@pytest.mark.parametrize("optimizer", ["LR", "GA", "Auto"])
def test_five_unusable_answers_of_800_change_five_votes_and_nothing_else(optimizer: str) -> None:
    write_dataset(100)
    clean = panel(optimizer=optimizer, ledger="clean.db").fit()
    before = cells()
    spoiled = panel(optimizer=optimizer, ledger="spoiled.db", garbage=tuple(texts(5))).fit()
    after = cells()
    columns = [f"{name}_text{mr}" for name in ("good", "poor") for mr in ("", "_mr1", "_mr2", "_mr3")]
    changed = [(row, name) for row in range(100) for name in columns if before[row][name] != after[row][name]]
    assert changed == [(row, "good_text") for row in range(5)]
    assert [after[row][name] for row, name in changed] == [""] * 5
    for pcs in (clean, spoiled):
        assert all(map(math.isfinite, pcs.weights.matrix.ravel()))
        assert is_distribution(pcs.annotate(ALIENS))
    assert spoiled.weights.by_annotator == pytest.approx(clean.weights.by_annotator, abs=0.2)
    assert all(map(is_distribution, spoiled.annotate_many(texts(5))))


@pytest.mark.parametrize("dataset", ["dataset.csv", "kept.csv"], ids=["beside the dataset", "as the dataset"])
def test_annotations_are_written_and_read_back_to_the_same_weights(dataset: str) -> None:
    write_dataset(30)
    generated = panel().fit()
    rows = cells()
    assert list(rows[0])[:6] == ["label", "text", "text_mr1", "text_mr2", "text_mr3", "good_text"]
    assert rows[0]["text_mr2"] == f"Notably, {rows[0]['text']}"
    if dataset == "kept.csv":
        Path("dataset_annotations.csv").rename(dataset)
    silent = [ScriptedModel("never asked", name=name) for name in ("good", "poor")]
    read = PCS(PROMPT, dataset, silent, relations=[])
    for name in ("indeed", "notably", "frankly"):
        read.register_mr(name, lambda text: f"So, {text}")
    read.fit()
    assert [one.calls for one in silent] == [0, 0]
    assert read.weights.by_annotator == generated.weights.by_annotator
    assert read.weights.by_relation == generated.weights.by_relation


def test_annotations_from_elsewhere_are_used() -> None:
    noise = ["Fake", "Real", "real ", "Nonsense", ""]
    rows = [
        f"{label},text {row},a {row},b {row},c {row},{label},{label},{noise[row % 5]},{label}"
        for row, label in GOLD.items()
    ]
    header = "label,text,text_mr1,text_mr2,text_mr3,mine_text,mine_text_mr1,mine_text_mr2,mine_text_mr3"
    Path("old_annotations.csv").write_text("\n".join([header, *rows]) + "\n")
    Path("old.csv").write_text("\n".join(["label,text", *(f"{label},text {row}" for row, label in GOLD.items())]))
    mine = ScriptedModel("Fake", name="mine")
    pcs = PCS(PROMPT, "old.csv", mine, "scripted:hash").fit()
    assert mine.calls == 0
    assert pcs.weights.by_relation["voice"] > 0.3
    assert pcs.weights.by_relation["double-negation"] < 0.1


def test_no_annotations_and_none_to_be_generated_names_the_remedy() -> None:
    write_dataset(4)
    with pytest.raises(TableError, match="generate_annotations=True"):
        PCS(PROMPT, "dataset.csv", ["scripted:hash"], "scripted:hash").annotate(ALIENS)


def test_generating_again_keeps_what_another_file_said() -> None:
    write_dataset(6)
    Path("dataset_annotations.csv").write_text("label,text,old_text\nFake,x,Fake\n")
    panel().fit()
    panel().fit()
    assert cells("dataset_annotations.before.csv")[0]["old_text"] == "Fake"


def test_no_answer_is_lost_when_annotations_cannot_be_written() -> None:
    write_dataset(6)
    Path("dataset_annotations.csv").mkdir()
    with pytest.warns(PcsWarning, match=r"dataset_annotations\.csv .* dataset_ledger\.db"):
        panel().fit()


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_registered_function_takes_part_in_votes_weights_and_scores(asynchronous: bool) -> None:
    write_dataset(40)
    good = model("good", 0.3)
    pcs = PCS(PROMPT, "dataset.csv", good, generate_annotations=True, relations=["original"])
    pcs.fit()
    assert pcs.weights.by_relation == {"original": 1.0}
    asked = good.calls

    async def later(text: str) -> str:
        return f"Breaking: {text}"

    pcs.register_mr("breaking", later if asynchronous else lambda text: f"Breaking: {text}")
    pcs.annotate(ALIENS)
    assert good.calls == asked + 40 + 2
    assert 0 < pcs.weights.by_relation["breaking"] < 1
    assert cells()[0]["text_mr1"] == f"Breaking: {texts(1)[0]}"
    assert f"Breaking: {ALIENS}" in str([request.messages for request in good.requests])


@pytest.mark.parametrize("prompt", ["Make it a headline.", "Make this a headline: {text}"])
def test_a_registered_prompt_is_answered_by_the_textmutator(prompt: str) -> None:
    write_dataset(10)
    by_text = {text: f"Today in the news, {text}" for text in [*texts(10), ALIENS]}

    def headline(request: Request) -> str:
        asked = request.messages[-1].content
        assert prompt.removesuffix("{text}") in "".join(message.content for message in request.messages)
        return next(rewritten for text, rewritten in by_text.items() if text in asked)

    mutator = ScriptedModel(headline, name="mutator")
    good = model("good", 0.2)
    pcs = PCS(PROMPT, "dataset.csv", good, mutator, generate_annotations=True, relations=[])
    pcs.register_mr("headline", prompt)
    assert is_distribution(pcs.annotate(ALIENS))
    assert (mutator.calls, good.calls) == (11, 22)
    assert [row["text_mr1"] for row in cells()] == [by_text[text] for text in texts(10)]
    assert set(pcs.weights.by_relation) == {"original", "headline"}


@pytest.mark.parametrize(
    ("name", "how", "words"),
    [
        ("typo", str.upper, "already .* 'typo'"),
        ("a|b", str.upper, r"'a\|b' .*without \| and \+"),
        (" ", str.upper, "' ' "),
        ("polite", "Say this politely.", "'polite' .*textmutator"),
        ("other", FunctionRelation("mine", str.upper), "'mine'"),
    ],
)
def test_an_invalid_relation_is_refused_at_once(name: str, how: object, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        PCS(PROMPT, "dataset.csv", ["scripted:hash"]).register_mr(name, how)  # type: ignore[arg-type]


def test_rewrites_of_a_function_are_not_checked_unless_it_is_given_as_a_relation() -> None:
    write_dataset(8)
    more = FunctionRelation("more", lambda text: text.replace("five", "six").replace("the", "9"))
    pcs = PCS(PROMPT, "dataset.csv", model("good", 0.1), generate_annotations=True, relations=[])
    pcs.register_mr("unchecked", more.function)
    pcs.register_mr("more", more)
    with pytest.warns(PcsWarning, match="'more' changed none of 8 texts"):
        pcs.fit()
    assert any(row["text_mr1"] for row in cells())


def test_many_texts_are_asked_in_one_batch_and_equal_ones_once(stub: StubProcess) -> None:
    write_dataset(6)
    pcs = PCS(PROMPT, "dataset.csv", PAPERS_MODELS, None, "k", generate_annotations=True, relations=[]).fit()
    paid = stub.stats().requests
    scores = pcs.annotate_many([ALIENS, "It rained.", ALIENS])
    assert scores[0] == scores[2] == pcs.annotate(ALIENS)
    assert stub.stats().requests == paid + 4
    assert pcs.annotate_many([]) == []


@pytest.mark.asyncio
async def test_it_works_inside_a_running_event_loop() -> None:
    write_dataset(10)
    pcs = panel()
    scores = pcs.annotate(ALIENS)
    assert await pcs.aannotate(ALIENS) == scores
    assert await pcs.aannotate_many([ALIENS]) == [scores]
    assert await pcs.afit() is pcs


@pytest.mark.asyncio
async def test_concurrent_callers_fit_once() -> None:
    write_dataset(10)
    good = model("good", 0.1)
    pcs = PCS(PROMPT, "dataset.csv", good, generate_annotations=True, relations=[])
    await asyncio.gather(*(pcs.aannotate(f"Text {number}.") for number in range(3)))
    assert good.calls == 10 + 3


def test_a_pickled_pcs_predicts_the_same_without_the_dataset_and_without_asking_again(stub: StubProcess) -> None:
    write_dataset(8)
    pcs = PCS(PROMPT, "dataset.csv", PAPERS_MODELS, "llama-3.1-8b-instant", "k", generate_annotations=True)
    pcs.register_mr("headline", "Rewrite the text as a headline.")
    scores = pcs.annotate(ALIENS)
    pickled = pickle.dumps(pcs)
    Path("dataset.csv").unlink()
    paid = stub.stats().requests
    again = pickle.loads(pickled)
    assert again.annotate(ALIENS) == scores
    assert stub.stats().requests == paid > 0
    assert (again.labels, again.relations) == (pcs.labels, pcs.relations)
    assert again.weights.to_dict() == pcs.weights.to_dict()


def test_without_a_dataset_all_votes_count_the_same() -> None:
    pcs = PCS(PROMPT, None, ["scripted:hash", "scripted:hash:2"], relations=["rule:typo+rule:frame"])
    with pytest.warns(PcsWarning, match="all votes count the same"):
        assert is_distribution(pcs.annotate(ALIENS))
    assert pcs.weights.by_annotator == {"scripted:hash": 0.5, "scripted:hash:2": 0.5}
    assert pcs.weights.by_relation == {"original": 0.5, "rule:typo+rule:frame": 0.5}
    with pytest.raises(LabelError, match="at least two labels"):
        PCS("Is it true?", None, ["scripted:hash"], relations=[]).annotate(ALIENS)


def test_a_text_without_a_usable_answer_gets_equal_scores_and_a_warning() -> None:
    write_dataset(10)
    pcs = panel().fit()
    with pytest.warns(PcsWarning, match="1 of 2 texts"):
        scores = pcs.annotate_many([ALIENS, "  "])
    assert scores[1] == {"Fake": 0.5, "Real": 0.5}


@pytest.mark.asyncio
async def test_a_spent_budget_gives_a_warning_and_a_larger_one_resumes() -> None:
    write_dataset(10)
    async with StubServer(Behaviour()) as stub:
        spec = f"{stub.url}#m"
        prices = CollectSettings(prices={spec: (1.0, 1.0)})
        poor = PCS(
            PROMPT, "dataset.csv", spec, generate_annotations=True, relations=[], budget_usd=0.001, settings=prices
        )
        with pytest.warns(PcsWarning, match=r"\d+ questions .*budget reached"):
            await poor.afit()
        paid = stub.stats().requests
        rich = PCS(PROMPT, "dataset.csv", spec, generate_annotations=True, relations=[], settings=prices)
        await rich.afit()
        assert 0 < paid < 10
        assert stub.stats().requests == 10


def test_before_learning_there_are_no_weights() -> None:
    pcs = PCS(PROMPT, "dataset.csv", ["scripted:hash"])
    with pytest.raises(ConfigError, match=r"call fit\(\) first"):
        _ = pcs.weights
    with pytest.raises(ConfigError, match=r"call fit\(\) first"):
        _ = pcs.labels


def test_rows_without_a_label_are_neither_asked_about_nor_learned_from() -> None:
    dataset = write_dataset(10)
    with dataset.open("a") as file:
        file.write(",Nobody knows about this one.\n")
    pcs = panel().fit()
    assert [one.calls for one in pcs.annotators] == [40, 40]
    assert cells()[10]["good_text"] == ""
    assert pcs.weights.diagnostics.gold_rows == 10


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"Optimizer": "XGB"}, UnknownNameError, "'XGB'.*lr"),
        ({"annotators": []}, ConfigError, "no models.*annotators="),
        ({"annotators": ["scripted:hash", "scripted:hash"]}, ConfigError, "'scripted:hash' .*twice"),
        ({"prompt": " "}, ConfigError, "the prompt is empty"),
        ({"relations": ["paraphrase"]}, ConfigError, "paraphrase.*textmutator"),
    ],
)
def test_unusable_arguments_are_named_with_the_remedy(
    change: dict[str, object], error: type[UserError], words: str
) -> None:
    write_dataset(4)
    usual = {"prompt": PROMPT, "dataset_path": "dataset.csv", "annotators": ["scripted:hash"], "relations": []}
    pcs = PCS(**{**usual, "generate_annotations": True, **change})  # type: ignore[arg-type]
    with pytest.raises(error, match=words):
        pcs.annotate(ALIENS)


def test_anything_but_a_text_is_refused() -> None:
    write_dataset(4)
    pcs = panel()
    with pytest.raises(ConfigError, match=r"annotate_many .*use annotate "):
        pcs.annotate_many(ALIENS)
    with pytest.raises(ConfigError, match="text 1 is a list"):
        pcs.annotate([ALIENS])  # type: ignore[arg-type]
