"""What has to be logged for what differs, and to which state it leads."""

from __future__ import annotations

import json
from collections.abc import Callable, Container, Iterable, Iterator

from eventlog.compare.changes import same_text
from eventlog.compare.digest import Texts, digest
from eventlog.compare.ordering import Phase
from eventlog.compare.polling import PolledChange
from eventlog.core import values
from eventlog.core.errors import EventlogError
from eventlog.core.portions import portions
from eventlog.core.tables import Column, Table
from eventlog.core.values import Kind
from eventlog.sql.log.object_states import DOUBT, LogRow, StateStep, adds

_ENCODED = json.JSONEncoder(ensure_ascii=False).encode
_STEPS = 2_000
_LETTERS = 8 << 20

Text = str | tuple[str, ...] | None
Keep = Callable[[Table, Texts], str | None]  # what the state keeps of an object's values


def step_of(
    name: str,
    table: Table,
    change: PolledChange,
    set_later: Container[str] = (),
    *,
    keep: Keep,
    stale: Container[str] = (),
    unsure: bool = False,
) -> tuple[Phase, StateStep, bool]:
    """Return the phase and the step of a change, and whether more of the object follows once it is
    settled. The first add leaves out the columns `later`; of those that are `stale` the receiver may have
    values that the state lacks; `unsure`: it may have the object.
    """
    if adds(change.known_digest):
        change = change._replace(known_digest=None)
    step = StateStep(
        name, change.key_hash, change.key, change.known_digest, change.known_values, existed=change.is_known
    )
    texts, is_new = change.texts, change.known_digest is None
    if texts is None or change.digest is None:
        return Phase.DELETED, step._replace(rows=() if is_new else (LogRow(4),)), False
    all_texts = texts
    if is_new and unsure:
        change, step = change._replace(known_digest=DOUBT), step._replace(digest=DOUBT)
    if is_new:
        pairs = zip(table.data, all_texts, strict=True)
        texts = tuple(None if column.name in set_later else text for column, text in pairs)
    is_partial = tuple(texts) != tuple(all_texts)
    next_digest = digest(table.data, texts).hex() if is_partial else change.digest
    before = None if change.known_values is None else _Before(change.known_values)
    state_values = keep(table, texts if before is None else before.sent_texts(table, texts))
    rows = list(_rows(table, change, before, texts, stale))
    phase = Phase.NEW if is_new else Phase.CHANGED
    if not rows:
        return phase, step._replace(digest=next_digest, row_values=state_values), False
    return (
        phase,
        step._replace(next_digest=next_digest, next_values=state_values, rows=tuple(rows)),
        is_partial,
    )


def current_row_step(name: str, table: Table, change: PolledChange, *, keep: Keep) -> StateStep:
    """Return the step that takes what is for what the receiver has."""
    state_values = None if change.texts is None else keep(table, change.texts)
    return StateStep(name, change.key_hash, change.key, change.digest, state_values, existed=change.is_known)


class _Before:
    """The values of an object that the state has: those that were sent, or the digests of such values."""

    def __init__(self, state_text: str) -> None:
        self.digested = state_text.startswith("[")
        self.texts: dict[str, Text] = json.loads(state_text)[0] if self.digested else load(state_text)

    def sent_texts(self, table: Table, texts: Texts) -> Texts:
        """Return the texts as they were sent: a value that means the same keeps its text."""
        if self.digested:
            return texts
        pairs = zip(table.data, texts, strict=True)
        return tuple(_sent_text(column, self.texts.get(column.name), text) for column, text in pairs)


def _sent_text(column: Column, before: Text, text: Text) -> Text:
    if before == text or not isinstance(before, str) or not isinstance(text, str):
        return text
    return before if same_text(column, before, text) else text


def _rows(
    table: Table, change: PolledChange, before: _Before | None, texts: Texts, stale: Container[str]
) -> Iterable[LogRow]:
    if change.known_digest is None:
        return [*_every_added(table, texts)] or [LogRow(5)]
    if change.known_digest == change.digest:
        return ()  # the row is what the receiver has, because an event failed
    if before is None:
        return [*_every_cleared(table, texts)] or ([] if change.is_known else [LogRow(5)])
    return _differing(table, before, texts, stale)


def _differing(table: Table, before: _Before, texts: Texts, stale: Container[str]) -> Iterator[LogRow]:
    """Return the rows that lead from what the state keeps to these values."""
    before_texts = before.texts
    for column, text in zip(table.data, texts, strict=True):
        before_text = before_texts.get(column.name)
        unknown = column.name in stale and column.name not in before_texts
        if unknown or (before.digested and before_text != _digest_of(column, text)):
            yield from _cleared(column, text)
        elif not before.digested and before_text != text:
            yield from _changed(column, before_text, text)
    for column in table.lost_columns:
        unknown = column.name in stale and column.name not in before_texts
        if unknown or before_texts.get(column.name) is not None:
            yield LogRow(3, column.name)


def _every_added(table: Table, texts: Texts) -> Iterator[LogRow]:
    for column, text in zip(table.data, texts, strict=True):
        yield from (LogRow(1, column.name, None, value) for value in _each(text) or (None,))


def _every_cleared(table: Table, texts: Texts) -> Iterator[LogRow]:
    """Return the rows that clear and set every column, and clear those that the table had."""
    for column, text in zip(table.data, texts, strict=True):
        yield from _cleared(column, text)
    yield from (LogRow(3, column.name) for column in table.lost_columns)


def _cleared(column: Column, text: Text) -> Iterator[LogRow]:
    first, *further_values = _each(text) or (None,)
    yield LogRow(3, column.name, None, first)
    for value in further_values:
        yield LogRow(2, column.name, None, value)


def _changed(column: Column, before: Text, after: Text) -> Iterator[LogRow]:
    if isinstance(before, tuple) or isinstance(after, tuple):
        old_values, new_values = dict.fromkeys(_each(before)), dict.fromkeys(_each(after))
        yield from (LogRow(2, column.name, value, None) for value in old_values if value not in new_values)
        yield from (LogRow(2, column.name, None, value) for value in new_values if value not in old_values)
    elif not same_text(column, before, after):
        removable = before is None or _is_removable(column, before)
        yield from (LogRow(2, column.name, before, after),) if removable else _cleared(column, after)


def _is_removable(column: Column, text: str) -> bool:
    """Return whether a row can remove this text, which a column of another type may have had."""
    try:
        value = column.load(text)
    except EventlogError:
        return False
    return column.kind is not Kind.INT or values.dump(Kind.INT, value) == text


def _each(text: Text) -> tuple[str, ...]:
    """Return the values of a text, none of null."""
    return () if text is None else (text,) if isinstance(text, str) else text


def _digest_of(column: Column, text: Text) -> str | None:
    return None if text is None else digest((column,), (text,)).hex()


def dump(table: Table, texts: Texts, stale: Container[str] = ()) -> str:
    """Return the values of an object as the state keeps them: null only if a receiver might have had one."""
    named = ((column.name, text) for column, text in zip(table.data, texts, strict=True))
    return _ENCODED({name: text for name, text in named if text is not None or name in stale})


def dump_digests(table: Table, texts: Texts, stale: Container[str] = ()) -> str:
    """Return the digest of each value, as a state without values keeps them; null as `dump` has it."""
    pairs = zip(table.data, texts, strict=True)
    digests = {c.name: _digest_of(c, text) for c, text in pairs if text is not None or c.name in stale}
    return _ENCODED([digests])


def dump_nothing(table: Table, texts: Texts) -> None:
    """Keep nothing except the digest."""


def load(text: str) -> dict[str, Text]:
    """Return the values that `dump` wrote."""
    values = json.loads(text).items()
    return {name: tuple(value) if isinstance(value, list) else value for name, value in values}


def in_chunks(steps: Iterable[StateStep]) -> Iterator[list[StateStep]]:
    """Yield the steps, some at a time: so many, or so many letters of values, as one transaction takes."""
    return portions(steps, _STEPS, lambda step: len(step.next_values or step.row_values or ""), _LETTERS)
