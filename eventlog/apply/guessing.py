"""The types of columns that nobody described, by their values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from eventlog.core.change import ABSENT, Change, Field, Value
from eventlog.core.errors import NotExpressible
from eventlog.qlik.sqltypes import holds, spec_of_value
from eventlog.qlik.types import Spec


def values_of(name: str, changes: Iterable[Change]) -> Iterator[Value]:
    """The values that changes give a column."""
    for change in changes:
        told = [*change.fields, *(Field(column, ABSENT, value) for column, value in change.key)]
        for field in told:
            if field.column == name:
                yield from (side for side in field[1:] if side is not ABSENT)


def guessed(values: Iterator[Value]) -> Spec:
    """The data type that holds values of a column that nobody described; text, where it is not one."""
    spec: Spec | None = None
    for value in values:
        try:
            if value is None or (spec is not None and holds(spec, value)):
                continue
            guess = spec_of_value(value)
        except NotExpressible:  # the change that has it will be refused
            continue
        if spec is not None and guess.name != spec.name:
            return Spec("CLOB")
        spec = guess
    return spec or Spec("CLOB")
