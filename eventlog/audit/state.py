"""The present rows of tables, compared with what documents made of their objects.

Tables are read whole, because a lookup by the keys of the log would miss what the publisher missed. A value
of an event or of a row is a hash, in the spelling that documents have. Such facts meet by object, sorted on
disk.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from html import unescape
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventlog.audit.audit_report import Breach, Law
from eventlog.audit.scan import ADD, CLEAR, hash_each, scan
from eventlog.compare.changes import load
from eventlog.compare.table_snapshot import read_table
from eventlog.core import tablekey, values
from eventlog.core.change import scalars
from eventlog.core.errors import EventlogError
from eventlog.core.identity import object_of
from eventlog.core.tables import Column, Table, Tables
from eventlog.files.arrow_stores import SortedBatches
from eventlog.fold.by_column.key_patterns import int_form, named_form
from eventlog.fold.by_column.vectors import (
    Flags,
    Ints,
    begins,
    encode_texts,
    flags,
    match_keys,
    number_distinct,
    suspects,
)
from eventlog.sql.columns import ResultColumns
from eventlog.sql.log.snapshot import Snapshot
from eventlog.sql.readable import ReadableTable
from eventlog.xds.skeleton import Skeletons, Treatment
from eventlog.xds.xds_settings import XdsSettings

RowsOfTable = Callable[[Table], Iterator[pa.RecordBatch]]  # the present rows
_CHUNK = 100_000  # rows of one statement
_FACTS = pa.schema(
    (("object", pa.int64()), ("code", pa.int64()), ("number", pa.int64()), ("key", pa.large_string()))
)
_MERGED, _MERGED_BYTES = 1 << 19, 64 << 20  # facts that are judged together, and their keys
_KINDS = 16
# What a fact is: a row with its number, an event with that of its row, or a present row.
_OPEN, _SILENT, _FINISHED, _REFUSED, _ADDED, _MODIFIED, _DELETED, _PRESENT = range(8, 16)
_VALUE = 7  # a value of a present row; those of steps are ADD, REMOVE and CLEAR. Their number is a hash
_NO_INTS: Ints = np.empty(0, np.int64)
_NEVER_LEFT, _IS_MISSING, _IS_THERE, _DIFFERS = range(1, 5)
_WORDS = {
    _NEVER_LEFT: "no document has it, and the table does",
    _IS_MISSING: "the documents leave it, and the table does not have it",
    _IS_THERE: "the documents delete it, and the table has it",
    _DIFFERS: "attribute {} is not what the table has",
}
_EVENTS = np.zeros(256, np.int64)
_EVENTS[list(b"amd")] = _ADDED, _MODIFIED, _DELETED


class _Details(NamedTuple):
    """The steps of events, or the values of present rows."""

    owners: Ints = _NO_INTS  # the number of the event or row
    codes: Ints = _NO_INTS
    hashes: Ints = _NO_INTS


_NONE = _Details()


def rows_in(snapshot: Snapshot, readable: Mapping[Table, ReadableTable]) -> RowsOfTable:
    """Return what reads the rows of tables in the database of the log."""
    return lambda table: read_table(snapshot.reading(readable[table]), table, readable[table])


class StateComparison:
    """A comparison of the present rows of tables with what a receiver made of their documents."""

    def __init__(self, tables: Tables, xds: XdsSettings, driver: str | None) -> None:
        self._tables, self._form, self._driver = tables, Skeletons(tables, xds), driver
        self._compared = [table for table in tables if table.key and not table.halted]
        self._numbers = {tables.name_of(table): number for number, table in enumerate(self._compared)}
        self._patterns = [named_form(table.key) for table in self._compared]
        self._named: dict[tuple[str | None, str], int] = {}
        self._places: dict[str, int] = {}  # the tables of plain associations
        self._attributes: dict[tuple[int, str], int] = {}  # by the number of the table
        self._store = SortedBatches(_FACTS)
        self.has_other_kinds = False  # documents that are no XDS
        self.not_compared: list[str] = []  # present rows that no document can carry, and why

    def __enter__(self) -> StateComparison:
        return self

    def __exit__(self, *fault: object) -> None:
        self._store.close()

    def read(self, snapshot: Snapshot, rows_of: RowsOfTable, open_rows: frozenset[int]) -> None:
        """Take the rows of the log and the present rows of tables."""
        for number, table in enumerate(self._compared):
            for batch in rows_of(table):
                self._add_present(number, table, batch)
        still_open, after, size = np.fromiter(open_rows, np.int64), 0, _CHUNK
        while size == _CHUNK:
            chunk = snapshot.audited_rows(after, _CHUNK)
            size = chunk.size
            if size:
                self._add_rows(chunk, still_open)
                after = int(chunk.numbers["record_id"][-1])

    def _add_rows(self, chunk: ResultColumns, open_rows: Ints) -> None:
        ids, types = (np.asarray(chunk.numbers[name], np.int64) for name in ("record_id", "event_type"))
        keys = chunk.texts["table_key"].fill_null("")
        table_codes, names = encode_texts(chunk.texts["table_name"])
        column_codes, columns = encode_texts(chunk.texts["column_name"])
        _, first = number_distinct(table_codes)
        of_name = {
            int(table_codes[at]): self._number_of(None, names[table_codes[at]] or "", keys[at].as_py())
            for at in first.tolist()
        }
        tables = np.array([of_name.get(code, -1) for code in range(len(names))], np.int64)[table_codes]
        forms, first = number_distinct((tables + 1) << 40 | types << 32 | column_codes)
        silent = [self._is_silent(int(tables[at]), int(types[at]), columns[column_codes[at]]) for at in first]
        is_silent = np.array(silent, np.bool_)[forms] | (chunk.numbers["says_nothing"] != 0)
        is_open = ~flags(pc.is_in(chunk.texts["status"], pa.array(["S", "W"]))) | np.isin(ids, open_rows)
        if self._driver is not None:
            is_open |= flags(pc.equal(chunk.texts["perpetrator"], self._driver))
        self._add(tables, keys, np.where(is_open, _OPEN, np.where(is_silent, _SILENT, _FINISHED)), ids)

    def _is_silent(self, number: int, event_type: int, column_name: str | None) -> bool:
        """Return whether a row need not leave, whatever the table has."""
        if number < 0 or event_type == 4:
            return True
        table = self._compared[number]
        if event_type in (5, 6):
            return not (table.data or (event_type == 5 and not table.beside_key))
        column = table.column(column_name or "")
        if column is None:
            return table.closed or event_type > 6
        return column.name in table.key or not column.leaves

    def _add_present(self, number: int, table: Table, batch: pa.RecordBatch) -> None:
        keys, _, *cells = batch.columns
        kinds, details = np.full(len(keys), _PRESENT), [_NONE]
        for column, texts in zip(table.data, cells, strict=True):
            owners, contents, faults = self._contents(table, column, texts)
            for at, fault in faults.items():
                if kinds[at] != _OPEN:
                    kinds[at] = _OPEN
                    name = self._tables.name_of(table)
                    self.not_compared.append(f"{name} {keys[at].as_py()} is not compared: {fault}")
            code = _VALUE + _KINDS * self._attribute(number, column.published)
            details.append(_Details(owners, np.full(len(owners), code), hash_each(contents)))
        joined = _Details(*map(np.concatenate, zip(*details, strict=True)))
        self._add(np.full(len(keys), number), keys, kinds, np.zeros(len(keys), np.int64), joined)

    def _contents(
        self, table: Table, column: Column, texts: pa.Array
    ) -> tuple[Ints, Sequence[bytes], dict[int, EventlogError]]:
        """Return the values as documents have them, each with its row, and the rows that none can carry.

        A row with a column of a child table has one of its values; the others are in further rows.
        """
        column = replace(column, multivalued=False)
        is_valid, treatment = flags(texts.is_valid()), self._form.treatment(column)
        is_plain = np.zeros(len(texts), np.bool_)
        if treatment is Treatment.TEXT:
            is_plain[:] = is_valid
            is_plain[suspects(texts, self._form.escapes)] = False
        elif treatment is Treatment.INT:
            is_plain |= flags(pc.match_substring_regex(texts, rf"^{int_form(column)}\z"))
        contents = texts.filter(pa.array(is_plain)).cast(pa.binary()).to_pylist()
        owners, faults = np.flatnonzero(is_plain).tolist(), dict[int, EventlogError]()
        render = self._form.renderer(column, table, table.name)
        for at in np.flatnonzero(is_valid & ~is_plain).tolist():
            try:
                elements = [*map(render, scalars(load(column, texts[at].as_py())))]
            except EventlogError as fault:
                faults[at] = fault
                continue
            contents += [element[element.index(">") + 1 : -len("</value>")].encode() for element in elements]
            owners += [at] * len(elements)
        return np.array(owners, np.int64), contents, faults

    def add(self, texts: Sequence[bytes], levels: Sequence[str], are_late: Flags) -> None:
        """Take the texts of events in the order in which they came, each in our spelling."""
        is_xds = np.array([text[:1] == b"<" for text in texts], np.bool_)
        self.has_other_kinds |= any(text[:1] == b"{" for text in texts)
        scanned = scan([text for text in texts if text[:1] == b"<"])
        places = [*map(self._place_of, scanned.associations)]
        tables = np.array([number for number, _ in places], np.int64)
        keys = pa.array([key for _, key in places], pa.string())
        is_taken, is_late = np.isin(np.array(levels), ("success", "warning"))[is_xds], are_late[is_xds]
        kinds = np.where(is_late, _OPEN, np.where(is_taken, _EVENTS[scanned.letters], _REFUSED))
        counts = (is_taken & ~is_late & (tables >= 0))[scanned.owners]
        owners, kinds_of_steps, names, hashes = (
            column[counts] for column in (scanned.owners, scanned.kinds, scanned.names, scanned.hashes)
        )
        forms, first = number_distinct(tables[owners] << 32 | names)
        attributes = [
            self._attribute(int(tables[owners[at]]), scanned.attributes[names[at]]) for at in first.tolist()
        ]
        codes = kinds_of_steps + _KINDS * np.array(attributes, np.int64)[forms]
        self._add(tables, keys, kinds, scanned.rows, _Details(owners, codes, hashes))

    def _place_of(self, association: str) -> tuple[int, str]:
        """Return the number of the table, -1 if it is not compared, and the key."""
        key, _, place = association.rpartition(",table=")
        is_plain = '"' not in association and "&" not in association
        if not (is_plain and place in self._places):
            try:
                full_key, name, schema = tablekey.read_association(unescape(association))
            except EventlogError:
                return -1, ""
            number = self._number_of(schema, name, full_key)
            if not is_plain:
                return number, full_key
            self._places[place] = number
        return self._places[place], key

    def _number_of(self, schema: str | None, name: str, key: str) -> int:
        """Return the number of a table, however rows and associations spell it; -1 if it is not compared."""
        at = schema, name
        if at not in self._named:
            full = name if schema is None else f"{schema}.{name}"
            table = self._tables.find(full) or self._tables.find(name)
            table_name = (
                object_of(self._tables, full, key)[0] if table is None else self._tables.name_of(table)
            )
            self._named[at] = self._numbers.get(table_name, -1)
        return self._named[at]

    def _attribute(self, number: int, name: str) -> int:
        return self._attributes.setdefault((number, name), len(self._attributes))

    def _add(self, tables: Ints, keys: pa.Array, kinds: Ints, rows: Ints, details: _Details = _NONE) -> None:
        """Add facts of objects, and the details of each after it; those of other tables are left out."""
        is_compared = tables >= 0
        if not is_compared.all():
            number_of = np.cumsum(is_compared) - 1
            tables, kinds, rows = tables[is_compared], kinds[is_compared], rows[is_compared]
            keys, details = (
                keys.filter(pa.array(is_compared)),
                details._replace(owners=number_of[details.owners]),
            )
        odd = np.flatnonzero(~match_keys(keys, tables, self._patterns))
        if len(odd):
            spelled_keys = keys.to_pylist()
            for at in odd.tolist():
                name = self._tables.name_of(self._compared[tables[at]])
                spelled_keys[at] = object_of(self._tables, name, spelled_keys[at])[1]
            keys = pa.array(spelled_keys, pa.string())
        objects = hash_each(keys.to_pylist()) ^ tables << 40
        owners = np.concatenate([np.arange(len(tables)), details.owners])
        order = np.lexsort((owners, objects[owners]))
        columns = (
            objects[owners],
            np.concatenate([kinds + _KINDS * tables, details.codes]),
            np.concatenate([rows, details.hashes]),
        )
        texts = pa.concat_arrays(
            [keys.cast(pa.large_string()), pa.array([""] * len(details.owners), pa.large_string())]
        )
        taken = [*(pa.array(column[order]) for column in columns), texts.take(pa.array(order))]
        self._store.add(pa.record_batch(taken, schema=_FACTS))

    def breaches(self, *, is_purged: bool) -> Iterator[Breach]:
        """Yield the objects whose present rows are not what their documents made."""
        last_facts = _FACTS.empty_table()  # the facts of the last object, which may have more
        for batch in self._store.in_order(_MERGED, _MERGED_BYTES):
            facts = pa.concat_tables([last_facts, pa.Table.from_batches([batch])]).combine_chunks()
            objects = facts.column("object").to_numpy()
            cut = int(np.searchsorted(objects, objects[-1]))
            yield from self._judge(facts.slice(0, cut), is_purged=is_purged)
            last_facts = facts.slice(cut)
        yield from self._judge(last_facts, is_purged=is_purged)

    def _judge(self, facts: pa.Table, *, is_purged: bool) -> Iterator[Breach]:
        """Yield the differing ones of objects; the facts of each are in the order in which they came."""
        objects, codes, numbers = (column.to_numpy() for column in facts.columns[:3])
        starts = begins(objects)
        owners, kinds, firsts = np.cumsum(starts) - 1, codes % _KINDS, np.flatnonzero(starts)
        at, size = np.arange(len(kinds)), len(firsts)
        has = {kind: np.bincount(owners[kinds == kind], minlength=size) > 0 for kind in range(_OPEN, _KINDS)}
        deleted_at, left_at = np.full(size, -1), np.full(size, -1)  # the last one of each
        is_delete, is_event = kinds == _DELETED, (kinds >= _ADDED) & (kinds <= _DELETED)
        deleted_at[owners[is_delete]], left_at[owners[is_event]] = at[is_delete], at[is_event]
        has_document, is_gone, is_present = left_at >= 0, deleted_at == left_at, has[_PRESENT]
        words = np.zeros(size, np.int64)
        words[has_document & is_present & is_gone] = _IS_THERE
        words[has_document & ~is_present & ~is_gone] = _IS_MISSING
        words[~has_document & is_present & has[_FINISHED] & ~has[_REFUSED]] = 0 if is_purged else _NEVER_LEFT
        is_compared = has_document & is_present & ~is_gone & ~has[_OPEN]
        chosen = (kinds <= _VALUE) & is_compared[owners] & ((at > deleted_at[owners]) | (kinds == _VALUE))
        is_whole = has[_ADDED] | has[_DELETED]
        odd = self._odd_attributes(owners[chosen], codes[chosen], numbers[chosen], is_whole)
        words[list(odd)] = _DIFFERS
        words[has[_OPEN]] = 0
        for number in np.flatnonzero(words).tolist():
            facts_of = slice(firsts[number], firsts[number + 1] if number + 1 < size else None)
            own_kinds = kinds[facts_of]
            is_row, is_named = np.isin(own_kinds, (_SILENT, _FINISHED)), own_kinds > _VALUE
            row = numbers[facts_of][is_row if is_row.any() else is_named].max()
            place = int(firsts[number] + is_named.argmax())
            table, key = self._compared[codes[place] // _KINDS], facts.column("key")[place].as_py()
            if words[number] != _IS_MISSING or is_spelled_as_read(table, key):
                words_of = _WORDS[words[number]].format(odd.get(number))
                name, is_gone = f"{self._tables.name_of(table)} {key}", words[number] == _IS_MISSING
                yield Breach(Law.SAME_STATE, int(row), words_of, name, bool(is_gone))

    def _odd_attributes(self, owners: Ints, codes: Ints, numbers: Ints, is_whole: Flags) -> dict[int, str]:
        """Return the first attribute of each object that is not what the table has."""
        kinds, names = codes % _KINDS, codes // _KINDS
        pairs, pair_of = np.unique(owners * len(self._attributes) + names, return_inverse=True)
        at, cleared_at = np.arange(len(kinds)), np.full(len(pairs), -1)
        is_step, is_clear = kinds < _VALUE, kinds == CLEAR
        cleared_at[pair_of[is_clear]] = at[is_clear]
        chosen = np.flatnonzero(~is_clear & (~is_step | (at > cleared_at[pair_of])))
        order = chosen[np.lexsort((numbers[chosen], pair_of[chosen]))]
        firsts = begins(pair_of[order], numbers[order])
        values = np.cumsum(firsts) - 1
        is_then, is_now = np.zeros(firsts.sum(), np.bool_), np.zeros(firsts.sum(), np.bool_)
        steps = is_step[order]
        is_then[values[steps]] = kinds[order[steps]] == ADD  # the last one counts
        is_now[values[~steps]] = True
        differs = np.bincount(pair_of[order[firsts]][is_then != is_now], minlength=len(pairs)) > 0
        is_touched, is_in_row = (
            np.bincount(pair_of[each], minlength=len(pairs)) > 0 for each in (is_step, ~is_step)
        )
        attributes = [*self._attributes]
        is_read = np.array([self._is_read(*attribute) for attribute in attributes], np.bool_)
        is_own = np.array(["." not in name for _, name in attributes], np.bool_)
        owner_of, name_of = np.divmod(pairs, max(1, len(attributes)))
        differs &= is_touched | (is_whole[owner_of] & is_own[name_of])
        differs &= is_in_row | is_read[name_of]  # of a child table only what a document has
        odd: dict[int, str] = {}
        for owner, name in sorted(
            (int(owner_of[at]), attributes[name_of[at]][1]) for at in np.flatnonzero(differs)
        ):
            odd.setdefault(owner, name)
        return odd

    def _is_read(self, number: int, name: str) -> bool:
        """Return whether a query-back reads an attribute of a table."""
        return any(column.published == name for column in self._compared[number].data)


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
