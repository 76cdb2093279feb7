"""What must hold at the end of a run, when everything has left."""

from __future__ import annotations

from tests.simulate.ledger import DELETED, LawBroken, Ledger, arrivals_by_object, run_of
from tests.simulate.people import OWN_USER, TABLES, USR
from tests.simulate.receiver import GOOD, Receiver
from tests.simulate.server import Server


def check(server: Server, receiver: Receiver, ledger: Ledger) -> None:
    """Raise LawBroken at the first law that does not hold."""
    ledger.check_arrivals()
    _check_rows(server, ledger)
    _check_contents(receiver, ledger)
    unsure = ledger.stale | _torn(receiver, ledger)
    _check_order(receiver, ledger)
    _check_state(server, receiver, unsure)


def _check_rows(server: Server, ledger: Ledger) -> None:
    """Every committed row has one outcome; a failed one has its reason."""
    reasons = {row["record_id"] for row in server.store.rows(server.begin(), "failed")}
    for number, row in ledger.rows.items():
        if row.letter not in ("S", "W", "E", "F", DELETED):
            raise LawBroken(f"row {number} ends with {row.letter}")
        if row.letter in ("E", "F") and number not in reasons:
            raise LawBroken(f"row {number} has {row.letter} and no reason")
        if row.letter not in ("E", "F") and number in reasons:
            raise LawBroken(f"row {number} has {row.letter} and a reason")
        runs = ledger.runs_of.get(number, {})
        answers = [level for run in runs for level in ledger.levels(run)]
        if row.letter in ("E", "F") and answers and all(level in GOOD for level in answers):
            raise LawBroken(f"row {number} has {row.letter}, and all was answered well")


def _check_contents(receiver: Receiver, ledger: Ledger) -> None:
    """Each name of an event has one content, unless it is read back."""
    texts: dict[str, str] = {}
    for _, event, _ in receiver.sent:
        rows = ledger.remembered[event.name].rows if event.name in ledger.remembered else ()
        is_constant = all(
            ledger.rows[n].values["event_type"] < 5 and not ledger.rows[n].was("EF") for n in rows
        )
        if is_constant and texts.setdefault(event.name, event.text) != event.text:
            raise LawBroken(f"{event.name} has several contents")


def _torn(receiver: Receiver, ledger: Ledger) -> set[str]:
    """Return the objects that the receiver refused something of, or should not get something of."""
    torn = {row.object for row in ledger.rows.values() if row.was("EFW")}
    torn |= {row.object for row in ledger.rows.values() if row.values["perpetrator"] == OWN_USER}
    refused = (a.event.object for a in receiver.arrivals if a.level.name in ("ERROR", "FATAL"))
    return torn.union(refused)


def _check_order(receiver: Receiver, ledger: Ledger) -> None:
    """The events of an object that were taken came in the order of their rows; only repeats come later."""
    for name, arrivals in arrivals_by_object(receiver.arrivals).items():
        if name in ledger.stale:
            continue
        highest, seen_names = 0, set[tuple[str, int]]()  # the first row of what came latest
        for arrival in arrivals:
            run, part = run_of(arrival.event)
            if arrival.level not in GOOD:
                seen_names.add((run, part))
                continue
            rows = ledger.remembered[arrival.event.name].rows
            if any(ledger.rows[number].was("EF") for number in rows):
                continue
            if (run, part) not in seen_names and part > 1 and (run, part - 1) not in seen_names:
                raise LawBroken(f"part {part} of {run} came before the one before it")
            if (run, part) not in seen_names and part == 1 and rows[-1] < highest:
                raise LawBroken(f"{run} came after row {highest} of {name}")
            seen_names.add((run, part))
            highest = max(highest, rows[0])


def _check_state(server: Server, receiver: Receiver, unsure: set[str]) -> None:
    """The receiver has what the table has, of every object that it refused nothing of."""
    columns = TABLES[USR].columns
    present = {
        f"idu={row['idu']}": {column: row[column] for column in columns if row[column] is not None}
        for row in server.store.rows(server.begin(), USR)
    }
    for name in sorted(present.keys() | receiver.objects.keys()):
        if name not in unsure and present.get(name) != receiver.objects.get(name):
            raise LawBroken(
                f"{name} is {present.get(name)}, and the receiver has {receiver.objects.get(name)}"
            )
