"""A table whose current rows can be read back by keys in the log."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING

from sqlalchemy import text
from sqlalchemy.engine import Connection

from eventlog.core import tablekey
from eventlog.core.errors import EventlogError, WrongRow
from eventlog.core.tables import Column, Table
from eventlog.sql.common import templates
from eventlog.sql.common.dialect import Dialect
from eventlog.sql.common.key_types import KeyType, key_type_of
from eventlog.sql.current_rows import Elsewhere, KeyColumn
from eventlog.sql.relation import Child, place_of, qualified

if TYPE_CHECKING:
    import pyarrow as pa

Collations = Mapping[str, tuple[str, str]]  # character set and collation by column


class ReadableTable:
    """The query-back of one table: identifiers are the catalogue's own, values are checked, then bound."""

    def __init__(
        self,
        table: Table,
        dialect: Dialect,
        collations: Collations | None = None,
        children: Sequence[Child] = (),
    ) -> None:
        self.table = table
        self.elsewhere: Elsewhere | None = None
        self._dialect = dialect
        self._collations = collations or {}
        self._read_as = _read_as(table)
        self.source = _source(table, children, self._read_as, dialect)
        self.places = (place_of(table), *(child.relation.place for child in children))
        self.columns = table.data
        compared = {column.name: self._compared(column) for column in table.key_columns}
        self._sent = {name: key_type for name, (_, key_type) in compared.items()}
        self.key = tuple(column for column, _ in compared.values())
        self.key_texts = tuple(map(self._key_text_of, table.key_columns))
        self.expressions = tuple(map(self._text_of, self.columns))

    @property
    def view(self) -> bool:
        """Return whether a view is read, as the catalogue had it."""
        return self.table.view

    def load_key(self, table_key: str) -> tuple[str, ...]:
        """Return the values of a table_key in key order; raise WrongRow if it is not exactly a key of this
        table.
        """
        values = tablekey.read(table_key)
        named: dict[str, str] = {}
        for name, value in values:
            column = self.table.column(name)
            if column is None or column.name not in self._sent or column.name in named:
                raise WrongRow(f"table_key names {name!r}, and the key of {self.table} is {self._key_names}")
            named[column.name] = self._load(column, value)
        if missing := self._sent.keys() - named.keys():
            raise WrongRow(f"table_key lacks {min(missing)}: the key of {self.table} is {self._key_names}")
        return tuple(named[name] for name in self.table.key)

    def load_values(self, texts: Sequence[str]) -> tuple[str, ...]:
        """Return the values of a key, in its order, as they are bound; raise WrongRow if one is none of its
        column.
        """
        return tuple(map(self._load, self.table.key_columns, texts))

    def load_columns(self, texts: Sequence[pa.Array]) -> list[list[str]] | None:
        """Return the values of many keys, by column, or None if some must be converted one by one."""
        import pyarrow.compute as pc

        for column, values in zip(self.table.key_columns, texts, strict=True):
            pattern = self._sent[column.name].as_it_is
            if pattern is None or not pc.all(pc.match_substring_regex(values, f"^(?:{pattern})$")).as_py():
                return None
        return [values.to_pylist() for values in texts]

    def _load(self, column: Column, value: str) -> str:
        try:
            return self._sent[column.name].sent(value)
        except EventlogError as fault:
            raise WrongRow(f"table_key: {column.name}: {fault}") from fault

    def _compared(self, column: Column) -> tuple[KeyColumn, KeyType]:
        key_type = key_type_of(self._dialect.values.key_types, column.type)
        equals = self._dialect.values.expressions.equals
        if key_type is None or ("{collation}" in key_type.matches and column.name not in self._collations):
            as_text = KeyType(self._dialect.schema.words["type_key"], f"{{c}} {equals} {{k}}")
            return KeyColumn(self._key_text_of(column), as_text.declared, as_text.matches), as_text
        charset, collation = self._collations.get(column.name, ("", ""))
        holes = {"charset": charset, "collation": collation, "equals": equals, "c": "{c}", "k": "{k}"}
        name = self._dialect.quote(self._read_as.get(column.name, column.name))
        return KeyColumn(f"t.{name}", key_type.declared, templates.fill(key_type.matches, holes)), key_type

    @property
    def functions(self) -> str:
        """Return the definitions of our SQL functions in the expressions, as the beginning of a query."""
        called = self._dialect.values.expressions.called_by(self.expressions)
        texts = "\n".join(templates.statement(self._dialect, name) for name in called)
        return f"with\n{texts}\n" if texts else ""

    def _text_of(self, column: Column) -> str:
        return self._dialect.values.expressions.queried(self._read(column), "t", self._dialect.quote)

    def _key_text_of(self, column: Column) -> str:
        expressions = self._dialect.values.expressions
        in_key, name = expressions.of(column.type).in_key, self._dialect.quote(self._read(column).name)
        return in_key.format(x=f"t.{name}") if in_key else self._text_of(column)

    def _read(self, column: Column) -> Column:
        return replace(column, name=self._read_as.get(column.name, column.name))

    @property
    def _key_names(self) -> str:
        return ", ".join(self.table.key)


def with_children(table: Table, children: Iterable[Child]) -> Table:
    """Return the table with the columns of its children as attributes of many values."""
    columns = dict(table.columns)
    for child in children:
        child_table = child.relation.table
        is_ambiguous = any(f"{child_table.name}.{column.name}" in columns for column in child.columns)
        prefix = str(child_table) if is_ambiguous else child_table.name  # two children of one name
        names = {column.name: f"{prefix}.{column.name}" for column in child.columns}
        names |= zip(child.link.columns, child.link.target_columns, strict=True)
        for column in child.columns:
            name = names[column.name]
            columns[name] = replace(
                column,
                name=name,
                published=name,
                multivalued=True,
                aliases=tuple(f"{child_table}.{called}" for called in (column.name, *column.aliases)),
                of_child=(*child.relation.place, column.name),
            )
    return replace(table, columns=columns)


def _read_as(table: Table) -> dict[str, str]:
    """Return the names of the columns of children in queries, without long names or those of the parent."""
    free = (name for number in count() if (name := f"child{number}") not in table.columns)
    return {column.name: next(free) for column in table.columns.values() if column.of_child}


def _source(table: Table, children: Sequence[Child], read_as: Mapping[str, str], dialect: Dialect) -> str:
    """Return the source of a query: the table, or its rows once for each row of each child.

    With several children `turn` numbers them: a row of the source has the columns of one child, and null for
    the others.
    """
    parent = qualified(dialect, table.schema, table.name)
    if not children:
        return parent
    columns, joins = ["p.*"], [f"{parent} p"]
    turns = " union all ".join(
        f"select {number} as turn{dialect.statements.dual}" for number in range(len(children))
    )
    joins += [f"cross join ({turns}) n"] if len(children) > 1 else []
    for number, child in enumerate(children):
        child_table, quote = child.relation.table, dialect.quote
        columns += [
            f"c{number}.{quote(column.of_child[2])} as {quote(read_as[column.name])}"
            for column in table.columns.values()
            if column.of_child is not None and column.of_child[:2] == child.relation.place
        ]
        on = [child.linking(dialect, "p", f"c{number}")]
        on += [f"n.turn = {number}"] if len(children) > 1 else []
        source = qualified(dialect, child_table.schema, child_table.name)
        joins.append(f"left join {source} c{number} on {' and '.join(on)}")
    return f"(select {', '.join(columns)} from {' '.join(joins)})"  # noqa: S608 - quoted names of the catalogue


def readable(
    connection: Connection, table: Table, dialect: Dialect, children: Sequence[Child] = ()
) -> ReadableTable:
    """Return the query-back of a table, with the collations of its key columns from the catalogue."""
    question = text(templates.statement(dialect, "key_collations"))
    rows = connection.execute(question, {"schema": table.schema, "table_name": table.name})
    collations = {name: (charset, collation) for name, charset, collation in rows}
    return ReadableTable(table, dialect, collations, children)
