"""The rows of our DataFrames: documents or changes, a row each, with the refused records among them."""

from __future__ import annotations

import decimal
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any, Final, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as f

from eventlog.core.change import ABSENT, Change, Side, Value, scalars
from eventlog.core.errors import EventlogError, InvalidTables, NotExpressible, Refused
from eventlog.core.tables import Column, Table, Tables
from eventlog.fold import Event
from eventlog.fold.by_column.vectors import Ints
from eventlog.formats.neutral import dumps, refuse
from eventlog.library import document_of
from eventlog.transfer.targets.lake.lake_types import frame_type, value_maker
from eventlog.transfer.targets.tables.cells import ToCell
from eventlog.xds.write import EventWriter
from eventlog.xds.xds_settings import XdsSettings

FrameRow = tuple[Any, ...]
Good = Callable[[Iterable[Any]], Iterator[Any]]  # yields the records that are not refused

_NUMBER = pa.decimal128(38, 0)
_DIGITS: Final = 20
_HALF: Final = 5 * 10**38  # so that also numbers below zero sort as text
_PLACE = pa.struct([("time", pa.string()), ("number", _NUMBER), ("part", pa.int32())])
_RECORD_IDS = ("record_ids", pa.list_(pa.int64()))
_REASON = [("refused", pa.string()), ("record", pa.string())]
REFUSAL: Final = [_RECORD_IDS, *_REASON]
_DOCUMENT = [
    ("document", pa.string()),
    ("event_id", pa.string()),
    ("table", pa.string()),
    ("key", pa.string()),
    ("op", pa.string()),
    ("first_record_id", pa.int64()),
    ("last_record_id", pa.int64()),
    _RECORD_IDS,
    ("order", pa.string()),
    ("place", _PLACE),
]
_CHANGE = [
    ("op", pa.string()),
    ("schema", pa.string()),
    ("table", pa.string()),
    ("position", pa.string()),
    ("transaction", pa.string()),
    ("time", pa.string()),
    ("user", pa.string()),
    ("order", pa.string()),
    ("place", _PLACE),
    ("change", pa.string()),
]


def filter_into(refused: list[Refused]) -> Good:
    """Return a filter that yields good records, and adds the others to this list."""

    def good(records: Iterable[Any]) -> Iterator[Any]:
        for record in records:
            if isinstance(record, Refused):
                refused.append(record)
            else:
                yield record

    return good


def rows_of_changes(form: Changes, changes: Iterable[Change], refused: list[Refused]) -> Iterator[FrameRow]:
    """Yield the rows of changes that are read, and of the records that are added to `refused` meanwhile."""
    rows = chain.from_iterable(map(form.of_change, changes))
    return with_refusals(filter_into(refused)(rows), refused, form.refused)


def with_refusals(
    rows: Iterable[FrameRow], refused: list[Refused], row_of: Callable[[str, str | None], FrameRow]
) -> Iterator[FrameRow]:
    """Yield rows, and those of the records that are added to `refused` meanwhile, at their places.

    A warning without a fault is no record.
    """
    for row in chain(rows, (None,)):
        for record in refused:
            if record.fault:
                yield row_of(f"{record.where}: {record.reason}", text_of(record.raw))
        refused.clear()
        if row is not None:
            yield row


def text_of(raw: bytes | None) -> str | None:
    """Return a record as it came, as a column of texts holds it."""
    return None if raw is None else raw.decode(errors="backslashreplace").rstrip("\n")


@dataclass(frozen=True)
class Documents:
    """A row for each XDS document."""

    tables: Tables
    settings: XdsSettings

    @property
    def schema(self) -> pa.Schema:
        return pa.schema(_DOCUMENT + _REASON)

    @cached_property
    def _writer(self) -> EventWriter:
        return EventWriter(self.tables, self.settings)

    def of_event(self, event: Event) -> Iterator[FrameRow | Refused]:
        for document in document_of(event, self._writer, self.settings):
            if isinstance(document, Refused):
                yield document
            else:
                text, event_id, op, table, key, record_ids = document
                ids = record_ids[0], record_ids[-1], list(record_ids)
                yield (text, event_id, table, key, str(op), *ids, *_order(*event.place), None, None)

    def refused(self, reason: str, record: str | None, record_ids: Sequence[int] = ()) -> FrameRow:
        ids = list(record_ids)
        ends = ids[0] if ids else None, ids[-1] if ids else None
        return (*[None] * 5, *ends, ids, None, None, reason, record)


@dataclass(frozen=True)
class Changes:
    """A row for each change: whole as a line of the format `changes`, and of one `table` typed as well."""

    tables: Tables
    table: Table | None = None

    @classmethod
    def of(cls, tables: Tables, typed: str | None) -> Self:
        """Return the changes of all tables; or of one, whose columns get their types."""
        table = tables.get(typed) if typed else None
        if table is not None and not table.columns:
            raise InvalidTables(f"table {table} has no columns with types in the tables file")
        return cls(tables, table)

    @cached_property
    def schema(self) -> pa.Schema:
        return pa.schema(_CHANGE + (_typed(self.table) if self.table is not None else []) + REFUSAL)

    def of_event(self, event: Event) -> Iterator[FrameRow | Refused]:
        return self._rows(event.change, _order(*event.place))

    def of_change(self, change: Change) -> Iterator[FrameRow | Refused]:
        """Yield the row of a change of another source than a log; `in_order` adds its place."""
        return self._rows(change, (None, None))

    def _rows(self, change: Change, order: FrameRow) -> Iterator[FrameRow | Refused]:
        schema, table = change.schema, change.table
        if self.table is not None and self.tables.of(schema, table) != self.table:
            return
        try:
            line = dumps(change)
            line.encode()
            typed = self._cells(change) if self.table is not None else ()
        except UnicodeEncodeError:
            yield refuse(change, NotExpressible("it contains half of a character, which UTF-8 cannot hold"))
        except EventlogError as fault:
            yield refuse(change, fault)
        else:
            facts = change.position, change.transaction, change.time, change.user
            yield (change.op.value, schema, table, *facts, *order, line, *typed, None, None, None)

    def _cells(self, change: Change) -> FrameRow:
        assert self.table is not None
        sides = (dict(change.key), change.before, change.after)
        key, before, after = map(self._typed, sides)
        typed = before or None, after or None, list(after)
        return (key or None, *typed) if self.table.key else typed

    def _typed(self, side: Mapping[str, Value]) -> dict[str, Any]:
        """Return the values that the table's columns hold."""
        assert self.table is not None
        values = {}
        for name, value in side.items():
            column = self.table.column(name)
            if column is not None:
                values[column.name] = self._value(column, value)
        return values

    def _value(self, column: Column, value: Side) -> Any:
        make = self._makers[column.name]
        try:
            if column.multivalued:
                return [make(scalar) for scalar in scalars(value)]
            assert value is not ABSENT
            return make(value)
        except EventlogError as fault:
            raise NotExpressible(f"column {column.name}: {fault}") from fault

    @cached_property
    def _makers(self) -> dict[str, ToCell]:
        assert self.table is not None
        return {c.name: value_maker(frame_type(c)) for c in self.table.columns.values()}

    def refused(self, reason: str, record: str | None, record_ids: Sequence[int] = ()) -> FrameRow:
        return (*[None] * (len(self.schema) - len(REFUSAL)), list(record_ids) or None, reason, record)


FrameForm = Documents | Changes


def _typed(table: Table) -> list[tuple[str, pa.DataType]]:
    """Return the key, the row before and after, and which columns of it were supplied."""
    row = pa.struct([_field(column) for column in table.columns.values()])
    key = pa.struct([_field(column) for column in table.key_columns])
    typed = [("key", key)] if table.key else []
    return [*typed, ("before", row), ("after", row), ("supplied", pa.list_(pa.string()))]


def _field(column: Column) -> pa.Field:
    kind = frame_type(column).arrow
    return pa.field(column.name, pa.list_(kind) if column.multivalued else kind)


def _order(time: str, number: int, part: int) -> FrameRow:
    """Return where an event is in its log, as text that sorts and as its parts."""
    text = f"{time} {number + _HALF:039} {part:010}".lstrip()
    return text, {"time": time, "number": decimal.Decimal(number), "part": part}


def document_columns(record_ids: Ints, parts: Ints) -> list[pa.Array]:
    """Return by column what `_order` returns of events without a time, and that nothing is refused."""
    if (record_ids < 0).any():
        texts, _ = zip(*map(_order, [""] * len(parts), record_ids.tolist(), parts.tolist()), strict=True)
        order = pa.array(texts, pa.string())
    else:
        number, part = (
            pc.utf8_lpad(pa.array(values).cast(pa.string()), width, "0")
            for values, width in ((record_ids, len(str(_HALF)) - 1), (parts, 10))
        )
        order = pc.binary_join_element_wise(f"{_HALF}"[0], number, " ", part, "")
    none = pa.nulls(len(parts), pa.string())
    time = pa.array([""]).take(pa.array(np.zeros(len(parts), np.int64)))
    numbers = pa.array(record_ids).cast(_NUMBER)
    place = pa.StructArray.from_arrays([time, numbers, pa.array(parts, pa.int32())], fields=list(_PLACE))
    return [order, place, none, none]


def in_order(frame: Any) -> Any:
    """Return changes that come in their order, each with its place in it.

    Spark numbers them, for no task knows how many changes the tasks before it have.
    """
    number = f.monotonically_increasing_id()
    place = f.struct(f.lit(None).alias("time"), number.alias("number"), f.lit(None).alias("part"))
    columns = {"order": f.lpad(number.cast("string"), _DIGITS, "0"), "place": place}
    types = {field.name: field.dataType for field in frame.schema.fields}
    there = f.col("change").isNotNull()
    return frame.withColumns(
        {name: f.when(there, value).cast(types[name]) for name, value in columns.items()}
    )
