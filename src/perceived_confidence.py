"""Starts the `pcs` command, unless files of another distribution are mixed with ours.

The import name `pcs_annotator` is shared with a distribution called `pcs-annotator`. If both are installed, one
overwrites the other, and `pcs_annotator` itself may no longer be ours: so this check has a module of its own.
"""

import sys
from importlib.util import find_spec
from pathlib import Path

CLASH = """the distribution pcs-annotator is installed as well; its files overwrite those of perceived-confidence
remove both and install ours again, in the clone or with a wheel of it:
pip uninstall --yes pcs-annotator perceived-confidence && pip install '.[local,rules]'"""


def is_mixed() -> bool:
    """Return whether files of the other distribution are where `pcs_annotator` is imported from."""
    found = find_spec("pcs_annotator")
    return found is not None and found.origin is not None and Path(found.origin).with_name("TextMutator.py").exists()


def run() -> None:
    """Entry point of the `pcs` script."""
    if is_mixed():
        print(f"error: {CLASH}", file=sys.stderr)
        sys.exit(2)
    from pcs_annotator.faces.cli.main import main

    sys.exit(main())
