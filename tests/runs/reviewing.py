"""Reviews for tests: events as the page would have written them."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from pcs_annotator import Item
from pcs_annotator.core.events import SEQUENCE, Draw, Event, Queue, Undo, Verdict, fixed_order, frame_hash
from pcs_annotator.core.identity import text_hash
from pcs_annotator.runs.draw_registry import append_events
from pcs_annotator.runs.paths import RunFolder

AT = "2026-11-16T08:00:00.000+00:00"


class Reviewing:
    """Writes the log of a review of some texts; `frame` are the IDs of those without gold."""

    def __init__(self, folder: Path, items: Iterable[Item], frame: Sequence[str] | None = None) -> None:
        self.at = RunFolder.find(folder) if "variables" in folder.parts else RunFolder(folder)
        self.path = self.at.draws
        self.hashes = {item.id: text_hash(item.text) for item in items}
        self.order = fixed_order(self.hashes if frame is None else frame)
        self.number = 0

    def draw(self, name: str, queue: Queue = "random", reached: int = 0) -> None:
        """Note that a row was drawn."""
        frame = frame_hash(self.order) if queue in SEQUENCE else ""
        self._add(
            Draw(
                number=self._next(),
                id=name,
                text_hash=self.hashes[name],
                queue=queue,
                at=AT,
                probability=0.1,
                pool=1,
                frame=frame,
                reached=reached,
            )
        )

    def judge(self, name: str, label: str | None, queue: Queue = "random", reviewer: str = "anna") -> int:
        """Note a verdict, and return its number."""
        number = self._next()
        hashed = self.hashes[name]
        self._add(Verdict(number=number, id=name, text_hash=hashed, label=label, reviewer=reviewer, at=AT, queue=queue))
        return number

    def undo(self, *verdicts: int) -> None:
        """Take verdicts back."""
        self._add(Undo(number=self._next(), verdicts=verdicts, reviewer="anna", at=AT))

    def _next(self) -> int:
        self.number += 1
        return self.number

    def _add(self, event: Event) -> None:
        append_events(self.path, [event], self.at.part)
