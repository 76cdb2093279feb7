"""Folds many rows of one snapshot by column. The events equal those of the fold row by row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from eventlog.core.entry import EVENT_TYPES, STATUS, Letter
from eventlog.core.identity import object_of
from eventlog.core.tables import Table, Tables
from eventlog.fold import Rules
from eventlog.fold.admit import Refusal, admit
from eventlog.fold.by_column import Engine, Rows
from eventlog.fold.by_column.admit import Repeats, named
from eventlog.fold.by_column.objects import object_texts
from eventlog.fold.by_column.vectors import Flags
from eventlog.publisher.read_back import CurrentRows
from eventlog.publisher.reading import FoldedPickUp, account
from eventlog.sql.columns import TEXTS, PickedColumns
from eventlog.sql.log.snapshot import HeldObjects, Snapshot
from eventlog.sql.readable import ReadableTable
from eventlog.xds.skeleton import EventForm

_OBJECT = ("table_name", "table_key")


class ColumnReader:
    """A reader that folds rows by column, and reads their current rows."""

    def __init__(
        self,
        tables: Tables,
        readable: Mapping[Table, ReadableTable],
        rules: Rules,
        form: EventForm,
    ) -> None:
        self._tables = tables
        self._engine = Engine(tables, replace(rules, driver_user=None), form, answerable=readable)

    def fold(self, picked: PickedColumns, current: CurrentRows, bound: int) -> FoldedPickUp:
        """Return the events of rows; TooMuch if there is no room for the current rows."""
        sound, refused = _admitted(picked, bound, current.snapshot)
        waiting = self._waiting(picked, current.snapshot.held_objects())
        held_rows, taking_part = (picked.subset(sound & flags) for flags in (waiting, ~waiting))
        names = zip(*(held_rows.texts[name].to_pylist() for name in _OBJECT), strict=True)
        ids, kinds = taking_part.ids, taking_part.kinds
        rows = Rows(ids, kinds, *(taking_part.texts[name] for name in TEXTS))
        result = self._engine.nothing()
        if len(rows):
            needs = self._engine.needs(rows)
            result = self._engine.events(needs, current.read_columns(needs))
        wrong = list(zip(ids[result.refused.places].tolist(), result.refused.reasons, strict=True))
        return replace(
            account(result.events, result.unwritten, [*refused, *wrong], ids.tolist(), kinds.tolist()),
            spellings=[(object_of(self._tables, *name), name) for name in names],
            unknown=frozenset(self._engine.unknown),
            tables_may_be_stale=current.refused or bool(wrong or result.unwritten),
            query_back=current.seconds,
        )

    def _waiting(self, picked: PickedColumns, held_objects: HeldObjects) -> Flags:
        """Return whether each row is of a waiting object under a name that was not on record."""
        if not held_objects.hashes or not picked.size:
            return np.zeros(picked.size, np.bool_)
        names = object_texts(self._tables, *(picked.texts[name] for name in _OBJECT)).dictionary_encode()
        waits = [tuple(text.split("\0", 1)) in held_objects for text in names.dictionary.to_pylist()]
        waiting: Flags = np.array(waits)[names.indices.to_numpy()]
        return waiting


def _admitted(picked: PickedColumns, bound: int, snapshot: Snapshot) -> tuple[Flags, list[Refusal]]:
    """Return which rows can be believed, and why the others cannot. Odd rows are read one by one, with all
    that share their record_ids.
    """
    ids = picked.ids
    right = picked.timely & (ids > 0) & (ids <= bound) & np.isin(picked.kinds, list(EVENT_TYPES))
    right &= named(picked.kinds, *(picked.texts[name] for name in TEXTS[:3]))
    odd_ids = np.unique(ids[~right])
    refused: list[Refusal] = []
    if odd_ids.size:
        pending = (row for row in snapshot.rows(odd_ids.tolist()) if row[STATUS] == Letter.NEW)
        entries, refused = admit(pending, bound)
        is_entry = np.isin(ids, [entry.record_id for entry in entries])
        right = np.where(np.isin(ids, odd_ids), is_entry & (right | ~np.isin(ids, ids[right])), right)
    repeats = Repeats.among(ids[right])
    repeated = zip(repeats.ids.tolist(), repeats.reasons(repeats.ids), strict=True)
    return right & ~repeats.find(ids), [*refused, *repeated]
