"""One batch of log rows after another becomes the texts of events, in the order in which they leave."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable, Sequence
from functools import partial
from itertools import accumulate, chain
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventlog.columnar import assembly, current, objects, row_fates, runs, values
from eventlog.columnar.assembly import Assembled
from eventlog.columnar.batch import Batch, Rows, gathered
from eventlog.columnar.current import ReadBack
from eventlog.columnar.plain import Ask, PlainEvents, WrittenEvent, plain_way
from eventlog.columnar.precedence import find_precedence
from eventlog.columnar.row_fates import FATES
from eventlog.columnar.runs import Runs, Settled
from eventlog.columnar.templates import ELEMENTS, OPS, Templates
from eventlog.columnar.texts import Treated, taken
from eventlog.columnar.vectors import Ints, moved, offsets, spread
from eventlog.core.change import Op
from eventlog.core.tables import Table, Tables
from eventlog.fold import Need, ObjectName, Outcome, Rules
from eventlog.fold.plan import Lookup
from eventlog.fold.understand import UnknownName
from eventlog.xds.settings import XdsSettings
from eventlog.xds.write import EventWriter

_MOST_BYTES = 256 << 20  # of texts that are put together at once; markup makes them six times as long at most


class Events(NamedTuple):
    """The events of a batch in the order of leaving, and what became of its rows."""

    texts: pa.Array
    objects: Ints  # of each event, a number: that of two events of one association is the same
    places: Ints  # of each: that of a row among the rows as they came; it leaves in its place
    parts: Ints  # 1, or the part of a change that was cut
    of_parts: Ints  # of how many
    settled: Ints  # record_ids that whole events settle; the parts of one share them
    begins: Ints  # where those of each event begin
    sizes: Ints  # how many each event settles
    fates: Ints  # of each row as it came: an index of FATES
    unwritten: Sequence[WrittenEvent]  # events that XDS cannot express
    reasons: dict[int, Outcome]  # of record_ids that went the plain way
    counted: Counter[tuple[str, str]]  # events by class and element, those that cannot be written included
    names: Callable[[int], ObjectName]  # of the number of an object: its table and key, as rows have them
    event_ids: Callable[[], pa.Array]  # of each event
    ops: Callable[[], Ints]  # of each: an index of OPS, that of its change

    def settled_by(self, events: slice | Ints) -> Ints:
        """Return the record_ids that each of these events settles, event by event."""
        run, place = spread(self.sizes[events])
        found: Ints = self.settled[self.begins[events][run] + place]
        return found


_NONE = np.empty(0, np.int64)
_NO_EVENTS = Events(
    pa.array([], pa.string()),
    _NONE,
    _NONE,
    _NONE,
    _NONE,
    _NONE,
    _NONE,
    _NONE,
    _NONE,
    (),
    {},
    Counter(),
    lambda number: ("", ""),
    lambda: pa.array([], pa.string()),
    lambda: _NONE,
)


def _nobody(needs: Sequence[Need]) -> Lookup:
    return lambda table, key: ()


class Engine:
    """Makes the events of batches that hold all rows of their objects; what it has learnt, it keeps."""

    def __init__(
        self,
        tables: Tables,
        rules: Rules,
        settings: XdsSettings,
        *,
        answerable: Container[Table] = (),
        read_back: ReadBack = current.nothing,
        ask: Ask = _nobody,
        around: tuple[str, str] = ("", ""),  # the texts around each event
    ) -> None:
        self._rules = rules
        self._read_back = read_back
        self._learn: Callable[[], Templates] = lambda: Templates(tables, rules, settings, answerable, around)
        self._known = self._learn()
        self.unknown: set[UnknownName] = set()  # columns that rows named and their tables lack
        self._plainly = plain_way(tables, rules, answerable, ask, EventWriter(tables, settings), around)

    def canonical(self, tables: pa.Array, keys: pa.Array) -> pa.Array:
        """Return one text for each object, whatever rows call it."""
        return objects.canonical(self._known, tables, keys)

    def events(self, rows: Rows) -> Events:
        """Return the events of rows that take part; no other batch holds rows of their objects, or
        their ids.
        """
        if not len(rows):
            return _NO_EVENTS
        if self._known.much:
            self._known = self._learn()
        known, batch = self._known, gathered(rows)
        doubt = objects.doubtful(batch, known)
        answers = current.ask(batch, known, doubt, self._read_back)
        pool = assembly.pool(batch, answers)
        said = values.said(batch, known, pool.old, pool.new)
        if sum(texts.nbytes for texts in pool.arrays) > _MOST_BYTES:
            doubt[:] = True  # in one piece it may be more than Arrow's texts can hold
        treated = [*said.treated, *current.treated(batch, known, answers, pool.cells)]
        for texts in treated:
            doubt[texts.doubtful] = True
        doubt |= said.doubtful | answers.doubtful
        columns = row_fates.column_numbers(said)
        left = find_precedence(batch.kinds, batch.lives, columns, row_fates.unread_rows(said))
        found = row_fates.find_fates(batch, known, said, answers, left)
        doubt |= row_fates.uncertain_objects(batch, known, left, found, columns, self._rules.max_changes)
        speaks = found.speaks & ~doubt[batch.objects[left.rows]]
        runs_of_rows = runs.gathered(batch, left, speaks, found.ops, found.widths)
        runs_of_rows = runs.cut(batch, runs_of_rows, self._rules.max_changes)
        plain = PlainEvents([], {})
        if doubt.any():
            places = np.sort(batch.places[doubt[batch.objects]])
            plain = self._plainly(rows.some(places).entries(self._rules.status))
        sets = runs.settled(batch, runs_of_rows, left)
        codes = np.unique(said.codes[~doubt[batch.objects]]).tolist()
        self.unknown.update(filter(None, (said.parts[code].unknown for code in codes)), plain.unknown)
        filled = assembly.assemble(batch, known, said, answers, runs_of_rows, sets, pool, plain.texts)
        fates = row_fates.all_fates(batch, left, found)
        counted = _counted(batch, known, runs_of_rows, plain)
        log = self._rules.log_name
        return _ordered(log, rows, batch, runs_of_rows, sets, filled, plain, treated, fates, counted)


def _counted(
    batch: Batch, known: Templates, runs_of_rows: Runs, plain: PlainEvents
) -> Counter[tuple[str, str]]:
    """Return how many events each class and element has."""
    counted = Counter((one.event.change.table, one.element) for one in plain.written)
    found, times = np.unique(
        batch.table_of[runs_of_rows.owners] * len(OPS) + runs_of_rows.ops, return_counts=True
    )
    for at, count in zip(found.tolist(), times.tolist(), strict=True):
        of = known.spelled(batch.tables[at // len(OPS)]).object
        assert of is not None
        counted[of.reader.name, ELEMENTS[OPS[at % len(OPS)]]] += count
    return counted


def _ordered(
    log: str,
    rows: Rows,
    batch: Batch,
    runs_of_rows: Runs,
    sets: Settled,
    filled: Assembled,
    plain: PlainEvents,
    treated: Sequence[Treated],
    fates: Ints,
    counted: Counter[tuple[str, str]],
) -> Events:
    """Return the events of both ways in the order of leaving."""
    written = plain.with_text
    place_of = (
        {record_id: place for place, record_id in enumerate(rows.ids.tolist())} if plain.outcomes else {}
    )
    for record_id, outcome in plain.outcomes.items():
        fates[place_of[record_id]] = FATES.index(outcome.fate)
    associations: dict[str, int] = {}
    numbers = [associations.setdefault(one.association, len(associations)) for one in written]
    places = np.concatenate(
        [batch.places[runs_of_rows.places], _ints(place_of[one.event.place[1]] for one in written)]
    )
    parts = np.concatenate([runs_of_rows.parts, _ints(one.event.part for one in written)])
    of_parts = np.concatenate([runs_of_rows.of_parts, _ints(one.event.parts for one in written)])
    order = np.lexsort((parts, places))
    owners = np.concatenate([runs_of_rows.owners, _ints(numbers) + len(batch.keys)])
    whole = runs_of_rows.wholes
    by_plain = {one.event.settles[0]: one.event.settles for one in written}
    starts = dict(
        zip(by_plain, accumulate(map(len, by_plain.values()), initial=len(sets.rows)), strict=False)
    )
    begins = np.concatenate([sets.begins[whole], _ints(starts[one.event.settles[0]] for one in written)])
    sizes = np.concatenate([sets.sizes[whole], _ints(len(one.event.settles) for one in written)])
    settled = np.concatenate([batch.ids[sets.rows], _ints(chain.from_iterable(by_plain.values()))])
    pieces, totals = moved(filled.wanted, filled.sizes, order)
    found = taken(filled.pool, pieces, treated)
    at = offsets(found)[np.concatenate([[0], np.cumsum(totals)])]
    texts = pa.Array.from_buffers(
        pa.string(), len(order), [None, pa.py_buffer(at.astype(np.int32)), found.buffers()[2]]
    )
    unwritten = [one for one in plain.written if one.fault is not None]
    reasons = plain.outcomes
    leaving = owners[order], places[order], parts[order], of_parts[order]
    named = {at: one.event.object for at, one in zip(numbers, written, strict=True)}
    names = partial(_name, batch, named)
    settling = settled, begins[order], sizes[order]
    event_ids = partial(_event_ids, log, filled.names, written, order)
    ops = partial(_ops, batch, runs_of_rows, written, order)
    return Events(texts, *leaving, *settling, fates, unwritten, reasons, counted, names, event_ids, ops)


def _event_ids(log: str, names: pa.Array, plain: Sequence[WrittenEvent], order: Ints) -> pa.Array:
    """Return the event-id of each event."""
    own = pc.binary_join_element_wise(log, names, ":")
    return pa.concat_arrays([own, pa.array([one.event.event_id for one in plain], pa.string())]).take(
        pa.array(order)
    )


def _ops(batch: Batch, runs_of_rows: Runs, plain: Sequence[WrittenEvent], order: Ints) -> Ints:
    """Return the operation of each event; types 5 and 7 stay inserts, also where they are sent as a
    modify.
    """
    kinds = batch.kinds[runs_of_rows.rows]
    ops = runs_of_rows.ops
    if len(kinds):
        inserts = np.logical_and.reduceat((kinds == 5) | (kinds == 7), runs_of_rows.first)
        ops = np.where(inserts, OPS.index(Op.INSERT), ops)
    found: Ints = np.concatenate([ops, _ints(OPS.index(one.event.change.op) for one in plain)])[order]
    return found


def _name(batch: Batch, plain: dict[int, ObjectName], number: int) -> ObjectName:
    """Return the table and the key of an object."""
    if number >= len(batch.keys):
        return plain[number - len(batch.keys)]
    return batch.tables[batch.table_of[number]], batch.keys[number].as_py()


def _ints(values: Iterable[int]) -> Ints:
    return np.fromiter(values, np.int64)
