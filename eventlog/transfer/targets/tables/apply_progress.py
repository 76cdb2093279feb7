"""The progress of a source, as the target keeps it: which changes a repeat passes over.

There are three kinds. For a source with states the target keeps its last state, from which the source goes
on. For documents it keeps the id of each event, because these have no order in general; a folder of documents
has a state, too. For other inputs, which only grow, it keeps the number of changes.

`LateChanges` has the rows that later changes have changed, so that a late change leaves them alone.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, Protocol

from eventlog.core.change import Change, Key, Op
from eventlog.core.errors import EventlogError, Misuse
from eventlog.core.state_versions import APPLIED, NewerState
from eventlog.formats.neutral import dumps
from eventlog.transfer.targets.tables.apply_settings import SourceTable


class OtherInput(EventlogError):
    """change {0} of the input is not the one that was applied last: another input is another --source"""


class Shorter(EventlogError):
    """the input ends after {0} changes, and {1} were applied from this source: all of them were skipped. \
If this is another input, such as the next part of a pipe, give it another --source"""


class NoState(Misuse):
    """the target's state of the source {0!r} is of another kind of source: name another --source"""


class Unnamed(EventlogError):
    """it has no event-id, so a repeat would not be noticed"""


class Unapplied(NamedTuple):
    """The part of a transaction that was not applied before."""

    changes: Sequence[Change]
    loaded: tuple[SourceTable, ...] = ()  # tables with rows of a full load that came after changes
    begun: tuple[SourceTable, ...] = ()  # those of them whose load begins here


class ApplyProgress(Protocol):
    """The record of what of a source was applied, including what is noted now."""

    read: str | None = None  # the source's own state, where it has states
    may_be_late: bool = False  # whether the source may hand out changes after later ones

    def unapplied(self, changes: Sequence[Change], /) -> Unapplied:
        """Return the changes that were not applied."""
        return Unapplied(changes)

    def state(self, read: str | None, /) -> str: ...  # after everything that was asked about, and read

    def mark(self, change: Change, /) -> str | None:
        """Return the mark under which a change is noted besides the state, if there is one."""
        return None

    def check_end(self) -> None:
        """Raise an error if the input that ends here is another one."""


class FullLoads:
    """The tables that had changes, and those that are loaded anew after them."""

    def __init__(self, state: dict[str, Any] | None, *, placed: bool) -> None:
        """Begin with a state. Unless `placed`, a row of a full load with a position counts as a change."""
        self._placed = placed
        tables: dict[str, Any] = state or {"changed": [], "loading": []}
        self._changed = {(schema, name) for schema, name in tables["changed"]}
        self._loading = {(schema, name) for schema, name in tables["loading"]}

    def note(self, changes: Sequence[Change]) -> Unapplied:
        """Note the changes, and return them with the tables that they load anew."""
        loaded, begun = dict[SourceTable, None](), dict[SourceTable, None]()
        for change in changes:
            source_table = change.schema, change.table
            if change.op is not Op.SNAPSHOT or (change.position is not None and not self._placed):
                self._changed.add(source_table)
                self._loading.discard(source_table)
            elif source_table in self._changed:
                loaded[source_table] = None
                if source_table not in self._loading:
                    begun[source_table] = None
                    self._loading.add(source_table)
        return Unapplied(changes, tuple(loaded), tuple(begun))

    def dump(self) -> dict[str, Any]:
        """Return the tables as JSON holds them."""
        changed, loading = (sorted(tables, key=str) for tables in (self._changed, self._loading))
        return {"changed": changed, "loading": loading}


class ByName(ApplyProgress):
    """The progress by the ids of events: the target keeps one mark for each."""

    def __init__(self, state: dict[str, Any] | None) -> None:
        self.read = None if state is None else state.get("read")

    def state(self, read: str | None) -> str:
        return _dump("event-id") if read is None else _dump("event-id", read=read)

    def mark(self, change: Change) -> str | None:
        """Return the name of an event as the target keeps it: a long one by its digest."""
        name = change.fact("event_id")
        if not isinstance(name, str):
            raise Unnamed
        if len(name) <= _LONGEST:
            return name
        return hashlib.sha256(name.encode(errors="surrogatepass")).hexdigest()


class ByCount(ApplyProgress):
    """The progress by the number of changes of an input that only grows.

    The last change that was applied must be the same again.
    """

    def __init__(self, state: dict[str, Any] | None) -> None:
        self._done = 0 if state is None else int(state["changes"])
        self._digest = "" if state is None else str(state["last"])
        self._loads = FullLoads(state, placed=False)
        self._number = 0
        self._last: Change | None = None

    def unapplied(self, changes: Sequence[Change]) -> Unapplied:
        """Return the changes after those that were applied."""
        passed = min(len(changes), max(0, self._done - self._number))
        if passed and self._number + passed == self._done and _digest(changes[passed - 1]) != self._digest:
            raise OtherInput(self._done)
        self._number += len(changes)
        new = changes[passed:]
        self._last = new[-1] if new else self._last
        return self._loads.note(new)

    def state(self, read: str | None) -> str:
        done, digest = self._done, self._digest
        if self._last is not None:
            done, digest = self._number, _digest(self._last)
        return _dump("number", changes=done, last=digest, **self._loads.dump())

    def check_end(self) -> None:
        """Raise Shorter for an input that ends within what was applied: nothing shows that it is the same."""
        if 0 < self._number < self._done:
            raise Shorter(self._number, self._done)


class ByStream(ApplyProgress):
    """The progress by the source's own state."""

    may_be_late = True

    def __init__(self, state: dict[str, Any] | None) -> None:
        self.read = None if state is None else state["read"]
        self._loads = FullLoads(state, placed=True)

    def unapplied(self, changes: Sequence[Change]) -> Unapplied:
        """Return all of them."""
        return self._loads.note(changes)

    def state(self, read: str | None) -> str:
        return _dump("stream", read=read, **self._loads.dump())


KINDS: dict[str, Callable[[dict[str, Any] | None], ApplyProgress]] = {
    "stream": ByStream,
    "event-id": ByName,
    "number": ByCount,
}
BY_FORMAT = {"log": "event-id", "xds": "event-id"}


def progress_of(
    source: str, format_name: str, state: str | None, *, has_states: bool, has_marks: bool = True
) -> ApplyProgress:
    """Return the progress of a source of this format from the target's state, which may have marks."""
    kind = (BY_FORMAT.get(format_name) if has_marks else None) or ("stream" if has_states else "number")
    if state is None:
        return KINDS[kind](None)
    try:
        saved_state = json.loads(state)
        APPLIED.check(f"what was applied from the source {source!r}", saved_state["version"])
        if saved_state["by"] == kind:
            return KINDS[kind](saved_state)
    except NewerState:
        raise
    except (Misuse, ValueError, KeyError, TypeError):
        pass
    raise NoState(source)


def _dump(kind: str, **facts: Any) -> str:
    return json.dumps({"version": APPLIED.version, "by": kind, **facts})


def _digest(change: Change) -> str:
    return hashlib.sha256(dumps(change).encode(errors="surrogatepass")).hexdigest()[:32]


_LONGEST = 150  # characters of a mark
_MAX_ROWS = 1_000_000  # rows that are remembered


class LateChanges:
    """The rows that a run changed, each with the last position at which it did."""

    def __init__(self, max_rows: int = _MAX_ROWS) -> None:
        self._max_rows = max_rows
        self._rows: dict[tuple[SourceTable, Key], str] = {}
        self._tables: dict[SourceTable, str] = {}  # tables in which any row may have changed
        self._newest: dict[SourceTable, str] = {}  # of any row
        self._forgotten = ""  # up to this position rows are no longer remembered

    def note(self, changes: Iterable[Change]) -> None:
        """Note that these changes are applied."""
        for change in changes:
            source_table, position = (change.schema, change.table), change.position or ""
            self._newest[source_table] = max(position, self._newest.get(source_table, ""))
            if change.op is Op.TRUNCATE or not change.key:
                self._tables[source_table] = max(position, self._tables.get(source_table, ""))
                continue
            for key in {change.key, change.key_before}:
                row = source_table, key
                self._rows[row] = max(position, self._rows.get(row, ""))
        if len(self._rows) + len(self._tables) > self._max_rows:
            positions = (*self._rows.values(), *self._tables.values())
            self._forgotten = max(self._forgotten, *positions)
            self._rows.clear()
            self._tables.clear()

    def overtaking(self, changes: Iterable[Change]) -> str | None:
        """Return where a row of late changes was changed, or may have been, by what follows them."""
        return next((at for at in map(self._overtaking, changes) if at is not None), None)

    def _overtaking(self, change: Change) -> str | None:
        source_table, position = (change.schema, change.table), change.position or ""
        if change.op is Op.TRUNCATE or not change.key:
            return self._newest.get(source_table, self._forgotten)
        if position <= self._forgotten:
            return self._forgotten
        rows = ((source_table, key) for key in (change.key, change.key_before))
        last = max(self._tables.get(source_table, ""), *(self._rows.get(row, "") for row in rows))
        return last if last > position else None
