"""Publishing without triggers: before a cycle, what differs from what the receiver has becomes log rows.

From there on everything is as with triggers: order, holds, answers, errors, redrive, explain.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from functools import partial
from itertools import chain
from shlex import quote
from typing import Any

from eventlog.compare.events import current_row_step, dump, dump_digests, in_chunks, step_of
from eventlog.compare.ordering import Order, Phase
from eventlog.compare.polling import PolledChange, PolledTable, every_object, poll, reread_object
from eventlog.compare.self_references import SelfReferences, own_references
from eventlog.compare.table_snapshot import snapshot
from eventlog.compare.unchanged import UnchangedRows, can_sum
from eventlog.core.delete_limit import OF_A_POLL, DeleteLimit
from eventlog.core.errors import EventlogError, Misuse
from eventlog.core.plurals import quantity
from eventlog.core.remedies import Remedy
from eventlog.core.tables import Table, Tables
from eventlog.opening.comparing_settings import ComparingSettings
from eventlog.opening.config import Config
from eventlog.opening.filling import Filler, TableCycle
from eventlog.opening.publisher_tables import (
    gone_tables,
    keyed_tables,
    read_readable,
    read_tables,
    source_of,
    table_named,
)
from eventlog.opening.table_source import SourceView
from eventlog.publisher.delete_brake import DeleteBrake
from eventlog.sql.capture.track import tracked
from eventlog.sql.catalogue import NoSuchTable
from eventlog.sql.connect import ConnectionLost, DatabaseFailed
from eventlog.sql.log.object_states import StateGone, StateLost, StateStep, TableState
from eventlog.sql.log.store import Store
from eventlog.sql.readable import ReadableTable
from eventlog.sql.schema.migrate import has_companion
from eventlog.sql.tables_read import TablesChanged

logger = logging.getLogger("eventlog.comparing")

_DROPPED = (
    'there is no such table any more, and the receiver keeps {}: on-dropped-table = "delete" deletes them,'
    " a start with --startup-option future forgets them"
)


class NothingToCompare(Misuse):
    """publication-mode is compare, and no table is published: name them in sync-tables or sync-schema"""


class TrackedToo(Misuse):
    """triggers log the changes of {0}, and a publisher that compares would send each of them again: publish \
with publication-mode trigger, or give {1} once all rows are published"""


def tracked_tables(config: Config, store: Store) -> list[str]:
    """Return the tables whose changes triggers log, and which this publisher would compare."""
    if source_of(config) is not None:
        return []
    with store.engine.connect() as connection:
        # a log that a slot filled has tables on record without triggers
        return tracked(connection, store.log, recorded=not store.log.dialect.sessions.has_slots)


def refuse_tracked(config: Config, store: Store) -> None:
    """Raise TrackedToo if triggers log tables that this publisher would compare."""
    if names := tracked_tables(config, store):
        raise TrackedToo(", ".join(names), f"`{Remedy.UNTRACK.template(TABLE=' '.join(map(quote, names)))}`")


class ZeroCharacter(EventlogError):
    """{0}: a text holds the character U+0000, which the database of the log cannot keep"""


class PollSteps:
    """The steps of one poll, in the order in which they are sent."""

    def __init__(
        self,
        tables: Sequence[Table],
        bases: Mapping[str, TableState],
        brake: DeleteBrake,
        settings: ComparingSettings,
    ) -> None:
        self.order: Order[StateStep] = Order(tables, settings.compare_memory << 20)
        self.unfinished: set[str] = set()  # tables whose objects need further steps, in the next poll
        self._bases = bases
        self._brake = brake
        self._dump = dump if settings.state_values else dump_digests

    def add(
        self, table: Table, difference: PolledChange, depth: int = 0, circular: Sequence[str] = ()
    ) -> None:
        """Add what is to be sent of an object; references in `circular` are set once their targets exist."""
        name, base = str(table), self._bases[str(table)]
        other_columns = (column for column in table.data if column.reference != name)
        set_later = [*circular, *(c.name for c in other_columns if self.order.ranks.circular(table, c))]
        keep = partial(self._dump, stale=base.stale)
        phase, step, is_partial = step_of(
            name, table, difference, set_later, keep=keep, stale=base.stale, unsure=base.unsure
        )
        self.order.add(phase, table, difference.key, step, depth)
        self._brake.add(step)
        if is_partial:
            self.unfinished.add(name)

    def add_present(self, table: Table, difference: PolledChange) -> None:
        """Add an object that the receiver is taken to have as it is; nothing is sent of it."""
        name = str(table)
        keep = partial(self._dump, stale=self._bases[name].stale)
        step = current_row_step(name, table, difference, keep=keep)
        self.order.add(Phase.NEW, table, difference.key, step)


class Comparison(Filler):
    """A poller of the published tables, as the leader of one epoch."""

    def __init__(self, config: Config, store: Store, epoch: int, settings: ComparingSettings) -> None:
        super().__init__()
        self._config = config
        self._store = store
        self._epoch = epoch
        self._settings = settings
        self._source = source_of(config)
        self._begun = False
        self._redriven = 0  # the notice of the last redrive that the state follows
        self._tables = self._catalogued = Tables()  # that were compared last, and that were found
        self._changed = False  # whether the last poll found other tables than the one before
        self._awaited: set[str] = set()  # tables that are to be taken as they are when they are first read
        self._brake = DeleteBrake(DeleteLimit.read(settings.max_deletes, OF_A_POLL))
        self._unchanged = UnchangedRows()
        self._due = 0.0
        by_clock = config.values.get("time_of_day") is not None
        self._interval = 0.0 if by_clock else float(config.values.get("polling_interval", 10))

    def prepare(self, cycle: TableCycle) -> int:
        objects = self.poll()
        if self._changed:
            cycle.refresh()
        return objects

    def poll(self) -> int:
        """Log what differs, if it is time to look. Return how many objects did."""
        self._changed = False
        if time.monotonic() < self._due:
            return 0
        unread: dict[str, str] = {}
        absent: list[tuple[str, NoSuchTable]] = []
        store = self._store
        before = self._settle_state()
        catalogued = read_tables(
            store.engine, store.log, self._config, lambda *reason: absent.append(reason), before or {}
        )
        self._changed = not self._begun or list(catalogued) != list(self._catalogued)
        self._catalogued = catalogued
        tables = self._tables = keyed_tables(catalogued, unread)
        bases = self._begin(tables, before)
        dropped = self._dropped(absent, bases, unread)
        if not len(catalogued) and not unread and not dropped:
            raise NothingToCompare
        objects, is_partial = self._log_differences(tables, dropped, bases, unread)
        if objects:
            sentence = f"{quantity(objects, 'object differs', 'objects differ')} from what the receiver has"
            logger.info("%s", sentence, extra={"objects": objects})
        if not is_partial:
            self._mark_complete(bases, unread)
        self._unread.report(unread, self._brake.reasons)
        self._begun = True
        self._due = 0.0 if is_partial else time.monotonic() + self._interval
        return objects

    def _dropped(
        self, absent: Iterable[tuple[str, NoSuchTable]], bases: dict[str, TableState], unread: dict[str, str]
    ) -> list[Table]:
        """Return the tables that are gone and whose objects are to be deleted; others go to `unread`.
        NoSuchTable for a name under which no table was compared.
        """
        compared = Tables(map(table_named, bases))
        named = {name: (compared.find(name), fault) for name, fault in absent}
        for table, fault in named.values():
            if table is None and not self._begun:
                raise fault
        faults = {name if table is None else str(table): str(fault) for name, (table, fault) in named.items()}
        vanished = {
            str(dropped): dropped
            for dropped in gone_tables(self._config, self._store.engine, bases, self._catalogued)
        }
        delete = self._settings.on_dropped_table == "delete"
        for name in sorted(vanished):
            if not self._begun and self._settings.startup_option == "future":
                self._forget(name, bases)
            elif not delete:
                unread[name] = faults.get(name) or _DROPPED.format(quantity(bases[name].objects, "object"))
        unread |= {name: fault for name, fault in faults.items() if name not in vanished}
        return [*vanished.values()] if delete else []

    def _forget(self, name: str, bases: dict[str, TableState]) -> None:
        """Take for true that the receiver has nothing of a table that is gone."""
        bases[name] = bases[name]._replace(objects=0)
        with self._store.as_leader(self._epoch) as work:
            work.receiver_state().begin_table(name, bases[name])

    def _settle_state(self) -> dict[str, TableState] | None:
        """Update the state from what was settled.

        Return the bases of tables; None if the state is lost and the start decides what the receiver has.
        """
        try:
            with self._store.as_leader(self._epoch) as work:
                self._redriven = work.latest_redrive()
                return work.receiver_state().settle_events()
        except DatabaseFailed as fault:
            with self._store.engine.connect() as connection:
                if has_companion(connection, self._store.log, "known"):
                    raise
            raise StateGone(self._store.log.companion_name("known")) from fault
        except StateLost as fault:
            if self._begun or self._settings.startup_option == "all":
                raise
            logger.warning("%s", fault)
            return None

    def _begin(self, tables: Tables, before: dict[str, TableState] | None) -> dict[str, TableState]:
        """Begin the states of new tables, and put on record which columns leave from now on."""
        first, resync = not self._begun, self._settings.startup_option == "resync"
        bases = before or {}
        with self._store.as_leader(self._epoch) as work:
            receiver_state = work.receiver_state()
            for table in tables:
                name, base = str(table), bases.get(str(table))
                new_base = base or TableState(unsure=first and resync)
                names = dict.fromkeys((*new_base.names, *(column.name for column in table.data)))
                published_names = {column.name for column in (*table.data, *table.lost_columns)}
                stale = dict.fromkeys(
                    (
                        *new_base.stale,
                        *(column_name for column_name in names if column_name not in published_names),
                    )
                )
                bases[name] = new_base._replace(names=tuple(names), key=table.key, stale=tuple(stale))
                if base is None:
                    receiver_state.begin_table(name, bases[name])
                elif bases[name] != base:
                    receiver_state.put_table(name, bases[name])
            for name in receiver_state.damaged_tables() - bases.keys() if before is None else ():
                receiver_state.begin_table(name, TableState())  # of a table that is gone too
            if first and resync:
                receiver_state.doubt_all()
            self._brake.begin(bases, work.passing_tables())
        return bases

    def _mark_complete(self, bases: dict[str, TableState], unread: dict[str, str]) -> None:
        """Put on record that the state has every object of the tables that were read to their end."""
        unsure_tables = [table for table, base in bases.items() if base.unsure and table not in unread]
        read = [table for table in unsure_tables if self._tables.find(table) is not None]
        if read:
            with self._store.as_leader(self._epoch) as work:
                for table in read:
                    work.receiver_state().put_table(table, bases[table]._replace(unsure=False))

    def _log_differences(
        self, tables: Tables, dropped: Sequence[Table], bases: dict[str, TableState], unread: dict[str, str]
    ) -> tuple[int, bool]:
        """Log what differs, in its order. Return how many objects, and whether more of some follows. Nothing
        is logged of a table that cannot be read to its end or that the brake stops; `unread` names it."""
        steps = self._steps(tables, dropped, bases, unread)
        read = {str(table) for table in (*tables, *dropped)} - unread.keys()
        stopped = self._brake.stop(read)
        unread |= stopped
        read -= stopped.keys()
        objects = 0
        complete_steps = (step for *_, step in steps.order if step.object_table in read)
        last: list[list[StateStep]] = [[]] if self._brake.passing else []
        for chunk in chain(in_chunks(complete_steps), last):
            with self._store.as_leader(self._epoch) as work:
                if work.latest_redrive() != self._redriven:
                    return objects, True  # what differs from the states of before is not known any more
                work.receiver_state().log_steps(chunk, bases)
                self._brake.record(work, chunk, read)
            objects += sum(bool(step.rows) for step in chunk)
        self._awaited &= unread.keys()
        return objects, not steps.unfinished.isdisjoint(read)

    def _steps(
        self, tables: Tables, dropped: Sequence[Table], bases: dict[str, TableState], unread: dict[str, str]
    ) -> PollSteps:
        """Return what differs as steps, in the order in which they go."""
        if not self._begun and self._settings.startup_option == "future":
            self._awaited = set(map(str, tables))
        steps = PollSteps([*tables, *dropped], bases, self._brake, self._settings)
        memory = self._settings.compare_memory << 20
        kin = {str(table): SelfReferences(table, memory) for table in tables if own_references(table)}
        for table, difference in self._differences(tables, dropped, bases, unread):
            name = str(table)
            if table.withholds_all and difference.texts is not None and difference.known_digest is None:
                continue  # there is nothing to send of it
            if name in self._awaited:
                steps.add_present(table, difference)
            elif name not in kin or not kin[name].hold(difference):
                steps.add(table, difference)
        for name, references in kin.items():
            for difference, depth, circular in references.placed():
                steps.add(tables.get(name), difference, depth, circular)
        return steps

    def _differences(
        self, tables: Tables, dropped: Sequence[Table], bases: dict[str, TableState], unread: dict[str, str]
    ) -> Iterator[tuple[Table, PolledChange]]:
        """Yield the differences of all tables in one snapshot; of a faulty table, those found before the
        fault.
        """
        store, memory = self._store, self._settings.compare_memory << 20
        with self._steady(tables, unread), ExitStack() as stack:
            moment = stack.enter_context(snapshot(store.engine))
            connection = moment.connection
            source = self._source
            one_moment = self._settings.snapshot == "one"
            remote = (
                None
                if source is None
                else SourceView(source, stack.enter_context(source.view(one_moment=one_moment)))
            )
            # a fault may end the transaction of its database: what had one comes last
            for table in sorted(tables, key=lambda table: str(table) in self.unread):
                name = str(table)
                try:
                    with connection.begin_nested(), _attempt(remote):
                        readable = self._readable(table)
                        (moment if remote is None else remote.moment).add(readable)
                        objects = bases[name].objects
                        polled = PolledTable(connection, store.queries, name, readable, objects)
                        sees_all = one_moment and remote is None
                        if sees_all and can_sum(store.log.dialect, readable.table):
                            differences = self._unchanged.differences(polled, memory)
                        else:
                            differences = poll(polled, memory, remote and remote.rows(readable))
                        yield from (
                            (table, difference) for difference in self._confirmed(differences, readable)
                        )
                except ConnectionLost:
                    raise
                except EventlogError as fault:
                    unread[name] = str(fault)
            for table in dropped:
                yield from (
                    (table, difference) for difference in every_object(connection, store.queries, str(table))
                )

    @contextmanager
    def _steady(self, tables: Iterable[Table], unread: dict[str, str]) -> Iterator[None]:
        """Name tables as unread that DDL changed while they were read inside the block."""
        try:
            yield
        except TablesChanged as fault:
            for table in tables:
                if not set(self._readable(table).places).isdisjoint(fault.places):
                    unread[str(table)] = str(fault)
                    self._unchanged.forget(str(table))

    def _readable(self, table: Table) -> ReadableTable:
        if self._source is not None:
            return self._source.readable([table])[table]
        return read_readable(self._store.engine, self._store.log, [table])[table]

    def _confirmed(
        self, differences: Iterable[PolledChange], readable: ReadableTable
    ) -> Iterator[PolledChange]:
        """Yield the differences; where not all was read at one moment, as each object is when it is read
        alone.
        """
        if not self._store.log.dialect.values.holds_zero:
            differences = map(_without_zero, differences)
        if self._settings.snapshot == "one":
            yield from differences
            return
        for difference in differences:
            key = [readable.load_key(difference.key)]
            with self._store.snapshot() as alone:
                current = [texts for _, texts in alone.current_rows(readable, key)]
            confirmed = reread_object(readable.table, difference, current)
            if confirmed is not None:
                yield confirmed


def _attempt(remote: SourceView | None) -> AbstractContextManager[Any]:
    """Return a block whose failing statement costs only itself, in the database of a source."""
    return nullcontext() if remote is None else remote.source.attempt(remote.connection)


def _without_zero(difference: PolledChange) -> PolledChange:
    """Return the difference, if a database can keep it whose texts hold no zero character."""
    if "\0" in difference.key or any("\0" in text for text in difference.texts or () if text is not None):
        raise ZeroCharacter(difference.key.replace("\0", "\\0"))
    return difference
