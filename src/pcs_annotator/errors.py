"""Everything this library raises or warns with.

PcsError                    base class; its message always names the remedy
├── UserError               the caller can fix it; the command line exits with code 2
│   ├── TableError          a file or table cannot be read as asked
│   ├── LabelError          a label set, or a label outside of it
│   ├── GoldError           gold labels are missing, contradictory or of no use
│   ├── UnknownNameError    no plug-in or built-in of that name
│   └── UndefinedMetric     a figure that these rows cannot give
└── MismatchError           two values that do not belong together, such as weights and votes

PcsWarning                  the work went on; the message says what was done instead
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


class PcsWarning(UserWarning):
    """The work went on; the message says what was done instead."""
