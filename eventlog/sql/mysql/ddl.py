"""MySQL: indexes that are added unless they exist, and routines that are replaced.

It has no words for either.
"""

from __future__ import annotations

import re

_COMMENTS = r"(?P<comments>(?:--.*\n)*)"
_INDEX = re.compile(
    _COMMENTS + r"create index if not exists \{(?P<name>\w+)\} on \{(?P<table>\w+)\} (?P<rest>.*)"
)
_ROUTINE = re.compile(r"create or replace (procedure|function) (\{\w+\})(.*)", re.DOTALL)
_MISSING = """{comments}set @missing = (
  select count(*) = 0 from information_schema.statistics
  where table_schema = {{schema_text}} and table_name = {{{table}_text}} and index_name = {{{name}_text}})"""
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
    addition = _INDEX.fullmatch(statement)
    if addition is None:
        return (statement,)
    plain = "create index {{{name}}} on {{{table}}} {rest}"
    parts = addition.groupdict()
    missing = _MISSING.format(**parts)
    return (missing, f"set @statement = if(@missing, '{plain.format(**parts)}', 'do 0')", *_RUN)
