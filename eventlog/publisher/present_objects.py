"""What operators ask about one object: whether it exists, whether its row can be read, and what it has."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from eventlog.core import tablekey
from eventlog.core.errors import EventlogError, UnknownTable
from eventlog.core.tables import Table, Tables
from eventlog.fold import Need, Rules, query_key
from eventlog.fold.understand import Interpreter
from eventlog.publisher.read_back import Allowance, CurrentRows
from eventlog.sql.current_rows import NO_BOUND
from eventlog.sql.log.snapshot import Snapshot
from eventlog.sql.readable import ReadableTable

_LOOKED_UP = 100  # objects whose current rows are in memory at once


class PresentObjects:
    """Reads current rows of single objects, as the publisher would."""

    def __init__(self, tables: Tables, readable: Mapping[Table, ReadableTable], rules: Rules) -> None:
        self._tables = tables
        self._readable = readable
        self._rules = rules

    def why_unreadable(self, table_name: str, table_key: str) -> str:
        """Return why the current row of an object cannot be read; empty if it can."""
        need = self._need(table_name, table_key)
        return need if isinstance(need, str) else ""

    def why_present(self, snapshot: Snapshot, names: Iterable[tuple[str, str]]) -> dict[tuple[str, str], str]:
        """Return which of these objects are not surely absent, by the table_name and table_key of their rows,
        with the reason."""
        need_of = {name: self._need(*name) for name in names}
        reasons = {name: need for name, need in need_of.items() if isinstance(need, str)}
        needs = [(name, need) for name, need in need_of.items() if isinstance(need, Need)]
        for start in range(0, len(needs), _LOOKED_UP):
            page = needs[start : start + _LOOKED_UP]
            current = CurrentRows(snapshot, self._readable, thorough=True, allowance=Allowance(NO_BOUND))
            current.read(need for _, need in page)
            for name, need in page:
                answer = current.lookup(*need)
                if isinstance(answer, EventlogError):
                    reasons[name] = str(answer)
                elif answer:
                    reasons[name] = "its object exists, and this delete would remove it"
        return reasons

    def _need(self, table_name: str, table_key: str) -> Need | str:
        """Return the place of an object's current row, or why it cannot be read."""
        try:
            of = Interpreter(self._tables, self._rules, self._readable).object(table_name, table_key)
            if of.reader.answerable:
                return Need(of.table, of.query_key())
        except UnknownTable:
            pass
        except EventlogError as fault:
            return str(fault)
        return f"table {table_name} may not be queried back"

    def fields(self, snapshot: Snapshot, table_name: str, table_key: str) -> list[tuple[str, str | None]]:
        """Return the published columns of an object with their present texts; nothing if it is gone.

        Raise EventlogError if it cannot be read.
        """
        table = self._tables.find(table_name)
        if table is None or table not in self._readable:
            raise UnknownTable(table_name)
        key = query_key(table, tablekey.read(table_key))
        current = CurrentRows(snapshot, self._readable, True, Allowance())
        current.read([Need(table, key)])
        answer = current.lookup(table, key)
        if isinstance(answer, EventlogError):
            raise answer
        pairs = (zip(table.data, row, strict=True) for row in answer)
        return list(dict.fromkeys((column.name, text) for row in pairs for column, text in row))
