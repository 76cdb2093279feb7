"""What names, rows and cells mean: learned from the plain fold and the plain writer, each once."""

from __future__ import annotations

import enum
from collections.abc import Container, Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventlog.core.change import ABSENT, Change, Field, Op
from eventlog.core.entry import EVENT_TYPES, Entry
from eventlog.core.errors import EventlogError
from eventlog.core.identity import identify
from eventlog.core.tables import Column, Table, Tables, plain_name
from eventlog.core.values import Kind
from eventlog.fold import Rules
from eventlog.fold.by_column.batch import Batch
from eventlog.fold.by_column.key_patterns import key_form, named_form
from eventlog.fold.by_column.texts import ColumnTexts
from eventlog.fold.by_column.vectors import Flags, flags, match_keys, places
from eventlog.fold.event_table import ELEMENTS, OPERATIONS
from eventlog.fold.understand import Interpreter, NamedObject, UnknownName, steps_of
from eventlog.xds import skeleton
from eventlog.xds.skeleton import EventForm, Treatment

_MAX_LEARNED = 20_000
_HUGE = 1 << 62
_KEY_MARK = "\ue003"
_ELEMENT_OF = dict(zip(OPERATIONS, ELEMENTS, strict=False))


class Origin(enum.IntEnum):
    """The origin of a piece of an event."""

    CONSTANT = 0
    OLD_VALUE = 1  # of its row
    NEW_VALUE = 2  # of its row, or a cell of a current row


class Fact(NamedTuple):
    """The property of a row that, with its table and column, decides what the row adds."""

    kind: int
    has_old: bool
    has_new: bool
    is_same: bool  # both mean the same


class Part(NamedTuple):
    """The pieces that a row or a cell adds to its event, each an origin and the number of its constant."""

    pieces: tuple[tuple[Origin, int], ...] = ()
    op: int = 0  # an index of OPERATIONS
    column: str = ""  # as its table has it
    silence: str = ""  # why it has no content
    unread: bool = False  # a query-back of its row does not read its column
    doubtful: bool = False
    unknown: UnknownName | None = None  # its column, where its table lacks that

    def place(self, origin: Origin) -> int:
        """Return the position of a piece of this origin; -1 if there is none."""
        return next((place for place, piece in enumerate(self.pieces) if piece[0] == origin), -1)


class FrameConstants(NamedTuple):
    """The numbers of the four constants around an event's body."""

    before_id: int
    before_key: int
    before_body: int
    after_body: int


class NamedTable(NamedTuple):
    """The meaning of rows that spell the name of their table in one way."""

    table: Table | None
    object: NamedObject | None  # any of its objects, as the plain fold has it; None if all are in doubt
    plain_pattern: str = ""  # of the keys that are written as they are, and are an object's only such
    lookup_pattern: str | None = None  # of the keys by which the current row is certainly found
    key: tuple[str, ...] = ()  # the key's columns as such a key names them


_DOUBTFUL = Part(doubtful=True)


class Templates:
    """All that was learned for some tables under some rules."""

    def __init__(
        self,
        tables: Tables,
        rules: Rules,
        form: EventForm,
        answerable: Container[Table],
        around: tuple[str, str] = ("", ""),
    ) -> None:
        self.tables = tables
        self.form = form
        self._log = rules.log_name
        self._steps, self._whole_rows = steps_of(rules), rules.whole_rows
        self._around = around
        twins = {str(table): _twin(table) for table in tables}
        answers = frozenset(twins[str(table)] for table in tables if table in answerable)
        self._twins = Tables(twins.values(), tables.dialect, shut=tables.shut)
        limitless = replace(rules, status="N", driver_user=None, handle_future_events=False, max_value=_HUGE)
        self._reader = Interpreter(self._twins, limitless, answers)
        self.limit = min([rules.max_value, *(t.max_value for t in tables if t.max_value is not None)])
        self.constants: list[str] = []
        self._numbers: dict[str, int] = {}
        self._named: dict[str, NamedTable] = {}
        self._parts: dict[tuple[tuple[str, str | None], Fact], Part] = {}
        self._cells: dict[tuple[str, int, int, bool], Part] = {}
        self._frames: dict[tuple[str, int], FrameConstants | None] = {}
        self._columns: dict[tuple[str, str | None], ColumnTexts | None] = {}

    @property
    def is_full(self) -> bool:
        """Return whether the templates have grown so much that they should be learned anew."""
        sizes = map(len, (self.constants, self._parts, self._columns, self._named))
        return max(sizes) > _MAX_LEARNED

    def named(self, name: str) -> NamedTable:
        """Return the meaning of rows with this spelling of a table's name."""
        if name not in self._named:
            self._named[name] = self._learn_name(name)
        return self._named[name]

    def table(self, name: str) -> Table:
        """Return the table of a spelling that is a table's."""
        table = self.named(name).table
        assert table is not None
        return table

    def position(self, name: str, column_name: str) -> int:
        """Return the position of a column in the current rows of its table, 0 if it is not there."""
        columns = enumerate(self.table(name).data)
        return next((at for at, column in columns if column.name == column_name), 0)

    def column(self, name: str, column_name: str | None) -> ColumnTexts | None:
        """Return the texts of a column in rows with this spelling; None for plain text."""
        key = name, column_name
        if key not in self._columns:
            table = self.named(name).table
            column = None if table is None or column_name is None else table.column(column_name)
            self._columns[key] = self.column_texts(name, column)
        return self._columns[key]

    def column_texts(self, name: str, column: Column | None) -> ColumnTexts | None:
        """Return the texts of a column of the catalogue under this name of its table; None for plain text."""
        if self.form.treatment(column) is Treatment.TEXT or column is None:
            return None
        named = self.named(name)
        written = named.object.reader.name if named.object else name
        return ColumnTexts(column, self.form, self.form.renderer(column, named.table, written))

    def part(self, named: tuple[str, str | None], fact: Fact) -> Part:
        """Return what a row adds that names this table and column."""
        part = self._parts.get((named, fact))
        if part is None:
            part = self._parts[named, fact] = self._learn_part(*named, fact)
        return part

    def cell(self, name: str, at: int, op: int, is_valid: bool) -> Part:
        """Return what a cell of a current row, at this position, adds to an event of that operation."""
        key = name, at, op, is_valid
        part = self._cells.get(key)
        if part is None:
            column = self.table(name).data[at].name
            field = Field(column, ABSENT, skeleton.AFTER if is_valid else None)
            part = self._cells[key] = self._part_of_fields(self.named(name), OPERATIONS[op], (field,), column)
        return part

    def frame(self, name: str, op: int) -> FrameConstants | None:
        """Return the constants around the events of a table's objects; None if they are not certain."""
        if (name, op) not in self._frames:
            self._frames[name, op] = self._learn_frame(self.named(name), OPERATIONS[op])
        return self._frames[name, op]

    def key_constants(self, named: NamedTable) -> Sequence[str] | None:
        """Return the texts around the values of a key in rows of that name; None for the key as it is."""
        return None if named.object is None else self.form.key_constants(_change(named, Op.DELETE, ()))

    def _learn_name(self, name: str) -> NamedTable:
        try:
            table = self.tables.find(name)
            plain = self.tables.writes_plain(name)
            key = tuple(plain_name(column) if plain else column for column in table.key) if table else ()
            text = "+".join(f"{column}={_KEY_MARK}" for column in key)
            of = self._reader.object(name, text)
        except EventlogError:
            return NamedTable(None, None)
        has_marks = skeleton.MARKS & {*name, *text}
        if table is None or not table.key or of.table_key != text or of.child or has_marks:
            return NamedTable(table, None)
        return NamedTable(table, of, named_form(key), key_form(table, key), key)

    def _learn_part(self, name: str, column: str | None, fact: Fact) -> Part:
        named = self.named(name)
        if named.object is None or skeleton.MARKS & {*(column or "")}:
            return _DOUBTFUL
        new_value = skeleton.AFTER if fact.has_new else None
        old_value = new_value if fact.is_same else skeleton.BEFORE if fact.has_old else None
        entry = Entry(1, "N", fact.kind, "", None, name, "", column, old_value, new_value)
        try:
            step = self._steps[fact.kind](named.object, entry, ("", 1))
        except EventlogError:
            return _DOUBTFUL
        names_column = EVENT_TYPES[fact.kind].per_field or (self._whole_rows and column)
        unknown = _unknown_name(named, column) if names_column else None
        if step.silence or step.type > 3:
            return Part(
                (), OPERATIONS.index(step.op), step.column, step.silence, step.unread, unknown=unknown
            )
        part = self._part_of_fields(named, step.op, step.fields, step.column)
        return part._replace(unread=step.unread, unknown=unknown)

    def _part_of_fields(self, named: NamedTable, op: Op, fields: tuple[Field, ...], column: str) -> Part:
        try:
            body = self.form.body(_ELEMENT_OF[op], _change(named, op, fields))
        except EventlogError:
            return _DOUBTFUL
        if (not body and op is Op.UPDATE) or max(map(body.count, _ORIGINS)) > 1:
            return _DOUBTFUL
        pieces = tuple(
            (_ORIGINS[text], 0) if text in _ORIGINS else (Origin.CONSTANT, self._constant(text))
            for text in body
        )
        return Part(pieces, OPERATIONS.index(op), column)

    def _learn_frame(self, named: NamedTable, op: Op) -> FrameConstants | None:
        if named.object is None:
            return None
        try:
            frame = self.form.frame(_ELEMENT_OF[op], _change(named, op, ()))
        except EventlogError:
            return None
        before, after = self._around
        opening = before + frame.before_id + self.form.event_id(f"{self._log}:")
        return FrameConstants(*map(self._constant, (opening, *frame[1:3], frame.after_body + after)))

    def _constant(self, text: str) -> int:
        if text not in self._numbers:
            self._numbers[text] = len(self.constants)
            self.constants.append(text)
        return self._numbers[text]


_ORIGINS = {skeleton.BEFORE: Origin.OLD_VALUE, skeleton.AFTER: Origin.NEW_VALUE}


def _unknown_name(named: NamedTable, column: str | None) -> UnknownName | None:
    """Return the column that a row names, if its table lacks it and it leaves all the same."""
    if named.table is None or named.object is None or column is None:
        return None
    attribute = named.object.reader.attributes[column]
    return None if attribute.exists or attribute.silence else (str(named.table), column)


def _change(named: NamedTable, op: Op, fields: tuple[Field, ...]) -> Change:
    of = named.object
    assert of is not None
    facts = (("table_key", of.table_key),)
    return Change(op, of.reader.schema, of.reader.name, of.key, fields, extra=facts)


def _twin(table: Table) -> Table:
    """Return the table as if all its values were text, which marks are."""
    columns = {
        name: replace(column, kind=Kind.STRING, bounds=None, number=None, reference=None)
        for name, column in table.columns.items()
    }
    return replace(table, columns=columns, max_value=None)


def doubtful_names(batch: Batch, templates: Templates) -> Flags:
    """Return the objects whose identity is in doubt.

    Rows may spell the name of an object in several ways. One spelling of each table is taken as certain.
    """
    certain: dict[Table, tuple[int, NamedTable]] = {}
    for number, name in enumerate(batch.tables):
        named = templates.named(name)
        if named.object is not None and named.table is not None:
            certain.setdefault(named.table, (number, named))
    patterns: list[str | None] = [None] * len(batch.tables)
    for number, named in certain.values():
        patterns[number] = named.plain_pattern
    doubtful = ~match_keys(batch.keys, batch.table_of, patterns)
    doubtful |= _named_otherwise(batch, templates, np.flatnonzero(doubtful).tolist(), certain)
    return doubtful


def _named_otherwise(
    batch: Batch, templates: Templates, objects: Iterable[int], certain: dict[Table, tuple[int, NamedTable]]
) -> Flags:
    """Return the objects that those in doubt may be under another name."""
    plain_keys: dict[int, set[str]] = {}  # by the number of a table's name
    for at in objects:
        try:
            identified = identify(templates.tables, batch.tables[batch.table_of[at]], batch.keys[at].as_py())
        except EventlogError:
            continue
        if identified.table in certain:
            number, named = certain[identified.table]
            pairs = zip(named.key, (value for _, value in identified.pairs), strict=True)
            plain_keys.setdefault(number, set()).add("+".join(f"{name}={text}" for name, text in pairs))
    is_named = np.zeros(len(batch.keys), np.bool_)
    of_table = places(batch.table_of, len(batch.tables)) if plain_keys else []
    for number, keys in plain_keys.items():
        keys_of_table = batch.keys.take(pa.array(of_table[number]))
        is_named[of_table[number]] = flags(pc.is_in(keys_of_table, pa.array(sorted(keys))))
    return is_named
