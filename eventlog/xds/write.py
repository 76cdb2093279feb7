"""Changes as XDS events, assembled as text: building an element tree costs ten times as much."""

from __future__ import annotations

from collections.abc import Callable

from eventlog import tablekey, values
from eventlog.change import ABSENT, Absent, Change, Op, Scalar, Undecoded, Value, scalars
from eventlog.errors import NotExpressible
from eventlog.tables import Column, Table, Tables, reference_key
from eventlog.values import Kind
from eventlog.xds.settings import XdsSettings
from eventlog.xds.text import attribute, content

Render = Callable[[Scalar], str]


class EventWriter:
    """Writes the events of single objects; `row_events` makes such events of any change."""

    def __init__(self, tables: Tables, settings: XdsSettings) -> None:
        self._tables = tables
        self._settings = settings
        self._writers: dict[tuple[str | None, str], _TableWriter] = {}

    def write(self, change: Change, event_id: str) -> str:
        """The event as text; empty for a modify that changes nothing."""
        writer = self._writers.get((change.schema, change.table)) or self._writer(change)
        if change.op is Op.DELETE:
            return writer.event("delete", change, event_id, "")
        if change.op is Op.UPDATE or (change.current and self._settings.insert_query_back == "modify"):
            changed = writer.modify_attrs(change)
            return writer.event("modify", change, event_id, changed) if changed else ""
        if change.op is Op.INSERT:
            return writer.event("add", change, event_id, writer.add_attrs(change))
        raise NotExpressible(f"XDS has no event for {change.op}; --expand-truncate makes deletes of its rows")

    def association(self, change: Change) -> str:
        """The association of the change's object."""
        writer = self._writers.get((change.schema, change.table)) or self._writer(change)
        return tablekey.write_association(writer.table_key(change), writer.name, writer.schema)

    def _writer(self, change: Change) -> _TableWriter:
        table = self._tables.of(change.schema, change.table)
        writer = _TableWriter(change, table, self._tables, self._settings)
        self._writers[change.schema, change.table] = writer
        return writer


class _TableWriter:
    """What is the same for all events of one table, rendered once."""

    def __init__(self, change: Change, table: Table | None, tables: Tables, settings: XdsSettings) -> None:
        self.schema = change.schema
        self.name = change.table
        self._table = table
        self._tables = tables
        self._settings = settings
        self._key = frozenset(table.key) if table else frozenset(name for name, _ in change.key)
        self._opening = f' class-name="{attribute(self.name)}" event-id="'
        self._association_end = content(tablekey.write_association("", self.name, self.schema))
        self._attributes: dict[str, _Attribute] = {}

    def event(self, name: str, change: Change, event_id: str, body: str) -> str:
        """The element of an event."""
        return (
            f'<{name}{self._opening}{attribute(event_id)}"><association>{content(self.table_key(change))}'
            f"{self._association_end}</association>{body}</{name}>"
        )

    def table_key(self, change: Change) -> str:
        """The text of the key: as it came, else written from its values."""
        for name, fact in change.extra:
            if name == "table_key" and isinstance(fact, str):
                return fact
        if not change.key:
            raise NotExpressible(
                f"the key of table {self.name} is not known; state it in the tables file: "
                f'[tables.{self.name}] key = ["…"]'
            )
        if self._table is not None:
            return self._table.dump_key(change.key)
        return Table(self.schema, self.name, {}).dump_key(change.key)

    def add_attrs(self, change: Change) -> str:
        """The add-attr elements of an insert: null gives none."""
        return "".join(
            self._attribute(field.column).add(field.after)
            for field in change.fields
            if field.after is not None and field.column not in self._key
        )

    def modify_attrs(self, change: Change) -> str:
        """The modify-attr elements of an update, without what is unchanged or was not captured."""
        fields = [f for f in change.fields if f.column not in self._key]
        if fields and all(f.after is ABSENT for f in fields):
            raise NotExpressible("what the row held after the update was not captured")
        return "".join(
            self._attribute(f.column).modify(f.before, f.after)
            for f in fields
            if f.after is not ABSENT and f.before != f.after
        )

    def _attribute(self, name: str) -> _Attribute:
        found = self._attributes.get(name)
        if found is None:
            column = self._table.column(name) if self._table else None
            render = _renderer(column, self._tables, self._settings.time_syntax)
            found = self._attributes[name] = _Attribute(column.published if column else name, render)
        return found


class _Attribute:
    """One attribute of a class: its tags, and how its values are rendered."""

    __slots__ = ("_add", "_modify", "_render")

    def __init__(self, name: str, render: Render) -> None:
        self._add = f'<add-attr attr-name="{attribute(name)}">'
        self._modify = f'<modify-attr attr-name="{attribute(name)}">'
        self._render = render

    def add(self, after: Value | Absent) -> str:
        if after is ABSENT:
            return ""
        return f"{self._add}{self._values(after)}</add-attr>"

    def modify(self, before: Value | Absent, after: Value | Absent) -> str:
        if before is ABSENT:
            gone = "<remove-all-values/>"
        else:
            gone = "" if before is None else f"<remove-value>{self._values(before)}</remove-value>"
        come = "" if after is None or after is ABSENT else f"<add-value>{self._values(after)}</add-value>"
        return f"{self._modify}{gone}{come}</modify-attr>"

    def _values(self, side: Value | Absent) -> str:
        if isinstance(side, str):
            return self._render(side)
        return "".join(map(self._render, scalars(side)))


def _renderer(column: Column | None, tables: Tables, time_syntax: int) -> Render:
    """How the values of a column are rendered."""
    if column is None:
        return _render_by_value
    if (reference := reference_key(tables, column)) is not None:
        return _reference_renderer(column, *reference)
    if column.kind in values.TIMES:
        return _time_renderer(column.kind, time_syntax)
    if column.kind in (Kind.STRING, Kind.PADDED):
        return _render_string
    return _typed_renderer(column.kind)


def _render_string(value: Scalar) -> str:
    text = value if isinstance(value, str) else values.plain_text(value)
    return f'<value type="string">{content(text)}</value>'


def _typed_renderer(kind: Kind) -> Render:
    type_name = XDS_TYPES[kind]

    def render(value: Scalar) -> str:
        if isinstance(value, str):
            values.load(kind, value)
        return f'<value type="{type_name}">{content(values.plain_text(value))}</value>'

    return render


def _time_renderer(kind: Kind, syntax: int) -> Render:
    type_name = "time" if syntax == 1 else "string"

    def render(value: Scalar) -> str:
        text = values.write_time(kind, values.plain_text(value), syntax)
        return f'<value type="{type_name}">{text}</value>'

    return render


def _reference_renderer(column: Column, target: Table, key: str) -> Render:
    end = tablekey.write_association("", target.name, target.schema)

    def render(value: Scalar) -> str:
        text = values.dump(column.kind, value)
        association = attribute(tablekey.write([(key, text)]) + end)
        return f'<value type="dn" association-ref="{association}">{content(text)}</value>'

    return render


def _render_by_value(value: Scalar) -> str:
    if isinstance(value, str):
        return f'<value type="string">{content(value)}</value>'
    if isinstance(value, Undecoded):
        return _render_string(value)
    return f'<value type="{_TYPES_BY_VALUE[type(value)]}">{content(values.plain_text(value))}</value>'


_TYPES_BY_VALUE: dict[type, str] = {bool: "state", int: "int", float: "string", bytes: "octet"}

XDS_TYPES: dict[Kind, str] = {
    Kind.STRING: "string",
    Kind.PADDED: "string",
    Kind.OCTET: "octet",
    Kind.INT: "int",
    Kind.STATE: "state",
    Kind.DATE: "time",
    Kind.TIME: "time",
    Kind.TIMESTAMP: "time",
}
