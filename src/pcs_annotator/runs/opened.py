"""`Run`: what is in a run folder, learning from it again, and writing what was learned; no model is called."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Mapping
from copy import copy
from dataclasses import replace
from functools import cached_property
from hashlib import blake2b
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from pcs_annotator.asking.engine.progress import Tally
from pcs_annotator.asking.ledger.lock import Say
from pcs_annotator.base.errors import TableError, warn_user
from pcs_annotator.base.plain import from_plain
from pcs_annotator.core.arrays import CODE, Codes
from pcs_annotator.core.events import Verdict
from pcs_annotator.core.gold_codes import UNLABELLED, Coders, gold_codes, labels_of_texts
from pcs_annotator.core.outcome import Outcomes
from pcs_annotator.core.votes import Votes
from pcs_annotator.judging.label_shape import LabelShape
from pcs_annotator.judging.model import Model
from pcs_annotator.judging.promise.certificate import Audit, Certificate, fingerprint, in_force
from pcs_annotator.runs import drawing, folder_votes, ledgers, resolve_config
from pcs_annotator.runs.certificate_text import fallen_away, promised
from pcs_annotator.runs.columns import groups_of, refuse_many
from pcs_annotator.runs.default_panel import about_candidates
from pcs_annotator.runs.draw_registry import events_of
from pcs_annotator.runs.fits import REFIT, keep_version, model_of, number_in_use, numbers, settings_of_fits, version_of
from pcs_annotator.runs.gold_labels import FromPeople, Gold, coders_of, gold_of, take_gold, without_examples
from pcs_annotator.runs.learn import KnownRows, Learned, Looked, evaluation_file, learn_if_possible, model_file
from pcs_annotator.runs.levels import LevelLedger, key_of, note_test, read_levels
from pcs_annotator.runs.paths import SAMPLED, RunFolder, parts_in, read_origin, read_start, read_whole
from pcs_annotator.runs.review_state import ReviewState
from pcs_annotator.runs.run_result import RunResult
from pcs_annotator.runs.settings import Config, GoldSample, LearnSettings
from pcs_annotator.runs.stream import Stream, Streamed, with_stream
from pcs_annotator.runs.toml import config_from_dict, known_settings
from pcs_annotator.runs.variable_gold import part_table
from pcs_annotator.tables import chunks, vote_files
from pcs_annotator.tables.chunks import open_stream
from pcs_annotator.tables.files import expecting, read_json, set_aside, write_json
from pcs_annotator.tables.find import as_arrow
from pcs_annotator.version import __version__

_LOG, OF_PASSAGES = logging.getLogger(__name__), "pcs_annotator.runs.passage_run"


class Run:
    """A run folder, of which every part is read when it is first needed."""

    streamed: Streamed  # if the last rows came as a stream, what is known about them

    def __init__(self, folder: RunFolder, config: Config, **parts: Any) -> None:
        """Take a run whose `parts`, such as `dataset` and `answers`, may be in memory already."""
        self.folder, self.config = folder, config
        vars(self).update(parts)

    @classmethod
    def open(cls, path: Path, ledger: str = "", version: int = 0) -> Run:
        """Open a run folder; `ledger` says where its answers are now, if that has changed; 0 is the version in use."""
        return cls.of(RunFolder.find(path, version), ledger)

    @classmethod
    def of(cls, folder: RunFolder, ledger: str = "") -> Run:
        """Open a part of a run."""
        if folder.version:
            version_of(folder, folder.version)  # raises if there is none
        remedy = "rename it and run again; the ledger keeps all answers"
        start = read_start(folder, remedy)
        with expecting(folder.book, remedy):
            config = config_from_dict(start["config"])
            if not all(isinstance(name, str) for name in (*start["annotators"], *start["relations"])):
                raise TypeError("names must be texts")
        config = replace(config, ask=replace(config.ask, ledger=ledger or config.ask.ledger))
        kind = import_module(OF_PASSAGES).PassageRun if config.task.extraction else cls
        return kind(folder, config, start=start)

    def having(self, **parts: Any) -> Run:
        """Return the run with other parts, such as its settings; what was read stays."""
        other = copy(self)
        vars(other).pop("taught", None)
        vars(other).update(parts)
        return other

    def with_stream(self, ids: Iterable[str] | None = None) -> Run:
        """Return the run with texts of its stream as further rows: all of them, or those with some IDs."""
        if not self.folder.stream.exists() or self.dataset.streamed:
            return self
        with Stream(self.folder.stream) as stream:
            streamed = stream.read(self.votes, ids)
        if streamed is None:
            return self
        dataset, answers = with_stream(self.dataset, self.answers, streamed)
        parts = {"start": self.start, "dataset": dataset, "answers": answers, "streamed": streamed, "by": self.by}
        return Run(self.folder, self.config, **parts, gold_sample=self.gold_sample)

    @cached_property
    def taught(self) -> Run:
        """The run with those texts of its stream that people judged."""
        if not self.folder.stream.exists():
            return self
        return self.with_stream({event.id for event in events_of(self.folder, Verdict)})

    @cached_property
    def start(self) -> Mapping[str, Any]:
        """With what it was started, as `book.json` has it."""
        return Run.of(self.folder).start

    @cached_property
    def sampled(self) -> bool:
        """Whether the texts are a sample of a large table."""
        return SAMPLED in self.start

    @cached_property
    def dataset(self) -> chunks.Dataset:
        """The texts, with the gold of the data."""
        if not self.folder.items.exists():
            raise TableError(f"{self.folder.path} has no {self.folder.items.name}: repeat pcs run, which writes it")
        items = self.folder.items
        table = part_table(as_arrow(items), self.config, items.name) if self.folder.part else items
        dataset = open_stream(table, resolve_config.columns_of(self.config)).read()
        return replace(dataset, name=read_origin(self.folder).data or dataset.name)

    @cached_property
    def answers(self) -> Votes:
        """All votes, including those of annotators that also state a confidence."""
        return folder_votes.recorded_votes(self.folder, self.config, self.start, self.dataset.items)

    @cached_property
    def votes(self) -> Votes:
        """The votes that scores are computed from: those of annotators that were asked for a label only."""
        groups = groups_of(self.by, self.dataset.table, self.texts, self.dataset.name)
        if groups and self.dataset.streamed:  # they came with their group, not with the columns of the table
            kept = self.streamed.votes.groups or ()
            groups[-len(kept) :] = [named or group for named, group in zip(kept, groups[-len(kept) :], strict=True)]
        return replace(self.answers.plain(), texts=self.texts, groups=groups)

    @cached_property
    def by(self) -> str:
        """What groups of texts the last fit made its promise for; before the first one, that of the settings."""
        return replace(self.config.learn, **settings_of_fits(self.folder, "learn")).by

    @cached_property
    def gold_sample(self) -> GoldSample:
        """How the gold rows of the data were chosen, as the user said at the last fit."""
        return replace(self.config.learn, **settings_of_fits(self.folder, "learn")).gold_sample

    @cached_property
    def gold(self) -> Gold:
        """Gold labels, including those that people added after the run."""
        return self._gold()

    def _gold(self, until: int | None = None) -> Gold:
        gold = gold_of(self.folder, self.dataset, until, self.votes.groups).taken_as(self.gold_sample)
        return without_examples(gold, self.texts, self.config.task)

    @cached_property
    def labelled(self) -> tuple[Votes, Codes]:
        """The rows with gold, each text once, with what the other texts say about them."""
        about = KnownRows(self.gold.random_sample, None, self.texts, shape=self.shape, undecided=self.gold.undecided)
        return about.labelled(self.votes, self.gold.labels, self.settings)

    @cached_property
    def parts(self) -> Mapping[str, Run]:
        """All parts of the run, by name."""
        return {part: Run.of(self.folder.of(part)) for part in parts_in(self.folder.path)}

    def to_learn(self, settings: LearnSettings) -> Votes:
        """Return the votes with the gold rows of its siblings: the other labels, where any number of them may apply."""
        part, variable = self.folder.part, self.folder.part.partition("=")[0]
        if part == variable or settings.optimiser != "auto":
            return self.votes
        others = [run for name, run in self.parts.items() if name != part and name.startswith(f"{variable}=")]
        return replace(self.votes, siblings=[run.taught.labelled for run in others if run.folder.votes.exists()])

    @property
    def coders(self) -> Coders | None:
        """What several people said about the rows; None if there are fewer than two columns of labels."""
        return coders_of(self.dataset, self.votes.labels, self.gold.verdicts)

    @property
    def shape(self) -> LabelShape:
        """Whether labels are steps of a scale or paths of a tree."""
        return LabelShape.of(self.config.task.kind, self.votes.labels)

    def review(self) -> ReviewState:
        """Return the state of the review in this folder."""
        return ReviewState.read(self.folder.draws, self.dataset.items, self.config.task.labels, part=self.folder.part)

    @property
    def texts(self) -> list[str]:
        """The text of every item."""
        return [item.text for item in self.dataset.items]

    def with_gold(self, people: FromPeople) -> Run:
        """Return the run with the labels of a person's file, which are also stored in the folder."""
        take_gold(people, self.folder, self.dataset, self.votes.labels)
        return self.having(gold=self._gold())

    @property
    def settings(self) -> LearnSettings:
        """The settings of the last fit; before the first one, those of the run."""
        stored = (self._earlier_model() or {}).get("learn", {})
        return replace(self.config.learn, **known_settings(LearnSettings, stored))

    def learn(self, settings: LearnSettings, *, spare_looks: bool = False, say: Say = warn_user) -> Learned:
        """Learn from the votes; an earlier audit of the same promise counts, and `say` is told what a test costs."""
        if self.taught is not self:
            return self.taught.learn(settings, spare_looks=spare_looks, say=say)
        refuse_many(settings.by, self.votes.groups or ())
        gold, (key, levels) = self.gold, self._levels(settings)
        values = self._earlier_model()
        earlier = None if values is None else from_plain(Model, values)
        foretold = earlier.certificate.rows_needed if earlier and earlier.certificate else None
        early, rows = "", int(gold.random_sample.sum())
        if spare_looks and key not in levels.keys:
            early = levels.too_early(rows, foretold.even_odds if foretold else None)
        elif cost := levels.cost(key, settings, rows):
            say(cost)
        looked = Looked(levels.spent_before(key), levels.refused or early)
        about = KnownRows(gold.random_sample, gold.assumed, self.texts, looked, self.shape, self.coders, gold.undecided)
        learned = learn_if_possible(self.to_learn(settings), gold.labels, settings, about)
        if (certificate := learned.model.certificate) is not None:
            tried = 0.0 if certificate.promise.tested else levels.spent_before(key, average=True)
            needed = foretold if early else certificate.rows_needed  # what the last test foretold is the best guess
            certificate = replace(certificate, tried=tried, rows_needed=needed)
            learned = replace(learned, model=replace(learned.model, certificate=certificate))
        model = learned.model if earlier is None else drawing.with_earlier_audit(learned.model, earlier)
        model = drawing.with_reviewed_audit(model, self.votes, gold.verdicts, gold.labels)
        if run_rows := self.dataset.streamed and len(self.votes) - len(self.dataset.streamed):
            model = drawing.of_stream(model, self.votes, gold, run_rows)
        return replace(learned, model=model if earlier is None else fallen_away(earlier, model))

    def looked(self, settings: LearnSettings, asked: object = "") -> Looked:
        """Return what tests of the gold labels before one with these settings leave for a promise."""
        key, levels = self._levels(settings, asked)
        return Looked(levels.spent_before(key), levels.refused)

    def _levels(self, settings: LearnSettings, asked: object = "") -> tuple[str, LevelLedger]:
        key = key_of(self.to_learn(settings), self.gold.labels, settings, self.config.task.kind, asked)
        return key, read_levels(self.folder, self.gold_ids, key)

    def note_test(self, certificate: Certificate | None, settings: LearnSettings, asked: object = "") -> str | None:
        """Write into the ledger of levels that a certificate was tested for; return the key of the test, if any."""
        key, levels = self._levels(settings, asked)
        return note_test(self.folder, levels, "promise", key, certificate, self.gold_ids)

    @property
    def gold_labels(self) -> Mapping[str, str] | None:
        """Hash of a text → its gold label, for copies; None for a run without gold."""
        return labels_of_texts(self.texts, gold_codes(self.votes, self.gold.all_labels), self.votes.labels)

    @property
    def gold_ids(self) -> list[str]:
        """The IDs of rows with gold; people may still settle a row on which they differ, so it is not gone."""
        disputed = set(self.gold.verdicts.in_conflict)
        rows = enumerate(zip(self.dataset.items, self.gold.labels, strict=True))
        return [item.id for row, (item, label) in rows if label or row in disputed]

    def _earlier_model(self) -> Mapping[str, Any] | None:
        """Return the folder's `model.json`; None if there is none, or a damaged one; reading changes nothing."""
        if not (path := self.folder.model).exists():
            return None
        try:
            values = read_json(path)
            model_of(path, values)
            with expecting(path, REFIT):
                known_settings(LearnSettings, values.get("learn", {}))
        except TableError as error:
            warn_user(f"{error}; until then, the settings of the run are used")
            return None
        return values

    def write_learned(
        self, learned: Learned, settings: LearnSettings, fits: Mapping[str, Any], *, use: bool = True
    ) -> None:
        """Write model and figures; `fits` is what `pcs fit` was given. Without `use`, they only become a version."""
        if self.taught is not self:
            self.taught.write_learned(learned, settings, fits, use=use)
            return
        weights, certificate = learned.model.weights, learned.model.certificate
        _LOG.info("%d gold rows, %s: %r", learned.model.gold_rows, weights.diagnostics.optimiser, weights)
        _LOG.info("%s", promised(certificate).headline if certificate else "no promise was requested")
        tested = self.note_test(certificate, settings)  # noted first: an interruption must not hide a test
        notes = {"fit": fits, "verdicts_until": self.gold.verdicts.last, "gold_ids": self.gold_ids, "tested": tested}
        notes |= {"since": dict(self.gold.since)} if self.gold.since else {}
        if streamed := len(self.dataset.streamed):
            notes["streamed_gold"] = sum(label is not None for label in self.gold.labels[-streamed:])
        if self.folder.model.exists() and self._earlier_model() is None:
            set_aside(self.folder.model)  # a damaged one is kept
        model = {**model_file(learned, settings, self.votes.labels), **notes}
        same = {"fit_id": blake2b(json.dumps(model, default=str).encode(), digest_size=8).hexdigest()}
        evaluation = evaluation_file(learned) | same
        kept = keep_version(self.folder, model | same, evaluation)
        if use:
            write_json(self.folder.model, kept)
            write_json(self.folder.evaluation, evaluation)

    def figures(self) -> Mapping[str, Any]:
        """Return `evaluation.json`; if it is about another model than `model.json`, that is an error."""
        figures = read_json(self.folder.evaluation, REFIT)
        if figures.get("fit_id") != read_json(self.folder.model, REFIT).get("fit_id"):
            raise TableError(f"{self.folder.evaluation} and {self.folder.model.name} are of different fits: {REFIT}")
        return figures

    def hand_out(self, learned: Learned, rows: int) -> drawing.HandedOut:
        """Write the rows that a person should label next; a table of votes may have no texts that they could read."""
        if not any(self.texts):
            return drawing.HandedOut(0, "at random")
        return drawing.hand_out(self.folder, self.dataset, self.votes, learned.model, self.gold, rows)

    def model_in_force(self, *, with_gold: bool = True) -> Model:
        """Return the model of the folder; its promise is void if votes, gold of the fit, or code have changed since.

        Without `with_gold`, gold is not compared, and votes only if their file is newer than the model.
        """
        folder, votes = self.folder, self.votes
        values = read_json(folder.model, REFIT)
        with expecting(folder.model, REFIT):
            other = {*values.get("labels", votes.labels)} ^ {*votes.labels}
        if other:
            raise TableError(f"{folder.model} was fitted with other labels ({', '.join(values['labels'])}): {REFIT}")
        model = model_of(folder.model, values)
        if model.certificate is None or model.certificate.fingerprint is None:
            return model
        then = model.certificate.fingerprint
        if with_gold:
            now = fingerprint(votes, gold_codes(votes, self.as_fitted().gold.labels), __version__)
        elif folder.votes.stat().st_mtime_ns > folder.model.stat().st_mtime_ns:
            ours = votes.take(np.arange(len(votes) - len(self.dataset.streamed)))
            now = fingerprint(ours, np.full(len(ours), UNLABELLED, dtype=CODE), __version__)._replace(gold=then.gold)
        else:
            now = then._replace(version=__version__)
        return self._audited(fallen_away(model, replace(model, certificate=in_force(model.certificate, now))))

    def _audited(self, model: Model) -> Model:
        """Return the model, without the promises that verdicts on accepted texts of the stream have withdrawn."""
        broken = {name: audit for name, audit in self.stream_audit(model).items() if audit.finding == "revoked"}
        if not broken or model.certificate is None:
            return model
        audit, groups = broken.get("", model.certificate.audit), tuple(filter(None, broken))
        return replace(model, certificate=replace(model.certificate, withdrawn=groups, audit=audit))

    def stream_audit(self, model: Model) -> dict[str, Audit]:
        """Return what people found among accepted texts of the stream since this version is in use, by group."""
        full: Run = self.taught
        if not full.dataset.streamed:
            return {}
        run_rows = len(full.votes) - len(full.dataset.streamed)
        by_this = np.array(full.streamed.version) == number_in_use(self.folder)
        rows = (np.flatnonzero(full.streamed.accepted & by_this) + run_rows).tolist()
        return drawing.stream_audit(model, full.votes, full.gold.verdicts, rows)

    def as_fitted(self) -> Run:
        """Return the run with the gold that the fit knew: verdicts that came later are left out."""
        values = read_json(self.folder.model, REFIT)
        gold, until = self.gold, values.get("verdicts_until", 0)
        if gold.verdicts.last > until:
            gold = self._gold(until)
        if values.get("number", 1) >= max(numbers(self.folder), default=1):
            return self.having(gold=gold)
        ids = set(values["gold_ids"])  # gold that came later is a change only as long as there is no later fit
        rows = zip(self.dataset.items, gold.labels, strict=True)
        return self.having(gold=gold._replace(labels=tuple(label if item.id in ids else None for item, label in rows)))

    def result(self, learned: Learned, **more: Any) -> RunResult:
        """Return the result of the run."""
        whole, gold = read_whole(self.folder) if self.sampled else None, self.gold.labels
        counted = vote_files.read_note(self.folder.votes).get("tally", {}) if whole is None else whole.tally
        used, texts = ledgers.used_bills(self.config, counted), self.texts if any(self.texts) else None
        return RunResult(
            folder=self.folder,
            config=self.config,
            dataset=replace(self.dataset, gold=gold),
            gold=gold,
            texts=texts,
            candidates=about_candidates(self.config, texts or (), gold),
            gold_with_shown=self.gold.labels_with_shown,
            votes=self.votes,
            learned=learned,
            outcomes=Outcomes(learned.model.judge(self.votes)),
            bills=ledgers.bills_in(self.folder, self.config, used),
            used=used,
            rewrites=tuple(vote_files.count_variants(self.folder.variants)),
            **{name: counted.get(name, {}) for name in ("unreadable", "cut", "hard")},
            bounded=counted.get("bounded", 0),
            verdicts=self.gold.verdicts,
            random_sample=self.gold.random_sample,
            assumed=self.gold.assumed,
            whole=whole,
            **{"tally": Tally(), **more},
        )
