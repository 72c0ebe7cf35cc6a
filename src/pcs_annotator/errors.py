"""Everything this library raises or warns with.

```text
PcsError                    base class; its message names the remedy
├── UserError               the caller can fix it; the command line exits with code 2
│   ├── TableError          a file or table cannot be read as asked
│   ├── LabelError          a label set, or a label outside of it
│   ├── GoldError           gold labels are missing, contradictory or of no use
│   ├── UnknownNameError    no plug-in or built-in of that name
│   ├── UndefinedMetric     a figure that these rows cannot give
│   ├── ConfigError         a setting, a key or a model name that cannot be used
│   └── MissingPackage      an extra that is not installed
├── MismatchError           two values that do not belong together, such as weights and votes
├── LedgerError             the ledger of paid calls cannot be used; nothing in it is lost
├── BudgetReached           the budget is spent; what was paid for is kept
├── Interrupted             the run was stopped; what was paid for is kept
└── ModelError              a model did not answer; `retryable` says whether asking again can help
    ├── RateLimited         too fast; may carry how long to wait
    ├── ServerTrouble       5xx, timeout, reset connection, broken answer
    ├── Unanswerable        this question will never be answered: too long, or filtered
    │   └── BadRequest      the server does not take this question, for a reason of its own
    ├── AccessDenied        key, permission or model name: no question will be answered
    └── ModelDown           given up after many failures in a row

PcsWarning                  the work went on; the message says what was done instead
```
"""


class PcsError(Exception):
    """Base of all errors raised on purpose."""


class UserError(PcsError):
    """The caller can fix this; the message says how."""


class TableError(UserError):
    """A file or table cannot be read as asked."""


class LabelError(UserError):
    """A label set is unusable, or a label lies outside of it."""


class GoldError(UserError):
    """Gold labels are missing, contradictory or of no use."""


class UnknownNameError(UserError):
    """No built-in and no plug-in bears that name."""


class UndefinedMetric(UserError):
    """These rows cannot give that figure, for example AUROC with a single class."""


class MismatchError(PcsError):
    """Two values that do not belong together, such as weights and votes of different models."""


class ConfigError(UserError):
    """A setting, a key or a model name that cannot be used."""


class MissingPackage(UserError):
    """An optional package is not installed; the message has the pip line."""


class LedgerError(PcsError):
    """The ledger of paid calls cannot be used; nothing in it is lost."""


class BudgetReached(PcsError):
    """The budget is spent; everything that was paid for is kept."""


class Interrupted(PcsError):
    """The run was stopped; everything that was paid for is kept."""


class ModelError(PcsError):
    """A model did not answer.

    Attributes:
        retryable: Whether asking the same question again can help.
    """

    retryable = False


class RateLimited(ModelError):
    """The server says that we ask too fast.

    Attributes:
        retry_after: Seconds the server asks us to wait; None when it did not say.
    """

    retryable = True

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class ServerTrouble(ModelError):
    """5xx, timeout, reset connection or an answer that cannot be read."""

    retryable = True


class Unanswerable(ModelError):
    """This question will never be answered: the text is too long, or was filtered."""


class BadRequest(Unanswerable):
    """The server does not take this question, for a reason of its own; perhaps it takes none of ours."""


class AccessDenied(ModelError):
    """Wrong key, no permission or no such model: no question will be answered."""


class ModelDown(ModelError):
    """The model failed many times in a row and is given up for this run."""


class PcsWarning(UserWarning):
    """The work went on; the message says what was done instead."""
