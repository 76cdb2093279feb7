"""The progress of a source without states: which changes a repeat passes over.

There are three ways. Positions ascend in each table. Names of events are noted one by one, because they have
no order. Changes are counted for inputs that only grow.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

from eventlog.core.change import Change, Op
from eventlog.core.errors import EventlogError, Misuse
from eventlog.neutral import dumps


class OtherInput(EventlogError):
    """change {0} of the input is not the one that was applied last: another input is another --source"""


class Shorter(EventlogError):
    """the input ends after {0} changes, and {1} were applied from this source: all of them were skipped. \
If this is another input, such as the next part of a pipe, give it another --source"""


class NoState(Misuse):
    """the target's state of the source {0!r} is of another kind of source: name another --source"""


class Unnamed(EventlogError):
    """it has no event-id, so a repeat would not be noticed"""


Named = tuple[str | None, str]


class Fresh(NamedTuple):
    """The part of a transaction that was not applied before."""

    changes: Sequence[Change]
    loaded: tuple[Named, ...] = ()  # tables with rows of a full load that came after changes
    begun: tuple[Named, ...] = ()  # those of them whose load begins here


class ApplyProgress(Protocol):
    """The record of what of a source was applied, including what is noted now."""

    def fresh(self, changes: Sequence[Change], /) -> Fresh: ...

    def state(self, read: str | None, /) -> str: ...  # after everything that was asked about, and read

    def marks(self, changes: Sequence[Change], /) -> list[str]: ...  # one for each change, if any

    def check_end(self) -> None: ...  # an error where the input that ends here is another one


class ByPosition:
    """The progress by positions, which ascend in each table.

    Rows of a full load have no position; they are counted after one.
    """

    def __init__(self, state: dict[str, Any] | None) -> None:
        found: dict[str, Any] = {} if state is None else state["tables"]
        self._old = {name: (str(position), int(number)) for name, (position, number) in found.items()}
        self._now: dict[str, tuple[str, int]] = {}
        self._tables: dict[tuple[str | None, str], str] = {}

    def fresh(self, changes: Sequence[Change]) -> Fresh:
        """Return the changes after those that were applied of their tables."""
        new = [change for change in changes if self._pass(change)]
        loaded, begun = dict[Named, None](), dict[Named, None]()
        for change in new:
            if change.op is Op.SNAPSHOT and change.position is None:
                named = change.schema, change.table
                position, number = self._now[self._tables[named]]
                if position:
                    loaded[named] = None
                    if number == 1:
                        begun[named] = None
        return Fresh(new, tuple(loaded), tuple(begun))

    def state(self, read: str | None) -> str:
        tables = self._old | {
            name: max(place, self._old.get(name, place)) for name, place in self._now.items()
        }
        return json.dumps({"by": "position", "tables": tables})

    def marks(self, changes: Sequence[Change]) -> list[str]:
        return []

    def check_end(self) -> None:
        """Accept any end of the input."""

    def _pass(self, change: Change) -> bool:
        named = change.schema, change.table
        name = self._tables.get(named) or self._tables.setdefault(named, json.dumps(named))
        position, number = self._now.get(name) or self._now.setdefault(name, ("", 0))
        if change.position is not None:
            position, number = max(position, change.position), 0
        else:
            number += 1
        self._now[name] = position, number
        return self._now[name] > self._old.get(name, ("", -1))


class ByName:
    """The progress by the names of events, which the target keeps."""

    def __init__(self, state: dict[str, Any] | None) -> None:
        pass

    def fresh(self, changes: Sequence[Change]) -> Fresh:
        return Fresh(changes)

    def state(self, read: str | None) -> str:
        return json.dumps({"by": "event-id"})

    def marks(self, changes: Sequence[Change]) -> list[str]:
        return [_name(change) for change in changes]

    def check_end(self) -> None:
        """Accept any end of the input."""


class ByCount:
    """The progress by the number of changes of an input that only grows.

    The last change that was applied must be the same again.
    """

    def __init__(self, state: dict[str, Any] | None) -> None:
        self._done = 0 if state is None else int(state["changes"])
        self._digest = "" if state is None else str(state["last"])
        self._number = 0
        self._last: Change | None = None

    def fresh(self, changes: Sequence[Change]) -> Fresh:
        """Return the changes after those that were applied."""
        passed = min(len(changes), max(0, self._done - self._number))
        if passed and self._number + passed == self._done and _digest(changes[passed - 1]) != self._digest:
            raise OtherInput(self._done)
        self._number += len(changes)
        new = changes[passed:]
        self._last = new[-1] if new else self._last
        return Fresh(new)

    def state(self, read: str | None) -> str:
        if self._last is None:
            return json.dumps({"by": "number", "changes": self._done, "last": self._digest})
        return json.dumps({"by": "number", "changes": self._number, "last": _digest(self._last)})

    def marks(self, changes: Sequence[Change]) -> list[str]:
        return []

    def check_end(self) -> None:
        """Raise Shorter for an input that ends within what was applied: nothing shows that it is the same."""
        if 0 < self._number < self._done:
            raise Shorter(self._number, self._done)


class ByStream:
    """The progress by the source's own state; earlier changes show what is a full load."""

    def __init__(self, state: dict[str, Any] | None) -> None:
        found: dict[str, Any] = state or {"read": None, "changed": [], "loading": []}
        self.read: str | None = found["read"]
        self._changed = {(schema, name) for schema, name in found["changed"]}
        self._loading = {(schema, name) for schema, name in found["loading"]}

    def fresh(self, changes: Sequence[Change]) -> Fresh:
        """Return all of them."""
        loaded, begun = dict[Named, None](), dict[Named, None]()
        for change in changes:
            named = change.schema, change.table
            if change.op is not Op.SNAPSHOT:
                self._changed.add(named)
                self._loading.discard(named)
            elif named in self._changed:
                loaded[named] = None
                if named not in self._loading:
                    begun[named] = None
                    self._loading.add(named)
        return Fresh(changes, tuple(loaded), tuple(begun))

    def state(self, read: str | None) -> str:
        changed, loading = (sorted(some, key=str) for some in (self._changed, self._loading))
        return json.dumps({"by": "stream", "read": read, "changed": changed, "loading": loading})

    def marks(self, changes: Sequence[Change]) -> list[str]:
        return []

    def check_end(self) -> None:
        """Accept any end of the input."""


KINDS: dict[str, Callable[[dict[str, Any] | None], ApplyProgress]] = {
    "stream": ByStream,
    "position": ByPosition,
    "event-id": ByName,
    "number": ByCount,
}
BY_FORMAT = {"log": "event-id", "xds": "event-id", "qlik-table": "position", "qlik-message": "position"}


def progress_of(
    source: str, format_name: str, state: str | None, *, has_states: bool = False
) -> ApplyProgress:
    """Return the progress of a source of this format from the target's state, which may contain the source's
    own.
    """
    kind = "stream" if has_states else BY_FORMAT.get(format_name, "number")
    if state is None:
        return KINDS[kind](None)
    try:
        found = json.loads(state)
        if found["by"] == kind:
            return KINDS[kind](found)
    except (ValueError, KeyError, TypeError):
        pass
    raise NoState(source)


def read_state(source: str, state: str | None) -> str | None:
    """Return the source's own state in the target's."""
    if state is None:
        return None
    found = progress_of(source, "", state, has_states=True)
    return found.read if isinstance(found, ByStream) else None


def _digest(change: Change) -> str:
    return hashlib.sha256(dumps(change).encode(errors="surrogatepass")).hexdigest()[:32]


def _name(change: Change) -> str:
    """Return the name of an event as the target keeps it: a long one by its digest."""
    name = change.fact("event_id")
    if not isinstance(name, str):
        raise Unnamed
    return name if len(name) <= _LONGEST else hashlib.sha256(name.encode(errors="surrogatepass")).hexdigest()


_LONGEST = 150
