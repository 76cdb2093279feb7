"""Failed events, sent once more: each as a whole, and no value later than allowed.

A row of an insert that failed alone, while others were sent, would make a second add, so it is read back
instead. The same holds for the rest of an event whose other rows are gone.
"""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import NamedTuple

from eventlog.core.entry import Cell
from eventlog.core.errors import Misuse
from eventlog.core.tables import Table, Tables
from eventlog.fold import event_id
from eventlog.publisher.batches import read_memory
from eventlog.publisher.config import Config
from eventlog.publisher.open_log import read_tables, readable_of
from eventlog.publisher.settings import PublisherSettings
from eventlog.sql.log.store import Store
from eventlog.sql.log.upkeep import FailedRow, Relative, Upkeep, Which

PAGE = 1000  # rows of one transaction
LISTED = 20  # rows named in one line
_INSERTS = (1, 7)
_DELETE = 4
_VALUES = (1, 2, 3)  # the types of rows that hold a value
_OVERTAKEN = "a later event of the column was published; --as-query-back sends the current value"
_AWAITED = "a later event of the object is on its way; try again when it was published"
_READ = (
    "a backlog may have read a later event of the object; try again when one with --finish has ended, or a \
publisher leads"
)
_UNDONE = "a later event of the object was published, and this delete would undo it; skip it"
_OUTDATED = "the object was compared since and has a later event, which this delete would undo; skip it"
_OF_SEVERAL = re.compile(r"(?<=^go)es|(?<=^stay)s")
_SEVERAL = re.compile(r"(.*):\d+-\d+:[0-9a-f]{8}", re.DOTALL).fullmatch


@dataclass(frozen=True)
class How:
    """The form in which failed events go again, and the facts about their log."""

    readable: Callable[[str], bool] = lambda table: True  # whether rows of a table can be read back
    as_query_back: bool = False  # every value as it is now
    as_logged: bool = False  # a row that failed alone as type 3, with the value that was logged
    deleting: bool = False  # handled rows are deleted: what was sent may not be seen any more

    def __post_init__(self) -> None:
        if self.as_query_back and self.as_logged:
            raise Misuse("--as-query-back and --as-logged: one of them")


def how_to_redrive(
    config: Config, store: Store, *, as_query_back: bool = False, as_logged: bool = False
) -> How:
    """Return the form in which failed events go again; the catalogue is asked only where a row is
    read back.
    """

    @functools.cache
    def tables() -> tuple[Tables, Set[Table]]:
        known = read_tables(store.engine, store.log, config)
        return known, readable_of(config, store.engine, store.log, known).keys()

    def readable(name: str) -> bool:
        known, answerable = tables()
        return known.find(name) in answerable

    return How(readable, as_query_back, as_logged, config.build(PublisherSettings).delete_from_log)


class RedriveReport(NamedTuple):
    """The fate of some rows, or why they stay."""

    words: str  # of one row
    rows: tuple[int, ...]

    def __str__(self) -> str:
        rows = sorted(self.rows)
        listed = ", ".join(map(str, rows[:LISTED])) + (f", … ({len(rows)})" if len(rows) > LISTED else "")
        if len(rows) == 1:
            return f"row {listed} {self.words}"
        return f"rows {listed} {_OF_SEVERAL.sub('', self.words)}"


class Redriven(NamedTuple):
    """The result of a redrive."""

    rows: int
    reports: tuple[RedriveReport, ...]
    refused: tuple[int, ...]  # that stay as they are


class _Insert(NamedTuple):
    """The consecutive rows of one insert."""

    failed: tuple[int, ...]
    sent: bool
    repeated: frozenset[str | None]  # columns with several values


def redrive(store: Store, which: Which, how: How) -> Redriven:
    """Make the failed events of these rows new again."""
    rows, said, refused, done = 0, dict[str, list[int]](), list[int](), set[int]()
    for page in _pages(store, which):
        with store.upkeep() as upkeep:
            going = list(_under_way(upkeep))
            events = list(_events(upkeep, [row for row in page if row not in done]))
            ids = [row for event in events for row in event.ids]
            overtaken, awaited = upkeep.overtaken(ids), dict.fromkeys(upkeep.read_ahead(ids), _READ)
            awaited |= dict.fromkeys(upkeep.known().outdated_deletes(ids), _OUTDATED)
            awaited |= dict.fromkeys(upkeep.undone_by(ids, going), _AWAITED)
            good, changed = list[int](), dict[int, int]()
            for event in events:
                words, types = event.decide(how, overtaken, awaited)
                if words:
                    said.setdefault(words, []).extend(types or event.ids)
                (refused if types is None else good).extend(event.ids)
                changed |= types or {}
                done.update(event.ids)
            rows += upkeep.redrive(good, changed)
    if others := sorted({*which.ids} - done):
        said["did not fail like that" if which.table or which.reason else "did not fail"] = others
        refused += others
    reports = tuple(RedriveReport(words, tuple(ids)) for words, ids in said.items())
    return Redriven(rows, reports, tuple(sorted(refused)))


@dataclass(frozen=True)
class _Event:
    """The failed rows that go together."""

    rows: Sequence[FailedRow]
    inserts: Sequence[_Insert]

    @property
    def ids(self) -> list[int]:
        return [row.record_id for row in self.rows]

    def decide(
        self, how: How, overtaken: Set[int], awaited: Mapping[int, str]
    ) -> tuple[str, dict[int, int] | None]:
        """Return what to report, and the types of rows that change; None if the event stays as it is."""
        words, types = self._types(how)
        values = set() if how.as_query_back else {n for n, kind in self._kinds() if kind in _VALUES}
        if 7 in types.values() or 8 in types.values():
            table = self.rows[0].table_name or ""
            if not how.readable(table):
                why = words.partition(": ")[2]
                return f"stays: {f'{why}, and ' if why else ''}table {table} may not be queried back", None
        deletes = {n for n, kind in self._kinds() if kind == _DELETE}
        if deletes & overtaken:
            return f"stays: {_UNDONE}", None
        if values & overtaken:
            return f"stays: {_OVERTAKEN}", None
        if waits := (deletes | values) & awaited.keys():
            return f"stays: {awaited[min(waits)]}", None
        return words, types

    def _types(self, how: How) -> tuple[str, dict[int, int]]:
        late, why = self._late(how)
        values = {n: 7 if kind == 1 else 8 for n, kind in self._kinds() if kind in _VALUES}
        if how.as_query_back:
            return "", values | dict.fromkeys(late, 8)
        if late and how.as_logged and not self._repeats(late):
            return f"goes as type 3: {why}", dict.fromkeys(late, 3)
        if late:
            return f"goes read back (type 8): {why}", dict.fromkeys(late, 8)
        if not self._whole():
            return "goes read back: another row of the event is gone", values
        return "", {}

    def _kinds(self) -> Iterator[tuple[int, Cell]]:
        return ((row.record_id, row.event_type) for row in self.rows)

    def _late(self, how: How) -> tuple[list[int], str]:
        """Return the rows that would make a second add, and why."""
        late = [row for insert in self.inserts if insert.sent for row in insert.failed]
        if late:
            return late, "other rows of the insert were sent"
        if how.deleting and not any(row.event_id for row in self.rows):
            late = [row for insert in self.inserts for row in insert.failed]
        return late, "other rows of the insert may have been sent and deleted"

    def _repeats(self, late: Iterable[int]) -> bool:
        """Return whether a column has several values; type 3 would leave only one."""
        columns = {row.column_name for row in self.rows if row.record_id in late}
        return any(insert.repeated & columns for insert in self.inserts)

    def _whole(self) -> bool:
        """Return whether all rows exist that the events' names contain."""
        ids: dict[str, list[int]] = {}
        for row in self.rows:
            if row.event_id is not None:
                ids.setdefault(row.event_id, []).append(row.record_id)
        return all(is_whole(name, rows) for name, rows in ids.items())


def has_several_rows(name: str | None) -> bool:
    """Return whether the event of that name has more rows than one."""
    return name is not None and _SEVERAL(name) is not None


def is_whole(name: str, rows: Sequence[int]) -> bool:
    """Return whether these are all rows of the event of that name."""
    several = _SEVERAL(name)
    return several is None or event_id(several[1], sorted(rows)) == name


def _under_way(upkeep: Upkeep) -> Iterator[int]:
    """Yield the rows of events that went out and are not answered, or wait."""
    contents, waiting = upkeep.under_way()
    for content in contents:
        for _, facts in read_memory(content):
            yield from (row for fact in facts for row in fact.settles)
    yield from waiting


def _pages(store: Store, which: Which) -> Iterator[list[int]]:
    after = 0
    while True:
        with store.upkeep() as upkeep:
            page = [failed.record_id for failed in upkeep.failures(which, PAGE, after)]
        yield page
        if len(page) < PAGE:
            return
        after = page[-1]


def _events(upkeep: Upkeep, ids: Sequence[int]) -> Iterator[_Event]:
    """Yield the events of these rows, each with all its rows that failed."""
    rows = {row.record_id: row for row in upkeep.together(ids)}
    first = [row.record_id for row in rows.values() if row.event_type == 1]
    inserts = [insert for insert in _inserts(upkeep.relatives(first)) if rows.keys() & set(insert.failed)]
    rows |= {row.record_id: row for row in upkeep.together(n for i in inserts for n in i.failed)}
    name = {row.record_id: row.event_id or str(row.record_id) for row in rows.values()}
    for insert in inserts:  # what one insert holds together is one
        names = {name[row] for row in insert.failed}
        name |= {row: min(names) for row, found in name.items() if found in names}
    events: dict[str, list[FailedRow]] = {}
    for number, row in sorted(rows.items()):
        events.setdefault(name[number], []).append(row)
    for found in events.values():
        among = {row.record_id for row in found}
        yield _Event(found, [insert for insert in inserts if among & set(insert.failed)])


def _inserts(relatives: Iterable[Relative]) -> Iterator[_Insert]:
    """Yield the inserts of objects from all their rows; an unreadable row ends none."""
    objects: dict[tuple[str, str], list[list[Relative]]] = {}
    for row in relatives:
        runs = objects.setdefault((row.table_name, row.table_key), [[]])
        if row.event_type in _INSERTS:
            runs[-1].append(row)
        elif row.status not in ("E", "F") or row.event_id is not None:
            runs.append([])
    for run in (run for runs in objects.values() for run in runs if run):
        columns = Counter(row.column_name for row in run)
        yield _Insert(
            tuple(row.record_id for row in run if row.status in ("E", "F") and row.event_type == 1),
            any(row.status in ("S", "W") for row in run),
            frozenset(column for column, rows in columns.items() if rows > 1),
        )
