"""Rows of a structure: the sides of a change, and the conversion of values by their columns and types."""

from __future__ import annotations

import datetime as dt
import decimal
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from eventlog.core.change import ABSENT, Absent, Change, Op, Side, Undecoded, Value
from eventlog.core.errors import EventlogError, InvalidValue, NotExpressible, WrongRow
from eventlog.formats.qlik.structure import DataColumn, Structure
from eventlog.formats.qlik.types import DATA_TYPES, Schema, Spec

_NO_SPEC = Spec("")

_FAULTS = (EventlogError, ArithmeticError, ValueError)  # such as those of infinities that should be integers

Step = Callable[[Any, Spec], Any]
Steps = Mapping[type, Step | None]


def written_equal(first: Any, second: Any) -> bool:
    """Return whether two values are written as the same text, unlike the equal 1, 1.0 and true."""
    if first is second:
        return True
    if type(first) is not type(second):
        return False
    if first == second:
        return first != 0 or str(first) == str(second)
    return type(first) is float and math.isnan(first) and math.isnan(second)


def unequal_places(first: Sequence[Any], second: Sequence[Any]) -> list[int]:
    """Return the places of two rows whose values are not written as the same text."""
    return [
        place
        for place, (a, b) in enumerate(zip(first, second, strict=True))
        if a is not b and (a != b or not a or type(a) is not type(b)) and not written_equal(a, b)
    ]


class RowPlan:
    """A converter of rows of one structure; its errors name the column of the value."""

    def __init__(
        self, columns: Sequence[DataColumn], steps: Sequence[Steps], *, checks_sizes: bool = False
    ) -> None:
        """Take the steps of each column; `checks_sizes` refuses values that are longer than their columns."""
        self._columns = columns
        fitting = map(_fitting, columns, steps) if checks_sizes else steps
        by_type = ({**of_column, **_ABSENCE} for of_column in fitting)
        self._steps = [*zip(by_type, (column.spec or _NO_SPEC for column in columns), strict=True)]

    def __call__(self, row: Sequence[Any]) -> list[Any]:
        try:
            return [
                value if (step := steps.get(type(value), _unfit)) is None else step(value, spec)
                for (steps, spec), value in zip(self._steps, row, strict=True)
            ]
        except _FAULTS:
            for place, value in enumerate(row):
                self.convert_value(place, value)  # which names the column
            raise

    def convert_similar(
        self, row: Sequence[Any], converted: Sequence[Any], places: Iterable[int]
    ) -> list[Any]:
        """Return the conversion of a row that differs in these places from one that was converted."""
        similar = [*converted]
        for place in places:
            similar[place] = self.convert_value(place, row[place])
        return similar

    def convert_value(self, place: int, value: Any) -> Any:
        """Return the conversion of a single value."""
        steps, spec = self._steps[place]
        step = steps.get(type(value), _unfit)
        try:
            return value if step is None else step(value, spec)
        except _FAULTS as fault:
            raise self._name_fault(place, fault) from fault

    def _name_fault(self, place: int, fault: Exception) -> NotExpressible:
        return NotExpressible(f"column {self._columns[place].name}: {fault}")


def loading(columns: Sequence[DataColumn]) -> RowPlan:
    """Reads cells, JSON values and what an Avro decoder returns."""
    return RowPlan(columns, [_LOAD if c.spec is None else DATA_TYPES[c.spec.name].loads for c in columns])


def dumping(columns: Sequence[DataColumn]) -> RowPlan:
    """Writes JSON values."""
    steps = [_DUMP if c.spec is None else DATA_TYPES[c.spec.name].json for c in columns]
    return RowPlan(columns, steps, checks_sizes=True)


def dumping_cells(columns: Sequence[DataColumn]) -> RowPlan:
    """Writes cells of a table: as JSON, but that bytes stay bytes, and of any size."""
    columns = [c if c.spec is None else replace(c, spec=Spec(c.spec.name)) for c in columns]
    return RowPlan(columns, [_CELL if c.spec is None else _cells(c.spec.name) for c in columns])


def dumping_avro(columns: Sequence[DataColumn], logical: bool) -> RowPlan:
    """Writes what an Avro encoder takes."""
    return RowPlan(columns, [_avro(c, logical) for c in columns], checks_sizes=True)


def avro_type(column: DataColumn, logical: bool) -> Schema:
    """Return the Avro type of a column's values."""
    spec = column.spec or Spec("STRING")
    data_type = DATA_TYPES[spec.name]
    return data_type.logical(spec) if logical else data_type.avro


def _avro(column: DataColumn, logical: bool) -> Steps:
    data_type = DATA_TYPES[column.spec.name if column.spec else "STRING"]
    return data_type.as_logical if logical else data_type.plain


def _fitting(column: DataColumn, steps: Steps) -> Steps:
    """Return steps that check a column's sizes, if it has some; values of a guessed type fit."""
    spec = column.spec if column.declared else None
    fit = DATA_TYPES[spec.name].fit if spec is not None and (spec.length or spec.precision) else None
    return steps if fit is None else {kind: _after(fit, step) for kind, step in steps.items()}


def _after(fit: Step, step: Step | None) -> Step:
    return fit if step is None else lambda value, spec: step(fit(value, spec), spec)


def _cells(name: str) -> Steps:
    data_type = DATA_TYPES[name]
    return data_type.plain if data_type.avro == "bytes" else data_type.json


def _unfit(value: Any, spec: Spec) -> Any:
    if isinstance(value, tuple):
        raise NotExpressible("a value of several parts has no place in a row of Replicate")
    if isinstance(value, Undecoded):
        raise NotExpressible("bytes that are not text in their code set have no place in a row of Replicate")
    raise NotExpressible(f"a value of type {type(value).__name__} is no {spec.name or 'value of a column'}")


def _finite(value: float, spec: Spec) -> Value:
    if not math.isfinite(value):
        raise InvalidValue(value, "a finite number")
    return value


_ABSENCE: dict[type, Step | None] = {type(None): None, Absent: lambda value, spec: None}
_LOAD: Steps = {
    **dict.fromkeys((bool, int, str, bytes)),
    float: _finite,
    decimal.Decimal: lambda value, spec: format(value, "f"),
    dt.date: lambda value, spec: value.isoformat(),
    dt.datetime: DATA_TYPES["DATETIME"].loads[dt.datetime],
    dt.time: DATA_TYPES["TIME"].loads[dt.time],
}
_CELL: Steps = dict.fromkeys((bool, int, float, str, bytes))
_DUMP: Steps = {**_CELL, bytes: DATA_TYPES["BYTES"].json[bytes]}


def row_sides(structure: Structure, change: Change) -> tuple[Sequence[Side], Sequence[Side]]:
    """Return the row of a structure before and after a change; the key fills in missing columns.

    A column that an update names several times had the first value before it and has the last one after it.
    """
    if change.fields and len(change.fields) == len(structure.columns):
        names, befores, afters = zip(*change.fields, strict=True)
        if names == structure.names and (change.op is not Op.UPDATE or ABSENT not in befores):
            return befores, afters
    before: list[Side] = [ABSENT] * len(structure.columns)
    after: list[Side] = before.copy()
    index = structure.index
    for name, value in change.key_before if change.op in (Op.UPDATE, Op.DELETE) else ():
        before[_place(index, name, structure)] = value
    for name, value in change.key if change.op is not Op.DELETE else ():
        after[_place(index, name, structure)] = value
    seen_names: set[str] = set()
    for name, old_value, new_value in change.fields:
        place = _place(index, name, structure)
        if name in seen_names and change.op is not Op.UPDATE:
            raise NotExpressible(f"column {name}: several values have no place in a row of Replicate")
        if old_value is not ABSENT and name not in seen_names:
            before[place] = old_value
        if new_value is not ABSENT:
            after[place] = new_value
        seen_names.add(name)
    return before, after


def _place(index: dict[str, int], name: str, structure: Structure) -> int:
    place = index.get(name)
    if place is None:
        raise WrongRow(f"table {structure} has no column {name!r}: name it in the tables file")
    return place


def differing(
    before: Sequence[Side], after: Sequence[Side], image: Sequence[Any], row: Sequence[Any]
) -> list[int]:
    """Return the places of the captured columns whose written values differ; 1, 1.0 and true do.

    `image` and `row` are `before` and `after` as they are written.
    """
    places = unequal_places(image, row)
    if ABSENT not in before and ABSENT not in after:
        return places
    differing_places = set(places)
    both = enumerate(zip(before, after, strict=True))
    return [i for i, (b, a) in both if a is not ABSENT and (b is ABSENT or i in differing_places)]
