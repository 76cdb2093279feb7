"""A reader of the changes of a queue, which yields those of a transaction after its COMMIT."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from eventlog.core.change import ABSENT, Change, Fact, Facts, Field, Key, Op, Raw, Value
from eventlog.core.errors import EventlogError, InvalidValue, Misuse, Refused, WrongRow
from eventlog.core.formats import Row, Source
from eventlog.core.tables import Table, Tables
from eventlog.formats.linter.columns import QueueRow, QueueRowReader
from eventlog.formats.linter.images import ImageLayout, read_layout
from eventlog.formats.linter.linter_settings import LinterSettings
from eventlog.formats.linter.operations import (
    BLOBS,
    COST,
    ENDS,
    OpenOperations,
    Operation,
    Typ,
    assemble,
    done_by,
    operations,
    read_typ,
)
from eventlog.formats.linter.queue_progress import (
    START,
    Commit,
    CommittedTransaction,
    JournalPlace,
    QueueProgress,
    QueueState,
    commit_of,
    first_in_journal,
)
from eventlog.formats.linter.times import load_time
from eventlog.transactions.open_transactions import Bounds

ReadItem = Change | Refused
# columns that show neither the operation of a row nor its time
_CONTENT: Final = frozenset(("EXTDATA", "REPL_DATE", "BLOBATR", "LEN1", "LEN2", "DATA"))
_TRANSACTION: Final = frozenset(("DBNODE", "TRANSACT_ID"))
_UNREAD_PART: Final = -1  # in place of an EXTDATA that cannot be read
_OPS: Final = {Typ.INSERT: Op.INSERT, Typ.UPDATE: Op.UPDATE, Typ.DELETE: Op.DELETE}


class QueueTable(NamedTuple):
    table: Table | None
    owner: str | None
    name: str
    layout: ImageLayout | None


class QueueReader:
    """Reads one source."""

    def __init__(self, tables: Tables, reading: LinterSettings, since: QueueState = START) -> None:
        self._tables = tables
        self._reading = reading
        self._since = since
        if since.time_order not in (None, reading.time_order):
            raise Misuse(
                f"the state was written with time-order {since.time_order}, this run reads "
                f"{reading.time_order}: state time-order {since.time_order}, or begin without the state"
            )
        self._order = reading.time_order
        spool = None if reading.spool is None else reading.spool()
        self._open_transactions = OpenOperations(spool, Bounds(reading.max_open, reading.open_bytes, COST))
        self._layouts = {table: read_layout(str(table), table.linter) for table in tables}
        self._delivering: CommittedTransaction | None = None
        self._delivered: dict[str, list[Commit]] = {}  # the COMMITs of each database
        self._read_all = False

    def pass_over(self, past: Iterable[QueueRow]) -> None:
        """Note the COMMITs among rows from before the start: the journal may come to the same addresses."""
        for part in past:
            if part.typ in (Typ.COMMIT, Typ.END):
                self._note_delivered(part)

    def mark(self) -> Callable[[], QueueState]:
        """Return a function for the state from which a later run continues.

        The COMMITs are evaluated only when it is called.
        """
        order, read_all = self._order, self._read_all
        names = {
            *self._since.nodes,
            *self._delivered,
            *self._open_transactions.nodes(),
            *(() if self._delivering is None else (self._delivering.commit.dbnode,)),
        }
        marks = {n: (len(self._delivered.get(n, ())), self._oldest(n)) for n in sorted(names)}

        def state() -> QueueState:
            nodes = {}
            for node, (count, oldest) in marks.items():
                delivered = self._delivered.get(node, ())[:count]
                nodes[node] = self._since.of(node).advance(delivered, oldest, order, read_all)
            return QueueState(order, nodes)

        return state

    def _oldest(self, node: str) -> QueueRow | None:
        """Return the first undelivered row of a database, from which it is to be read again."""
        first = self._open_transactions.oldest(node)
        ended = None if self._delivering is None else self._delivering.first_row(node)
        return first_in_journal(first, ended, self._order) if first and ended else first or ended

    def read(self, source: Source[Row]) -> Iterator[ReadItem]:
        """Yield the changes of a source, then warnings about unfinished transactions."""
        for answer in self._rows(source):
            if isinstance(answer, Refused):
                yield answer
            elif answer is not None:
                yield from self._changes(answer)
        self._read_all = True
        for reason in self._open_transactions.unfinished():
            yield Refused(source.name, reason, fault=False)

    def _rows(self, source: Source[Row]) -> Iterator[CommittedTransaction | Refused | None]:
        reader = QueueRowReader(source.columns)
        if reader.missing:
            yield Refused(
                source.name, f"there is no column {', '.join(reader.missing)}: is this a queue of LINTER?"
            )
            return
        for row in source.records:
            if isinstance(row, Refused):
                yield row
                continue
            where = source.at(row.where)
            part, faults = reader.read(row.cells)
            try:
                if faults:
                    self._add_unreadable(part, faults, where, row.raw)
                else:
                    yield self._read_part(part, where)
            except WrongRow as fault:
                yield Refused(where, str(fault), row.raw)

    def _read_part(self, part: QueueRow, where: str) -> CommittedTransaction | None:
        """Return the transaction that a row commits, if any; raise WrongRow if the row is wrong."""
        if self._since.is_past(part):
            return None
        typ = read_typ(part, self._reading.legacy_typ5)
        if typ is Typ.ROLLBACK:
            self._open_transactions.abort(part)  # whatever else is wrong with the row
        if typ is Typ.ROLLBACK:
            _check_empty(part)
        elif typ is Typ.COMMIT and not _is_blob(part):
            _check_empty(part)
            transaction = self._open_transactions.end(part)
            if commit_of(part) in self._since.of(part.dbnode).delivered:
                self._note_delivered(part)
                if transaction is not None:
                    transaction.close()
            elif transaction is not None:
                return CommittedTransaction(transaction, part)
        elif self._is_asked_for(part):
            self._open_transactions.add(part, where)
        return None

    def _is_asked_for(self, part: QueueRow) -> bool:
        return not self._reading.server or part.dst_server == self._reading.server

    def _add_unreadable(
        self, part: QueueRow, faults: Mapping[str, str], where: str, raw: bytes | None
    ) -> None:
        """Add a row that cannot be read to its operation, which is refused in its place.

        Raise WrongRow if the row is none of a known operation. Its transaction is refused if it may continue
        one.
        """
        fault = next(iter(faults.values()))
        if self._since.is_past(part):
            raise WrongRow(fault)
        if "EXTDATA" in faults:
            part = part._replace(extdata=_UNREAD_PART)
        if faults.keys() <= _CONTENT:
            typ = read_typ(part, self._reading.legacy_typ5)
            if typ is not Typ.ROLLBACK and (typ is not Typ.COMMIT or _is_blob(part)):
                if self._is_asked_for(part):
                    data = raw or b"" if "DATA" in faults else part.data
                    self._open_transactions.add(part._replace(data=data), where, fault)
                return
        elif part.extdata and not faults.keys() & _TRANSACTION:
            words = "it may continue in a row of its transaction that cannot be read"
            self._open_transactions.spoil(part, f"{words}: {where}: {fault}")
        raise WrongRow(fault)

    def _changes(self, ended: CommittedTransaction) -> Iterator[ReadItem]:
        """Yield the changes of a transaction; with the last of them it counts as delivered."""
        self._delivering = ended
        answers = self._changes_of(ended)
        pending_answer = next(answers, None)
        for answer in answers:
            if pending_answer is not None:
                yield pending_answer
            pending_answer = answer
        ended.transaction.close()
        self._delivering = None
        self._note_delivered(ended.commit)
        if pending_answer is not None:
            yield pending_answer

    def _changes_of(self, ended: CommittedTransaction) -> Iterator[ReadItem]:
        facts, servers = ended.transaction.facts, ended.transaction.facts.servers()
        for pending in operations(ended.transaction):
            part = pending.parts[0]
            try:
                if facts.fault is not None:
                    raise WrongRow(facts.fault)
                operation = assemble(
                    read_typ(part, self._reading.legacy_typ5), pending, self._reading.lengths
                )
                change = self._change(operation, ended.commit)
                yield change._replace(position=_position(part, servers[done_by(part)]))
            except EventlogError as fault:
                yield Refused(pending.where, str(fault), b"".join(part.data for part in pending.parts))

    def _note_delivered(self, commit: QueueRow) -> None:
        self._delivered.setdefault(commit.dbnode, []).append(commit_of(commit))

    def _change(self, operation: Operation, commit: QueueRow) -> Change:
        typ, first, second, part = operation
        contradicts = operation.contradicts_itself
        if contradicts and not self._reading.keep_contradictions:
            raise WrongRow(f"TYP is {part.typ}, {typ.name}, which has one part, but LEN2 is {len(second)}")
        if (missing := operation.missing) and not self._reading.keep_contradictions:
            raise WrongRow(f"TYP is {part.typ}, {typ.name}, but {missing}")
        named = self._queue_table(part)
        before, after = (None, first) if typ is Typ.INSERT and not second else (first, second or None)
        change = Change(
            _OPS.get(typ, Op.UPDATE),
            named.owner,
            named.name,
            transaction=f"{part.dbnode}/{part.transact_id}",
            time=self._time(part.oper_date),
            user=None if part.channel is None else str(part.channel),
            extra=self._facts(typ, part, commit),
        )
        if typ in BLOBS:
            owner = _decode(named.layout, first, None)
            change = change._replace(key=() if owner is None else _key(named.table, owner[0] or {}))
        rows = None if typ in BLOBS or contradicts else _decode(named.layout, before, after)
        if rows is None:
            return change._replace(raw=Raw(before, after), extra=(*change.extra, ("decoded", False)))
        fields = tuple(Field(name, *_sides(rows, name)) for name in rows[0] or rows[1] or ())
        return change._replace(key=_key(named.table, rows[1] or rows[0] or {}), fields=fields)

    def _facts(self, typ: Typ, part: QueueRow, commit: QueueRow) -> Facts:
        facts: dict[str, Fact] = {
            "tabnum_src": part.tabnum_src,
            "rowid_src": part.rowid_src,
            "dst_server": part.dst_server,
            "dst_owner": part.dst_owner,
            "dst_table": part.dst_table,
            "repl_date": self._time(part.repl_date),
            "commit_syslog_addr": commit.syslog_addr,
            "commit_oper_date": self._time(commit.oper_date),
        }
        if typ in BLOBS:
            facts |= {
                "blob": BLOBS[typ],
                "attribute": part.blobatr & 0xFF,
                "blob-type": part.blobatr >> 8 & 0xFF,
            }
        elif part.blobatr:
            facts["blobatr"] = part.blobatr
        return tuple((name, fact) for name, fact in facts.items() if fact not in (None, ""))

    def _time(self, data: bytes) -> str | None:
        return load_time(data, self._order) if data else None

    def _queue_table(self, part: QueueRow) -> QueueTable:
        table = None if part.tabnum_src is None else self._tables.numbered(part.tabnum_src)
        if table is not None:
            return QueueTable(table, table.schema, table.name, self._layouts[table])
        owner, name = part.dst_owner or None, part.dst_table or f"table_{part.tabnum_src}"
        table = self._tables.of(owner, name) if part.dst_table else None
        return QueueTable(table, owner, name, None if table is None else self._layouts[table])


class FileReader(QueueReader):
    """Reads one file, whose rows must come in the order of the journal.

    Transactions may interleave, or come one by one in the order of their ends.
    """

    def __init__(self, tables: Tables, reading: LinterSettings) -> None:
        super().__init__(tables, reading)
        self._latest: dict[tuple[str, int | None], QueueProgress] = {}  # of a transaction; None: of all ends

    def _read_part(self, part: QueueRow, where: str) -> CommittedTransaction | None:
        self._check_order(part, part.transact_id, where)
        if part.typ in ENDS and not _is_blob(part):
            self._check_order(part, None, where)
        return super()._read_part(part, where)

    def _check_order(self, part: QueueRow, transaction: int | None, where: str) -> None:
        """Raise Misuse if a row precedes in the journal what was read before."""
        if part.syslog_addr is None:
            return
        latest = self._latest.get((part.dbnode, transaction), QueueProgress())
        place = JournalPlace(part.syslog_addr, part.oper_date)
        if latest.start is not None and latest.is_past(*place, self._order):
            raise Misuse(
                f"{where}: SYSLOG_ADDR {place.address} comes after {latest.start.address}: "
                "sort the rows by SYSLOG_ADDR and EXTDATA"
            )
        self._latest[part.dbnode, transaction] = QueueProgress(place)


def _position(part: QueueRow, servers: set[str]) -> str | None:
    """Return the journal's address, and the server where one operation goes to several."""
    if part.syslog_addr is None:
        return None
    return f"{part.syslog_addr}@{part.dst_server}" if len(servers) > 1 else str(part.syslog_addr)


def _is_blob(part: QueueRow) -> bool:
    """Return whether a row with the number of COMMIT is a DELETE BLOB of an older version."""
    return part.typ == Typ.COMMIT and bool(part.len1 or part.extdata)


def _check_empty(part: QueueRow) -> None:
    if part.len1 or part.len2:
        raise WrongRow(f"TYP {part.typ} ends a transaction, but LEN1 is {part.len1} and LEN2 {part.len2}")


Rows = tuple[dict[str, Value] | None, dict[str, Value] | None]


def _decode(layout: ImageLayout | None, before: bytes | None, after: bytes | None) -> Rows | None:
    """Return the rows before and after; None where the layout does not explain every image there is."""
    if layout is None:
        return None
    try:
        return (
            None if before is None else layout.read(before),
            None if after is None else layout.read(after),
        )
    except InvalidValue:
        return None


def _sides(rows: Rows, name: str) -> tuple[Value, Value]:
    before, after = rows
    return ABSENT if before is None else before[name], ABSENT if after is None else after[name]  # type: ignore[return-value]


def _key(table: Table | None, row: dict[str, Value]) -> Key:
    if table is None:
        return ()
    names = {table.column(name): name for name in row}
    key_names = [names.get(column) for column in table.key_columns]
    return tuple((name, row[name]) for name in key_names if name is not None) if None not in key_names else ()
