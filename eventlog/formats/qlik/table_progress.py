"""What was delivered of change tables, as states keep it, and what is new of a row.

A change table has a window of the changes that were delivered last. Rows up to its low end are not read
again. Later rows are, and those in `delivered` are left out. A new row that is not after all that was
delivered of its table became visible late.
"""

from __future__ import annotations

import enum
import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import Any, Final

from eventlog.core.errors import EventlogError, InvalidValue
from eventlog.core.plurals import quantity
from eventlog.formats.qlik import sequence

Row = tuple[str, str]  # a table, and a change_seq
MAX_CHANGES: Final = 10_000  # changes in a window; of more, the older half is left out


class Changed(EventlogError):
    """{0}; --since SEQ starts after a position of your choice, whatever was delivered"""


class VisibleLate(EventlogError):
    """{0}: change_seq {1} became visible late, {2} was delivered before: --accept-late delivers such rows \
now, --since SEQ starts after a position of your choice, whatever was delivered"""


@dataclass(slots=True)
class LoadedRows:
    """The rows without a change_seq that were delivered from one source."""

    count: int = 0
    digest: str = ""

    def add(self, row: str) -> None:
        """Count a row."""
        self.count += 1
        self.digest = hashlib.blake2b((self.digest + row).encode(), digest_size=16).hexdigest()


@dataclass(slots=True)
class Window:
    """The changes of one table that were delivered last."""

    low: str = ""  # the time part up to which no row is read again
    last: str = ""  # the greatest change_seq
    delivered: dict[str, str] = field(default_factory=dict)  # the letters of rows by change_seq

    def new_letters(self, seq: str, letters: str) -> str:
        """Return those of some letters whose rows were not delivered."""
        delivered = letters if seq[: sequence.TIME] <= self.low else self.delivered.get(seq, "")
        return "".join(letter for letter in letters if letter not in delivered)

    def deliver(self, seq: str, letters: str) -> None:
        """Note the rows of a change_seq."""
        self.delivered[seq] = "".join(sorted({*self.delivered.get(seq, ""), *letters}))
        self.last = max(self.last, seq)

    def close(self, time: str) -> None:
        """Read no row again up to a time."""
        if time > self.low:
            self.low = time
            self.delivered = {
                seq: letters for seq, letters in self.delivered.items() if seq[: sequence.TIME] > time
            }

    def shorten(self, time: str) -> None:
        """Drop the older half of too many changes; everything up to a time was delivered."""
        if len(self.delivered) > MAX_CHANGES:
            times = sorted(seq[: sequence.TIME] for seq in self.delivered)
            self.close(min(times[-MAX_CHANGES // 2], time))


class RowFate(enum.Enum):
    """The fate of the rows of a table under one change_seq."""

    SKIP = "an earlier reading delivered them"
    LATE_IMAGE = "skip them: an earlier reading delivered the U row without this B row"
    DELIVER = "they are new"
    LAGGING = "deliver them: of another table greater ones were delivered before"
    LATE = "deliver them, or stop: of their table greater ones were delivered before"


SKIPPED: Final = (RowFate.SKIP, RowFate.LATE_IMAGE)


@dataclass(slots=True)
class TableProgress:
    """The progress of a task: what of it was delivered."""

    since: str = ""  # everything up to here is left out
    tables: dict[str, Window] = field(default_factory=dict)
    loaded: dict[str, LoadedRows] = field(default_factory=dict)  # by the names of the sources
    # of one reading
    newest: str = ""  # the greatest change_seq before it
    time: str = ""  # of the changes that are delivered
    grown: set[str] = field(
        default_factory=set
    )  # the tables of those that were delivered since the last time
    undelivered: dict[Row, str] = field(default_factory=dict)  # new rows with their letters, in their order
    loaded_before: dict[str, LoadedRows] = field(default_factory=dict)
    loaded_again: dict[str, LoadedRows] = field(default_factory=dict)  # what was read again of it

    def start(self, since: str) -> None:
        """Begin a reading. After a new position, forget what is known of changes and of full loads."""
        if since and since != self.since:
            self.since = since
            self.tables.clear()
            self.loaded.clear()
        self.newest = max((window.last for window in self.tables.values()), default="")
        self.time = ""
        self.grown.clear()
        self.undelivered.clear()
        self.loaded_before = {source: replace(rows) for source, rows in self.loaded.items()}
        self.loaded_again = {source: LoadedRows() for source in self.loaded}

    def window(self, table: str) -> Window:
        """Return the window of a table."""
        return self.tables.setdefault(table, Window())

    def add(self, table: str, seq: str, letters: str) -> RowFate:
        """Take the rows of a table under the next change_seq, and return what to do with them."""
        window = self.window(table)
        new_letters = window.new_letters(seq, letters)
        if not new_letters:
            return RowFate.SKIP
        self.undelivered[table, seq] = letters
        if new_letters == "B" and letters != "B":
            return RowFate.LATE_IMAGE
        if seq <= window.last:
            return RowFate.LATE
        return RowFate.LAGGING if seq < self.newest else RowFate.DELIVER

    def is_loaded(self, source: str, row: str) -> bool:
        """Return whether a row of a full load was delivered before: those are the first of their source."""
        before, repeated = self.loaded_before.get(source), self.loaded_again.get(source)
        if before is None or repeated is None or repeated.count >= before.count:
            return False
        repeated.add(row)
        if repeated.count == before.count and repeated != before:
            raise Changed(f"{source}: its first {repeated.count} rows without a change_seq were others")
        return True

    def deliver(self, rows: Iterable[Row], time: str) -> None:
        """Note these rows as delivered, and all of times before: they come no more."""
        if time > self.time:
            self.time = time
            self._note([*takewhile(lambda row: _is_before(time, *row), self.undelivered)])
            for table in self.grown:
                self.tables[table].shorten(_before(time))
            self.grown.clear()
        self._note(rows)

    def deliver_loaded(self, source: str, row: str) -> None:
        """Note a row of a full load as delivered."""
        self.loaded.setdefault(source, LoadedRows()).add(row)

    def end(self, settle: float) -> None:
        """End a reading: all its rows were delivered, and what is older than a window is read no more.

        Raise Changed if a source has fewer rows of a full load than were delivered: it was loaded anew.
        """
        for source, rows in self.loaded_again.items():
            count = self.loaded_before[source].count
            if rows.count < count:
                there = quantity(rows.count, "row")
                raise Changed(f"{source} has {there} without a change_seq, where {count} were delivered")
        self._note(list(self.undelivered))
        for window in self.tables.values():
            if window.last:
                window.close(_before(sequence.before(window.last[: sequence.TIME], settle)))

    def _note(self, rows: Iterable[Row]) -> None:
        for table, seq in rows:
            letters = self.undelivered.pop((table, seq), None)
            if letters is not None:
                self.grown.add(table)
                self.window(table).deliver(seq, letters)

    def dump(self) -> str:
        """Return the progress as a text."""
        tables = {
            table: (window.low, window.last, [seq + letters for seq, letters in window.delivered.items()])
            for table, window in self.tables.items()
        }
        loaded = {source: (rows.count, rows.digest) for source, rows in self.loaded.items()}
        return json.dumps({"since": self.since, "tables": tables, "loaded": loaded})


def _is_before(time: str, table: str, seq: str) -> bool:
    return seq[: sequence.TIME] < time


def _before(time: str) -> str:
    """Return a time part that is less by one, because more rows of this time may come."""
    return f"{int(time) - 1:016}"


def load_table_progress(state: str) -> TableProgress:
    """Return the progress of a state; raise InvalidValue if it is none."""
    try:
        dumped: Mapping[str, Any] = json.loads(state)
        tables = {}
        for table, (low, last, rows) in dumped["tables"].items():
            texts = map(_text, rows)
            delivered = {text[: sequence.LENGTH]: text[sequence.LENGTH :] for text in texts}
            tables[_text(table)] = Window(_text(low), _text(last), delivered)
        loaded = {
            source: LoadedRows(int(count), _text(digest))
            for source, (count, digest) in dumped["loaded"].items()
        }
        return TableProgress(_text(dumped["since"]), tables, loaded)
    except (KeyError, TypeError, ValueError, AttributeError):
        raise InvalidValue(state[:40], "the state of change tables") from None


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value
