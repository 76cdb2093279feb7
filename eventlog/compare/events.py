"""What has to be logged for what differs, and to which state it leads."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from eventlog.compare.changes import same_text
from eventlog.compare.digest import Texts, digest
from eventlog.compare.ordering import Phase, Ranks
from eventlog.compare.polling import PolledChange
from eventlog.core.tables import Column, Table
from eventlog.sql.log.known import LogRow, StateStep

_ENCODED = json.JSONEncoder(ensure_ascii=False).encode
_STEPS = 2_000
_LETTERS = 8 << 20

Text = str | tuple[str, ...] | None


def step_of(
    name: str, table: Table, found: PolledChange, ranks: Ranks, *, values: bool
) -> tuple[Phase, StateStep, bool]:
    """The phase and the step of a difference, and whether more of the object is to be told once this is
    settled; `values` tells whether values are kept beside digests."""
    step = StateStep(
        name, found.key_hash, found.key, found.known_digest, found.known_values, existed=found.known
    )
    if found.texts is None or found.digest is None:
        gone = (LogRow(4),) if found.known_digest is not None else ()
        return Phase.GONE, step._replace(rows=gone), False
    texts, late = found.texts, False
    if found.known_digest is None:
        circular = [ranks.circular(table, column) for column in table.data]
        texts = tuple(None if later else text for later, text in zip(circular, found.texts, strict=True))
        late = texts != tuple(found.texts)
    coming = digest(table.data, texts).hex() if late else found.digest
    kept = dump(table, texts) if values else None
    phase, rows = _rows(table, found, texts)
    if not rows:
        return phase, step._replace(digest=coming, row_values=kept), False
    return phase, step._replace(next_digest=coming, next_values=kept, rows=tuple(rows)), late


def as_it_is(name: str, table: Table, found: PolledChange, *, values: bool) -> StateStep:
    """The step that takes what is for what the receiver has."""
    kept = dump(table, found.texts) if values and found.texts is not None else None
    return StateStep(name, found.key_hash, found.key, found.digest, kept, existed=found.known)


def _rows(table: Table, found: PolledChange, texts: Texts) -> tuple[Phase, list[LogRow]]:
    if found.known_digest is None:
        added = [row for column, text in zip(table.data, texts, strict=True) for row in _added(column, text)]
        return Phase.NEW, added or [LogRow(5)]
    if found.known_digest == found.digest:
        return Phase.CHANGED, []  # an event failed, and the row is again what the receiver has
    if found.known_values is None:
        cleared = (_cleared(column, text) for column, text in zip(table.data, texts, strict=True))
        return Phase.CHANGED, [row for rows in cleared for row in rows]
    before = load(found.known_values)
    pairs = ((column, before.get(column.name), text) for column, text in zip(table.data, texts, strict=True))
    return Phase.CHANGED, [row for pair in pairs if pair[1] != pair[2] for row in _changed(*pair)]


def _added(column: Column, text: Text) -> Iterator[LogRow]:
    for one in _each(text) or (None,):
        yield LogRow(1, column.name, None, one)


def _cleared(column: Column, text: Text) -> Iterator[LogRow]:
    first, *others = _each(text) or (None,)
    yield LogRow(3, column.name, None, first)
    for one in others:
        yield LogRow(2, column.name, None, one)


def _changed(column: Column, before: Text, after: Text) -> Iterator[LogRow]:
    if isinstance(before, tuple) or isinstance(after, tuple):
        old, new = dict.fromkeys(_each(before)), dict.fromkeys(_each(after))
        yield from (LogRow(2, column.name, value, None) for value in old if value not in new)
        yield from (LogRow(2, column.name, None, value) for value in new if value not in old)
    elif not same_text(column, before, after):
        yield LogRow(2, column.name, before, after)


def _each(text: Text) -> tuple[str, ...]:
    """The values of a text, none of null."""
    return () if text is None else (text,) if isinstance(text, str) else text


def dump(table: Table, texts: Texts) -> str:
    """The values of an object as the state keeps them; what is null is left out."""
    named = ((column.name, text) for column, text in zip(table.data, texts, strict=True))
    return _ENCODED({name: text for name, text in named if text is not None})


def load(text: str) -> dict[str, Text]:
    """The values that `dump` wrote."""
    return {name: tuple(one) if isinstance(one, list) else one for name, one in json.loads(text).items()}


def in_chunks(steps: Iterable[StateStep]) -> Iterator[list[StateStep]]:
    """The steps, some at a time: so many, or so many letters of values, as one transaction takes."""
    held: list[StateStep] = []
    size = 0
    for one in steps:
        held.append(one)
        size += len(one.next_values or one.row_values or "")
        if len(held) >= _STEPS or size > _LETTERS:
            yield held
            held, size = [], 0
    if held:
        yield held
