"""The laws at the end of a run: those of `eventlog.audit.laws`, and what these cannot see."""

from __future__ import annotations

from collections.abc import Iterator

from eventlog.audit.delivered import field_changes
from eventlog.audit.laws import Arrival, AuditedRow, Breach, Law, Present, breaches
from tests.simulate import receiver as receivers
from tests.simulate.ledger import DELETED, Ledger, Row, run_of
from tests.simulate.people import OWN_USER, TABLES, USR
from tests.simulate.receiver import LawBroken, Receiver
from tests.simulate.server import Server


def check(server: Server, receiver: Receiver, ledger: Ledger) -> None:
    """Raise LawBroken at the first law that does not hold."""
    ledger.check_arrivals()
    _check_letters(server, ledger)
    for name in sorted({row.object for row in ledger.rows.values()} - ledger.stale):
        arrivals = [arrival for arrival in receiver.arrivals if arrival.event.object == name]
        rows = [number for number, row in sorted(ledger.rows.items()) if row.object == name]
        _check_parts(arrivals)
        if receiver.recorded:
            _check_once(arrivals)
        if ledger.skipped.isdisjoint(rows) and not any(
            ledger.rows[n].was("EF") or ledger.rows[n].is_by_hand for n in rows
        ):
            _check_order(arrivals, ledger)
        audited = [_audited(number, ledger.rows[number], ledger) for number in rows]
        is_own = any(row.is_loopback for row in audited)
        present = None if is_own else Present(_state(server, name))
        deliveries = [_delivery(place, arrival, receiver) for place, arrival in enumerate(arrivals)]
        of_object, was_skipped = [ledger.rows[n] for n in rows], not ledger.skipped.isdisjoint(rows)
        for breach in breaches(name, audited, deliveries, present=present, recorded=ledger.runs_rows):
            if not _is_excused(breach, of_object, ledger.rows[breach.record_id or rows[0]], was_skipped):
                raise LawBroken(f"{breach.law.name}, row {breach.record_id} of {name}: {breach.words}")


def _is_excused(breach: Breach, rows: list[Row], row: Row, was_skipped: bool) -> bool:
    """Return whether the law does not know enough of what happened to the object.

    A deleted row has no letter. What is redriven is read back under its old name, in other parts and later.
    A row that was logged by hand commits in any order. An event that waits or is asked for may have no effect
    any more when it is sent, because its object is gone. After a skip all that was on its way goes anew.
    The rest of an insert that a limit cut is an add of its own.
    """
    users = {of_object.values["perpetrator"] for of_object in rows}
    is_redriven = any(of_object.was("EF") for of_object in rows)
    match breach.law:
        case Law.ANSWERED:
            has_vanished = row.values["event_type"] > 4 and "answered retry" in breach.words
            return is_redriven or has_vanished or any(of_object.letter == DELETED for of_object in rows)
        case Law.ONE_CONTENT | Law.EXPLAINED:
            return is_redriven
        case Law.IN_ORDER:
            return is_redriven or was_skipped or any(of_object.is_by_hand for of_object in rows)
        case Law.ACCOUNTED:
            return is_redriven or OWN_USER in users or any(of_object.is_by_hand for of_object in rows)
        case Law.SAME_STATE:  # a redriven insert may come before that of a later life, which begins anew
            return is_redriven or _is_torn(rows)
        case _:
            return False


def _is_torn(rows: list[Row]) -> bool:
    """Return whether a row was logged by hand between the rows of an insert, where a limit may cut it."""
    inserts = [at for at, row in enumerate(rows) if row.values["event_type"] == 1]
    return any(row.is_by_hand and inserts[:1] < [at] < inserts[-1:] for at, row in enumerate(rows))


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


def _check_once(arrivals: list[receivers.Arrival]) -> None:
    """A sink with a record gets each event once."""
    names = [arrival.event.name for arrival in arrivals]
    if repeated := [name for name in names if names.count(name) > 1]:
        raise LawBroken(f"{repeated[0]} came twice, and was on the sink's record")


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


def _audited(number: int, row: Row, ledger: Ledger) -> AuditedRow:
    """Return the row as the laws take it."""
    reason = "it was skipped" if number in ledger.skipped else None
    return AuditedRow(
        number,
        "S" if row.letter == DELETED else row.letter,
        row.values["event_type"],
        row.values["column_name"],
        is_loopback=row.values["perpetrator"] == OWN_USER,
        reason="it failed" if row.letter in ("E", "F") else reason,
    )


def _delivery(place: int, arrival: receivers.Arrival, receiver: Receiver) -> Arrival:
    """Return an arrival as the laws take it."""
    event, level = arrival.event, arrival.level.name.lower()
    changes = field_changes(event.text.encode())
    return Arrival(place, f"arrival {place}", event.name, event.operation, event.text, level, changes=changes)


def _state(server: Server, name: str) -> dict[str, frozenset[str]] | None:
    """Return what the table has of an object, None if it has nothing."""
    states: Iterator[dict[str, frozenset[str]]] = (
        {column: frozenset([row[column]]) for column in TABLES[USR].columns if row[column] is not None}
        for row in server.store.rows(server.begin(), USR)
        if f"idu={row['idu']}" == name
    )
    return next(states, None)
