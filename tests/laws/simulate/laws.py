"""The laws at the end of a run: the receipt, a second reading of the specification, and what both miss."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from operator import itemgetter

import numpy as np

from eventlog.audit.audit_report import AuditReport
from eventlog.audit.audit_report import Law as ReceiptLaw
from eventlog.audit.delivered import DeliveredDocument
from eventlog.audit.laws import Arrivals, judge
from eventlog.audit.on_record import Facts as ReceiptFacts
from eventlog.audit.on_record import log_of
from eventlog.core.tables import Tables
from eventlog.opening.recorded_settings import read_published
from eventlog.sql.log.log_record import RecordedBatch
from tests.laws.judge.contents import PublishedThen
from tests.laws.judge.laws import Arrival, AuditedRow, Breach, Law
from tests.laws.judge.objects import AuditedObject, Facts, breaches_of
from tests.laws.simulate import receiver as receivers
from tests.laws.simulate.ledger import DELETED, Ledger, run_of
from tests.laws.simulate.people import OWN_USER, TABLES, USR
from tests.laws.simulate.receiver import LawBroken, Receiver
from tests.laws.simulate.server import Server


def check(server: Server, receiver: Receiver, ledger: Ledger) -> None:
    """Raise LawBroken at the first law that does not hold."""
    ledger.check_arrivals()
    _check_letters(server, ledger)
    _check_receipt(server, receiver, ledger)
    facts = _facts(server, ledger)
    for name in sorted({row.object for row in ledger.rows.values()} - ledger.stale):
        arrivals = [arrival for arrival in receiver.arrivals if arrival.event.object == name]
        rows = [number for number, row in sorted(ledger.rows.items()) if row.object == name]
        _check_parts(arrivals)
        if receiver.recorded:
            _check_once(arrivals, ledger)
        if ledger.skipped.isdisjoint(rows) and not any(
            ledger.rows[n].was("EF") or ledger.rows[n].is_by_hand for n in rows
        ):
            _check_order(arrivals, ledger)
        for breach in _breaches(name, rows, arrivals, ledger, facts, _present(server, name)):
            raise LawBroken(f"{breach.law.name}, row {breach.record_id} of {name}: {breach.words}")


def _check_receipt(server: Server, receiver: Receiver, ledger: Ledger) -> None:
    """Raise LawBroken at a breach of the receipt, as users get it; where rows are deleted, of letters."""
    view = server.begin()
    rows = sorted(server.store.rows(view, "log"), key=itemgetter("record_id"))
    batches = [
        RecordedBatch(row["batch"], row["epoch"], row["settled_at"], row["content"])
        for row in sorted(server.store.rows(view, "batch"), key=itemgetter("batch"))
    ]
    notices = server.store.rows(view, "notice")
    listed = {
        kind: {number for row in notices if row["kind"] == kind for number in json.loads(row["record_ids"])}
        for kind in ("skip", "redrive")
    }
    deletes = not ledger.keeps_tries
    held_rows = {n for row in server.store.rows(view, "retry") for n in json.loads(row["record_ids"])}
    reasons = {row["record_id"]: row["reason"] for row in server.store.rows(view, "failed")}
    skipped = listed["skip"] | ledger.skipped
    facts = ReceiptFacts(reasons, skipped, listed["redrive"] | held_rows, is_purged=deletes)
    ids, letters = ([row[name] for row in rows] for name in ("record_id", "status"))
    log = log_of(np.array(ids, np.int64), np.array(letters, "U1"), batches, facts)
    arrivals, report = Arrivals(log), AuditReport(is_purged=deletes)
    if deletes:
        report.open_laws |= dict.fromkeys(
            (ReceiptLaw.DELIVERED, ReceiptLaw.EXPLAINED, ReceiptLaw.IN_ORDER), ""
        )
    documents = (
        DeliveredDocument(
            f"arrival {place}", "", False, texts=[a.event.text.encode()], levels=[a.level.name.lower()]
        )
        for place, a in enumerate(receiver.arrivals)
    )
    for _ in arrivals.add(documents):
        pass
    judge(log, arrivals, report, "eventlog", lambda numbers: {n: ledger.rows[n].object for n in numbers})
    for law, breach in report.first_breaches.items():
        is_late = ledger.rows[breach.record_id].object in ledger.stale
        if not (is_late and law in (ReceiptLaw.IN_ORDER, ReceiptLaw.ANSWERED)):
            raise LawBroken(f"receipt: {law.name}, row {breach.record_id}: {breach.words}")


def _facts(server: Server, ledger: Ledger) -> Facts:
    """Return what the log has on record."""
    view = server.begin()
    notices = server.store.rows(view, "notice")
    published = [read_published(row["words"]) for row in notices if row["kind"] == "publish"]
    redriven = [json.loads(row["record_ids"]) for row in notices if row["kind"] == "redrive"]
    reasons = {row["record_id"]: row["reason"] for row in server.store.rows(view, "failed")}
    facts = Facts(
        reasons | dict.fromkeys(ledger.skipped, "skipped"),
        redriven=frozenset(number for ids in redriven for number in ids),
        is_compared=any(row["kind"] == "compare" for row in notices),
        published=[
            PublishedThen(-1, tables, words["insert_query_back"] == "add", 1) for tables, words in published
        ],
        is_dated=True,
    )
    tables: Tables = published[0][0] if published else Tables()  # none if no publisher has led
    return replace(
        facts, has_contents=bool(published), compared={t.name: t for t in tables if t.name == "usr"}
    )


def _breaches(
    name: str,
    rows: Sequence[int],
    arrivals: Sequence[receivers.Arrival],
    ledger: Ledger,
    facts: Facts,
    present: bytes | None,
) -> Iterable[Breach]:
    """Return the breaches of an object. A deleted row had S or W."""
    deliveries = [_delivery(place, arrival) for place, arrival in enumerate(arrivals)]
    recorded = {run: ledger.recorded(run) for n in rows for run in ledger.runs_of.get(n, ())}
    letters = {n: "S" if ledger.rows[n].letter == DELETED else ledger.rows[n].letter for n in rows}
    for is_last in (False, True):
        audited_rows = [_audited(n, letters[n], ledger) for n in rows]
        audited = AuditedObject("usr", name, audited_rows, deliveries, recorded, present)
        object_breaches = breaches_of(audited, facts).breaches
        deleted = {
            breach.record_id
            for breach in object_breaches
            if breach.law is Law.ANSWERED and ledger.rows[breach.record_id].letter == DELETED
        }
        if is_last or not deleted:
            break
        letters |= dict.fromkeys(deleted, "W")
    kept_rows = [row for row in audited_rows if ledger.rows[row.record_id].letter != DELETED]
    if len(kept_rows) < len(rows):  # as the audit of a log without its finished rows is
        in_log, as_purged = audited._replace(rows=kept_rows), replace(facts, is_purged=True, compared=None)
        object_breaches = [*object_breaches, *breaches_of(in_log, as_purged).breaches]
    return object_breaches


def _check_letters(server: Server, ledger: Ledger) -> None:
    """Every committed row has one outcome; a failed one has its reason, and no other has one."""
    reasons = {row["record_id"] for row in server.store.rows(server.begin(), "failed")}
    for number, row in ledger.rows.items():
        if row.letter == "N":
            raise LawBroken(f"row {number} is still new")
        if (row.letter in ("E", "F")) != (number in reasons):
            raise LawBroken(f"row {number} has {row.letter} and {'a' if number in reasons else 'no'} reason")
        levels = [level for run in ledger.runs_of.get(number, ()) for level in ledger.levels(run)]
        is_good = bool(levels) and all(level in receivers.GOOD for level in levels)
        if row.letter in ("E", "F") and is_good and not ledger.is_refused_by_server(number):
            raise LawBroken(f"row {number} has {row.letter}, and all was answered well")


def _check_parts(arrivals: list[receivers.Arrival]) -> None:
    """The parts of an event come one after another."""
    seen_parts = set[tuple[str, int]]()
    for arrival in arrivals:
        run, part = run_of(arrival.event)
        if part > 1 and (run, part - 1) not in seen_parts:
            raise LawBroken(f"part {part} of {run} came before the one before it")
        seen_parts.add((run, part))


def _check_once(arrivals: list[receivers.Arrival], ledger: Ledger) -> None:
    """A sink with a record gets each event once, and once more after each redrive of its rows."""
    last_moments: dict[str, int] = {}
    for arrival in arrivals:
        name = arrival.event.name
        before = last_moments.get(name)
        rows = [ledger.rows[number] for number in ledger.remembered[name].rows]
        if before is not None and not any(row.was_redriven(before, arrival.moment) for row in rows):
            raise LawBroken(f"{name} came twice, and was on the sink's record")
        last_moments[name] = arrival.moment


def _check_order(arrivals: list[receivers.Arrival], ledger: Ledger) -> None:
    """An event is not taken for the first time after a later one was: one that waits holds its object."""
    highest, taken = 0, set[str]()
    for arrival in arrivals:
        if arrival.level in receivers.GOOD:
            run, rows = run_of(arrival.event)[0], ledger.remembered[arrival.event.name].rows
            if run not in taken and rows[-1] < highest:
                raise LawBroken(f"{run} was taken after one with row {highest}")
            taken.add(run)
            highest = max(highest, rows[0])


def _audited(number: int, letter: str, ledger: Ledger) -> AuditedRow:
    """Return the row as the laws take it. A deleted row of no event has left nothing on record."""
    row = ledger.rows[number]
    kind, column, before, after = (
        row.values[c] for c in ("event_type", "column_name", "old_value", "new_value")
    )
    is_own = row.values["perpetrator"] == OWN_USER
    return AuditedRow(
        number, letter, kind, column, before, after, kind == 2 and before == after, is_own
    )._replace(has_no_event=ledger.is_forgotten(number) or number in ledger.without_event)


def _delivery(place: int, arrival: receivers.Arrival) -> Arrival:
    """Return an arrival as the laws take it."""
    event, level = arrival.event, arrival.level.name.lower()
    text = event.text
    return Arrival(place, f"arrival {place}", event.name, event.operation, text, level, text=text.encode())


def _present(server: Server, name: str) -> bytes | None:
    """Return the present row of an object as an add, None if the table has none."""
    for row in server.store.rows(server.begin(), USR):
        if f"idu={row['idu']}" == name:
            added = [(column, row[column]) for column in TABLES[USR].columns if row[column] is not None]
            values = "".join(
                f'<add-attr attr-name="{c}"><value type="string">{t}</value></add-attr>' for c, t in added
            )
            opening = (
                f'<add class-name="usr" event-id="present:0"><association>{name},table=usr</association>'
            )
            return f"{opening}{values}</add>".encode()
    return None
