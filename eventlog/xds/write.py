"""Changes as XDS events, assembled as text: building an element tree costs ten times as much."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

from eventlog.core import tablekey, values
from eventlog.core.change import ABSENT, Change, Field, Key, Op, Scalar, Side, Undecoded, scalars
from eventlog.core.errors import NotExpressible
from eventlog.core.tables import Column, Table, Tables, plain_name, reference_key
from eventlog.core.values import Kind
from eventlog.xds.text import attribute, content
from eventlog.xds.xds_settings import XdsSettings

Render = Callable[[Scalar], str]
Spell = Callable[[str], str]
Renders = Callable[[Column | None, Tables, int, Spell], Render]  # how a column's values are rendered


class EventWriter:
    """Writes the events of single objects; `row_events` makes such events of any change."""

    def __init__(self, tables: Tables, settings: XdsSettings, renders: Renders | None = None) -> None:
        self._tables = tables
        self._settings = settings
        self._renders = renders or renderer
        self._reads_back_as_modify = settings.insert_query_back == "modify"
        self._writers: dict[tuple[str | None, ...], _TableWriter] = {}  # of unknown tables one for each key

    def write(self, change: Change, event_id: str) -> str:
        """Return the event as text; empty for a modify that changes nothing."""
        name = self.element(change)
        body = self.body(name, change)
        return self.around(name, change, event_id, body) if body or name != "modify" else ""

    def element(self, change: Change) -> str:
        """Return the name of the change's element."""
        op = change.op
        if op is Op.DELETE:
            return "delete"
        if op is Op.UPDATE or (change.current and self._reads_back_as_modify and change.fields):
            return "modify"
        if op is Op.INSERT:
            return "add"
        raise NotExpressible(f"XDS has no event for {op}; --expand-truncate makes deletes of its rows")

    def body(self, name: str, change: Change) -> str:
        """Return the content of an element of that name after the association."""
        writer = self._writers.get((change.schema, change.table)) or self._writer(change)
        if name == "modify":
            return writer.modify_attrs(change.fields)
        return writer.add_attrs(change.fields) if name == "add" else ""

    def around(self, name: str, change: Change, event_id: str, body: str) -> str:
        """Return the element of that name with that body."""
        writer = self._writers.get((change.schema, change.table)) or self._writer(change)
        return writer.event(name, change, event_id, body)

    def object(self, change: Change) -> Hashable:
        """Return what names the change's object, however its key is spelled."""
        writer = self._writers.get((change.schema, change.table)) or self._writer(change)
        return (change.schema, change.table), writer.key(change)

    def _writer(self, change: Change) -> _TableWriter:
        table = self._tables.of(change.schema, change.table)
        key = () if table is not None else (column for column, _ in change.key)
        name = (change.schema, change.table, *key)
        writer = self._writers.get(name)
        if writer is None:
            writer = _TableWriter(change, table, self._tables, self._settings, self._renders)
            self._writers[name] = writer
        return writer


class _TableWriter:
    """A writer of the events of one table, with their shared parts rendered once."""

    def __init__(
        self, change: Change, table: Table | None, tables: Tables, settings: XdsSettings, renders: Renders
    ) -> None:
        self._tables = tables
        self._table = table or Table(change.schema, change.table, {}, tuple(name for name, _ in change.key))
        self._opening = f' class-name="{attribute(change.table)}" event-id="'
        after_key = tablekey.write_association("", change.table, change.schema)
        self._association_end = content(after_key) + "</association>"
        spell = spelling(tables, table, change.table)
        self._attributes = _Attributes(self._table, tables, settings.time_syntax, spell, renders)

    def event(self, name: str, change: Change, event_id: str, body: str) -> str:
        """Return the element of an event."""
        return (
            f'<{name}{self._opening}{attribute(event_id)}"><association>'
            f"{content(self.table_key(change))}{self._association_end}{body}</{name}>"
        )

    def table_key(self, change: Change) -> str:
        """Return the text of the key: as it came, else written from its values."""
        for name, fact in change.extra:
            if name == "table_key" and isinstance(fact, str):
                return fact
        if not change.key:
            raise NotExpressible(
                f"the key of table {self._table} is not known; "
                f"{self._tables.how_to_state_key(change.schema, change.table)}"
            )
        return self._table.dump_key(change.key)

    def key(self, change: Change) -> Key | str:
        """Return the key of the change with the names and the order of its table."""
        table = self._table
        if not change.key:
            return self.table_key(change)
        if tuple([name for name, _ in change.key]) == table.key:
            return change.key
        return table.key_pairs(change.key) or table.in_one_order(change.key)

    def add_attrs(self, fields: Sequence[Field]) -> str:
        """Return the add-attr elements of an insert: null gives none."""
        attributes = self._attributes
        return "".join([attributes[f.column].add(f.after) for f in fields if f.after is not None])

    def modify_attrs(self, fields: Sequence[Field]) -> str:
        """Return the modify-attr elements of an update, without what is unchanged or was not captured."""
        attributes = self._attributes
        body = "".join([attributes[column].modify(before, after) for column, before, after in fields])
        if not body and fields and all(after is ABSENT for _, _, after in fields):
            raise NotExpressible("what the row held after the update was not captured")
        return body


class _Attribute:
    """One attribute of a class: its tags, and how its values are rendered."""

    __slots__ = ("_add", "_modify", "_render", "_replace")

    def __init__(self, name: str, render: Render) -> None:
        self._add = f'<add-attr attr-name="{attribute(name)}">'
        self._modify = f'<modify-attr attr-name="{attribute(name)}">'
        self._replace = f"{self._modify}<remove-all-values/><add-value>"
        self._render = render

    def add(self, after: Side) -> str:
        if after is ABSENT:
            return ""
        return f"{self._add}{self._values(after)}</add-attr>"

    def modify(self, before: Side, after: Side) -> str:
        """Return the modification; nothing if both sides are equal, or the new one was not captured."""
        if before is ABSENT and isinstance(after, str):
            return f"{self._replace}{self._render(after)}</add-value></modify-attr>"
        if after is ABSENT or before == after:
            return ""
        if before is ABSENT:
            removal = "<remove-all-values/>"
        else:
            removal = "" if before is None else f"<remove-value>{self._values(before)}</remove-value>"
        addition = "" if after is None else f"<add-value>{self._values(after)}</add-value>"
        return f"{self._modify}{removal}{addition}</modify-attr>"

    def _values(self, side: Side) -> str:
        if isinstance(side, str):
            return self._render(side)
        return "".join(map(self._render, scalars(side)))


class _Silent(_Attribute):
    """A key column, whose value is in the association."""

    def add(self, after: Side) -> str:
        return ""

    def modify(self, before: Side, after: Side) -> str:
        return ""


class _Attributes(dict[str, _Attribute]):
    """The attributes of a table by the names of their columns, made when first asked for."""

    def __init__(
        self, table: Table, tables: Tables, time_syntax: int, spell: Spell, renders: Renders
    ) -> None:
        self._table = table
        self._renders = renders
        self._tables = tables
        self._time_syntax = time_syntax
        self._spell = spell

    def __missing__(self, name: str) -> _Attribute:
        column = self._table.column(name)
        render = self._renders(column, self._tables, self._time_syntax, self._spell)
        kind = _Silent if name in self._table.key else _Attribute
        attributes = self[name] = kind(self._spell(column.published) if column else name, render)
        return attributes


def spelling(tables: Tables, table: Table | None, written: str) -> Spell:
    """Return how identifiers are written in events of a table with this spelling of its name."""
    written_plain = table is not None and written != table.name and tables.writes_plain(written)
    return plain_name if written_plain else str


def renderer(column: Column | None, tables: Tables, time_syntax: int, spell: Spell = str) -> Render:
    """Return how the values of a column are rendered; `spell` writes the identifiers of associations."""
    if column is None:
        return _render_by_value
    if (reference := reference_key(tables, column)) is not None:
        return _reference_renderer(column, *reference, spell)
    if column.kind in values.TIMES:
        return _time_renderer(column.kind, time_syntax)
    if column.kind in (Kind.STRING, Kind.PADDED):
        return _render_string
    return _typed_renderer(column.kind)


def _render_string(value: Scalar) -> str:
    if isinstance(value, str):
        return f'<value type="string">{content(value)}</value>'
    return f'<value type="string">{content(values.plain_text(value))}</value>'


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


def _reference_renderer(column: Column, target: Table, key: str, spell: Spell) -> Render:
    after_key = tablekey.write_association("", spell(target.name), target.schema and spell(target.schema))

    def render(value: Scalar) -> str:
        text = values.dump(column.kind, value)
        association = attribute(tablekey.write([(spell(key), text)]) + after_key)
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
