"""The net effect of many changes of one table: a row for each key, folded as `apply` folds them.

Changes meet by their keys. A change that moves a row, and lacks columns of it, joins two keys; the keys that
are joined are one component. Only the current rows of components are read.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as f
from pyspark.sql.pandas.types import from_arrow_schema

from eventlog.core.change import ABSENT, Change
from eventlog.core.errors import EventlogError, InvalidTables, Misuse
from eventlog.core.tables import Table, Tables
from eventlog.files.current_files import keyed
from eventlog.formats import neutral
from eventlog.formats.qlik.structure import spec_of
from eventlog.library import Description, parse_settings, tables_of
from eventlog.transfer.targets.lake.lake_types import (
    UUID,
    LakeType,
    array_of,
    cell_maker,
    cells_in,
    column_maker,
    column_of,
    lake_type,
    type_of,
)
from eventlog.transfer.targets.tables.apply_settings import ApplySettings
from eventlog.transfer.targets.tables.cells import Cells
from eventlog.transfer.targets.tables.net_effect import NetEffect, RowEffect
from eventlog.transfer.targets.tables.outcomes import NoRow
from eventlog.transfer.targets.tables.table import (
    BlockReading,
    KeyChange,
    RowChange,
    RowKey,
    Step,
    TableTarget,
    Truncation,
    blocks_of,
)
from eventlog_spark.batches import bounded, joined
from eventlog_spark.current_rows import by_number
from eventlog_spark.spark_versions import frame_of, partitions_of

WRITE: Final = "write"  # the row is there with these values: it is changed, or made
UPDATE: Final = "update"  # the row takes these values if it is there
DELETE: Final = "delete"
TRUNCATE: Final = "truncate"  # every row that is not written is gone; this row has no key
_REFUSAL = [("refused", pa.string()), ("record", pa.string())]
RowStep = RowChange | KeyChange
_NOT_IN_SPARK: Final = (UUID, pa.time64("us"))  # which are texts there
_PLACED = pa.schema(
    [
        ("order", pa.string()),
        ("key", pa.string()),  # null of a truncate, and of a refused change
        ("key_before", pa.string()),  # of a moved row that lacks columns
        ("line", pa.string()),
        ("refused", pa.string()),
    ]
)


def net_changes(
    changes: Any,
    tables: Description,
    name: str,
    *,
    current: Any = None,
    missing_rows: str = "refuse",
    partitions: int | None = None,
) -> Any:
    """Return the net effect of the changes of one table, with a row for each key.

    `changes` is a result of the function of this name. It is read now, and kept by the executors. `current`
    is the table before these changes; it is needed if a row takes another key and its change lacks columns.
    """
    form = NetForm(tables_of(tables), name, missing_rows)
    return net_of(place(changes, form), form, current, partitions)


def place(changes: Any, form: NetForm) -> Any:
    """Return the steps of changes with their keys, read once and kept by the executors."""
    columns = ["order", "change", "refused", "record"]
    if missing_columns := [name for name in columns if name not in changes.columns]:
        raise Misuse(
            f"changes: it has no column {missing_columns[0]}; give what the function changes returns"
        )
    return (
        changes.select(*columns).mapInArrow(PlaceChanges(form), from_arrow_schema(_PLACED)).localCheckpoint()
    )


def net_of(placed: Any, form: NetForm, current: Any, partitions: int | None = None) -> Any:
    """Return the net effect of steps that have their keys."""
    emptied = placed.where("key is null and refused is null").agg(f.max("order")).first()[0]
    steps = placed if emptied is None else placed.where(f.col("order") > emptied)
    steps = _by_component(steps.where("key is not null"), form, current, is_emptied=emptied is not None)
    count = partitions or partitions_of(placed.sparkSession)
    steps = steps.repartition(count, "component").sortWithinPartitions("component", "order")
    net = steps.mapInArrow(FoldComponents(form, is_emptied=emptied is not None), form.spark_schema)
    unfolded = [placed.where("refused is not null").select("refused", f.col("line").alias("record"))]
    if emptied is not None:
        unfolded.append(placed.sparkSession.range(1).select(f.lit(TRUNCATE).alias("action")))
    for rows in unfolded:
        net = net.unionByName(rows, allowMissingColumns=True)
    return net


def _by_component(steps: Any, form: NetForm, current: Any, *, is_emptied: bool) -> Any:
    """Return steps with their components, and among them the current rows of those with several keys."""
    row = f.lit(None).cast(form.spark_row)
    links = steps.where("key_before is not null").select("key", "key_before").distinct().collect()
    columns = steps.select("order", "key", "line", row.alias("row"))
    if not links:
        return columns.withColumn("component", f.col("key"))
    if current is None and not is_emptied:
        raise Misuse("current: a row takes another key, and its change lacks columns; give the table")
    component_by_key = _components(links)
    texts = {"key": [*component_by_key], "component": [*component_by_key.values()]}
    key_schema = from_arrow_schema(form.key_schema, prefer_timestamp_ntz=True)
    keys = frame_of(steps.sparkSession, pa.table(texts)).mapInArrow(form.typed_keys, key_schema)
    names = f.broadcast(keys.select("key", "component"))
    columns = columns.join(names, "key", "left")
    columns = columns.withColumn("component", f.coalesce("component", "key"))
    if is_emptied:
        return columns
    requests = keys.select(f.lit("").alias("order"), "key", "component")
    rows = form.rows_of(current).alias("rows").join(f.broadcast(keys.alias("keys")), form.same_key())
    current_rows = rows.select(f.lit("").alias("order"), "keys.key", "rows.row", "keys.component")
    return columns.unionByName(
        requests.unionByName(current_rows, allowMissingColumns=True), allowMissingColumns=True
    )


def _components(links: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return for each key of links one key, which is the same for all that are linked."""
    parents: dict[str, str] = {}

    def root_of(key: str) -> str:
        parent = parents.setdefault(key, key)
        while parent != parents[parent]:
            parents[key] = parents[parent]
            key, parent = parent, parents[parent]
        return parent

    for first, second in links:
        parents[root_of(first)] = root_of(second)
    return {key: root_of(key) for key in list(parents)}


@dataclass(frozen=True)
class NetForm:
    """The net effect of changes on one table of the tables file, whose columns have the types of a lake."""

    tables: Tables
    name: str
    missing_rows: str

    def __post_init__(self) -> None:
        parse_settings({"missing_rows": self.missing_rows}, ApplySettings)

    @cached_property
    def table(self) -> Table:
        return keyed(self.tables, self.name)

    @cached_property
    def types(self) -> Mapping[str, LakeType]:
        """The types of the columns by their names."""
        if not self.table.columns:
            raise InvalidTables(f"table {self.table} has no columns with types in the tables file")
        lake_types = {c.name: type_of(spec_of(c), c.type) for c in self.table.columns.values()}
        return {
            name: lake_type(pa.string() if of in _NOT_IN_SPARK else of) for name, of in lake_types.items()
        }

    @cached_property
    def target(self) -> TableTarget:
        columns = {name: column_of(name, of) for name, of in self.types.items()}
        key = self.table.key
        described = [
            (of, columns[name], {"keyed": name in key, "nullable": name not in key})
            for name, of in self.types.items()
        ]
        return TableTarget(
            Table(None, self.name, columns, key),
            self.name,
            tuple(cell_maker(of, column, **how) for of, column, how in described),
            tuple(column_maker(of, column, **how) for of, column, how in described),
        )

    @property
    def row(self) -> pa.DataType:
        return pa.struct([(name, of.arrow) for name, of in self.types.items()])

    @property
    def schema(self) -> pa.Schema:
        supplied = ("supplied", pa.list_(pa.string()))
        return pa.schema([("action", pa.string()), ("row", self.row), supplied, *_REFUSAL])

    @property
    def spark_schema(self) -> Any:
        return from_arrow_schema(self.schema, prefer_timestamp_ntz=True)

    @property
    def spark_row(self) -> Any:
        return self.spark_schema["row"].dataType

    def rows_of(self, frame: Any) -> Any:
        """Return the rows of a table of a lake as structs; raise InvalidTables if its types are others."""
        places = {name.lower(): n for n, name in enumerate(frame.columns)}
        for field in self.spark_row.fields:
            place = places.get(field.name.lower())
            if place is None:
                raise InvalidTables(f"table {self.name}: the lake has no column {field.name}")
            there, here = (of.dataType.simpleString() for of in (frame.schema.fields[place], field))
            if there != here:
                raise InvalidTables(
                    f"table {self.name}: {field.name} is {there} in the lake, and {here} here"
                )
        cells = [f.col(f"c{places[name.lower()]}").alias(name) for name in self.types]
        return by_number(frame).select(f.struct(*cells).alias("row"))

    def same_key(self) -> Any:
        """Return the condition that a row of `rows` has the key of one of `keys`."""
        pairs = [f.col(f"rows.row.`{name}`") == f.col(f"keys.k{n}") for n, name in enumerate(self.table.key)]
        condition = pairs[0]
        for pair in pairs[1:]:
            condition &= pair
        return condition

    @property
    def key_schema(self) -> pa.Schema:
        """Return the columns of keys: the text, the component, and the values."""
        values = [(f"k{n}", self.types[name].arrow) for n, name in enumerate(self.table.key)]
        return pa.schema([("key", pa.string()), ("component", pa.string()), *values])

    def typed_keys(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield keys with their values."""
        for batch in batches:
            keys = zip(*map(self.key_of, batch.column("key").to_pylist()), strict=True)
            types = [self.types[name] for name in self.table.key]
            values = [array_of(of, cells) for of, cells in zip(types, keys, strict=True)]
            if values:
                yield pa.record_batch([*batch.columns, *values], schema=self.key_schema)

    def key_of(self, text: str) -> RowKey:
        """Return the key of a text of `key_text`."""
        types = [self.types[name].arrow for name in self.table.key]
        cells = zip(types, json.loads(text), strict=True)
        return tuple(bytes.fromhex(cell) if pa.types.is_binary(of) else cell for of, cell in cells)

    def readings(
        self, lines: Iterable[str | None]
    ) -> Iterator[tuple[int, Change, Sequence[Step] | EventlogError]]:
        """Yield the changes of this table with their numbers: what each does, or why it is impossible."""
        numbered = [(n, neutral.load(json.loads(line))) for n, line in enumerate(lines) if line is not None]
        of_table = [(n, change) for n, change in numbered if self.tables.of(*change[1:3]) == self.table]
        for block in blocks_of(change for _, change in of_table):
            reading = BlockReading(self.target, block)
            for place, steps in enumerate(reading.steps()):
                yield *of_table[block.numbers[place]], reading.faults.get(place) or steps


def key_text(key: RowKey) -> str:
    """Return the text of a key, by which its changes meet."""
    return json.dumps(key, ensure_ascii=False, default=bytes.hex)


@dataclass(frozen=True)
class PlaceChanges:
    """A task that finds the keys of changes: a row for each step, or one with the reason of a refusal."""

    form: NetForm

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return bounded(chain.from_iterable(map(self._rows, joined(batches))), _PLACED)

    def _rows(self, batch: pa.RecordBatch) -> Iterator[tuple[str | None, ...]]:
        orders, lines, reasons, records = (column.to_pylist() for column in batch.columns)
        for reason, record in zip(reasons, records, strict=True):
            if reason is not None:
                yield None, None, None, record, reason
        for number, _, steps in self.form.readings(lines):
            order, line = orders[number], lines[number]
            if isinstance(steps, EventlogError):
                yield order, None, None, line, str(steps)
                continue
            for step in steps:
                if isinstance(step, Truncation):
                    yield order, None, None, line, None
                else:
                    before = key_text(step.key_before) if isinstance(step, KeyChange) else None
                    yield order, key_text(step.key), before, line, None


@dataclass(frozen=True)
class FoldComponents:
    """A task that folds the steps of whole components, sorted by component and order."""

    form: NetForm
    is_emptied: bool

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in whole_components(joined(batches)):
            has_line = batch.column("line").is_valid()
            yield from self._folded(batch.filter(has_line), batch.filter(pc.invert(has_line)))

    def _folded(self, placed: pa.RecordBatch, current: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        cells_by_key = self._current(current.filter(current.column("row").is_valid()))
        read_keys = {self.form.key_of(text) for text in current.column("key").to_pylist()}
        steps, insert = self._steps(placed), self.form.missing_rows == "insert"
        missing = _keys_of(steps) if self.is_emptied else read_keys - cells_by_key.keys()
        net = NetEffect(steps, missing, insert=insert)
        written = self._surely_written(steps, net)
        rows = []
        for effect in net.effects.values():
            if effect.before is not None:
                pairs = zip(effect.cells, cells_by_key[effect.before], strict=True)
                effect.cells = [there if cell is ABSENT else cell for cell, there in pairs]
            action = {"w": WRITE, "u": UPDATE}.get(effect.write, DELETE if effect.deletion else "")
            if insert or effect.key in written:
                action = WRITE if action == UPDATE else action
            if action and not (action == DELETE and self.is_emptied):
                rows.append((action, effect))
        if rows:
            yield self._batch(rows)
        if net.unmet and self.form.missing_rows == "refuse":
            refused = [(None, None, None, str(NoRow()), neutral.dumps(change)) for change in net.unmet]
            yield from bounded(refused, self.form.schema)

    def _steps(self, placed: pa.RecordBatch) -> list[RowStep]:
        """Return the steps of rows, in the order of the rows."""
        keys, lines = (placed.column(name).to_pylist() for name in ("key", "line"))
        steps: list[Any] = [None] * len(lines)
        for number, _, of_change in self.form.readings(lines):
            assert not isinstance(of_change, EventlogError)
            of_rows = [step for step in of_change if not isinstance(step, Truncation)]
            key = keys[number]
            steps[number] = of_rows[0] if len(of_rows) == 1 else _with_key(of_rows, key)
        return steps

    def _surely_written(self, steps: Iterable[RowStep], net: NetEffect) -> frozenset[RowKey]:
        """Return the keys of rows that are whole even if the table lacks them: one change of many was."""
        complete = {key for key, e in net.effects.items() if e.write == "u" and ABSENT not in e.cells}
        alone = [step for step in steps if step.key in complete]
        effects = NetEffect(alone, complete).effects if alone else {}
        return frozenset(key for key, effect in effects.items() if effect.write == "w")

    def _batch(self, rows: Sequence[tuple[str, RowEffect]]) -> pa.RecordBatch:
        form = self.form
        cells = [effect.cells or form.target.key_row(effect.key) for _, effect in rows]
        columns = zip(form.types.values(), zip(*cells, strict=True), strict=True)
        arrays = [array_of(of, column) for of, column in columns]
        names = list(form.types)
        supplied = [
            []
            if action == DELETE
            else names
            if self.is_emptied or effect.deletion
            else _supplied_names(names, effect)
            for action, effect in rows
        ]
        return pa.record_batch(
            [
                pa.array([action for action, _ in rows]),
                pa.StructArray.from_arrays(arrays, fields=list(form.row)),
                pa.array(supplied, pa.list_(pa.string())),
                *(pa.nulls(len(rows), pa.string()) for _ in _REFUSAL),
            ],
            schema=form.schema,
        )

    def _current(self, current: pa.RecordBatch) -> dict[RowKey, Cells]:
        columns = current.column("row").flatten()
        cells = [
            cells_in(of, column.cast(of.arrow))
            for of, column in zip(self.form.types.values(), columns, strict=True)
        ]
        keys = map(self.form.key_of, current.column("key").to_pylist())
        return dict(zip(keys, zip(*cells, strict=True), strict=True))


def _with_key(steps: Iterable[RowStep], text: str) -> RowStep:
    return next(step for step in steps if key_text(step.key) == text)


def _keys_of(steps: Iterable[RowStep]) -> set[RowKey]:
    return {key for step in steps for key in (step.key, *(step[1:2] if isinstance(step, KeyChange) else ()))}


def _supplied_names(names: Sequence[str], effect: RowEffect) -> list[str]:
    return [name for name, cell in zip(names, effect.cells, strict=True) if cell is not ABSENT]


def whole_components(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of sorted batches anew, such that no component is in two of them."""
    pending: list[pa.RecordBatch] = []
    for batch in batches:
        components = batch.column("component")
        count = pc.sum(pc.equal(components, components[-1])).as_py()
        if pending and count == len(batch) and pending[-1].column("component")[-1] == components[-1]:
            pending.append(batch)
            continue
        done = [*pending, batch.slice(0, len(batch) - count)]
        if any(map(len, done)):
            yield pa.concat_batches(done)
        pending = [batch.slice(len(batch) - count)]
    if pending:
        yield pa.concat_batches(pending)
