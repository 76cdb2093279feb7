"""From the rows of a queue to changes: what each transaction did, once its COMMIT has come."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from eventlog.change import ABSENT, Change, Fact, Facts, Field, Key, Op, Raw, Value
from eventlog.codec import Row, Source
from eventlog.errors import EventlogError, InvalidValue, Refused, WrongRow
from eventlog.linter.columns import Part, RowReader
from eventlog.linter.images import Layout, read_layout
from eventlog.linter.operations import (
    BLOBS,
    MAX_OPEN,
    Open,
    Operation,
    Transaction,
    Typ,
    assemble,
    read_typ,
)
from eventlog.linter.times import TimeOrder, load_time
from eventlog.tables import Table, Tables

Answer = Change | Refused
_OPS: Final = {Typ.INSERT: Op.INSERT, Typ.UPDATE: Op.UPDATE, Typ.DELETE: Op.DELETE}
_UNDECIDED: Final = 10_000  # rows that may wait for a date that tells the byte order


class Reading(NamedTuple):
    """How a queue is read, where its description leaves a choice."""

    time_order: str = "auto"
    now: str | None = None
    lengths: str = "auto"
    legacy: str = "error"
    server: str = ""
    max_open: int = MAX_OPEN
    delivered: int | None = None


class Named(NamedTuple):
    table: Table | None
    owner: str | None
    name: str
    layout: Layout | None


class Ended(NamedTuple):
    """A transaction that committed, and the row that said so."""

    transaction: Transaction
    commit: Part


class Reader:
    """Reads one source."""

    def __init__(self, tables: Tables, reading: Reading) -> None:
        self._tables = tables
        self._reading = reading
        self._order = TimeOrder(reading.time_order, reading.now)
        self._open = Open(reading.max_open)
        self._layouts = {table: read_layout(str(table), table.linter) for table in tables}
        self.delivered = reading.delivered  # SYSLOG_ADDR of the last COMMIT whose changes were taken

    @property
    def restart(self) -> int | None:
        """The SYSLOG_ADDR from which on everything that is not delivered can be read again."""
        oldest = self._open.oldest()
        return self.delivered if oldest is None else oldest

    def read(self, source: Source[Row]) -> Iterator[Answer]:
        """The changes of a source, then what its end leaves."""
        waiting: list[Ended | Refused] = []
        for rows, answer in enumerate(self._rows(source), 1):
            if answer is not None:
                waiting.append(answer)
            if self._order.order is None and rows >= _UNDECIDED:
                self._order.settle()
            if self._order.order is not None and waiting:
                yield from self._told(waiting)
                waiting = []
        self._order.settle()
        yield from self._told(waiting)
        for reason in self._open.unfinished():
            yield Refused(source.name, reason, fault=False)

    def _rows(self, source: Source[Row]) -> Iterator[Ended | Refused | None]:
        reader = RowReader(source.columns)
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
            try:
                yield self._take(reader.read(row.cells), where)
            except WrongRow as fault:
                yield Refused(where, str(fault), row.raw)

    def _take(self, part: Part, where: str) -> Ended | None:
        """What a row ends, if it ends something; WrongRow says what is wrong with it."""
        typ = read_typ(part, self._reading.legacy)
        if typ is Typ.ROLLBACK:
            self._open.end(part)  # whatever else is wrong with the row
        self._order.see(part.oper_date)
        if typ is Typ.ROLLBACK:
            _check_empty(part)
        elif typ is Typ.COMMIT and not _is_blob(part):
            _check_empty(part)
            transaction = self._open.end(part)
            return None if transaction is None or self._is_old(part) else Ended(transaction, part)
        elif not self._reading.server or part.dst_server == self._reading.server:
            fault = self._open.add(part, where)
            if fault is not None:
                raise WrongRow(fault)
        return None

    def _is_old(self, commit: Part) -> bool:
        since = self._reading.delivered
        return since is not None and commit.syslog_addr is not None and commit.syslog_addr <= since

    def _told(self, waiting: list[Ended | Refused]) -> Iterator[Answer]:
        for item in waiting:
            if isinstance(item, Refused):
                yield item
            else:
                yield from self._changes(item)

    def _changes(self, ended: Ended) -> Iterator[Answer]:
        for pending in ended.transaction.operations:
            try:
                typ = read_typ(pending.parts[0], self._reading.legacy)
                operation = assemble(typ, pending, self._reading.lengths)
                yield self._change(operation, ended.commit)
            except EventlogError as fault:
                yield Refused(pending.where, str(fault), b"".join(part.data for part in pending.parts))
        if ended.commit.syslog_addr is not None:
            self.delivered = ended.commit.syslog_addr

    def _change(self, operation: Operation, commit: Part) -> Change:
        typ, first, second, part = operation
        named = self._name(part)
        op = _OPS.get(typ, Op.UPDATE)
        before = None if typ is Typ.INSERT else first
        after = first if typ is Typ.INSERT else second if typ is Typ.UPDATE else second or None
        told = Change(
            op,
            named.owner,
            named.name,
            position=None if part.syslog_addr is None else str(part.syslog_addr),
            transaction=f"{part.dbnode}/{part.transact_id}",
            time=self._time(part.oper_date),
            user=None if part.channel is None else str(part.channel),
            extra=self._facts(typ, part, commit),
        )
        rows = None if typ in BLOBS else _decode(named.layout, before, after)
        if rows is None:
            return told._replace(raw=Raw(before, after), extra=(*told.extra, ("decoded", False)))
        fields = tuple(Field(name, *_sides(rows, name)) for name in rows[0] or rows[1] or ())
        return told._replace(key=_key(named.table, rows[1] or rows[0] or {}), fields=fields)

    def _facts(self, typ: Typ, part: Part, commit: Part) -> Facts:
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
        return load_time(data, self._order.order or "big") if data else None

    def _name(self, part: Part) -> Named:
        table = None if part.tabnum_src is None else self._tables.numbered(part.tabnum_src)
        if table is not None:
            return Named(table, table.schema, table.name, self._layouts[table])
        owner, name = part.dst_owner or None, part.dst_table or f"table_{part.tabnum_src}"
        table = self._tables.of(owner, name) if part.dst_table else None
        return Named(table, owner, name, None if table is None else self._layouts[table])


def _is_blob(part: Part) -> bool:
    """Whether a row with the number of COMMIT is a DELETE BLOB of an older version."""
    return part.typ == Typ.COMMIT and bool(part.len1 or part.extdata)


def _check_empty(part: Part) -> None:
    if part.len1 or part.len2:
        raise WrongRow(f"TYP {part.typ} ends a transaction, but LEN1 is {part.len1} and LEN2 {part.len2}")


Rows = tuple[dict[str, Value] | None, dict[str, Value] | None]


def _decode(layout: Layout | None, before: bytes | None, after: bytes | None) -> Rows | None:
    """The rows before and after; None where the layout does not explain every image there is."""
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
    found = [names.get(column) for column in table.key_columns]
    return tuple((name, row[name]) for name in found if name is not None) if None not in found else ()
