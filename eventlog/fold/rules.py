"""The settings that change what rows mean, the fates of rows, and the rows that take no part."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import NamedTuple

from eventlog.core.entry import Entry, read_event_time
from eventlog.core.errors import InvalidValue
from eventlog.core.settings import setting
from eventlog.core.shared_settings import insert_query_back_setting, max_value_setting
from eventlog.core.values import check_xml


def _need_letter(text: str) -> None:
    if len(text) != 1:
        raise InvalidValue(text, "one letter")


@dataclass(frozen=True, slots=True)
class Rules:
    log_name: str = setting("eventlog", "the log's name in event-ids", metavar="NAME", check=check_xml)
    insert_query_back: str = insert_query_back_setting()
    max_changes: int = setting(
        1000, "values removed or added in one event; a longer one is cut", metavar="N", within=(1, 2**31 - 1)
    )
    unknown_tables: str = setting(
        "error",
        "rows of undescribed tables: refused, or published as strings (types 1-4)",
        choices=("error", "string"),
    )
    unknown_columns: str = setting(
        "send",
        "rows of columns that their table lacks: types 1-3 sent as strings, 7 and 8 without a value; or all"
        " refused",
        choices=("send", "refuse"),
    )
    association: str = setting(
        "as-logged",
        "the association: of the catalogue's names, or with the table_key of the event's first row",
        choices=("canonical", "as-logged"),
    )
    status: str = setting("N", "the letter of the rows that take part", metavar="LETTER", check=_need_letter)
    driver_user: str | None = setting(None, "rows of this user are loopback", metavar="USER")
    allow_loopback: bool = setting(False, "publish loopback rows too")
    handle_future_events: bool = setting(
        False, "order by event_time, and let rows wait whose time has not come"
    )
    max_value: int = max_value_setting()
    whole_rows: bool = False  # every row but a delete is a query-back of its object's whole row

    @property
    def loopback_user(self) -> str | None:
        """Return the user whose rows are not published; None if all rows are."""
        return None if self.allow_loopback else self.driver_user


def present_of(rules: Rules, now: str | None, clock: str) -> str | None:
    """Return the time after which rows of files wait: as set, else the clock; None if no row waits."""
    if now is not None:
        return read_event_time(now)
    return read_event_time(clock) if rules.handle_future_events else None


def assumed_present(rules: Rules, now: str | None, clock: str) -> str | None:
    """Return a sentence about the present if rows wait for it and it is not set."""
    if now is not None or not rules.handle_future_events:
        return None
    return f"the present is {read_event_time(clock)}: later rows wait; --now sets another time"


class Fate(enum.StrEnum):
    """The fate of a row; each row of a pick-up has exactly one."""

    SENT = "sent"  # its content is in a document
    PENDING = "pending"  # its content goes with the next cycle
    SUPERSEDED = "superseded"  # a query-back row replaces it
    NO_EFFECT = "without effect"  # its object is gone
    SAYS_NOTHING = "says nothing"  # it has no value to send
    LOOPBACK = "loopback"  # the driver's own doing
    FUTURE = "future"  # its time has not come
    HELD = "held"  # an earlier event of its object waits for a retry
    REFUSED = "refused"  # it cannot be understood
    NOT_NEW = "not new"  # its status is not N
    FAILED = "failed"  # the receiver answered error or fatal
    SKIPPED = "skipped"  # somebody gave it up
    FINISHED = "finished"  # its letter is all that the log keeps of it
    NOT_IN_LOG = "not in the log"
    BEYOND_LIMIT = "beyond the pick-up"  # the limit of the cycle came first


class Outcome(NamedTuple):
    """The outcome of one row: the event that contains or decides it, the row that superseded it, and why."""

    fate: Fate
    reason: str = ""
    event_id: str | None = None
    by: int | None = None


def why_excluded(entry: Entry, rules: Rules, now: str | None) -> Outcome | None:
    """Return why a row takes no part, whatever its object and content."""
    if entry.status != rules.status:
        return Outcome(Fate.NOT_NEW, f"its status is {entry.status}")
    by_driver = rules.driver_user is not None and entry.perpetrator == rules.driver_user
    if by_driver and not rules.allow_loopback:
        return Outcome(Fate.LOOPBACK, f"done by the driver's own user {rules.driver_user}")
    if rules.handle_future_events and now is not None and entry.event_time > now:
        return Outcome(Fate.FUTURE, f"due at {entry.event_time}, it is {now}")
    return None
