"""Values of keys by which no row is read back, such as -infinity or a date before Christ.

Of each type that has such values they are its least or its greatest ones, which the index of the key finds.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlalchemy import text
from sqlalchemy.engine import Connection

from eventlog.core.errors import EventlogError
from eventlog.core.values import Kind
from eventlog.sql.common import templates
from eventlog.sql.common.dialect import Dialect
from eventlog.sql.common.key_types import key_type_of
from eventlog.sql.connect import DatabaseFailed
from eventlog.sql.queries import unbound
from eventlog.sql.relation import Relation, qualified

UNFINDABLE = "it has the key {key}, which no query-back finds: rows of types 5 to 8 that have it get E"
_ORDERED = (Kind.DATE, Kind.TIME, Kind.TIMESTAMP, Kind.INT)


def unfindable_keys(connection: Connection, dialect: Dialect, relation: Relation) -> Iterator[str]:
    """Yield the keys by which no row is read back: the least and the greatest at most.

    Only the first column of a key is looked at, because no index finds the extremes of the others.
    """
    column = next(iter(relation.table.key_columns), None)
    if column is None or not relation.identity.is_table:
        return
    key_type = key_type_of(dialect.values.key_types, column.type)
    is_ordered = column.kind in _ORDERED or column.number is not None
    if key_type is None or key_type.as_it_is is not None or not is_ordered:
        return
    expression, name = dialect.values.expressions.of(column.type), f"t.{dialect.quote(column.name)}"
    texts = (expression.text.format(x=f"{extreme}({name})") for extreme in ("min", "max"))
    holes = {"texts": ",\n  ".join(texts), "table": qualified(dialect, *relation.place)}
    try:
        with connection.begin_nested():
            query = text(unbound(templates.statement(dialect, "extremes", **holes)))
            extremes = [*connection.execute(query).one()]
    except DatabaseFailed:  # this user may not read it
        return
    for value in dict.fromkeys(value for value in extremes if value is not None):
        try:
            key_type.sent(value)
        except EventlogError:
            yield f"{column.name}={value}"
