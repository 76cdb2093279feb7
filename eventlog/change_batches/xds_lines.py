"""A change as a line that is a document of one event."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventlog.change_batches import lines
from eventlog.change_batches.batch import OPS, BatchTable, ChangeBatch, ValueKind
from eventlog.change_batches.lines import BEFORE, NOTHING, Constants, Pieces
from eventlog.change_batches.values import Texts, value_of
from eventlog.core import tablekey
from eventlog.core.change import ABSENT, Change, Field, Op
from eventlog.core.errors import EventlogError
from eventlog.core.tables import Tables
from eventlog.fold.by_column.vectors import Flags, suspects
from eventlog.xds.skeleton import Frame, Skeletons, Treatment
from eventlog.xds.write import Render
from eventlog.xds.xds_settings import XdsSettings

_ELEMENTS = {Op.INSERT: "add", Op.UPDATE: "modify", Op.DELETE: "delete"}  # others have an id of their own
_TEXTS = (Treatment.TEXT, Treatment.PADDED)  # whose values changes hold as they are
_MAX_RENDERED = 20_000  # texts of a column whose elements are remembered


class XdsLines:
    """The form of documents with one event each."""

    separator = ""

    def __init__(self, tables: Tables, settings: XdsSettings, table: BatchTable) -> None:
        self._form = Skeletons(tables, settings)
        self._batch_table = table
        described = tables.of(table.schema, table.name)
        assert described is not None
        self._table = described
        self._frames = [self._learn_frame(op) for op in OPS]
        self._makers = [self._maker(place) for place in range(len(table.columns))]

    def may_lack_fields(self, op: Op) -> bool:
        """Return whether an event of this operation may be empty."""
        return op is not Op.UPDATE

    def constants(self, op: Op, field: Field) -> Constants | None:
        """Return what a field adds to an event."""
        element = _ELEMENTS.get(op)
        if element is None:
            return None
        if op is Op.UPDATE and field.after is ABSENT:
            return NOTHING
        change = Change(op, self._batch_table.schema, self._batch_table.name, (), (field,))
        try:
            return lines.split("".join(self._form.body(element, change)))
        except EventlogError:
            return None

    def texts(self, place: int, values: pa.Array) -> Texts:
        """Return the values of a column as events hold them."""
        return self._makers[place](values)

    def frame(self, batch: ChangeBatch, body: Pieces) -> Texts:
        """Return the documents with these contents of their events."""
        odd = np.array([frame is None for frame in self._frames])[batch.ops]
        key: Pieces = []
        for number, (place, values) in enumerate(zip(batch.table.key, batch.key, strict=True)):
            name = batch.table.columns[place]
            texts, is_odd = self._key_texts(place, values)
            odd |= is_odd | (not tablekey.legal_name(name))
            key += [f"{'+' if number else ''}{self._form.content(name)}=", texts]
        before, after = self._form.around
        table_name = self._table_name()
        parts = zip(*(frame or Frame("", "", "", "") for frame in self._frames), strict=True)
        before_id, before_key, before_body, after_body = (
            pa.array(texts, pa.string()).take(pa.array(batch.ops)) for texts in parts
        )
        opening = lines.join(before, before_id, self._form.event_id(f"{table_name}:"))
        documents = lines.join(
            opening, batch.positions, before_key, *key, before_body, *body, after_body, f"{after}\n"
        )
        return Texts(documents, odd)

    def _table_name(self) -> str:
        table = self._batch_table
        return table.name if table.schema is None else f"{table.schema}.{table.name}"

    def _learn_frame(self, op: Op) -> Frame | None:
        if op not in _ELEMENTS:
            return None
        table = self._batch_table
        key = tuple((table.columns[place], BEFORE) for place in table.key)
        try:
            return self._form.frame(_ELEMENTS[op], Change(op, table.schema, table.name, key))
        except EventlogError:
            return None

    def _maker(self, place: int) -> Callable[[pa.Array], Texts]:
        column = self._table.column(self._batch_table.columns[place])
        kind = self._batch_table.kinds[place]
        how = self._form.treatment(column)
        if how is Treatment.INT and kind is ValueKind.INT:
            return _as_they_are
        if how in _TEXTS and kind in (ValueKind.INT, ValueKind.FLOAT):
            return _as_they_are
        if how in _TEXTS and kind is ValueKind.TEXT:
            return self._escaped
        if how is not Treatment.ELEMENT or column is None:
            return _none_is_certain
        return _Elements(self._form.renderer(column, self._table, self._batch_table.name), kind)

    def _escaped(self, values: pa.Array) -> Texts:
        return _each_at(values, suspects(values, self._form.escapes), self._form.content)

    def _key_texts(self, place: int, values: pa.Array) -> Texts:
        """Return the values of a key column as an association holds them."""
        name, kind = self._batch_table.columns[place], self._batch_table.kinds[place]

        def text(value: str) -> str:
            return self._form.content(tablekey.quote(self._table.dump(name, value_of(kind, value))))

        how = self._form.treatment(self._table.column(name))
        if how is Treatment.INT and kind is ValueKind.INT:
            return Texts(values, _none(values))
        if how is Treatment.TEXT and kind is ValueKind.TEXT:
            special = tuple((character, "") for character in tablekey.SPECIAL)
            return _each_at(values, suspects(values, (*self._form.escapes, *special)), text)
        return _each_at(values, np.arange(len(values)), text)


class _Elements:
    """The elements of a column's values, each made by the plain writer; the last are remembered."""

    def __init__(self, render: Render, kind: ValueKind) -> None:
        self._render = render
        self._kind = kind
        self._rendered: dict[str, str | None] = {}

    def __call__(self, values: pa.Array) -> Texts:
        encoded = pc.dictionary_encode(values)
        texts = pa.array(list(map(self._element, encoded.dictionary.to_pylist())), pa.string())
        texts = texts.take(encoded.indices)
        return Texts(texts, np.asarray(pc.and_(pc.is_null(texts), pc.is_valid(values))))

    def _element(self, text: str) -> str | None:
        if text not in self._rendered:
            if len(self._rendered) >= _MAX_RENDERED:
                self._rendered.clear()
            try:
                self._rendered[text] = self._render(value_of(self._kind, text))
            except (EventlogError, ValueError):
                self._rendered[text] = None
        return self._rendered[text]


def _each_at(values: pa.Array, at: Any, make: Callable[[str], str]) -> Texts:
    """Return the values with those at some positions made one by one."""
    odd = _none(values)
    if not len(at):
        return Texts(values, odd)
    texts: list[str | None] = []
    for position, value in zip(at.tolist(), values.take(pa.array(at)).to_pylist(), strict=True):
        try:
            texts.append(None if value is None else make(value))
        except EventlogError:
            texts.append(None)
            odd[position] = True
    return Texts(lines.replace_at(values, at, texts), odd)


def _none(values: pa.Array) -> Flags:
    return np.zeros(len(values), np.bool_)


def _as_they_are(values: pa.Array) -> Texts:
    return Texts(values, _none(values))


def _none_is_certain(values: pa.Array) -> Texts:
    return Texts(values, np.ones(len(values), np.bool_))
