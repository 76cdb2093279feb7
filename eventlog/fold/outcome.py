"""What became of a row: each row of a pick-up has exactly one outcome."""

from __future__ import annotations

import enum
from typing import NamedTuple


class Fate(enum.StrEnum):
    SENT = "sent"  # its content is in a document
    SUPERSEDED = "superseded"  # a query-back row replaces it
    NO_EFFECT = "without effect"  # its object is gone
    SAYS_NOTHING = "says nothing"  # no value of it may or need leave
    LOOPBACK = "loopback"  # the driver's own doing
    FUTURE = "future"  # its time has not come
    HELD = "held"  # an earlier event of its object waits for a retry
    REFUSED = "refused"  # it cannot be understood
    NOT_NEW = "not new"  # its status is not N
    BEYOND = "beyond the pick-up"  # the limit of the cycle came first


class Outcome(NamedTuple):
    """The outcome of one row: the event that contains or settles it, the row that superseded it, and why."""

    fate: Fate
    reason: str = ""
    event_id: str | None = None
    by: int | None = None
