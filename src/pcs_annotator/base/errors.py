"""All errors and warnings of this library.

```text
PcsError
├── UserError: TableError (InputError), LabelError, GoldError, UnknownNameError, UndefinedMetric, ConfigError,
│   MissingPackage, ClusterError, ReviewError (UnknownRow, LeaseExpired, ChangedMeanwhile)
├── MismatchError, LedgerError, BudgetReached, Interrupted
└── ModelError: RateLimited, ServerTrouble (TimedOut, TooManyFiles, UnknownHost), Unanswerable (BadRequest),
    AccessDenied, ModelDown
PcsWarning
```
"""

import sys
import warnings
from pathlib import Path

_PACKAGE = str(Path(__file__).parents[1])


class PcsError(Exception):
    """Base class of all errors that the library raises on purpose."""


class UserError(PcsError):
    """The caller can fix this; the message says how, and the command line exits with code 2."""


class TableError(UserError):
    """A file or table cannot be read as asked."""


class InputError(TableError, ValueError):
    """A value given to Python cannot be used; also a ValueError, as users of scikit-learn expect."""


class LabelError(UserError):
    """A label set is unusable, or a label is outside of it."""


class GoldError(UserError):
    """Gold labels are missing, contradictory or unusable."""


class UnknownNameError(UserError):
    """No built-in and no plug-in has that name."""


class UndefinedMetric(UserError):
    """The metric cannot be computed from these rows, for example AUROC with a single class."""


class MismatchError(PcsError):
    """Two values do not belong together, such as weights and votes of different models."""


class ConfigError(UserError):
    """A setting, a key or a model name cannot be used."""


class MissingPackage(UserError):
    """An optional package is not installed; the message has the `pip install` line."""


class ClusterError(UserError):
    """A cluster cannot be used, or went away; everything that was paid for is kept."""


class ReviewError(UserError):
    """A review cannot take this; nothing was stored."""


class UnknownRow(ReviewError):
    """The run has no such row."""


class LeaseExpired(ReviewError):
    """The row is in somebody else's hands by now."""


class ChangedMeanwhile(ReviewError):
    """The row or the list is not as it was shown: look at it again."""


class LedgerError(PcsError):
    """The ledger of paid calls cannot be used; nothing in it is lost."""


class DriftFound(PcsError):
    """New texts differ from those that the model was fitted on, and the user asked to stop then."""


class BudgetReached(PcsError):
    """The budget is spent; everything that was paid for is kept."""


class Interrupted(PcsError):
    """The run was stopped; everything that was paid for is kept."""


class ModelError(PcsError):
    """A model did not answer; asking again can help only after `RateLimited` and `ServerTrouble`."""


class RateLimited(ModelError):
    """The server reports too many requests.

    Attributes:
        retry_after: Seconds that the server asks to wait; None when it did not say.
    """

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class ServerTrouble(ModelError):
    """5xx, reset connection or an answer that cannot be read."""


class TimedOut(ServerTrouble):
    """There was no answer in time."""


class TooManyFiles(ServerTrouble):
    """This process may open no more files and connections: fewer calls at once can help."""


class UnknownHost(ServerTrouble):
    """The server's name is in no directory: it is misspelt, or the network is gone for a moment."""


class Unanswerable(ModelError):
    """This question will never be answered: the text is too long, or was filtered."""


class BadRequest(Unanswerable):
    """The server rejects this question for another reason, or sends far too much; perhaps it does so for all."""


class AccessDenied(ModelError):
    """Wrong key, no permission, no such model or no safe connection: no question will be answered."""


class ModelDown(ModelError):
    """The model failed many times in a row and is not asked again in this run."""


class PcsWarning(UserWarning):
    """The work continued; the message says what was done instead."""


def warn_user(message: str) -> None:
    """Tell the user something as a warning, at the line of their own code that led to it."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, PcsWarning, stacklevel=level)
