"""A reader of the changes of a queue, which yields those of a transaction after its COMMIT."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import repeat
from typing import Any, Final, NamedTuple

from eventlog.core.change import ABSENT, Change, Fact, Facts, Field, Key, Op, Raw
from eventlog.core.errors import EventlogError, InvalidValue, Misuse, Refused, WrongRow
from eventlog.core.formats import Row, Source
from eventlog.core.plurals import quantity
from eventlog.core.tables import Table, Tables
from eventlog.formats.linter.columns import QueueRow, QueueRowReader
from eventlog.formats.linter.images import ImageLayout, read_layout
from eventlog.formats.linter.linter_settings import LinterSettings
from eventlog.formats.linter.operations import (
    BLOBS,
    COST,
    ENDS,
    Destination,
    OpenOperations,
    Operation,
    PendingOperation,
    Place,
    QueueTransaction,
    Typ,
    assemble,
    operations,
    place_of,
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
from eventlog.formats.linter.times import load_time, read_zone
from eventlog.transactions.open_transactions import Bounds

ReadItem = Change | Refused
_TRANSACTION: Final = frozenset(("DBNODE", "TRANSACT_ID"))
# columns that show the operation of a row, or its round of the journal
_PLACE: Final = frozenset(("SYSLOG_ADDR", "OPER_DATE", "DST_SERVER", "DST_OWNER", "DST_TABLE"))
_INSTEAD: Final = frozenset(("EXTDATA", "TYP", "TABNUM_SRC", "ROWID_SRC", "CHANNEL"))  # without SYSLOG_ADDR
_ESCAPES: Final = str.maketrans({"%": "%25", "/": "%2F", "@": "%40"})  # of names in a position
_UNREAD_PART: Final = -1  # in place of an EXTDATA that cannot be read
_FACTS: Final = (
    "tabnum_src",
    "rowid_src",
    "dst_server",
    "dst_owner",
    "dst_table",
    "repl_date",
)
_BLOB_FACTS: Final = ("blob", "attribute", "blob-type")
_ABSENT: Final[Iterable[Any]] = repeat(ABSENT)  # without end
# a NamedTuple of a sequence, at half the cost of its constructor
_field: Callable[[tuple[Any, ...]], Field] = partial(tuple.__new__, Field)
_change: Callable[[tuple[Any, ...]], Change] = partial(tuple.__new__, Change)
_BEGINNING: Final = JournalPlace(-1 << 63)  # before every row
_OPS: Final = {Typ.INSERT: Op.INSERT, Typ.UPDATE: Op.UPDATE, Typ.DELETE: Op.DELETE}


class QueueTable(NamedTuple):
    """A table as changes name it, and the way in which its images are read."""

    owner: str | None
    name: str
    layout: ImageLayout | None = None
    key: tuple[tuple[str, int], ...] = ()  # its columns with their places in the layout

    def read(
        self, operation: Operation, before: bytes | None, after: bytes | None
    ) -> tuple[Key, tuple[Field, ...]]:
        """Return the key and the fields of an operation; no fields where its images are left as they are.

        The owner of a BLOB has a key only.
        """
        is_blob, layout = operation.typ in BLOBS, self.layout
        if layout is None or operation.contradicts_itself:
            return (), ()
        try:
            before_row, after_row = layout.read_sides(before, None if is_blob else after)
        except InvalidValue:  # the layout does not explain every image
            return (), ()
        row = after_row or before_row
        key = tuple([(name, row[at]) for name, at in self.key])
        sides = zip(layout.names, before_row or _ABSENT, after_row or _ABSENT, strict=False)
        return key, () if is_blob else tuple(map(_field, sides))


class _CommitFacts(NamedTuple):
    """The facts that the changes of one transaction share."""

    transaction: str
    place: str  # the beginning of each position
    facts: Facts
    destinations: Mapping[Place, Sequence[Destination]]


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
        self._zone = read_zone(reading.time_zone)
        spool = None if reading.spool is None else reading.spool()
        self._open_transactions = OpenOperations(spool, Bounds(reading.max_open, reading.open_bytes, COST))
        self._queue_tables = {table: _queue_table(table) for table in tables}
        self._numbered = {table.number: self._queue_tables[table] for table in tables}
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
            else:
                yield from self._changes(answer)
        self._read_all = True
        for reason in self._open_transactions.unfinished():
            yield Refused(source.name, reason, fault=False)

    def _rows(self, source: Source[Row]) -> Iterator[CommittedTransaction | Refused]:
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
                if faults and not _is_end_without_part(part, faults):
                    self._add_unreadable(part, faults, where, row.raw)
                elif (transaction := self._read_part(part, where)) is not None:
                    yield transaction
            except WrongRow as fault:
                yield Refused(where, str(fault), row.raw)

    def _read_part(self, part: QueueRow, where: str) -> CommittedTransaction | None:
        """Return the transaction that a row commits, if any; raise WrongRow if the row is wrong."""
        if self._since.is_past(part):
            return None
        try:
            typ = _read_whole_typ(part, self._reading.legacy_typ5)
        except WrongRow as fault:
            self._add_wrong(part, where, str(fault))
            return None
        if typ is Typ.ROLLBACK:
            self._open_transactions.abort(part)  # whatever else is wrong with the row
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
        else:
            self._open_transactions.add(part, where, is_read=self._is_asked_for(part))
        return None

    def _is_asked_for(self, part: QueueRow) -> bool:
        return not self._reading.server or part.dst_server == self._reading.server

    def _add_wrong(self, part: QueueRow, where: str, fault: str) -> None:
        """Add a row to its operation, which is refused in its place.

        Raise WrongRow if the row is no further part: then it may be the end of its transaction.
        """
        if part.extdata:
            self._open_transactions.add(part, where, fault, is_read=self._is_asked_for(part))
            return
        if part.typ not in ENDS:
            self._open_transactions.add(part, where, is_read=False)  # its further parts are of no other
        raise WrongRow(fault)

    def _add_unreadable(
        self, part: QueueRow, faults: Mapping[str, str], where: str, raw: bytes | None
    ) -> None:
        """Add a row that cannot be read to its operation, which is refused in its place.

        Raise WrongRow if the row is none of a known operation. Its transaction is refused if it may continue
        one.
        """
        fault = next(iter(faults.values()))
        if self._since.is_past(part) or faults.keys() & _TRANSACTION:
            raise WrongRow(fault)
        if "EXTDATA" in faults:
            part = part._replace(extdata=_UNREAD_PART)
        if "DATA" in faults:
            part = part._replace(data=raw or b"")
        if faults.keys() & (_PLACE if part.syslog_addr is not None else _PLACE | _INSTEAD):
            if part.extdata:
                words = "it may continue in a row of its transaction that cannot be read"
                self._open_transactions.spoil(part, f"{words}: {where}: {fault}")
            raise WrongRow(fault)
        try:
            typ = None if "TYP" in faults else _read_whole_typ(part, self._reading.legacy_typ5)
        except WrongRow:
            typ = None
        if typ is None:
            self._add_wrong(part, where, fault)
            return
        if typ in ENDS and not _is_blob(part):
            raise WrongRow(fault)
        self._open_transactions.add(part, where, fault, is_read=self._is_asked_for(part))

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
        facts, common = ended.transaction.facts, self._commit_facts(ended)
        for pending in operations(ended.transaction):
            try:
                if (fault := pending.fault or self._why_refused(pending, facts)) is not None:
                    raise WrongRow(fault)
                typ = read_typ(pending.parts[0], self._reading.legacy_typ5)
                change = self._change(assemble(typ, pending, self._reading.lengths), common)
            except EventlogError as reason:
                yield Refused(pending.where, str(reason), b"".join(part.data for part in pending.parts))
                continue
            if pending.repeats:
                yield _repeated(pending)
            yield change

    def _commit_facts(self, ended: CommittedTransaction) -> _CommitFacts:
        commit = ended.commit
        facts = (
            ("commit_syslog_addr", commit.syslog_addr),
            ("commit_oper_date", self._time(commit.oper_date)),
        )
        return _CommitFacts(
            f"{commit.dbnode}/{commit.transact_id}",
            f"{commit.dbnode.translate(_ESCAPES)}/{commit.transact_id}/",
            tuple(fact for fact in facts if fact[1] is not None),
            ended.transaction.facts.destinations(),
        )

    def _why_refused(self, pending: PendingOperation, facts: QueueTransaction) -> str | None:
        """Return why an operation is refused for a part of another one, or for one that may be its own."""
        if facts.faults and (fault := facts.faults.get(place_of(pending.parts[0]))):
            return fault
        if facts.fault is None and facts.surplus and pending.may_continue(self._reading.lengths):
            return facts.surplus
        return facts.fault

    def _note_delivered(self, commit: QueueRow) -> None:
        self._delivered.setdefault(commit.dbnode, []).append(commit_of(commit))

    def _change(self, operation: Operation, common: _CommitFacts) -> Change:
        typ, first, second, part = operation
        if (fault := operation.fault) and not self._reading.keep_contradictions:
            raise WrongRow(f"TYP is {part.typ}, {typ.name}, {fault}")
        table = self._queue_table(part)
        before, after = (None, first) if typ is Typ.INSERT and not second else (first, second or None)
        key, fields = table.read(operation, before, after)
        return _change(
            (
                _OPS.get(typ, Op.UPDATE),
                table.owner,
                table.name,
                key,
                fields,
                _position(common, part),
                common.transaction,
                self._time(part.oper_date),
                None if part.channel is None else str(part.channel),
                False,  # whether values are of the row as it was later
                self._facts(typ, part, common, is_decoded=bool(fields)),
                None if fields else Raw(before, after),
            )
        )

    def _facts(self, typ: Typ, part: QueueRow, common: _CommitFacts, is_decoded: bool) -> Facts:
        _, _, _, _, _, _, blobatr, _, tabnum, rowid, _, _, server, owner, table, _, sent = part
        values: tuple[Fact, ...] = (tabnum, rowid, server, owner, table, self._time(sent))
        stated = zip(_FACTS, values, strict=True)
        facts = [fact for fact in stated if fact[1] is not None and fact[1] != ""]
        facts += common.facts
        if typ in BLOBS:
            facts += zip(_BLOB_FACTS, (BLOBS[typ], blobatr & 0xFF, blobatr >> 8 & 0xFF), strict=True)
        elif blobatr:
            facts.append(("blobatr", blobatr))
        if not is_decoded:
            facts.append(("decoded", False))
        return tuple(facts)

    def _time(self, data: bytes) -> str | None:
        return load_time(data, self._order, self._zone) if data else None

    def _queue_table(self, part: QueueRow) -> QueueTable:
        table = None if part.tabnum_src is None else self._numbered.get(part.tabnum_src)
        if table is not None:
            return table
        owner, name = part.dst_owner or None, part.dst_table or f"table_{part.tabnum_src}"
        described = self._tables.of(owner, name) if part.dst_table else None
        if described is None:
            return QueueTable(owner, name)
        return self._queue_tables[described]._replace(owner=owner, name=name)


class FileReader(QueueReader):
    """Reads one file, whose rows must come in the order of the journal.

    Transactions may interleave, or come one by one in the order of their ends.
    """

    def __init__(self, tables: Tables, reading: LinterSettings) -> None:
        super().__init__(tables, reading)
        self._latest: dict[tuple[str, int | None], JournalPlace] = {}  # of a transaction; None: of all ends

    def _read_part(self, part: QueueRow, where: str) -> CommittedTransaction | None:
        self._check_order(part, part.transact_id, where)
        if part.typ in ENDS and not part.extdata and not _is_blob(part):
            self._check_order(part, None, where)
        return super()._read_part(part, where)

    def _check_order(self, part: QueueRow, transaction: int | None, where: str) -> None:
        """Raise Misuse if a row precedes in the journal what was read before."""
        address, date, key = part.syslog_addr, part.oper_date, (part.dbnode, transaction)
        if address is None:
            return
        latest = self._latest.get(key, _BEGINNING)
        if address < latest.address and QueueProgress(latest).is_past(address, date, self._order):
            raise Misuse(
                f"{where}: SYSLOG_ADDR {address} comes after {latest.address}: "
                "sort the rows by SYSLOG_ADDR and EXTDATA"
            )
        self._latest[key] = JournalPlace(address, date)


def _position(common: _CommitFacts, part: QueueRow) -> str | None:
    """Return the transaction and the journal's address, and as much of the destination as distinguishes the
    rows of one operation.
    """
    if part.syslog_addr is None:
        return None
    place = f"{common.place}{part.syslog_addr}"
    of_place = common.destinations.get(part.syslog_addr, ())
    if len(of_place) < 2:
        return place
    names = [part.dst_server, part.dst_owner, part.dst_table]
    if len({server for server, _, _ in of_place}) == len(of_place):
        del names[1:]
    return f"{place}@{'/'.join(name.translate(_ESCAPES) for name in names)}"


def _repeated(pending: PendingOperation) -> Refused:
    """Return the notice of an operation whose rows came again as they are."""
    count, address = sum(pending.repeats.values()), pending.parts[0].syslog_addr
    words = f"{quantity(count, 'row')} of SYSLOG_ADDR {address} came again with the same content: dropped"
    return Refused(pending.where, words, fault=False)


def _read_whole_typ(part: QueueRow, legacy: str) -> Typ:
    """Return what a row is; raise WrongRow for a further part that is the end of a transaction."""
    typ = read_typ(part, legacy)
    if part.extdata and typ in ENDS and not _is_blob(part):
        raise WrongRow(f"TYP {part.typ} ends a transaction, but EXTDATA is {part.extdata}")
    return typ


def _is_end_without_part(part: QueueRow, faults: Mapping[str, str]) -> bool:
    """Return whether only the EXTDATA of a row cannot be read, and the row needs none."""
    return faults.keys() == {"EXTDATA"} and part.typ in ENDS and not (part.len1 or part.len2)


def _is_blob(part: QueueRow) -> bool:
    """Return whether a row with the number of COMMIT is a DELETE BLOB of an older version."""
    return part.typ == Typ.COMMIT and bool(part.len1 or part.extdata)


def _check_empty(part: QueueRow) -> None:
    if part.len1 or part.len2:
        raise WrongRow(f"TYP {part.typ} ends a transaction, but LEN1 is {part.len1} and LEN2 {part.len2}")


def _queue_table(table: Table) -> QueueTable:
    layout = read_layout(str(table), table.linter)
    names = () if layout is None else layout.names
    places = {table.column(name): (name, at) for at, name in enumerate(names)}
    key = [places[column] for column in table.key_columns if column in places]
    return QueueTable(table.schema, table.name, layout, tuple(key) if len(key) == len(table.key) else ())
