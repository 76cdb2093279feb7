"""XDS events as changes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from lxml import etree

from eventlog.core import tablekey, values
from eventlog.core.change import ABSENT, Change, Facts, Field, Key, Op, Scalar, one_or_many
from eventlog.core.errors import EventlogError, NotExpressible, Refused, ValueTooLarge, WrongRow
from eventlog.core.formats import Source
from eventlog.core.tables import Column, Table, Tables, reference_key
from eventlog.xds.split import Broken, Element, split
from eventlog.xds.xds_settings import XdsFileSettings

_WIDEST = 4  # bytes of a character in UTF-8


def read(
    sources: Iterable[Source[bytes]], tables: Tables, settings: XdsFileSettings
) -> Iterator[Change | Refused]:
    """Yield the changes in the events of nds documents; answers and statuses contain none."""
    for source in sources:
        unread: list[Refused] = []
        for item in split(_chunks(source, unread), settings.max_record):
            if isinstance(item, Broken):
                yield Refused(source.at(item.where), item.reason, item.raw)
            elif item.element.tag != "status":
                yield _read_element(source, item, tables, settings)
        yield from unread


def _chunks(source: Source[bytes], unread: list[Refused]) -> Iterator[bytes]:
    """Yield the bytes of a source; add what cannot be read to `unread`."""
    for chunk in source.records:
        if isinstance(chunk, Refused):
            unread.append(chunk)
        else:
            yield chunk


def _read_element(
    source: Source[bytes], item: Element, tables: Tables, settings: XdsFileSettings
) -> Change | Refused:
    try:
        return _Event(item.element, tables, settings).change()
    except EventlogError as fault:
        raw = etree.tostring(item.element) + b"\n"
        return Refused(source.at(item.where), str(fault), raw)


class _Event:
    """One event element, with the table of its association."""

    def __init__(self, element: etree._Element, tables: Tables, settings: XdsFileSettings) -> None:
        self.element = element
        self._tables = tables
        self._settings = settings
        associations = element.findall("association")
        if not associations:
            raise WrongRow(f"<{element.tag!s}> has no association")
        if len(associations) > 1:
            raise WrongRow(f"<{element.tag!s}> has {len(associations)} associations")
        text = "".join(map(str, associations[0].itertext()))
        self.table_key, self.name, self.schema = tablekey.read_association(text)
        self.table: Table | None = tables.of(self.schema, self.name)

    def change(self) -> Change:
        read_fields = _FIELDS.get(str(self.element.tag))
        if read_fields is None:
            raise NotExpressible(f"<{self.element.tag!s}> is no change of a row")
        op, fields = read_fields(self)
        return Change(op, self.schema, self.name, self._key(), tuple(fields), extra=self._facts())

    def children(self, name: str) -> Iterator[etree._Element]:
        """Yield the elements of the event next to its association."""
        for child in self.element:
            if child.tag == name:
                yield child
            elif child.tag != "association":
                raise _no_counterpart(child)

    def check_bare(self) -> None:
        """Refuse an event that has more than an association."""
        for child in self.element:
            if child.tag != "association":
                raise _no_counterpart(child)

    def column(self, attr: etree._Element) -> tuple[str, Column | None]:
        """Return the column that an attribute was published from."""
        name = attr.get("attr-name")
        if not name:
            raise WrongRow(f"<{attr.tag!s}> has no attr-name")
        column = None
        if self.table is not None:
            column = self.table.published.get(name) or self.table.column(name)
        return (column.name if column else name), column

    def values(self, holder: etree._Element, column: Column | None) -> tuple[Scalar, ...]:
        """Return the values of an add-attr, an add-value or a remove-value."""
        scalars = []
        for element in holder:
            if element.tag != "value":
                raise _no_counterpart(element)
            scalars.append(self._value(element, column))
        if not scalars:
            raise WrongRow(f"<{holder.tag!s}> has no value")
        return tuple(scalars)

    def _value(self, element: etree._Element, column: Column | None) -> Scalar:
        if len(element):
            raise NotExpressible("a structured value (component) has no counterpart in a row")
        text = element.text or ""
        self._check_size(text)
        kind = element.get("type", "string")
        if kind == "dn" or element.get("association-ref") is not None:
            self._check_reference(element, text, column)
        if kind == "structured":
            raise NotExpressible("a structured value has no counterpart in a row")
        if column is not None and column.kind in values.TIMES:
            return values.read_time(column.kind, text, self._settings.time_syntax)
        if column is not None and kind == "dn":
            return values.load(column.kind, text)
        return _LOADS.get(kind, str)(text)

    def _check_size(self, text: str) -> None:
        max_bytes = self._settings.max_value
        if len(text) * _WIDEST > max_bytes and (size := len(text.encode())) > max_bytes:
            raise ValueTooLarge(size, max_bytes)

    def _check_reference(self, element: etree._Element, text: str, column: Column | None) -> None:
        """Refuse a reference whose association does not follow from the tables file and the value."""
        target = reference_key(self._tables, column) if column is not None else None
        key, table, schema = tablekey.read_association(element.get("association-ref", ""))
        if target is None or (table, schema) != (target[0].name, target[0].schema):
            raise NotExpressible(f"a reference to {table}: state it under `references` in the tables file")
        if dict(tablekey.read(key)) != {target[1]: text}:
            raise NotExpressible(f"the reference names {key}, but its value is {text!r}")

    def _key(self) -> Key:
        if self.table is not None:
            return self.table.load_key(self.table_key)
        return tablekey.read(self.table_key)

    def _facts(self) -> Facts:
        """Return the name and the key of the event, and the engine's attributes, as texts."""
        attributes = {str(name): str(text) for name, text in self.element.attrib.items()}
        attributes.pop("class-name", None)
        event_id = attributes.pop("event-id", None)
        facts = [("event_id", event_id)] if event_id is not None else []
        facts.append(("table_key", self.table_key))
        return (*facts, *((f"xds.{name}", text) for name, text in attributes.items()))


def _no_counterpart(element: etree._Element) -> NotExpressible:
    parent = element.getparent()
    return NotExpressible(
        f"<{element.tag!s}> in <{'' if parent is None else str(parent.tag)}> has no counterpart in a row"
    )


def _add(event: _Event) -> tuple[Op, Iterable[Field]]:
    return Op.INSERT, [_read_addition(event, attr) for attr in event.children("add-attr")]


def _read_addition(event: _Event, attr: etree._Element) -> Field:
    name, column = event.column(attr)
    return Field(name, ABSENT, one_or_many(event.values(attr, column)))


def _modify(event: _Event) -> tuple[Op, Iterable[Field]]:
    attributes = event.children("modify-attr")
    return Op.UPDATE, [field for attr in attributes for field in _read_modification(event, attr)]


def _read_modification(event: _Event, attr: etree._Element) -> Iterator[Field]:
    """Return a removal and the following addition as one field; any other order gives a field each."""
    name, column = event.column(attr)
    open_field: Field | None = None
    for child in attr:
        if child.tag == "add-value":
            field = open_field or Field(name, None, None)
            yield field._replace(after=one_or_many(event.values(child, column)))
            open_field = None
            continue
        if open_field is not None:
            yield open_field
        if child.tag == "remove-value":
            open_field = Field(name, one_or_many(event.values(child, column)), None)
        elif child.tag == "remove-all-values":
            open_field = Field(name, ABSENT, None)
        else:
            raise _no_counterpart(child)
    if open_field is not None:
        yield open_field


def _delete(event: _Event) -> tuple[Op, Iterable[Field]]:
    event.check_bare()
    return Op.DELETE, ()


_FIELDS: dict[str, Callable[[_Event], tuple[Op, Iterable[Field]]]] = {
    "add": _add,
    "modify": _modify,
    "delete": _delete,
}


def _load(kind: values.Kind) -> Callable[[str], Scalar]:
    return lambda text: values.load(kind, text)


_LOADS: dict[str, Callable[[str], Scalar]] = {
    "int": _load(values.Kind.INT),
    "state": _load(values.Kind.STATE),
    "octet": _load(values.Kind.OCTET),
}
