"""The tables file: TOML in, Tables out, and back."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from eventlog.core import toml
from eventlog.core.errors import InvalidDocument, InvalidTables, Misuse
from eventlog.core.meta_identifiers import read_name
from eventlog.core.publish_lists import read_lists, restrict
from eventlog.core.tables import Column, Table, Tables
from eventlog.core.typenames import bounds_of, kind_of, misspelt, number_of
from eventlog.core.values import Kind

_ENTRY_TYPES = {
    "schema": str,
    "key": list,
    "columns": dict,
    "references": dict,
    "multivalued": list,
    "number": int,
    "publish": list,
    "withhold": list,
    "max-value": int,
    "view": bool,
    "linter": dict,
}
_KINDS = {str: "text", list: "a list", dict: "a table", int: "a whole number", bool: "true or false"}
_LISTS = {"publish", "withhold"}


def read(
    text: str, *, trim_char: bool = True, meta_identifiers: bool = True, references: bool = True
) -> Tables:
    """Return the tables that the text of a tables file describes."""
    try:
        document = toml.load(text)
    except InvalidDocument as fault:
        raise InvalidTables(str(fault)) from fault
    return described(document, trim_char=trim_char, meta_identifiers=meta_identifiers, references=references)


def described(
    document: Mapping[str, Any],
    *,
    trim_char: bool = True,
    meta_identifiers: bool = True,
    references: bool = True,
) -> Tables:
    """Return the tables that the content of a tables file describes."""
    if unknown := document.keys() - {"tables", "dialect"}:
        raise InvalidTables(f"unknown entry {sorted(unknown)[0]!r}; it holds `dialect` and `[tables.NAME]`")
    dialect = document.get("dialect")
    entries = document.get("tables", {})
    if not isinstance(entries, dict):
        raise InvalidTables("`tables` must hold one table for each name")
    reader = _Reader(dialect, trim_char, meta_identifiers, references, frozenset(entries))
    tables = [reader.table(name, entry) for name, entry in entries.items()]
    sections = zip(tables, entries.items(), strict=True)
    lists = [read_lists(*section, table) for table, section in sections if _LISTS & section[1].keys()]
    restricted = restrict(tables, lists, dialect)
    for reason in restricted.halted().values():
        raise Misuse(reason)
    return restricted


def write(tables: Iterable[Table], dialect: str | None = None) -> str:
    """Return the text of a tables file."""
    lines = [f"dialect = {json.dumps(dialect)}", ""] if dialect else []
    for table in tables:
        lines += _table_lines(table)
    return "\n".join(lines)


class _Reader:
    def __init__(
        self, dialect: str | None, trim_char: bool, meta: bool, references: bool, names: frozenset[str]
    ) -> None:
        self.dialect = dialect
        self.trim_char = trim_char
        self.meta = meta
        self.references = references
        self.names = names

    def table(self, name: str, entry: object) -> Table:
        if not isinstance(entry, dict):
            raise InvalidTables(f"tables.{name} must be a table")
        for key, value in entry.items():
            expected = _ENTRY_TYPES.get(key)
            if expected is None:
                entries = ", ".join(_ENTRY_TYPES)
                raise InvalidTables(f"tables.{name}: unknown entry {key!r}; known are {entries}")
            if not isinstance(value, expected):
                raise InvalidTables(f"tables.{name}.{key} must be {_KINDS[expected]}")
        schema = entry.get("schema")
        prefix = f"{schema}."
        bare = name.removeprefix(prefix) if schema and name.startswith(prefix) else name
        view = entry.get("view", False)
        columns = self._columns(name, entry, view and self.meta)
        key = tuple(entry.get("key", ())) or (
            tuple(column for column in columns if read_name(column).is_key) if view else ()
        )
        for column in key:
            if columns and column not in columns:
                raise InvalidTables(f"tables.{name}: key column {column!r} is not among its columns")
        return Table(
            schema=schema,
            name=bare,
            columns=columns,
            key=key,
            number=entry.get("number"),
            max_value=entry.get("max-value"),
            view=view,
            linter=entry.get("linter", {}),
        )

    def _columns(self, table: str, entry: Mapping[str, Any], meta: bool) -> dict[str, Column]:
        types: dict[str, str] = entry.get("columns", {})
        for option in ("references", "multivalued"):
            for column in entry.get(option, ()):
                if column not in types:
                    raise InvalidTables(f"tables.{table}.{option}: no column {column!r}")
        references = entry.get("references", {})
        for column, target in references.items():
            if not isinstance(target, str) or target not in self.names:
                raise InvalidTables(f"tables.{table}.references.{column}: no table {target!r}")
        multivalued = frozenset(entry.get("multivalued", ()))
        return {
            column: Column(
                name=column,
                type=type_name,
                kind=self._kind(type_name, f"tables.{table}.columns.{column}"),
                published=read_name(column).published if meta else column,
                multivalued=column in multivalued or (meta and read_name(column).is_multivalued),
                reference=references.get(column) if self.references else None,
                bounds=bounds_of(str(type_name), self.dialect),
                number=number_of(str(type_name), self.dialect),
                effective=read_name(column).name if meta else None,
            )
            for column, type_name in types.items()
        }

    def _kind(self, type_name: object, where: str) -> Kind:
        if not isinstance(type_name, str):
            raise InvalidTables(f'a column\'s type must be text, as in "varchar(64)": {type_name!r}')
        if near := misspelt(type_name):
            raise InvalidTables(f"{where}: no database has a type {type_name!r}; did you mean {near!r}?")
        kind = kind_of(type_name, self.dialect)
        return Kind.STRING if kind is Kind.PADDED and not self.trim_char else kind


def _table_lines(table: Table) -> list[str]:
    options: dict[str, object] = {
        "schema": table.schema,
        "key": list(table.key),
        "view": table.view or None,
        "number": table.number,
        "max-value": table.max_value,
        "multivalued": [c.name for c in table.columns.values() if c.multivalued] or None,
        "references": {c.name: c.reference for c in table.columns.values() if c.reference} or None,
        "withhold": [c.name for c in table.columns.values() if not c.leaves] if table.closed else None,
        "columns": {c.name: c.type for c in table.columns.values()},
        "linter": dict(table.linter) or None,
    }
    heading = f"[tables.{_toml(str(table))}]" if table.schema else f"[tables.{_toml(table.name)}]"
    return [heading, *(f"{k} = {_toml(v)}" for k, v in options.items() if v is not None), ""]


def _toml(value: object) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{_toml(k)} = {_toml(v)}" for k, v in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(_toml(item) for item in value) + "]"
    return json.dumps(value, ensure_ascii=False)
