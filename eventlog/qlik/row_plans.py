"""Rows of values converted by type: a plan for each combination of Python types, made once.

Most values already have the wire's form, so a plan is short or empty. Looking it up by the types of a whole
row is far cheaper than asking each value.
"""

from __future__ import annotations

import datetime as dt
import decimal
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from eventlog.core.change import Absent, Undecoded, Value
from eventlog.core.errors import EventlogError, InvalidValue, NotExpressible
from eventlog.qlik.structure import DataColumn
from eventlog.qlik.types import DATA_TYPES, Schema, Spec

_NO_SPEC = Spec("")
_MAX_PLANS = 1_000

_FAULTS = (EventlogError, ArithmeticError, ValueError)  # infinities that should be integers, and their like

Step = Callable[[Any, Spec], Any]
Steps = Mapping[type, Step | None]


def alike(one: Any, other: Any) -> bool:
    """Return whether two values are written alike, which equal ones need not be: 1, 1.0 and true, 0.0 and
    -0.0.
    """
    if one is other:
        return True
    return one == other and type(one) is type(other) and (one != 0 or str(one) == str(other))


class RowPlan:
    """A converter of rows of one structure; its errors name the column of the value."""

    def __init__(self, columns: Sequence[DataColumn], steps: Sequence[Steps]) -> None:
        self._columns = columns
        self._steps = steps
        self._plans: dict[tuple[type, ...], tuple[tuple[int, Step, Spec], ...]] = {}

    def __call__(self, row: Sequence[Any]) -> Sequence[Any]:
        types = tuple(map(type, row))
        plan = self._plans.get(types)
        if plan is None:
            plan = self._make(types)
        if not plan:
            return row
        converted = list(row)
        place = 0
        try:
            for place, step, spec in plan:
                converted[place] = step(converted[place], spec)
        except _FAULTS as fault:
            raise self._named(place, fault) from fault
        return converted

    def beside(self, row: Sequence[Any], other: Sequence[Any], done: Sequence[Any]) -> Sequence[Any]:
        """Convert a row when another row and its conversion are at hand, because most values are equal."""
        types = tuple(map(type, row))
        plan = self._plans.get(types)
        if plan is None:
            plan = self._make(types)
        if not plan:
            return row
        converted = list(row)
        place = 0
        try:
            for place, step, spec in plan:
                value, near = converted[place], other[place]
                same = value and value == near and type(value) is type(near)  # 0.0 equals -0.0
                converted[place] = done[place] if same else step(value, spec)
        except _FAULTS as fault:
            raise self._named(place, fault) from fault
        return converted

    def one(self, place: int, value: Any) -> Any:
        """Return the conversion of a single value."""
        kind = type(value)
        step = _ABSENCE[kind] if kind in _ABSENCE else self._steps[place].get(kind, _unfit)
        if step is None:
            return value
        try:
            return step(value, self._columns[place].spec or _NO_SPEC)
        except _FAULTS as fault:
            raise self._named(place, fault) from fault

    def _named(self, place: int, fault: Exception) -> NotExpressible:
        return NotExpressible(f"column {self._columns[place].name}: {fault}")

    def _make(self, types: tuple[type, ...]) -> tuple[tuple[int, Step, Spec], ...]:
        if len(self._plans) >= _MAX_PLANS:
            self._plans.clear()
        found = []
        for place, (column, steps, kind) in enumerate(zip(self._columns, self._steps, types, strict=True)):
            step = _ABSENCE[kind] if kind in _ABSENCE else steps.get(kind, _unfit)
            if step is not None:
                found.append((place, step, column.spec or _NO_SPEC))
        self._plans[types] = tuple(found)
        return self._plans[types]


def loading(columns: Sequence[DataColumn]) -> RowPlan:
    """Reads cells, JSON values and what an Avro decoder returns."""
    return RowPlan(columns, [_LOAD if c.spec is None else DATA_TYPES[c.spec.name].loads for c in columns])


def dumping(columns: Sequence[DataColumn]) -> RowPlan:
    """Writes JSON values."""
    return RowPlan(columns, [_DUMP if c.spec is None else DATA_TYPES[c.spec.name].json for c in columns])


def dumping_cells(columns: Sequence[DataColumn]) -> RowPlan:
    """Writes cells of a table: as JSON, but that bytes stay bytes."""
    return RowPlan(columns, [_CELL if c.spec is None else _cells(c.spec.name) for c in columns])


def dumping_avro(columns: Sequence[DataColumn], logical: bool) -> RowPlan:
    """Writes what an Avro encoder takes."""
    return RowPlan(columns, [_avro(c, logical) for c in columns])


def avro_type(column: DataColumn, logical: bool) -> Schema:
    """Return the Avro type of a column's values."""
    spec = column.spec or Spec("STRING")
    data_type = DATA_TYPES[spec.name]
    return data_type.logical(spec) if logical else data_type.avro


def _avro(column: DataColumn, logical: bool) -> Steps:
    data_type = DATA_TYPES[column.spec.name if column.spec else "STRING"]
    return data_type.as_logical if logical else data_type.plain


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
