"""Rows under the one name of their object, so that the rows of an object meet; their own name is kept too."""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import Any, NamedTuple

from pyspark.sql import functions as f

from eventlog.columnar.texts import named_form
from eventlog.core.errors import EventlogError
from eventlog.core.identity import child_column, identify
from eventlog.core.tables import Tables
from eventlog_spark.shuffle import pack_name


class RowNames(NamedTuple):
    """The names of a row: those of its object, and its own where they differ."""

    table_name: str
    table_key: str
    column_name: str | None
    logged: str | None  # packed


def spell(tables: Tables, table_name: str, table_key: str, column_name: str | None) -> RowNames:
    """Return the names of a row; one that cannot be understood keeps its own."""
    try:
        identity = identify(tables, table_name, table_key)
    except EventlogError:
        return RowNames(table_name, table_key, column_name, None)
    if identity.child:
        column_name = child_column(identity.table, identity.child, column_name)
    own = None if identity.name == (table_name, table_key) else pack_name(table_name, table_key)
    return RowNames(*identity.name, column_name, own)


def alike(tables: Tables) -> Any:
    """Return whether a row certainly names its object as we do, or no known object; null counts as such."""
    forms: dict[str, list[str]] = {}
    for table in tables:
        if table.key:
            forms.setdefault(named_form(table.key), []).append(tables.name_of(table))
    name = f.col("table_name")
    known = [name.isin(called) & f.col("table_key").rlike(form) for form, called in forms.items()]
    spelled = sorted(tables.spellings())
    strange = ~f.lower(name).isin(spelled) & name.rlike(r"^[\x00-\x7f]*\z")
    return f.coalesce(reduce(or_, known, strange), f.lit(True))
