"""The model of `py3langid`, unpacked once and kept in the user's cache.

Unpacking takes most of a second in every process, as long as everything else that `pcs plan` does.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zlib import crc32

import numpy as np

from pcs_annotator.base.user_cache import cache_folder, keep_folder

if TYPE_CHECKING:
    from py3langid.langid import LanguageIdentifier

# In the order of `load_model`.
PARTS = ("weights", "priors", "languages", "moves", "rows", "features")


def load_identifier() -> LanguageIdentifier:
    """Return a model that knows all languages."""
    from py3langid.langid import MODEL_DIR, MODEL_FILE, LanguageIdentifier
    from py3langid.modelio import load_model

    source = Path(MODEL_DIR) / MODEL_FILE
    name = f"languages-{crc32(source.read_bytes()):08x}"
    try:
        parts = _unpacked(cache_folder() / name)
    except RuntimeError:  # this user has no home folder
        parts = load_model(source)
    except (OSError, ValueError):  # not there yet, or damaged
        parts = load_model(source)
        keep_folder(cache_folder() / name, partial(_write, parts))
    weights, priors, languages, moves, rows, features = parts
    return LanguageIdentifier(weights, priors, languages, moves, features, norm_probs=True, tk_row=rows)


def _unpacked(folder: Path) -> tuple[Any, ...]:
    # Of the large parts, only what the texts need is read from disk.
    weights, priors, languages, moves, rows, features = (
        np.load(folder / f"{name}.npy", mmap_mode="r" if name in ("weights", "moves") else None) for name in PARTS
    )
    # one number at a time is read several times as fast from a memoryview and a list as from an array
    return np.asarray(weights), priors, languages.tolist(), memoryview(moves), rows.tolist(), features.tolist()


def _write(parts: tuple[Any, ...], folder: Path) -> None:
    for name, part in zip(PARTS, parts, strict=True):
        np.save(folder / f"{name}.npy", np.asarray(part))
