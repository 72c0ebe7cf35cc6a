"""May this file be written, and how: the one policy for every file that somebody names."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath

from pcs_annotator.base.errors import TableError
from pcs_annotator.tables.arrow import pa
from pcs_annotator.tables.files import check_ending, dated_names, explained, file_system, set_aside, write_page
from pcs_annotator.tables.table_files import STDIO
from pcs_annotator.tables.table_writer import PLAIN, WRITTEN, TableStyle, writing_table

PAGES = (".html", ".htm")


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputPolicy:
    """Never writes over a file: one in the way is an error or, with `replace`, kept under a dated name.

    The files of a run folder belong to the run, which writes them again without asking.
    """

    replace: bool = False  # whether a file in the way is kept under a dated name
    style: TableStyle = PLAIN  # how tables are written

    def check(self, out: Path | str, endings: Sequence[str] = WRITTEN, inputs: Sequence[Path | None] = ()) -> None:
        """Raise, before any work is done, for a file that cannot or must not be written; `inputs` are read."""
        if out == STDIO:
            return
        check_ending(out, endings)
        for path in inputs:
            if path is not None and isinstance(out, Path) and out.exists() and path.exists() and out.samefile(path):
                raise TableError(f"{out} is read here, and would be overwritten: name another file to write")
        self._refuse(out)

    def make_way(self, out: Path | str) -> Path | str | None:
        """Keep a file in the way under a dated name; return where it is now, or None if there was none."""
        if out == STDIO or not _exists(out):
            return None
        self._refuse(out)
        if isinstance(out, Path):
            return set_aside(out)
        system, path = file_system(out)
        name = next(dated_names(PurePath(out)))
        with explained(out):
            system.mv(path, f"{path.rpartition('/')[0]}/{name}")
        return f"{out.rpartition('/')[0]}/{name}"

    def write_page(self, out: Path, text: str | bytes) -> Path:
        """Write a text whole or not at all, and return where it is."""
        self.make_way(out)
        write_page(out, text)
        return out

    def write_table(self, out: Path | str, table: pa.Table) -> None:
        """Write a table whole or not at all."""
        self.make_way(out)
        with writing_table(out, self.style) as writer:
            writer.write(table)

    def _refuse(self, out: Path | str) -> None:
        if not self.replace and _exists(out):
            remedy = "name another file with -o, or add --replace, which keeps it under a dated name"
            raise TableError(f"{out} exists: {remedy}")


STRICT = OutputPolicy()


def _exists(out: Path | str) -> bool:
    if isinstance(out, Path):
        return out.exists()
    system, path = file_system(out)
    with explained(out):
        return bool(system.exists(path))
