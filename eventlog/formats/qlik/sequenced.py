"""Rows and messages in one sequence: their places, and the change of those under one change_seq.

Sorted by their places, these records of two sources are read in the order 1, 4, 2, 3:

   source  number  change_seq  its place: seq, without_sequence, table, source, number
1  0       1       none        "", True, 0, 0, 1
2  0       2       05          "05", False, 0, 0, 2
3  0       3       none        "05", True, 0, 0, 3
4  1       1       04          "04", False, 1, 1, 1
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any, NamedTuple, Protocol, Self, TypeVar

from eventlog.core.change import EVENT_PART, Change, Op
from eventlog.core.errors import Misuse, Refused
from eventlog.core.formats import Placed
from eventlog.core.grouped_warnings import GroupedWarnings, repeats
from eventlog.formats.qlik import sequence

MAX_IMAGES = 10_000  # B rows that wait; in a table ordered by change_seq there is one
_MAX_RUN = 10_000  # changes that are compared before they leave; a key change has two


def check_limits(since: str, until: str) -> None:
    """Raise Misuse unless both are empty or a change_seq."""
    for flag, seq in (("--since", since), ("--until", until)):
        try:
            if seq:
                sequence.check(seq)
        except sequence.InvalidSequence as fault:
            raise Misuse(f"{flag}: {fault}") from None


class SequencePlace(NamedTuple):
    """The place of a record in the sequence; records sort by it.

    Records of one table under one change_seq are together. A record without a change_seq follows the greatest
    change_seq of the records before it in its source. Such records keep the order of their source.
    """

    seq: str  # its change_seq, or that greatest one
    without_sequence: bool  # it has no change_seq of its own
    table: int  # the number of its table; that of the source if it has no change_seq
    source: int
    number: int  # in the source, from 1


class SequenceMark(NamedTuple):
    """A part of the place of a record whose change_seq is not known yet."""

    number: int  # in its source
    greatest: str  # the greatest change_seq of the records before it


class SourcePlaces:
    """The places of the records of one source, which is read after `since` and up to `until`."""

    def __init__(self, source: int, since: str, until: str) -> None:
        self.source = source
        self._since = since
        self._until = until
        self.greatest = ""  # change_seq so far
        self._greatest_late = ""  # change_seq of the records that were placed late
        self.number = 0  # of the last record
        self.later_records = 0  # how many are after `until`

    def pass_over(self, count: int, greatest: str) -> None:
        """Count records that are placed elsewhere, and take the greatest change_seq up to them."""
        self.number += count
        self.greatest = greatest

    def mark(self) -> SequenceMark:
        """Count the next record, and return its mark."""
        self.number += 1
        return SequenceMark(self.number, self.greatest)

    def place(self, seq: str | None, table: int) -> SequencePlace | None:
        """Count the next record, and return its place; None if it is not read."""
        mark = self.mark()
        self.greatest = max(self.greatest, seq or "")
        return self._place_of(mark, seq, table)

    def place_late(self, mark: SequenceMark, seq: str | None, table: int) -> SequencePlace | None:
        """Return the place of a record that was marked before, or None if it is not read.

        Such records come in the order of their marks, after those that needed no mark.
        """
        self._greatest_late = max(self._greatest_late, seq or "")
        return self._place_of(SequenceMark(mark.number, max(mark.greatest, self._greatest_late)), seq, table)

    def _place_of(self, mark: SequenceMark, seq: str | None, table: int) -> SequencePlace | None:
        """Return the place of a record, or None if it is not read.

        A record without a change_seq is always read, because it cannot be compared with a limit. It is of a
        full load, or of a table without that column.
        """
        if not seq:
            return SequencePlace(mark.greatest, True, self.source, self.source, mark.number)
        if seq <= self._since:
            return None
        if self._until and seq > self._until:
            self.later_records += 1
            return None
        return SequencePlace(seq, False, table, self.source, mark.number)


class SequencedRecord(Protocol):
    """A row of a change table, or a message."""

    @property
    def letter(self) -> str:
        """The kind: I (insert), U (update), D (delete), B (the row before an update) or T (truncate)."""

    @property
    def seq(self) -> str | None:
        """The change_seq, if it has one."""

    @property
    def table_name(self) -> str: ...
    @property
    def at(self) -> str:
        """The position in its source, for people."""

    @property
    def raw(self) -> bytes | None: ...

    def has_same_values(self, record: Self, /) -> bool:
        """Return whether a record of this table, letter and change_seq is a repeat of this one."""

    def image_fault(self, image: Self, /) -> str | None:
        """Return why a B row cannot be the row before this U row; None if it can."""

    def placed(self, image: Self | None = None, /) -> Placed | Refused:
        """Return the change, with the B row of an update, and where it is in its source."""

    def refused(self, reason: str, *, with_transaction: bool = False) -> Refused:
        """Return the record as refused; `with_transaction` refuses its transaction, too."""


R = TypeVar("R", bound=SequencedRecord)


class SequenceGroup(NamedTuple):
    """The records of one table under one change_seq, or consecutive ones of a source without one."""

    seq: str  # empty: without one
    records: Iterable[Any]
    late: bool = False  # they became visible late

    @property
    def table(self) -> str:
        """Return the name of the table; only for records with a change_seq."""
        name: str = next(iter(self.records)).table_name
        return name

    @property
    def letters(self) -> str:
        """Return the letters of the records, each once."""
        return "".join(sorted({record.letter for record in self.records}))


class Sequencer(ABC):
    """A reader in two steps, between which the records are sorted by their places.

    Items begin with their place. Only `parse`, `flush`, `size` and `record` know what else is in them.
    """

    def __init__(self, since: str, until: str) -> None:
        check_limits(since, until)
        self._table_numbers: dict[tuple[str | None, str], int] = {}
        self._lone = GroupedWarnings("{count} B rows without their U row, at {places}", fault=True)
        self._repeats = repeats()

    @abstractmethod
    def parse(self, source: Any, /) -> Iterator[Any]:
        """Yield the items of a source, and Refused for bad records."""

    def release_waiting(self) -> Iterator[Any]:
        """Yield what waited for the end of all sources."""
        return iter(())

    @abstractmethod
    def size(self, item: Any, /) -> int:
        """Return roughly how many bytes an item takes."""

    @abstractmethod
    def record(self, item: Any, /) -> Any:
        """Return the record of an item."""

    def table_number(self, schema: str | None, table: str) -> int:
        """Return the number of a table, as places have it."""
        return self._table_numbers.setdefault((schema, table), len(self._table_numbers))

    def groups(self, items: Iterable[Any]) -> Iterator[SequenceGroup]:
        """Yield sorted items in groups."""
        for (seq, without_sequence, _), group in groupby(items, key=_table_and_sequence):
            records = map(self.record, group)
            yield SequenceGroup("", records) if without_sequence else SequenceGroup(seq, list(records))

    def changes(self, group: SequenceGroup) -> Iterator[Placed | Refused]:
        """Yield the changes of a group; of each repeated record only the first."""
        if not group.seq:
            return self._without_sequence(group.records)
        records = list(group.records)
        if len(records) == 1 and records[0].letter != "B":  # nearly always
            items: Iterator[Placed | Refused] = iter((records[0].placed(),))
        else:
            items = self._of_sequence(records)
        return map(_mark_late, items) if group.late else items

    def join(self, items: Iterable[Any]) -> Iterator[Placed | Refused]:
        """Yield the changes of sorted items, without reports."""
        for group in self.groups(items):
            yield from self.changes(group)

    def reports(self) -> Iterator[Refused]:
        """Yield what was counted: B rows without a U row, and repeats."""
        yield from self._lone.warnings()
        yield from self._repeats.warnings()

    def _without_sequence(self, records: Iterable[Any]) -> Iterator[Placed | Refused]:
        """Yield records of a full load, and of tables without a column change_seq, paired as they come."""
        for item in pair(records):
            if isinstance(item, Refused):
                yield item
                continue
            record, image = item
            yield self._refuse_lone_image(record) if record.letter == "B" else record.placed(image)

    def _of_sequence(self, records: Sequence[Any]) -> Iterator[Placed | Refused]:
        """Yield the records of a group, which are one change, or are refused together."""
        by_letter: dict[str, Any] = {}
        for record in records:
            first = by_letter.setdefault(record.letter, record)
            if first is record:
                continue
            if not first.has_same_values(record):
                yield from _contradiction(records, f"with different values as {record.letter} rows")
                return
            yield self._repeats.add(record.table_name, record.at, record.raw)
        image = by_letter.pop("B", None)
        if image is not None and "U" not in by_letter:
            yield self._refuse_lone_image(image)
            image = None
        yield from _changes_of([by_letter[letter] for letter in sorted(by_letter)], image)

    def _refuse_lone_image(self, image: Any) -> Refused:
        return self._lone.add(image.table_name, image.at, image.refused("").raw)


def _changes_of(records: list[Any], image: Any) -> Iterator[Placed | Refused]:
    """Yield the changes of records of different letters: one change, or a delete and an insert."""
    letters = [record.letter for record in records]
    if letters == ["D", "I"]:
        deletion, insertion = (record.placed() for record in records)
        if _keys_differ(deletion, insertion):
            if not isinstance(insertion, Refused):
                insertion = insertion._replace(change=second_event(insertion.change))
            yield from (deletion, insertion)
            return
    if len(records) > 1:
        all_records = records if image is None else [*records, image]
        yield from _contradiction(all_records, f"as rows {', '.join(letters)}, which are no one change")
    elif records:
        (record,) = records
        fault = None if image is None else record.image_fault(image)
        if fault is not None:
            yield image.refused(fault)
        yield record.placed(image if fault is None else None)


_TWO_TASKS = ": a run reads the tables of one task, because each task has its own sequence"


def _contradiction(records: Iterable[Any], difference: str) -> Iterator[Refused]:
    """Yield records that are refused together, and their transactions with them."""
    for record in records:
        reason = f"change_seq {record.seq} of {record.table_name} is there {difference}{_TWO_TASKS}"
        yield record.refused(reason, with_transaction=True)


def second_event(change: Change) -> Change:
    """Return the insert of a key change, whose delete has the same change_seq, as an event of its own."""
    return change._replace(extra=(*change.extra, (EVENT_PART, 2)))


def with_second_events(items: Iterable[Change | Refused]) -> Iterator[Change | Refused]:
    """Yield changes as they come; of deletes and inserts that are neighbours under one change_seq the inserts
    are second events.
    """
    run: list[Change | Refused] = []  # of one table under one change_seq, and what was refused meanwhile
    last: Change | None = None
    for item in items:
        if not isinstance(item, Refused):
            if last is not None and not _share_sequence(last, item):
                yield from _as_events(run)
                run.clear()
            last = item
        elif last is None:
            yield item
            continue
        run.append(item)
        if len(run) == _MAX_RUN:
            yield from _as_events(run)
            run.clear()
            last = None
    yield from _as_events(run)


def _share_sequence(first: Change, second: Change) -> bool:
    if first.position != second.position or first.position is None:
        return False
    return (first.schema, first.table) == (second.schema, second.table)


def _as_events(run: Sequence[Change | Refused]) -> Iterable[Change | Refused]:
    """Return the changes of a run, the inserts as second events if there are deletes, too."""
    ops = {None if isinstance(item, Refused) else item.op for item in run} if len(run) > 1 else set()
    if not {Op.DELETE, Op.INSERT} <= ops:
        return run
    return [second_event(c) if not isinstance(c, Refused) and c.op is Op.INSERT else c for c in run]


def _keys_differ(deletion: Placed | Refused, insertion: Placed | Refused) -> bool:
    if isinstance(deletion, Refused) or isinstance(insertion, Refused):
        return True  # what can be read of the two is
    return not deletion.change.key or deletion.change.key != insertion.change.key


def _table_and_sequence(item: Any) -> tuple[str, bool, int]:
    place: SequencePlace = item.place
    return place.seq, place.without_sequence, place.table


def _mark_late(item: Placed | Refused) -> Placed | Refused:
    if isinstance(item, Refused):
        return item
    return item._replace(change=item.change._replace(extra=(*item.change.extra, ("late", True))))


def pair(rows: Iterable[R | Refused]) -> Iterator[tuple[R, R | None] | Refused]:
    """Yield the rows, each U row with its B row; a B row that is yielded alone has no U row.

    A B row may be anywhere before its U row, or directly after it. Rows that were delivered twice are paired
    twice.
    """
    waiting: dict[str | None, list[R]] = {}
    count = 0
    update_row: R | None = None
    for row in rows:
        if isinstance(row, Refused):
            yield row
            continue
        if update_row is not None:
            image_follows = row.letter == "B" and update_row.seq is not None and row.seq == update_row.seq
            yield update_row, row if image_follows else None
            update_row = None
            if image_follows:
                continue
        if row.letter == "B":
            waiting.setdefault(row.seq, []).append(row)
            count += 1
            if count > MAX_IMAGES:
                yield _pop_image(waiting, next(iter(waiting))), None
                count -= 1
        elif row.letter != "U":
            yield row, None
        elif row.seq in waiting:
            yield row, _pop_image(waiting, row.seq)
            count -= 1
        else:
            update_row = row
    if update_row is not None:
        yield update_row, None
    for images in waiting.values():
        for image in images:
            yield image, None


def _pop_image(waiting: dict[str | None, list[R]], seq: str | None) -> R:
    images = waiting[seq]
    image = images.pop(0)
    if not images:
        del waiting[seq]
    return image
