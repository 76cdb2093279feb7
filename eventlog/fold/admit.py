"""Which rows of a log can be believed: each is an entry, under a record_id of its own that the log gave."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

from eventlog.core.entry import EVENT_TYPES, MAX_RECORD_ID, RECORD_ID, Cell, Entry, read_entry, record_id_of
from eventlog.core.errors import EventlogError, WrongRow

Refusal = tuple[int, str]  # a row, and why it is refused
_ROW_TYPES = frozenset(n for n, t in EVENT_TYPES.items() if not t.per_field)
_FIELD_TYPES = EVENT_TYPES.keys() - _ROW_TYPES
# what a timestamp column gives for the years that a document can name
_PLAIN_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9:]{8}(\.[0-9]{1,6})?").fullmatch


class IdAhead(WrongRow):
    """record_id {0} is beyond {1}, the last that the log's sequence can have given: insert the row again \
without a record_id"""


class Admitted(NamedTuple):
    """The entries by record_id, and why the other rows are none."""

    entries: list[Entry]
    refused: list[Refusal]


def admit(rows: Iterable[Sequence[Cell]], bound: int = MAX_RECORD_ID) -> Admitted:
    """Return the entries among rows. A wrong one is refused by itself; none of those that share a record_id
    can be believed, nor one beyond the bound.
    """
    good, refused = list[Entry](), list[Refusal]()
    for row in rows:
        try:
            good.append(_plain_entry(row) or read_entry(row))
        except EventlogError as fault:
            refused.append((record_id_of(row), str(fault)))
    good.sort(key=itemgetter(RECORD_ID))
    while good and good[-1].record_id > bound:
        number = good.pop().record_id
        refused.append((number, str(IdAhead(number, bound))))
    if len(set(map(itemgetter(RECORD_ID), good))) == len(good):
        return Admitted(good, refused)
    entries = []
    for number, group in groupby(good, itemgetter(RECORD_ID)):
        first, *repeats = group
        if repeats:
            refused.append((number, why_repeated(number, 1 + len(repeats))))
        else:
            entries.append(first)
    return Admitted(entries, refused)


def why_repeated(record_id: int, times: int) -> str:
    """Return why none of several rows can be believed."""
    return f"{times} rows have record_id {record_id}"


def _plain_entry(row: Sequence[Cell]) -> Entry | None:
    """Return the entry of a row as triggers write it: the log's own column types have checked most of it."""
    record_id, status, event_type, event_time, perpetrator, table, key, column, old_value, new_value = row
    if not (
        type(record_id) is int
        and record_id > 0
        and type(event_type) is int
        and (event_type in _ROW_TYPES or (event_type in _FIELD_TYPES and column))
        and table is not None
        and key is not None
        and type(event_time) is str
        and _PLAIN_TIME(event_time)
    ):
        return None
    time_text = f"{event_time[:10]}T{event_time[11:19]}{event_time[19:].rstrip('0').rstrip('.')}"
    cells = (record_id, status, event_type, time_text, perpetrator, table, key, column, old_value, new_value)
    return tuple.__new__(Entry, cells)  # at half the cost of its constructor
