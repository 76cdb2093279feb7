"""What an event may contain, by its rows: the specification, section 13, read a second time.

Nothing here is shared with the fold or the writer. A row of type 1 adds its new value, one of type 2 removes
the old value and adds the new one, one of type 3 clears and adds. Rows of types 5 to 8 clear their columns
and add what is read back; as an add they only add. They supersede the values of the columns that they read.
A redriven row may bring its texts, or what was read back. Of an object that is gone when its event goes
again, nothing is read back, and the other values go alone.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from eventlog.core import tablekey, values
from eventlog.core.errors import EventlogError
from eventlog.core.tables import Column, Table, Tables, plain_name, reference_key
from eventlog.core.values import Kind
from tests.laws.judge.event_steps import ValueStep
from tests.laws.judge.laws import AuditedRow

_TYPES = {Kind.OCTET: "octet", Kind.INT: "int", Kind.STATE: "state"}  # of values; others are strings
_BEFORE = {7: (1,), 8: (1, 2, 3)}  # the types that a redriven row may have had
_ADD, _MODIFY = frozenset({"add"}), frozenset({"modify"})


class PublishedThen(NamedTuple):
    """The columns that were published from a moment on, and how."""

    since: int  # in microseconds since 1970
    tables: Tables
    inserts_as_add: bool | None  # whether types 5 and 7 become an add; None: that is not known
    time_syntax: int | None


class _Attribute(NamedTuple):
    column: Column | None
    rows: Sequence[AuditedRow]
    is_read: bool  # its values may be read back
    has_texts: bool = False  # its values may be those of its rows


def why_wrong(
    rows: Sequence[AuditedRow],
    operation: str,
    steps: Sequence[ValueStep],
    table: Table | None,
    published: PublishedThen,
    *,
    key: Sequence[str] = (),  # the columns of the key, if the table is not known
    is_whole: bool = True,  # all parts of the event are there, and were read at one time
    may_be_gone: bool = False,  # the object may have been gone when the event went again
) -> str:
    """Return what in an event no row explains, or what of its rows is missing; empty if nothing is wrong."""
    if any(row.event_type == 4 for row in rows):
        is_right = len(rows) == 1 and operation == "delete" and not steps
        return "" if is_right else f"a deleted row became {operation} with {len(steps)} values"
    spell = plain_name if published.tables.dialect == "oracle" else str
    attributes = {spell(name): attribute for name, attribute in _attributes(rows, table, key)}
    allowed = _operations(rows, attributes.values(), table, published)
    if operation not in allowed:
        return f"it is {operation}, and its rows make {' or '.join(sorted(allowed)) or 'several events'}"
    steps_of: dict[str, list[ValueStep]] = {}
    for step in steps:
        steps_of.setdefault(spell(step.attribute), []).append(step)
    for name in steps_of.keys() - attributes.keys():
        return f"attribute {name!r} follows from no row, or was not published"
    if may_be_gone and steps and not any(attributes[name].is_read for name in steps_of):
        attributes = {name: attributes[name] for name in attributes if not attributes[name].is_read}
    for name, attribute in attributes.items():
        fault = _fault(attribute, operation, steps_of.get(name, []), published, is_whole=is_whole)
        if fault:
            return f"attribute {name!r}: {fault}"
    return ""


def is_silent(column_name: str, table: Table | None, key: Container[str] = ()) -> bool:
    """Return whether no value of a column may leave: it is of the key, or withheld."""
    if table is None:
        return column_name in key
    column = table.column(column_name)
    return table.closed if column is None else column.name in table.key or not column.leaves


def _types(row: AuditedRow) -> Sequence[int]:
    """Return the types that the texts of a row may have been sent as."""
    return _BEFORE.get(row.event_type, ()) if row.is_redriven else (row.event_type,)


def _attributes(
    rows: Iterable[AuditedRow], table: Table | None, key: Sequence[str]
) -> Iterator[tuple[str, _Attribute]]:
    """Yield the attributes that the rows make, by their names in documents."""
    columns: Mapping[str, Column] = table.columns if table else {}
    rows_of: dict[str, list[AuditedRow]] = {}
    for row in rows:
        if row.column is not None and row.event_type not in (5, 6) and not is_silent(row.column, table, key):
            described = table.column(row.column) if table else None
            rows_of.setdefault(described.name if described else row.column, []).append(row)
    if table and any(row.event_type in (5, 6) for row in rows):
        for column in table.data:
            yield column.published, _Attribute(column, rows_of.pop(column.name, ()), is_read=True)
    for name, own_rows in rows_of.items():
        readers = [row for row in own_rows if row.event_type > 4]
        if name in columns:
            has_texts = all(row.is_redriven for row in readers)
            yield columns[name].published, _Attribute(columns[name], own_rows, bool(readers), has_texts)
        elif texts := [row for row in own_rows if (*_types(row), 4)[0] < 4]:  # no query-back reads the column
            yield name, _Attribute(None, texts, is_read=False, has_texts=True)


def _operations(
    rows: Iterable[AuditedRow],
    attributes: Iterable[_Attribute],
    table: Table | None,
    published: PublishedThen,
) -> frozenset[str]:
    """Return what the event may be: all that its rows make has one operation."""
    inserts = {True: _ADD, False: _MODIFY, None: _ADD | _MODIFY}[published.inserts_as_add]
    inserts = _ADD if table and not table.beside_key else inserts
    becomes = {1: _ADD, 5: inserts, 7: inserts}
    allowed = _ADD | _MODIFY
    reading = [row.event_type for row in rows if row.event_type in (5, 6)]
    if reading:
        allowed &= becomes.get(min(reading), _MODIFY)
    for attribute in attributes:
        kinds = [row.event_type for row in attribute.rows if row.event_type > 4]
        texts = _ADD | _MODIFY if attribute.has_texts else frozenset[str]()
        for row in attribute.rows:
            texts &= frozenset[str]().union(*(becomes.get(kind, _MODIFY) for kind in _types(row)))
        if not (reading and attribute.is_read):
            allowed &= texts | (becomes.get(min(kinds), _MODIFY) if attribute.is_read else frozenset())
    return allowed


def _fault(
    attribute: _Attribute,
    operation: str,
    steps: Sequence[ValueStep],
    published: PublishedThen,
    *,
    is_whole: bool,
) -> str:
    """Return what is wrong with the values of an attribute."""
    column = attribute.column
    for step in steps:
        if step.kind != "clear" and not _is_typed(column, step, published):
            return f"{step.kind} {step.value[:60]!r}: it is no {step.type or 'value'} of this column"
    if attribute.is_read:
        first = [] if operation == "add" else ["clear"]
        added = [step.value for step in steps[len(first) :]]
        max_values = len(added) if column and column.multivalued else 1
        is_read_back = [step.kind for step in steps] == first + ["add"] * len(added)
        if not is_whole or (is_read_back and len({*added}) == len(added) <= max_values):
            return ""
    rows = [list(_readings(row, column, published)) for row in attribute.rows if attribute.has_texts]
    ends = {0}
    for readings in rows:
        ends = {
            end + len(texts)
            for end in ends
            for texts in readings
            if len(texts) <= len(steps) - end
            and all(_is_same(*pair, column, published) for pair in zip(steps[end:], texts, strict=False))
        }
    if len(steps) in ends and rows:
        return ""
    texts = [text for readings in rows for reading in readings for text in reading]
    for step in steps:
        if not any(_is_same(step, text, column, published) for text in texts):
            return f"{step.kind} {step.value[:60]!r} follows from none of its rows"
    return "a value of its rows is missing, or has another place" if is_whole else ""


def _readings(
    row: AuditedRow, column: Column | None, published: PublishedThen
) -> Iterator[list[tuple[str, str]]]:
    """Yield what a row with texts may do to its attribute."""
    removed, added = ([] if text is None else [text] for text in (row.old_value, row.new_value))
    is_same = any(
        _spellings(text, column, published) & _spellings(row.new_value or "", column, published)
        for text in removed
        if added
    )
    for kind in _types(row):
        removals = (
            [("remove", text) for text in removed] if kind == 2 else [("clear", "")] if kind == 3 else []
        )
        yield [] if kind == 2 and is_same else [*removals, *(("add", text) for text in added)]


def _is_same(step: ValueStep, text: tuple[str, str], column: Column | None, published: PublishedThen) -> bool:
    return step.kind == text[0] and (
        step.kind == "clear" or step.value in _spellings(text[1], column, published)
    )


def _spellings(text: str, column: Column | None, published: PublishedThen) -> set[str]:
    """Return how a document may spell the text of a row."""
    if column is None or column.kind is Kind.STRING:
        return {text}
    try:
        if column.kind in values.TIMES:
            syntaxes = (1, 2, 3) if published.time_syntax is None else (published.time_syntax,)
            return {values.write_time(column.kind, text, syntax) for syntax in syntaxes}
        return {text, values.dump(column.kind, values.load(column.kind, text))}
    except EventlogError:
        return {text}


def _is_typed(column: Column | None, step: ValueStep, published: PublishedThen) -> bool:
    """Return whether a value has the type of its column, and names the object that it refers to."""
    if column is not None and (target := reference_key(published.tables, column)) is not None:
        if step.type != "dn":
            return False
        key, name, _ = tablekey.read_association(step.reference)
        return name.lower() == target[0].name.lower() and tablekey.read(key)[0][1] == step.value
    if column is not None and column.kind in values.TIMES:
        return (
            step.type == ("time" if published.time_syntax == 1 else "string") or published.time_syntax is None
        )
    kind = Kind.STRING if column is None else column.kind
    try:
        is_written_so = kind is Kind.STRING or values.dump(kind, values.load(kind, step.value)) == step.value
    except EventlogError:
        is_written_so = False
    return is_written_so and step.type == _TYPES.get(kind, "string")
