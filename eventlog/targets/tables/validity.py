"""From where to where a version of a row holds: the columns of a table with history, and what they hold."""

from __future__ import annotations

from dataclasses import replace

from eventlog.core.change import Change
from eventlog.core.errors import InvalidValue, NotExpressible
from eventlog.core.tables import Table
from eventlog.core.values import Kind, read_moment
from eventlog.sql.common.dialect import Dialect
from eventlog.targets.tables.errors import NoHistory

FROM_SEQ, TO_SEQ, FROM_TIME, TO_TIME, OP = "_from_seq", "_to_seq", "_from_time", "_to_time", "_op"
SPAN = (FROM_SEQ, TO_SEQ, FROM_TIME, TO_TIME, OP)
SEQ_LENGTH = 100
_DIGITS = 20  # to which positions that are numbers are filled up, so that their texts order as they do


def without_validity(table: Table, dialect: Dialect) -> Table:
    """Return a table of the target without the columns of versions; raise NoHistory if it has none."""
    ours = {dialect.fold(name) for name in SPAN}
    if not ours <= table.columns.keys() or dialect.fold(FROM_SEQ) not in table.key:
        raise NoHistory(str(table))
    columns = {name: column for name, column in table.columns.items() if name not in ours}
    return replace(table, columns=columns, key=tuple(name for name in table.key if name not in ours))


def sequence_of(change: Change, rounds: int, number: int) -> str:
    """Return the position of a change as a text that sorts; without a position, where it was applied."""
    if change.position is None:
        return f"{rounds:0{_DIGITS}}.{number:09}"
    if change.position.isascii() and change.position.isdecimal():
        return change.position.zfill(_DIGITS)
    return change.position


def check_position(change: Change) -> None:
    """Raise NotExpressible for a change whose position no version can have."""
    position = change.position or ""
    if len(position) > SEQ_LENGTH or not (position.isprintable() or position.isascii()) or "\0" in position:
        raise NotExpressible(f"its position is no text of at most {SEQ_LENGTH} characters that can be stored")


def time_of(change: Change) -> str | None:
    """Return the source's commit time in UTC, or None if it is not known."""
    if change.time is None:
        return None
    try:
        moment = read_moment(Kind.TIMESTAMP, change.time)
    except InvalidValue:
        return None
    return moment._replace(zoned=False, fraction=moment.fraction[:7]).iso.replace("T", " ", 1)
