"""Oracle: what is created unless it exists, and dropped if it exists, for which it has no words."""

from __future__ import annotations

import re
from typing import NamedTuple


class _Condition(NamedTuple):
    """A statement with a condition, the same without it, and the error that is then forgiven."""

    pattern: re.Pattern[str]
    plain: str
    error: int
    reason: str


def _condition(pattern: str, plain: str, error: int, reason: str = "it is there already") -> _Condition:
    return _Condition(re.compile(pattern), plain, error, reason)


_GONE = "it is gone already"
_CONDITIONS = (
    _condition(r"create (table|sequence) if not exists ", r"create \1 ", 955),
    _condition(r"create index if not exists ", "create index {place}", 955),
    _condition(r"alter table (\{\w+\}) add column if not exists ", r"alter table \1 add ", 1430),
    _condition(
        r"alter table (\{\w+\}) add constraint if not exists ", r"alter table \1 add constraint ", 2264
    ),
    _condition(r"drop table if exists (.*)", r"drop table \1 purge", 942, _GONE),
    _condition(r"drop view if exists ", "drop view ", 942, _GONE),
    _condition(r"drop sequence if exists ", "drop sequence ", 2289, _GONE),
)
_COMMENTS = re.compile(r"\A(?:--.*\n)+")
_TABLE = re.compile(r"drop table \{\w+\}")


def conditional(statement: str) -> tuple[str, ...]:
    """Return a statement of the schema as a block that forgives the error which its condition avoids."""
    text = _COMMENTS.sub("", statement, count=1)
    comments = statement.removesuffix(text)
    for condition in _CONDITIONS:
        if condition.pattern.match(text):
            plain = condition.pattern.sub(condition.plain, text, count=1)
            return (comments + _forgiving(plain, condition),)
    return (f"{statement} purge" if _TABLE.fullmatch(text) else statement,)


def _forgiving(statement: str, condition: _Condition) -> str:
    return (
        f"begin\n  execute immediate q'[\n{statement}\n  ]';\nexception\n  when others then\n"
        f"    if sqlcode <> -{condition.error} then raise; end if;"
        f" -- ORA-{condition.error:05}: {condition.reason}\nend;"
    )
