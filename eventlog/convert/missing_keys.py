"""Tables whose key no source describes, reported once each: their changes are written without one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from eventlog.core.change import ABSENT, Change, Op

# formats that take changes without a key; the others refuse each of them
TAKING_NO_KEY = frozenset(("changes", "qlik-table", "qlik-message"))
_MOST = 10_000  # tables that are remembered


class Keyless:
    """The tables that were reported."""

    def __init__(self) -> None:
        self._reported: set[tuple[str | None, str]] = set()

    def noted(self, changes: Iterable[Change], inform: Callable[[str], None]) -> Iterator[Change]:
        """Return the changes, and report each table at its first change without a key."""
        for change in changes:
            if not change.key and change.op is not Op.TRUNCATE:
                named = change.schema, change.table
                if named not in self._reported and len(self._reported) < _MOST:
                    self._reported.add(named)
                    inform(_words(change))
            yield change


def _words(change: Change) -> str:
    values = [
        side for field in change.fields for side in field[1:] if side is not ABSENT and side is not None
    ]
    texts = " and its values are texts" if values and all(isinstance(side, str) for side in values) else ""
    words = f"no source describes the key of {change.table}: its changes are written without one{texts}"
    return f"{words}; state its key and types in a tables file (--tables)"
