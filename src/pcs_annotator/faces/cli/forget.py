"""`pcs forget`: delete a text of the stream."""

from pathlib import Path

import click

from pcs_annotator.base.text import counted
from pcs_annotator.faces.cli import options
from pcs_annotator.verbs.forget import forget


@click.command("forget")
@click.argument("run", type=options.PATH)
@click.argument("id", default="")
@click.option("--text", default="", metavar="TEXT", help="The text itself, whatever its ID; needed if it was accepted.")
@options.JSON
def command(*, run: Path, id: str, text: str) -> None:
    """Delete a text that came to RUN with pcs serve or pcs label, by its ID or by the text itself.

    Answers about it, its rewrites, and verdicts on it go too; the labels of others stay as they are. Rows of the data
    that the run was made from are not deleted.
    """
    if not (id or text):
        raise click.UsageError("name the text: by its ID, or with --text")
    gone = forget(run, id, text)
    kept = f"{counted(len(gone.ids), 'text')} of the stream" if gone.ids else "no text of the stream, which had none"
    lines = [f"deleted {kept}, and {counted(gone.answers, 'answer')} of models; nothing of it is left there"]
    if gone.rows:
        rows = counted(len(gone.rows), "row")
        lines.append(f"{rows} of the run's data still have this text, such as {gone.rows[0]}: delete them in the data")
    options.tell(gone._asdict(), *lines)
