"""The present rows of tables, compared with what documents made of their objects.

Tables are read whole, because a lookup by the keys of the log would miss what the publisher missed. Rows,
events and present rows meet by object in shares on disk.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventlog.audit.delivered import DeliveredDocument
from eventlog.audit.event_text import ValueStep, names_of, read_event, rows_named
from eventlog.audit.laws import Breach, Law
from eventlog.compare.changes import Difference, change_of
from eventlog.compare.tables import read_table
from eventlog.core import tablekey, values
from eventlog.core.errors import EventlogError
from eventlog.core.identity import object_of
from eventlog.core.portions import portions
from eventlog.core.tables import Table, Tables
from eventlog.files.arrow_stores import KeyedBatches
from eventlog.fold.by_column.vectors import flags, hash_texts, shares
from eventlog.sql.log.snapshot import Snapshot
from eventlog.sql.readable import ReadableTable
from eventlog.xds.settings import XdsSettings
from eventlog.xds.write import EventWriter

_SHARES = 64
_CHUNK = 20_000
_ROW, _EVENT, _PRESENT = range(3)  # what a fact is; of an object they come in this order
_FACTS = pa.schema(
    zip(
        ("table", "key", "kind", "number", "word", "text"),
        (pa.string(), pa.string(), pa.int8(), pa.int64(), pa.string(), pa.binary()),
        strict=True,
    )
)
_OPEN, _FINISHED, _SILENT = "open", "finished", "silent"  # words of rows; those of events are levels
_TAKEN = ("success", "warning")
_NOTHING = frozenset[str]()
State = Mapping[str, frozenset[str]]


class _Fact(NamedTuple):
    table: str
    key: str
    kind: int
    number: int  # the row, or the place of the event
    word: str
    text: bytes | None = None


class StateComparison:
    """A comparison of the present rows of tables with what a receiver made of their documents."""

    def __init__(
        self, tables: Tables, readable: Mapping[Table, ReadableTable], xds: XdsSettings, driver: str | None
    ) -> None:
        self._tables, self._readable, self._writer = tables, readable, EventWriter(tables, xds)
        self._driver = driver
        self._compared = {tables.name_of(table): table for table in tables if table.key and not table.halted}
        self._names: dict[tuple[str | None, str], str] = {}
        self._store = KeyedBatches(_FACTS)
        self._place = 0
        self.faults: list[str] = []  # present rows that no document can carry

    def __enter__(self) -> StateComparison:
        return self

    def __exit__(self, *fault: object) -> None:
        self._store.close()

    def read(self, snapshot: Snapshot, open_rows: frozenset[int]) -> None:
        """Take the rows of the log and the present rows of tables."""
        after, size = 0, _CHUNK
        while size == _CHUNK:
            chunk = snapshot.audited_rows(after, _CHUNK)
            size = chunk.size
            if size:
                columns = {name: column.to_pylist() for name, column in chunk.texts.items()}
                columns |= {name: np.asarray(column).tolist() for name, column in chunk.numbers.items()}
                after = columns["record_id"][-1]
                self._add(self._rows(columns, open_rows))
        for name, table in self._compared.items():
            for portion in portions(self._present(snapshot, name, table), _CHUNK):
                self._add(portion)

    def _rows(self, columns: Mapping[str, Sequence[Any]], open_rows: frozenset[int]) -> Iterator[_Fact]:
        names = ("record_id", "status", "event_type", "perpetrator", "table_name", "table_key", "column_name")
        for row, letter, kind, who, name, key, column, says_nothing in zip(
            *(columns[each] for each in (*names, "says_nothing")), strict=True
        ):
            is_own = self._driver is not None and who == self._driver
            table = self._name_of(None, name or "", key or "")
            is_silent = bool(says_nothing) or self._is_silent(self._compared.get(table), kind, column)
            is_open = letter not in ("S", "W") or row in open_rows or is_own
            yield _Fact(
                table, key or "", _ROW, row, _OPEN if is_open else _SILENT if is_silent else _FINISHED
            )

    def _is_silent(self, table: Table | None, kind: int, column_name: str | None) -> bool:
        """Return whether a row need not leave, whatever the table has."""
        if table is None or kind == 4:
            return True
        if kind in (5, 6):
            return not (table.data or (kind == 5 and not table.beside_key))
        column = table.column(column_name or "")
        if column is None:
            return table.closed or kind > 6
        return column.name in table.key or not column.leaves

    def _present(self, snapshot: Snapshot, name: str, table: Table) -> Iterator[_Fact]:
        """Yield each present row as the receiver would get it now; no text if no document can carry it."""
        connection, readable = snapshot.reading(self._readable[table]), self._readable[table]
        for batch in read_table(connection, table, readable):
            for key, _, *cells in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                try:
                    change = change_of(table, Difference(key, None, tuple(cells)))
                    assert change is not None
                    yield _Fact(name, key, _PRESENT, 0, "", self._writer.write(change, "present:0").encode())
                except EventlogError as fault:
                    self.faults.append(f"{name} {key} is not compared: {fault}")
                    yield _Fact(name, key, _PRESENT, 0, "")

    def passing(self, documents: Iterable[DeliveredDocument]) -> Iterator[DeliveredDocument]:
        """Take the events of documents, and pass them on."""
        for portion in portions(documents, _CHUNK, lambda document: len(document.texts), _CHUNK):
            self._add(self._events(portion))
            yield from portion

    def _events(self, documents: Iterable[DeliveredDocument]) -> Iterator[_Fact]:
        for document in documents:
            levels = document.levels or ("success",) * len(document.texts)
            for text, level in zip(document.texts, levels, strict=True):
                self._place += 1
                names = names_of(text)
                table = self._name_of(names.schema, names.table, names.table_key)
                word = "late" if document.is_late else level
                yield _Fact(table, names.table_key, _EVENT, self._place, word, text)

    def _name_of(self, schema: str | None, name: str, key: str) -> str:
        """Return the one name of a table, however rows and associations spell it."""
        at = schema, name
        if at not in self._names:
            full = name if schema is None else f"{schema}.{name}"
            described = self._tables.find(full) or self._tables.find(name)
            if described is None:
                self._names[at] = object_of(self._tables, full, key)[0]
            else:
                self._names[at] = self._tables.name_of(described)
        return self._names[at]

    def _add(self, facts: Iterable[_Fact]) -> None:
        columns = [*zip(*facts, strict=True)]
        if not columns:
            return
        names, keys = pa.array(columns[0]), pa.array(columns[1])
        keys = self._in_one_spelling(columns[0], keys)
        typed_columns = zip(columns[2:], _FACTS.types[2:], strict=True)
        other_columns = [pa.array(column, kind) for column, kind in typed_columns]
        batch = pa.record_batch([names, keys, *other_columns], schema=_FACTS)
        for share, rows in shares(batch, hash_texts(keys) % _SHARES):
            self._store.add(share, rows)

    def _in_one_spelling(self, names: Sequence[str], keys: pa.Array) -> pa.Array:
        """Return keys in their one spelling; most of a table are so already."""
        odd = np.zeros(len(keys), np.bool_)
        table_names = np.array(names, object)
        for name in set(names):
            table = self._compared.get(name)
            if table is not None:
                pairs = "[+]".join(f"{re.escape(column)}=[^,;'+\"=\\\\<>]*" for column in table.key)
                odd |= (table_names == name) & ~flags(pc.match_substring_regex(keys, f"^(?:{pairs})$"))
        if not odd.any():
            return keys
        own_keys = keys.to_pylist()
        for at in np.flatnonzero(odd).tolist():
            own_keys[at] = object_of(self._tables, names[at], own_keys[at])[1]
        return pa.array(own_keys, pa.string())

    def breaches(self, *, is_purged: bool) -> Iterator[Breach]:
        """Yield the objects whose present rows are not what their documents made."""
        for share in range(_SHARES):
            facts = pa.Table.from_batches(self._store.batches(share), _FACTS)
            order = [(name, "ascending") for name in ("table", "key", "kind", "number")]
            rows = zip(*(column.to_pylist() for column in facts.sort_by(order).columns), strict=True)
            for (name, key), group in groupby(map(_Fact._make, rows), itemgetter(0, 1)):
                table = self._compared.get(name)
                of_object = [*group]
                words = "" if table is None else self._difference(table, key, of_object, is_purged=is_purged)
                if words:
                    last = max((fact.number for fact in of_object if fact.kind == _ROW), default=0)
                    texts = (fact.text for fact in of_object if fact.kind == _EVENT and fact.text)
                    named = (rows_named(names_of(text).event_id)[1] for text in texts)
                    yield Breach(Law.SAME_STATE, last or max(named, default=0), words, f"{name} {key}")

    def _difference(self, table: Table, key: str, facts: Sequence[_Fact], *, is_purged: bool) -> str:
        """Return how the documents and the table differ about an object; empty if they do not."""
        rows = [fact.word for fact in facts if fact.kind == _ROW]
        events = [fact for fact in facts if fact.kind == _EVENT]
        present = [fact.text for fact in facts if fact.kind == _PRESENT]
        if _OPEN in rows or any(event.word == "late" for event in events) or None in present:
            return ""
        if not (present or is_spelled_as_read(table, key)):
            return ""
        now = _replay([("success", text) for text in present if text])
        then = _replay([(event.word, event.text or b"") for event in events])
        if then is None:
            has_left = bool(events) or is_purged or _FINISHED not in rows or now is None
            return "" if has_left else "no document has it, and the table does"
        return _compared_states(table, then, None if now is None else now[0])


def _replay(events: Iterable[tuple[str, bytes]]) -> tuple[State | None, bool] | None:
    """Return what documents make of an object: its attributes, and whether they are all that it has.

    It is None if no document names the object, and the state is None if it is deleted. An add of an object
    that is there adds its values, because an insert that was cut comes in two.
    """
    state: dict[str, frozenset[str]] | None = {}
    operations = set[bytes]()
    for level, text in events:
        if level not in _TAKEN:
            continue
        state = {} if state is None else state
        try:
            steps: Sequence[ValueStep] = read_event(text)[2]
        except (EventlogError, ValueError):
            steps = ()
        for name, kind, value, *_ in steps:
            if kind == "add":
                state[name] = state.get(name, _NOTHING) | {value}
            elif kind == "remove":
                state[name] = state.get(name, _NOTHING) - {value}
            elif kind == "clear":
                state[name] = _NOTHING
        operations.add(text[1:2])
        state = None if text[1:2] == b"d" else state
    return (state, operations != {b"m"}) if operations else None


def _compared_states(table: Table, then: tuple[State | None, bool], now: State | None) -> str:
    state, is_whole = then
    if now is None:
        return "" if state is None else "the documents leave it, and the table does not have it"
    if state is None:
        return "the documents delete it, and the table has it"
    read = {column.name for column in table.data}
    own_names = {name for name in now if is_whole and "." not in name}
    for name in sorted((state.keys() | own_names) & (read | now.keys())):
        if state.get(name, _NOTHING) != now.get(name, _NOTHING):  # of a child table if a document has it
            return f"attribute {name} is not what the table has"
    return ""


def is_spelled_as_read(table: Table, table_key: str) -> bool:
    """Return whether the table's own row would have this key, letter for letter."""
    try:
        pairs = tablekey.read(table_key)
        columns = zip(table.key_columns, pairs, strict=True)
        return all(
            column.name == name and values.dump(column.kind, values.load(column.kind, text)) == text
            for column, (name, text) in columns
        )
    except (EventlogError, ValueError):
        return False
