"""Publishing without triggers: before a cycle, what differs from what the receiver has becomes log rows.

From there on everything is as with triggers: order, holds, answers, errors, redrive, explain.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, nullcontext
from typing import Any

from eventlog.compare.events import as_it_is, in_chunks, step_of
from eventlog.compare.ordering import Order, Phase
from eventlog.compare.polling import PolledChange, poll, read_again, why_here
from eventlog.compare.sieve import version_of
from eventlog.compare.tables import snapshot
from eventlog.core.errors import EventlogError, Misuse
from eventlog.core.tables import Column, Table, Tables
from eventlog.publisher.column_record import ColumnRecord, halted
from eventlog.publisher.comparing import ComparingSettings
from eventlog.publisher.config import Config
from eventlog.publisher.opening import read_readable, read_tables, source_of, table_named
from eventlog.publisher.source import SourceView
from eventlog.sql.catalogue import NoSuchTable
from eventlog.sql.connect import ConnectionLost, DatabaseFailed
from eventlog.sql.log.known import KnownStates, StateGone, StateLost, StateStep
from eventlog.sql.log.store import Store
from eventlog.sql.readable import ReadableTable
from eventlog.sql.schema.migrate import has_companion

logger = logging.getLogger("eventlog.comparing")

_KEYLESS = (
    "it has no key by which its rows could be told apart: give it one, or leave it out of sync-tables, or"
    " with exclude-table-filter out of sync-schema"
)


class NothingToCompare(Misuse):
    """publication-mode is compare, and no table is published: name them in sync-tables or sync-schema"""


class ZeroCharacter(EventlogError):
    """{0}: a text holds the character U+0000, which the database of the log cannot keep"""


class Comparison:
    """Polls the published tables as the leader of one epoch."""

    def __init__(self, config: Config, store: Store, epoch: int, settings: ComparingSettings) -> None:
        self._config = config
        self._store = store
        self._epoch = epoch
        self._settings = settings
        self._source = source_of(config)
        self._begun = False
        self._tables = Tables()  # that were compared last
        self._awaited: set[str] = set()  # tables that are to be taken as they are when they are first read
        self.unread: dict[str, str] = {}  # tables that could not be compared, and why
        self._columns = ColumnRecord()
        self._due = 0.0
        by_clock = config.given.get("time_of_day") is not None
        self._interval = 0.0 if by_clock else float(config.given.get("polling_interval", 10))

    def poll(self) -> int:
        """Log what differs, if it is time to look; how many objects did."""
        if time.monotonic() < self._due:
            return 0
        unread: dict[str, str] = {}
        absent: list[tuple[str, NoSuchTable]] = []
        store = self._store
        found = read_tables(store.engine, store.log, self._config, lambda *one: absent.append(one))
        unread |= halted(found)
        tables = self._tables = self._keyed(found, unread)
        counts = self._begin(tables, found)
        unread |= self._gone(absent, counts)
        if not len(found) and not unread:
            raise NothingToCompare
        taken, late = self._take(tables, counts, unread)
        if taken:
            logger.info("%d objects differ from what the receiver has", taken, extra={"objects": taken})
        self._tell(unread)
        self._begun = True
        self._due = 0.0 if late else time.monotonic() + self._interval
        return taken

    def _keyed(self, found: Tables, unread: dict[str, str]) -> Tables:
        """Return the tables that can be compared, and name those without a key in `unread`."""
        unread |= {str(table): _KEYLESS for table in found if not table.key}
        return Tables([table for table in found if str(table) not in unread], found.dialect)

    def _gone(self, absent: Iterable[tuple[str, NoSuchTable]], counts: Mapping[str, int]) -> dict[str, str]:
        """The tables of these names, which are gone; NoSuchTable of a name that nothing is known of."""
        known = Tables(map(table_named, counts))
        gone = {}
        for name, fault in absent:
            table = known.find(name)
            if table is None and not self._begun:
                raise fault
            gone[name if table is None else str(table)] = str(fault)
        return gone

    def _tell(self, unread: dict[str, str]) -> None:
        """Say once which tables could not be compared, and once which can be again."""
        for table, why in unread.items():
            if self.unread.get(table) != why:
                logger.warning("%s is not compared: %s", table, why, extra={"table": table})
        for table in sorted(self.unread.keys() - unread.keys()):
            logger.info("%s is compared again", table, extra={"table": table})
        self.unread = unread

    def _begin(self, tables: Tables, found: Tables) -> dict[str, int]:
        """Let the state follow what was settled; how many objects of each table it has."""
        first = not self._begun
        with self._store.work(self._epoch) as work:
            if not self._columns.is_current(found):
                self._columns.write(work, found)
            known = work.known()
            counts = self._counts(known, tables, first=first)
            for table in map(str, tables):
                if table not in counts:
                    known.begin(table)
                    counts[table] = 0
            if first and self._settings.startup_option == "resync":
                known.doubt()
        return counts

    def _counts(self, known: KnownStates, tables: Tables, *, first: bool) -> dict[str, int]:
        """How many objects stand in the state; a state that is lost is begun anew where the start says what
        the receiver has."""
        try:
            return known.settle()
        except DatabaseFailed as fault:
            with self._store.engine.connect() as connection:
                if has_companion(connection, self._store.log, "known"):
                    raise
            raise StateGone(self._store.log.beside("known")) from fault
        except StateLost as fault:
            if not first or self._settings.startup_option == "all":
                raise
            logger.warning("%s", fault)
        for table in map(str, tables):
            known.begin(table)
        return dict.fromkeys(map(str, tables), 0)

    def _take(self, tables: Tables, counts: dict[str, int], unread: dict[str, str]) -> tuple[int, bool]:
        """Log what differs, in its order; how many objects, and whether there is more to tell of some. Of a
        table that cannot be read to its end nothing is told, and it is named in `unread`."""
        if not self._begun and self._settings.startup_option == "future":
            self._awaited = set(map(str, tables))
        order: Order[StateStep] = Order(tables, self._settings.compare_memory << 20)
        late = False
        for table, found in self._differences(tables, counts, unread):
            if str(table) in self._awaited:
                step = as_it_is(str(table), table, found, values=self._settings.state_values)
                order.add(Phase.NEW, table, found.key, step)
                continue
            phase, step, more = step_of(
                str(table), table, found, order.ranks, values=self._settings.state_values
            )
            order.add(phase, table, found.key, step)
            late = late or more
        taken = 0
        whole = (step for *_, step in order if step.object_table not in unread)
        for chunk in in_chunks(whole):
            with self._store.work(self._epoch) as work:
                work.known().take(chunk, counts)
            taken += sum(bool(step.rows) for step in chunk)
        self._awaited &= unread.keys()
        return taken, late

    def _differences(
        self, tables: Tables, counts: dict[str, int], unread: dict[str, str]
    ) -> Iterator[tuple[Table, PolledChange]]:
        """What differs of all tables, in one snapshot; of one with a fault, what was found before it too."""
        store, memory = self._store, self._settings.compare_memory << 20
        with ExitStack() as stack:
            connection = stack.enter_context(snapshot(store.engine))
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
                        version = self._version(readable.table)
                        place = (connection, store.queries, name, readable, counts[name], memory)
                        found = poll(*place, remote, version)
                        yield from ((table, one) for one in self._settled(found, readable, version))
                except ConnectionLost:
                    raise
                except EventlogError as fault:
                    unread[name] = str(fault)

    def _readable(self, table: Table) -> ReadableTable:
        if self._source is not None:
            return self._source.readable([table])[table]
        return read_readable(self._store.engine, self._store.log, [table])[table]

    def _version(self, table: Table) -> Column | None:
        """The column that tells the versions of a table's rows, where that is asked for and there is one."""
        here = self._source is None and why_here(self._store.log.dialect, table) is not None
        if self._settings.compare_by != "column" or here:
            return None
        named = ((self._tables.find(name), entries) for name, entries in self._config.tables.items())
        own = next((entries for found, entries in named if found == table), {})
        return version_of(table, own.get("version"))

    def _settled(
        self, found: Iterable[PolledChange], readable: ReadableTable, version: Column | None
    ) -> Iterator[PolledChange]:
        """The differences; where not all was read at one moment, as each object is when it is read alone."""
        if not self._store.log.dialect.holds_zero:
            found = map(_without_zero, found)
        if self._settings.snapshot == "one":
            yield from found
            return
        for one in found:
            key = [readable.load_key(one.key)]
            with self._store.snapshot() as alone:
                current = [texts for _, texts in alone.current_rows(readable, key)]
            again = read_again(readable.table, one, current, version)
            if again is not None:
                yield again


def _attempt(remote: SourceView | None) -> AbstractContextManager[Any]:
    """A block whose failing statement costs only itself, in the database of a source."""
    return nullcontext() if remote is None else remote.source.attempt(remote.connection)


def _without_zero(one: PolledChange) -> PolledChange:
    """The difference, if a database can keep it whose texts hold no zero character."""
    if "\0" in one.key or any("\0" in text for text in one.texts or () if text is not None):
        raise ZeroCharacter(one.key.replace("\0", "\\0"))
    return one
