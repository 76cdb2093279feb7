"""Both ways from rows to events, and what must be the same of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from eventlog.core.entry import Entry
from eventlog.core.errors import EventlogError
from eventlog.core.tables import Tables
from eventlog.fold import Fate, Rules, plan
from eventlog.fold.by_column import BatchEvents, CurrentAnswer, CurrentColumns, Engine, Rows
from eventlog.fold.by_column.current import NONE, Keys
from eventlog.fold.by_column.fold import FATES
from eventlog.fold.plain_events import PlainEvents, write_plan
from eventlog.fold.plan import Lookup
from eventlog.xds.skeleton import EventForm
from eventlog.xds.write import EventWriter


def as_rows(entries: Sequence[Entry]) -> Rows:
    """Return the entries by column."""
    columns = list(zip(*entries, strict=True))
    texts = [pa.array(columns[at], pa.string()) for at in range(5, 10)]
    return Rows(np.array(columns[0], np.int64), np.array(columns[2], np.int64), *texts)


def read_keys(keys: Keys, lookup: Lookup) -> CurrentAnswer:
    """Return the current rows of keys by column, table by table."""
    groups, single_keys, first = list[CurrentColumns](), [NONE], 0
    for table, texts in zip(keys.tables, keys.keys, strict=True):
        numbers: list[int] = []
        rows: list[Sequence[str | None]] = []
        for number, need in enumerate(keys.needs(np.arange(first, first + len(texts))), first):
            answer = lookup(*need)
            if isinstance(answer, EventlogError):
                single_keys.append(np.array([number]))
            else:
                numbers += [number] * len(answer)
                rows += answer
        columns = list(zip(*rows, strict=True)) if rows else [()] * len(table.data)
        arrays = [pa.array(cells, pa.string()) for cells in columns]
        groups.append(CurrentColumns(np.array(numbers, np.int64), arrays))
        first += len(texts)
    return CurrentAnswer(groups, np.concatenate(single_keys), lookup)


def no_rows(*need: object) -> tuple[()]:
    """Return no current row."""
    return ()


def by_column(
    engine: Engine,
    entries: Sequence[Entry],
    lookup: Lookup = no_rows,
    read: Callable[[Keys, Lookup], CurrentAnswer] = read_keys,
) -> BatchEvents:
    """Return the events of rows, by column."""
    needs = engine.needs(as_rows(entries))
    return engine.events(needs, read(needs.keys, lookup))


def row_by_row(
    tables: Tables, rules: Rules, form: EventForm | EventWriter, entries: Sequence[Entry], lookup: Lookup
) -> PlainEvents:
    """Return the events of the plain fold and the plain writer."""
    return write_plan(plan(entries, tables, rules, answerable=set(tables)), lookup, form)


def check_alike(result: BatchEvents, expected: PlainEvents, entries: Sequence[Entry]) -> None:
    """Check that both ways have the same result."""
    plain, events = expected.with_text, result.events
    assert result.texts.to_pylist() == [written.text for written in plain]
    assert result.event_ids().to_pylist() == [written.event.event_id for written in plain]
    assert [
        (event.event_id, event.rows, event.element, event.text, event.part, event.parts)
        for event in events.events()
    ] == [(w.event.event_id, w.event.rows, w.element, w.text, w.event.part, w.event.parts) for w in plain]
    fates = {entry.record_id: FATES[at] for entry, at in zip(entries, result.fates.tolist(), strict=True)}
    assert fates == {record_id: outcome.fate for record_id, outcome in expected.outcomes.items()}
    places, reasons = result.refused
    refused = dict(zip((entries[place].record_id for place in places.tolist()), reasons, strict=True))
    assert refused == {
        row: outcome.reason for row, outcome in expected.outcomes.items() if outcome.fate is Fate.REFUSED
    }
