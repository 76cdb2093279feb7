"""The way in which rows are finished: a recorded fact of the log, not of one process's settings."""

from __future__ import annotations

import enum

from eventlog.core.errors import EventlogError, Misuse


class FinishMode(enum.StrEnum):
    """The fate of a handled row; a failed row keeps its row and its letter in each mode."""

    UPDATE = "update"  # its letter is written into status
    DELETE = "delete"  # it is deleted
    RANGES = (
        "ranges"  # the log stays as it is; ranges of record ids with their letters are kept outside of it
    )


class UnknownMode(EventlogError):
    """the rows of this log are finished by {0!r}, which this version of eventlog does not know: upgrade it"""


class Contradiction(Misuse):
    """delete-from-log is {0}, and the rows of this log are finished by {1}: leave the setting out, or stop \
every publisher and run `eventlog finish-mode {2}`"""


def mode_named(name: str | None) -> FinishMode | None:
    """Return the recorded mode; None if none is recorded. Raise UnknownMode for a mode of a later version."""
    if name is not None and name not in tuple(FinishMode):
        raise UnknownMode(name)
    return None if name is None else FinishMode(name)


def agreed(recorded: FinishMode | None, delete: bool | None) -> FinishMode:
    """Return the mode on record, else the one that delete-from-log states; Contradiction where both
    differ.
    """
    stated = None if delete is None else FinishMode.DELETE if delete else FinishMode.UPDATE
    if recorded is not None and delete is not None and (recorded is FinishMode.DELETE) is not delete:
        raise Contradiction(str(delete).lower(), recorded, stated)
    return recorded or stated or FinishMode.UPDATE
