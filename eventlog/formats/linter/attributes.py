"""DISPATCH_ATTRS: the queue's own account of the replicated tables, as tables with record layouts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from eventlog.core.errors import InvalidTables
from eventlog.core.tables import Column, Table
from eventlog.core.typenames import kind_of

COLUMNS: Final = ("TABNUM_SRC", "NAME", "ATRNUM", "TYP", "PKEY", "LEN")
# The numbers are those of the client interfaces (Perl interface, appendix 2). That this table uses
# them too is inferred.
_INTEGERS: Final = {2: "smallint", 4: "integer", 8: "bigint"}
_REALS: Final = {4: "real", 8: "double"}
_NAMES: Final = {
    1: "char({0})",
    4: "date",
    5: "decimal",
    6: "byte({0})",
    7: "blob({0})",
    8: "varchar({0})",
    9: "varbyte({0})",
    10: "boolean",
    11: "nchar({1})",
    12: "nvarchar({1})",
}


class DispatchAttribute(NamedTuple):
    """A row of DISPATCH_ATTRS."""

    table: int
    name: str
    number: int
    typ: int
    key: bool
    length: int  # in bytes


def read_attribute(cells: Sequence[object]) -> DispatchAttribute:
    """Return the attribute in the cells of a row, in the order of COLUMNS."""
    table, name, number, typ, key, length = cells
    try:
        numbers = [int(str(cell)) for cell in (table, number, typ, key, length)]
    except ValueError:
        raise InvalidTables(f"DISPATCH_ATTRS: {cells!r:.80} does not hold the numbers of a column") from None
    return DispatchAttribute(
        numbers[0], str(name).rstrip(" "), numbers[1], numbers[2], bool(numbers[3]), numbers[4]
    )


def read_attributes(
    attributes: Iterable[DispatchAttribute], form: Mapping[str, object] | None = None
) -> list[Table]:
    """Return the tables of all attributes; `form` is what a layout contains besides its columns."""
    tables: dict[int, list[DispatchAttribute]] = {}
    for attribute in attributes:
        tables.setdefault(attribute.table, []).append(attribute)
    return [
        _table(number, sorted(rows, key=lambda row: row.number), form or {})
        for number, rows in tables.items()
    ]


def _table(number: int, attributes: Sequence[DispatchAttribute], form: Mapping[str, object]) -> Table:
    types = {attribute.name: _type(attribute) for attribute in attributes}
    columns = {name: Column(name, text, kind_of(text), name) for name, text in types.items()}
    key = tuple(attribute.name for attribute in attributes if attribute.key)
    linter = {**form, "columns": types}
    return Table(None, f"table_{number}", columns, key, number, linter=linter)


def _type(attribute: DispatchAttribute) -> str:
    length = attribute.length
    names_by_length = {2: _INTEGERS, 3: _REALS}.get(attribute.typ)
    name = names_by_length.get(length) if names_by_length is not None else _NAMES.get(attribute.typ)
    if name is None:
        raise InvalidTables(
            f"DISPATCH_ATTRS: {attribute.name} has TYP {attribute.typ} and LEN {length}: no known type"
        )
    return name.format(length, length // 2)
