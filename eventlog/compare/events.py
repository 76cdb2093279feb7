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
from eventlog.core.tables import Column, Table
from eventlog.core.values import Kind
from eventlog.sql.log.receiver_state import DOUBT, LogRow, StateStep, adds

_ENCODED = json.JSONEncoder(ensure_ascii=False).encode
_STEPS = 2_000
_LETTERS = 8 << 20

Text = str | tuple[str, ...] | None
Keep = Callable[[Table, Texts], str | None]  # what the state keeps of an object's values


def step_of(
    name: str,
    table: Table,
    found: PolledChange,
    later: Container[str] = (),
    *,
    keep: Keep,
    stale: Container[str] = (),
    unsure: bool = False,
) -> tuple[Phase, StateStep, bool]:
    """Return the phase and the step of a difference, and whether more of the object follows once it is
    settled. The first add leaves out the columns `later`; of those that are `stale` the receiver may have
    values that the state lacks; `unsure`: it may have the object.
    """
    if adds(found.known_digest):
        found = found._replace(known_digest=None)
    step = StateStep(
        name, found.key_hash, found.key, found.known_digest, found.known_values, existed=found.known
    )
    texts, new = found.texts, found.known_digest is None
    if texts is None or found.digest is None:
        return Phase.GONE, step._replace(rows=() if new else (LogRow(4),)), False
    whole = texts
    if new and unsure:
        found, step = found._replace(known_digest=DOUBT), step._replace(digest=DOUBT)
    if new:
        pairs = zip(table.data, whole, strict=True)
        texts = tuple(None if column.name in later else text for column, text in pairs)
    late = tuple(texts) != tuple(whole)
    coming = digest(table.data, texts).hex() if late else found.digest
    before = None if found.known_values is None else _Before(found.known_values)
    kept = keep(table, texts if before is None else before.sent_texts(table, texts))
    rows = list(_rows(table, found, before, texts, stale))
    phase = Phase.NEW if new else Phase.CHANGED
    if not rows:
        return phase, step._replace(digest=coming, row_values=kept), False
    return phase, step._replace(next_digest=coming, next_values=kept, rows=tuple(rows)), late


def current_row_step(name: str, table: Table, found: PolledChange, *, keep: Keep) -> StateStep:
    """Return the step that takes what is for what the receiver has."""
    kept = None if found.texts is None else keep(table, found.texts)
    return StateStep(name, found.key_hash, found.key, found.digest, kept, existed=found.known)


class _Before:
    """The values of an object that the state has: those that were sent, or the digests of such values."""

    def __init__(self, kept: str) -> None:
        self.digested = kept.startswith("[")
        self.texts: dict[str, Text] = json.loads(kept)[0] if self.digested else load(kept)

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
    table: Table, found: PolledChange, before: _Before | None, texts: Texts, stale: Container[str]
) -> Iterable[LogRow]:
    if found.known_digest is None:
        return [*_every_added(table, texts)] or [LogRow(5)]
    if found.known_digest == found.digest or (found.renewed and found.known_values is None):
        return ()  # the row is what the receiver has: an event failed, or an earlier version made the digest
    if before is None:
        return [*_every_cleared(table, texts)] or ([] if found.known else [LogRow(5)])
    return _differing(table, before, texts, stale)


def _differing(table: Table, before: _Before, texts: Texts, stale: Container[str]) -> Iterator[LogRow]:
    """Return the rows that lead from what the state keeps to these values."""
    kept = before.texts
    for column, text in zip(table.data, texts, strict=True):
        known = kept.get(column.name)
        unknown = column.name in stale and column.name not in kept
        if unknown or (before.digested and known != _digest_of(column, text)):
            yield from _cleared(column, text)
        elif not before.digested and known != text:
            yield from _changed(column, known, text)
    for column in table.gone:
        if kept.get(column.name) is not None or (column.name in stale and column.name not in kept):
            yield LogRow(3, column.name)


def _every_added(table: Table, texts: Texts) -> Iterator[LogRow]:
    for column, text in zip(table.data, texts, strict=True):
        yield from (LogRow(1, column.name, None, one) for one in _each(text) or (None,))


def _every_cleared(table: Table, texts: Texts) -> Iterator[LogRow]:
    """Return the rows that clear and set every column, and clear those that the table had."""
    for column, text in zip(table.data, texts, strict=True):
        yield from _cleared(column, text)
    yield from (LogRow(3, column.name) for column in table.gone)


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
    kept = {c.name: _digest_of(c, text) for c, text in pairs if text is not None or c.name in stale}
    return _ENCODED([kept])


def dump_nothing(table: Table, texts: Texts) -> None:
    """Keep nothing except the digest."""


def load(text: str) -> dict[str, Text]:
    """Return the values that `dump` wrote."""
    return {name: tuple(one) if isinstance(one, list) else one for name, one in json.loads(text).items()}


def names_in(text: str) -> Iterable[str]:
    """Return the names of the columns that the state keeps values of."""
    kept = json.loads(text)
    return kept if isinstance(kept, dict) else kept[0]


def in_chunks(steps: Iterable[StateStep]) -> Iterator[list[StateStep]]:
    """Yield the steps, some at a time: so many, or so many letters of values, as one transaction takes."""
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
