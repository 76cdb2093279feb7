"""MySQL: columns and indexes that are added unless they exist, and routines that are replaced.

It has no words for either.
"""

from __future__ import annotations

import re

_COMMENTS = r"(?P<comments>(?:--.*\n)*)"
_COLUMN = re.compile(
    _COMMENTS + r"alter table \{(?P<table>\w+)\} add column if not exists (?P<name>\w+) (?P<rest>.*)"
)
_INDEX = re.compile(
    _COMMENTS + r"create index if not exists \{(?P<name>\w+)\} on \{(?P<table>\w+)\} (?P<rest>.*)"
)
_ROUTINE = re.compile(r"create or replace (procedure|function) (\{\w+\})(.*)", re.DOTALL)
_MISSING = """{comments}set @missing = (
  select count(*) = 0 from information_schema.{view}
  where table_schema = {{schema_text}} and table_name = {{{table}_text}} and {condition})"""
_RUN = (
    "prepare eventlog_statement from @statement",
    "execute eventlog_statement",
    "deallocate prepare eventlog_statement",
)


def conditional(statement: str) -> tuple[str, ...]:
    """Return what runs a statement if what it adds is missing, or replaces a routine."""
    if routine := _ROUTINE.fullmatch(statement):
        kind, name, rest = routine.groups()
        return (f"drop {kind} if exists {name}", f"create {kind} {name}{rest}")
    if addition := _COLUMN.fullmatch(statement):
        view, condition = "columns", "column_name = '{name}'"
        plain = "alter table {{{table}}} add column {name} {rest}"
    elif addition := _INDEX.fullmatch(statement):
        view, condition = "statistics", "index_name = {{{name}_text}}"
        plain = "create index {{{name}}} on {{{table}}} {rest}"
    else:
        return (statement,)
    parts = addition.groupdict()
    missing = _MISSING.format(**parts, view=view, condition=condition.format(**parts))
    return (missing, f"set @statement = if(@missing, '{plain.format(**parts)}', 'do 0')", *_RUN)
