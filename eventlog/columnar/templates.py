"""What names, rows and cells are: learnt from the plain fold and the plain writer, each once."""

from __future__ import annotations

import enum
from collections.abc import Container
from dataclasses import replace
from typing import NamedTuple

from eventlog.columnar.keys import key_form, named_form
from eventlog.columnar.texts import ColumnTexts
from eventlog.core.change import ABSENT, Change, Field, Op
from eventlog.core.entry import EVENT_TYPES, Entry
from eventlog.core.errors import EventlogError
from eventlog.core.tables import Column, Table, Tables, plain_name
from eventlog.core.values import Kind
from eventlog.fold import Rules
from eventlog.fold.understand import STEPS, Interpreter, SpelledObject, UnknownName
from eventlog.xds.settings import XdsSettings
from eventlog.xds.skeleton import MARKS, NEW, OLD, Skeletons, Treatment, treatment
from eventlog.xds.text import attribute
from eventlog.xds.write import spelling

_MOST = 20_000
_HUGE = 1 << 62
_KEY_MARK = "\ue003"
ELEMENTS = {Op.INSERT: "add", Op.UPDATE: "modify", Op.DELETE: "delete"}
OPS = tuple(ELEMENTS)


class Slot(enum.IntEnum):
    """The origin of a piece."""

    CONSTANT = 0
    OLD = 1  # the old value of its row
    NEW = 2  # the new one, or a cell of a current row


class Fact(NamedTuple):
    """The property of a row that, with its table and column, decides what the row adds."""

    kind: int
    old: bool  # whether there is one
    new: bool
    same: bool  # both mean the same


class Part(NamedTuple):
    """The pieces that a row or a cell adds to its event, each a slot and the number of its constant."""

    pieces: tuple[tuple[Slot, int], ...] = ()
    op: int = 0  # an index of OPS
    column: str = ""  # as its table has it
    silence: str = ""  # why it has no content
    unread: bool = False  # a query-back of its row does not read its column
    doubtful: bool = False
    unknown: UnknownName | None = None  # its column, where its table lacks that

    def place(self, slot: Slot) -> int:
        """Return the position of this slot among the pieces; -1 if it is not there."""
        return next((place for place, (found, _) in enumerate(self.pieces) if found == slot), -1)


class FrameConstants(NamedTuple):
    """The numbers of the four constants around an event's body."""

    before_id: int
    before_key: int
    before_body: int
    after_body: int


class Spelled(NamedTuple):
    """The meaning of rows with one spelling of a table's name."""

    table: Table | None
    object: SpelledObject | None  # any of its objects, as the plain fold has it; None if nothing is sure
    sure: str = ""  # the pattern of the keys that are written as they are, and are an object's only such
    asked: str | None = None  # of those by which its current row is surely found
    key: tuple[str, ...] = ()  # the key's columns as such a key names them


_DOUBT = Part(doubtful=True)
_NOTHING_SURE = Spelled(None, None)


class Templates:
    """All that was learnt for some tables under some rules."""

    def __init__(
        self,
        tables: Tables,
        rules: Rules,
        settings: XdsSettings,
        answerable: Container[Table],
        around: tuple[str, str] = ("", ""),
    ) -> None:
        self.tables = tables
        self._settings = settings
        self._log = rules.log_name
        self._around = around
        self._skeletons = Skeletons(tables, settings)
        twins = {str(table): _twin(table) for table in tables}
        answers = frozenset(twins[str(table)] for table in tables if table in answerable)
        self._twins = Tables(twins.values(), tables.dialect, shut=tables.shut)
        limitless = replace(rules, status="N", driver_user=None, handle_future_events=False, max_value=_HUGE)
        self._reader = Interpreter(self._twins, limitless, answers)
        self.limit = min([rules.max_value, *(t.max_value for t in tables if t.max_value is not None)])
        self.constants: list[str] = []
        self._numbers: dict[str, int] = {}
        self._spelled: dict[str, Spelled] = {}
        self._parts: dict[tuple[tuple[str, str | None], Fact], Part] = {}
        self._cells: dict[tuple[str, int, int, bool], Part] = {}
        self._frames: dict[tuple[str, int], FrameConstants | None] = {}
        self._columns: dict[tuple[str, str | None], ColumnTexts | None] = {}

    @property
    def much(self) -> bool:
        """Return whether the templates have grown so much that they should be learned anew."""
        return max(len(self.constants), len(self._parts), len(self._columns), len(self._spelled)) > _MOST

    def spelled(self, name: str) -> Spelled:
        """Return the meaning of rows with this spelling of a table's name."""
        if name not in self._spelled:
            self._spelled[name] = self._read_spelling(name)
        return self._spelled[name]

    def table(self, name: str) -> Table:
        """Return the table of a spelling that is a table's."""
        table = self.spelled(name).table
        assert table is not None
        return table

    def position(self, name: str, column: str) -> int:
        """Return the position of a column in the current rows of its table, 0 if it is not there."""
        return next((at for at, one in enumerate(self.table(name).data) if one.name == column), 0)

    def column(self, name: str, column: str | None) -> ColumnTexts | None:
        """Return how the texts of a column are treated in rows with this spelling; None for plain text."""
        known = self._columns
        if (name, column) not in known:
            table = self.spelled(name).table
            found = None if table is None or column is None else table.column(column)
            known[name, column] = self.treated(name, found)
        return known[name, column]

    def treated(self, name: str, column: Column | None) -> ColumnTexts | None:
        """Return how a column's texts are treated in rows with this spelling; None for plain text."""
        if treatment(column) is Treatment.TEXT or column is None:
            return None
        spelled = self.spelled(name)
        written = spelled.object.reader.name if spelled.object else name
        spell = spelling(self.tables, spelled.table, written)
        return ColumnTexts(column, self.tables, self._settings.time_syntax, spell)

    def part(self, named: tuple[str, str | None], fact: Fact) -> Part:
        """Return what a row adds that names this table and column."""
        found = self._parts.get((named, fact))
        if found is None:
            found = self._parts[named, fact] = self._learn_part(*named, fact)
        return found

    def cell(self, name: str, at: int, op: int, there: bool) -> Part:
        """Return what a cell of a current row, at this position, adds to an event of that operation."""
        key = name, at, op, there
        found = self._cells.get(key)
        if found is None:
            column = self.table(name).data[at].name
            field = Field(column, ABSENT, NEW if there else None)
            found = self._cells[key] = self._made(self.spelled(name), OPS[op], (field,), column)
        return found

    def frame(self, name: str, op: int) -> FrameConstants | None:
        """Return the constants around the events of a table's objects; None if they are not certain."""
        if (name, op) not in self._frames:
            self._frames[name, op] = self._learn_frame(self.spelled(name), OPS[op])
        return self._frames[name, op]

    def _read_spelling(self, name: str) -> Spelled:
        try:
            table = self.tables.find(name)
            plain = self.tables.writes_plain(name)
            key = tuple(plain_name(column) if plain else column for column in table.key) if table else ()
            text = "+".join(f"{column}={_KEY_MARK}" for column in key)
            of = self._reader.object(name, text)
        except EventlogError:
            return _NOTHING_SURE
        if table is None or not table.key or of.table_key != text or of.child or MARKS & {*name, *text}:
            return Spelled(table, None)
        return Spelled(table, of, named_form(key), key_form(table, key), key)

    def _learn_part(self, name: str, column: str | None, fact: Fact) -> Part:
        spelled = self.spelled(name)
        if spelled.object is None or MARKS & {*(column or "")}:
            return _DOUBT
        old, new = (mark if there else None for mark, there in ((OLD, fact.old), (NEW, fact.new)))
        entry = Entry(1, "N", fact.kind, "", None, name, "", column, new if fact.same else old, new)
        try:
            step = STEPS[fact.kind](spelled.object, entry, ("", 1))
        except EventlogError:
            return _DOUBT
        unknown = _unknown(spelled, column) if EVENT_TYPES[fact.kind].per_field else None
        if step.silence or step.type > 3:
            return Part((), OPS.index(step.op), step.column, step.silence, step.unread, unknown=unknown)
        made = self._made(spelled, step.op, step.fields, step.column)
        return made._replace(unread=step.unread, unknown=unknown)

    def _made(self, spelled: Spelled, op: Op, fields: tuple[Field, ...], column: str) -> Part:
        """Return the part of fields whose values are marks."""
        try:
            body = self._skeletons.body(ELEMENTS[op], _change(spelled, op, fields))
        except EventlogError:
            return _DOUBT
        if (not body and op is Op.UPDATE) or max(map(body.count, _SLOTS)) > 1:
            return _DOUBT
        pieces = tuple(
            (_SLOTS[text], 0) if text in _SLOTS else (Slot.CONSTANT, self._constant(text)) for text in body
        )
        return Part(pieces, OPS.index(op), column)

    def _learn_frame(self, spelled: Spelled, op: Op) -> FrameConstants | None:
        if spelled.object is None:
            return None
        try:
            frame = self._skeletons.frame(ELEMENTS[op], _change(spelled, op, ()))
        except EventlogError:
            return None
        before, behind = self._around
        opening = before + frame.before_id + attribute(f"{self._log}:")
        return FrameConstants(*map(self._constant, (opening, *frame[1:3], frame.after_body + behind)))

    def _constant(self, text: str) -> int:
        if text not in self._numbers:
            self._numbers[text] = len(self.constants)
            self.constants.append(text)
        return self._numbers[text]


def _unknown(spelled: Spelled, column: str | None) -> UnknownName | None:
    """Return the column that a row names, if its table lacks it and it leaves all the same."""
    if spelled.table is None or spelled.object is None or column is None:
        return None
    attribute = spelled.object.reader.attributes[column]
    return None if attribute.known or attribute.silence else (str(spelled.table), column)


_SLOTS = {OLD: Slot.OLD, NEW: Slot.NEW}


def _change(spelled: Spelled, op: Op, fields: tuple[Field, ...]) -> Change:
    of = spelled.object
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
