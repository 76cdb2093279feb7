"""The types of columns that no source described, by the kinds of their values; texts make texts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from eventlog.core.change import ABSENT, Change, Field, Value
from eventlog.core.errors import NotExpressible
from eventlog.qlik.sqltypes import spec_of_value
from eventlog.qlik.types import NON_FINITE, Spec

_SURROGATE = re.compile("[\ud800-\udfff]")
_TEXT = Spec("CLOB")
_WIDER = {frozenset(("INT8", "NUMERIC")): "NUMERIC", frozenset(("INT8", "REAL8")): "REAL8"}


def values_of(name: str, changes: Iterable[Change]) -> Iterator[Value]:
    """Return the values that changes give a column."""
    for change in changes:
        fields = [*change.fields, *(Field(column, ABSENT, value) for column, value in change.key)]
        for field in fields:
            if field.column == name:
                yield from (side for side in field[1:] if side is not ABSENT)


def guessed(values: Iterable[Value], digits: int = 38) -> Spec:
    """Return the data type that holds values of a column that no source described.

    Integers of more digits count for nothing: the changes that have them are refused.
    """
    spec: Spec | None = None
    for value in values:
        try:
            if value is None or (spec is not None and spec.name == "REAL8" and value in NON_FINITE):
                continue
            guess = _spec_of(value)
        except NotExpressible:  # the change that has it will be refused
            continue
        if guess.precision > digits:
            continue
        spec = guess if spec is None else _joined(spec, guess)
        if spec.name == "CLOB":
            break
    return spec or _TEXT


def _spec_of(value: Value) -> Spec:
    """Return the data type of one value."""
    if not isinstance(value, str):
        return spec_of_value(value)
    if not value.isascii() and not value.isprintable() and _SURROGATE.search(value):
        raise NotExpressible("it is no text in UTF-8")
    return _TEXT


def _joined(first_spec: Spec, second_spec: Spec) -> Spec:
    """Return the data type that holds the values of both."""
    if first_spec.name == second_spec.name:
        return max(first_spec, second_spec, key=lambda candidate: candidate.precision)
    wider = _WIDER.get(frozenset((first_spec.name, second_spec.name)))
    if wider is None:
        return _TEXT
    return (
        Spec(wider, 0, max(first_spec.precision, second_spec.precision, 19))
        if wider == "NUMERIC"
        else Spec("REAL8", 14)
    )


def guessed_types(table: str, guesses: str) -> str:
    """Return the sentence that reports columns with types that follow their values."""
    first = f"{table} takes columns with types that follow their first values"
    return f"{first}: {guesses} (a tables file states others)"
