"""What a run leaves on record for its laws: each row's letters, each batch that was remembered, each leader.

It watches commits, so it knows at which moment something became true. It reads what is remembered by itself,
without the publisher's code.
"""

from __future__ import annotations

import hashlib
import json
from base64 import b64decode
from collections import Counter
from collections.abc import Iterator
from functools import cache
from itertools import chain, islice
from typing import Any, NamedTuple

from tests.laws.judge.laws import RecordedRows
from tests.laws.judge.objects import FOREVER
from tests.laws.simulate.people import ADMINISTRATOR, NO_KEY, OWN_USER
from tests.laws.simulate.receiver import GOOD, RETRY, Arrival, Event, LawBroken, Receiver
from tests.laws.simulate.server import REFUSAL, Server
from tests.laws.simulate.store import Transaction, Values, Version
from tests.laws.simulate.world import Process

DELETED = "-"
_NO_DOCUMENTS = ("refused", "warned", "cut short", "unanswered")  # names of what else a batch has
_PROMISED = {"N": "SWEF-", "E": "NW", "F": "NW"}  # from which letter to which


class Row(NamedTuple):
    """A row of the log, as it was committed, and the letters that it got at which moments."""

    values: Values
    letters: list[tuple[int, str]]

    @property
    def object(self) -> str:
        return str(self.values["table_key"])

    @property
    def letter(self) -> str:
        return self.letters[-1][1]

    @property
    def is_by_hand(self) -> bool:
        """Return whether no trigger logged it."""
        return bool(self.values["perpetrator"] == ADMINISTRATOR)

    @property
    def is_unreadable(self) -> bool:
        """Return whether the row names no object."""
        return self.object == f"idu={NO_KEY}"

    def was(self, letters: str) -> bool:
        """Return whether the row ever had one of these letters."""
        return any(letter in letters for _, letter in self.letters)

    def was_redriven(self, after: int, until: int) -> bool:
        """Return whether the row became new again between two moments."""
        return any(letter == "N" and after < moment <= until for moment, letter in self.letters)


class Remembered(NamedTuple):
    """An event, or a part of one, that was on record before it left."""

    rows: tuple[int, ...]
    is_last: bool  # no further part follows
    moment: int


class KeptTry(NamedTuple):
    """A try of a row, as it is on record."""

    number: int  # of the row
    event_id: str | None
    answer: str
    moment: int


class Ledger:
    """The record of a run."""

    def __init__(self, server: Server, receiver: Receiver, *, keeps_tries: bool) -> None:
        self._server = server
        self.keeps_tries = keeps_tries  # not where handled rows are deleted
        self._receiver = receiver
        self.rows: dict[int, Row] = {}
        self.remembered: dict[str, Remembered] = {}
        self.runs_of: dict[int, dict[str, None]] = {}  # the names of events as a whole, by row
        self.without_event: set[int] = set()  # rows, as a batch has them
        self.skipped: set[int] = set()  # rows
        self.ruling: Process | None = None  # the process of the leader
        self.epoch = 0
        self.highest = 0  # record_id that went out, on the log's own record
        self.stale: set[str] = set()  # objects about which something of a former leader came
        self._departures: dict[str, int] = {}  # when each event left last, by its name
        self._refused: dict[str, dict[str, int]] = {}  # refused parts of events; when that was on record
        self._held_at: dict[str, int] = {}  # when each event began to wait last, by its name
        self._cut: set[str] = set()  # events of several parts
        self._begun: dict[str, int] = {}  # when each event was on record first
        self._settled_at: dict[str, int] = {}  # when a batch with each event was done with
        self._tries: dict[str, int] = {}  # of each event that waited
        self._answers: dict[tuple[int, int], str] = {}  # on record, by their places
        self._last_tries: dict[int, KeptTry] = {}  # the last try on record of each row
        self._due_tries: list[tuple[str, tuple[str, ...]]] = []  # that the transaction must put on record
        self._checked = 0  # departures
        self._checked_arrivals = 0
        self._may_leave: set[str] | None = None  # names of events in a pause, None without one
        server.store.on_commit = self.note_commit

    # --- commits

    def note_commit(self, transaction: Transaction) -> None:
        """Note what a transaction is about to make true."""
        self.check_arrivals()
        moment = self._server.store.moment + 1
        self._due_tries = []
        made_due = {version.next_version for table, version in transaction.touched if table.name == "retry"}
        for table, version in transaction.touched:
            if version in made_due:
                continue  # it waits no longer, and was not tried
            if version.creator is transaction and version.deleter is not transaction:
                getattr(self, f"_note_{table.name}", lambda *facts: None)(version.values, moment)
            elif table.name == "log" and version.deleter is transaction is not version.creator:
                self._note_deleted(version, moment)
            elif (
                table.name == "batch" and version.next_version is None and version.creator is not transaction
            ):
                self._note_settled(version.values["content"], moment)
        for name, answers in self._due_tries:
            for number in self.runs_rows[name]:
                if self.rows[number].letter == DELETED:
                    continue  # it was finished without its event
                last = self._last_tries.get(number)
                if last is None or (last.event_id, last.moment) != (name, moment):
                    raise LawBroken(f"the answer to {name} is not on record of row {number}")
                if last.answer not in answers:
                    raise LawBroken(f"row {number} has {last.answer} on record, and not {answers[0]}")
        self._check_forgotten(transaction)
        if transaction.touched:
            self._note_pause(transaction)

    def _note_failed(self, values: Values, moment: int) -> None:
        if values["event_id"] is not None:
            self._due_tries.append((values["event_id"], ("error", "fatal")))

    def _note_answer(self, values: Values, moment: int) -> None:
        self._answers[values["batch"], values["part"]] = values["answer"]

    def _note_try(self, values: Values, moment: int) -> None:
        """Note a try of a row: its tries count from 1, and a first success is none."""
        row, number, answer = values["record_id"], values["try_number"], self._answers[_place(values)]
        before, name = self._last_tries.get(row), values["event_id"]
        if number != (1 if before is None else before.number + 1):
            raise LawBroken(f"try {number} of row {row} is on record after {before}")
        if answer == "success" and (before is None or name not in self._tries):
            raise LawBroken(f"row {row} has a first success on record")
        if name is not None and row not in self.runs_rows.get(name, ()):
            raise LawBroken(f"row {row} has a try of {name}")
        self._last_tries[row] = KeptTry(number, name, answer, moment)

    def _check_forgotten(self, transaction: Transaction) -> None:
        """Check that no more of a row's tries stay on record than may, and none once it is deleted."""
        tables = {table.name for table, _ in transaction.touched}
        if tables.isdisjoint(("try", "log")):
            return
        tries = self._server.store.rows(transaction, "try")
        counts = Counter(row["record_id"] for row in tries)
        for number, count in counts.items():
            if count > 10 or self.rows[number].letter == DELETED:
                raise LawBroken(f"row {number} has {count} tries on record")
        used = {_place(row) for row in tries}
        if used != {_place(row) for row in self._server.store.rows(transaction, "answer")}:
            raise LawBroken("an answer is on record that no try had, or one is missing")

    def _note_pause(self, transaction: Transaction) -> None:
        """Note which events may leave while the publisher is paused: those that are about to as it begins."""
        (state,) = self._server.store.rows(transaction, "state")
        if state["paused_at"] is None:
            self._may_leave = None
        elif self._may_leave is None:
            rows = self._server.store.rows(transaction, "batch")
            contents = [row["content"] for row in rows if row["settled_at"] is None]
            self._may_leave = {name for text in contents for name, *_ in _events_in(text, self.runs_rows)}

    def _note_retry(self, values: Values, moment: int) -> None:
        name, tries = values["event_id"], values["tries"]
        if tries <= self._tries.get(name, 0):
            raise LawBroken(f"{name} waits after try {tries}, and did before")
        self._held_at[name], self._tries[name] = moment, tries
        self._due_tries.append((name, ("retry",)))

    def _note_settled(self, content: str, moment: int) -> None:
        """Note when a batch was done with."""
        for name, run, *_ in _events_in(content, self.runs_rows):
            self._settled_at[run] = moment
            answered, level = self._receiver.answered.get(name, (0, None))
            parts = self._refused.setdefault(run, {})
            parts.pop(name, None)
            was_lost = answered < self.remembered[name].moment  # it went again, and was not answered
            if level is not None and level.name in ("ERROR", "FATAL") and not was_lost:
                parts[name] = moment

    def _note_deleted(self, version: Version, moment: int) -> None:
        if version.next_version is None:
            self._note_letter(version.values["record_id"], DELETED, moment)

    def _note_log(self, values: Values, moment: int) -> None:
        number = values["record_id"]
        if number not in self.rows:
            self.rows[number] = Row(dict(values), [(moment, values["status"])])
        elif self.rows[number].letter != values["status"]:
            self._note_letter(number, values["status"], moment)
        self.rows[number].values.update(values)

    def _note_letter(self, number: int, letter: str, moment: int) -> None:
        row = self.rows[number]
        if letter not in _PROMISED.get(row.letter, ""):
            raise LawBroken(f"row {number} had {row.letter} and gets {letter}")
        if row.letter == "N":
            self._check_finish(number, row, letter)
        process = self._server.world.current
        if letter == "W" and process is not None and process.name.startswith("operator"):
            self.skipped.add(number)
        elif letter == "N":  # redriven: what was answered before does not count any more
            for run in self.runs_of.get(number, ()):
                self._refused.pop(run, None)
                self._tries.pop(run, None)
                self._held_at[run] = moment
        row.letters.append((moment, letter))

    def _note_batch(self, values: Values, moment: int) -> None:
        named = json.loads(values["content"])
        facts = [fact for name, listed in named if name not in _NO_DOCUMENTS for fact in listed]
        self.without_event.update(
            number
            for fact in facts
            if isinstance(fact, dict) and fact.get("sizes") == []
            for number in _rows_in(fact)
        )
        if values["settled_at"] is not None:
            self._note_settled(values["content"], moment)
            return
        if values["epoch"] != self.epoch:
            raise LawBroken(f"epoch {values['epoch']} writes in epoch {self.epoch}")
        for name, run, rows, is_last in _events_in(values["content"], self.runs_rows):
            before = self.remembered.get(name)
            if before is not None and before.rows != rows:
                raise LawBroken(f"{name} has rows {before.rows} and {rows}")
            if name == run and _event_name(rows) != run:
                raise LawBroken(f"{name} is no name of rows {rows}")
            if len({self.rows[number].object for number in rows}) > 1:
                raise LawBroken(f"{name} has rows of several objects")
            self.remembered[name] = Remembered(rows, is_last, moment)
            self._begun.setdefault(run, moment)
            if not is_last:
                self._cut.add(run)
            for number in rows:
                self.runs_of.setdefault(number, {})[run] = None

    @property
    def runs_rows(self) -> dict[str, tuple[int, ...]]:
        """The rows of events as a whole."""
        return {name: event.rows for name, event in self.remembered.items()}

    def recorded(self, run: str) -> RecordedRows:
        """Return an event as the log has it on record."""
        rows = next(part.rows for name, part in self.remembered.items() if run_name(name)[0] == run)
        return RecordedRows(rows, self._begun[run], self._settled_at.get(run, FOREVER), run in self._cut)

    def _note_sent(self, values: Values, moment: int) -> None:
        self.highest = max(self.highest, values["record_id"])

    def _note_state(self, values: Values, moment: int) -> None:
        if values["epoch"] != self.epoch:
            self.epoch = values["epoch"]
            sessions = [s for s in self._server.sessions if s.name == values["session"]]
            if sessions and sessions[0] is not self._server.leader:
                raise LawBroken(f"session {values['session']} leads without the lock")
            self.ruling = sessions[0].owner if sessions else None

    def is_forgotten(self, number: int) -> bool:
        """Return whether a row was deleted and no event had it since it was new last, so that nothing of it
        is left on record.
        """
        row = self.rows[number]
        if row.letter != DELETED:
            return False
        new_at = max(moment for moment, letter in row.letters if letter == "N")
        runs = self.runs_of.get(number, ())
        return not any(
            run_of(event)[0] in runs and moment >= new_at for moment, event, _ in self._receiver.sent
        )

    # --- laws that hold at each moment

    def check_mark(self, mark: int, rows: list[Values]) -> None:
        """Check that what a snapshot has pending is above a leader's mark, or it would come a minute late.

        A row that is logged by hand may have its number long before.
        """
        for row in rows:
            number = row["record_id"]
            if number <= mark and row["status"] == "N" and not self.rows[number].is_by_hand:
                raise LawBroken(f"row {number} is pending, and nothing up to {mark} is read")

    def _check_finish(self, number: int, row: Row, letter: str) -> None:
        """A row of an event is finished only after its document was answered."""
        runs = [run for run in self.runs_of.get(number, ()) if run in self._departures]
        if letter == "W" or row.values["perpetrator"] == OWN_USER:
            return
        if row.is_unreadable and letter in ("S", DELETED):
            raise LawBroken(f"row {number} got {letter}, and it names no object")
        if not runs:
            if letter in ("E", "F") and not (row.is_unreadable or self.is_refused_by_server(number)):
                raise LawBroken(f"row {number} was refused")
            if letter in ("S", DELETED) and row.values["event_type"] < 5 and not self._is_superseded(row):
                raise LawBroken(f"row {number} got {letter}, and no event has it")
            return
        levels = [level for run in runs for level in self.levels(run)]
        latest = max(runs, key=lambda run: self._departures[run])
        begun = self.remembered[latest].moment  # a part that was remembered before is none of it by now
        parts = self._refused.get(latest, {}).items()
        refused = [(name, settled) for name, settled in parts if self.remembered[name].moment >= begun]
        held_at = self._held_at.get(latest, -1)
        is_refused = any(max(self.remembered[name].moment, held_at) < settled for name, settled in refused)
        is_whole = all(self.rows[number].object != row.object for number in self.skipped)  # else rows go anew
        if letter in ("S", DELETED) and is_refused and is_whole:
            raise LawBroken(f"row {number} got {letter}, and the receiver refused a part of {latest}")
        went_anew = not is_whole or self._is_superseded(row)  # with later rows, after it was held back
        has_event = not went_anew and row.values["event_type"] in (1, 3, 4)
        if not levels and has_event:
            raise LawBroken(f"row {number} got {letter} before an answer to {', '.join(runs)}")
        if letter == "S" and has_event and latest in self._tries:
            self._due_tries.append((latest, ("success",)))

    def is_refused_by_server(self, number: int) -> bool:
        """Return whether the row is refused because its current row could not be read."""
        return any(
            version.values["record_id"] == number and REFUSAL in version.values["reason"]
            for version in self._server.store.tables["failed"].versions
        )

    def levels(self, run: str) -> Iterator[Any]:
        """Yield the levels of the answers to an event's parts, and of parts that are on a sink's record."""
        for name in self.remembered:
            if name == run or name.startswith(f"{run}."):
                if name in self._receiver.answered:
                    yield self._receiver.answered[name][1]
                elif self._receiver.recorded and any(a.event.name == name for a in self._receiver.arrivals):
                    yield GOOD[0]

    def _is_superseded(self, row: Row) -> bool:
        """Return whether a row of the object has it read back."""
        return any(r.object == row.object and r.values["event_type"] > 4 for r in self.rows.values())

    def check_arrivals(self) -> None:
        """Check that each event that left was on record before, and was not finished already.

        What a former leader sends, or sent and arrives late, may change an object after all later events.
        """
        late = self._receiver.arrivals[self._checked_arrivals :]
        self.stale |= {arrival.event.object for arrival in late if arrival.sender is not self.ruling}
        self._checked_arrivals += len(late)
        if late:
            self._check_texts(late)
        sent = self._receiver.sent
        while self._checked < len(sent):
            moment, event, sender = sent[self._checked]
            self._checked += 1
            self._departures[run_of(event)[0]] = self._checked
            if sender is not self.ruling:
                self.stale.add(event.object)
                continue
            if self._may_leave is not None and event.name not in self._may_leave:
                raise LawBroken(f"{event.name} left in a pause")
            self._check_wait(event, moment)
            remembered = self.remembered.get(event.name)
            if remembered is None:
                raise LawBroken(f"{event.name} left, and was not on record")
            if remembered.rows[-1] > self.highest:
                raise LawBroken(f"{event.name} left, and {self.highest} is the highest on record")
            if self.rows[remembered.rows[0]].object != event.object:
                raise LawBroken(f"{event.name} is about {event.object}")
            if all(self._was_finished(number, moment) for number in remembered.rows):
                raise LawBroken(f"{event.name} left again after it was finished")

    def _check_texts(self, arrivals: list[Arrival]) -> None:
        """Check that exactly the texts that came are on record; where rows are deleted a former leader's are
        not."""
        contents = [row["content"] for row in self._server.store.rows(self._server.begin(), "batch")]
        on_record = frozenset[bytes]().union(*map(_digests_in, contents))
        for arrival in arrivals:
            is_due = self.keeps_tries or arrival.sender is self.ruling
            digest = hashlib.blake2b(arrival.event.text.encode(), digest_size=8).digest()
            if is_due and digest not in on_record:
                raise LawBroken(f"{arrival.event.name} came, and its text is not on record")

    def _check_wait(self, event: Event, moment: int) -> None:
        """An event that was answered with retry goes again only after a wait."""
        answered, level = self._receiver.answered.get(event.name, (0, None))
        run = run_of(event)[0]
        settled, remembered = self._settled_at.get(run, 0), self.remembered.get(event.name)
        is_interrupted = remembered is not None and remembered.moment == settled  # the answer was lost
        is_settled = answered < settled <= moment and not is_interrupted
        if level is RETRY and is_settled and self._held_at.get(run, 0) < answered:
            raise LawBroken(f"{event.name} was answered retry, and goes again without a wait")

    def _was_finished(self, number: int, moment: int) -> bool:
        letters = [letter for since, letter in self.rows[number].letters if since <= moment]
        return bool(letters) and letters[-1] in ("S", DELETED)


def _place(values: Values) -> tuple[int, int]:
    """Return the place of an answer."""
    return values["batch"], values["part"]


def _events_in(
    content: str, runs_rows: dict[str, tuple[int, ...]]
) -> Iterator[tuple[str, str, tuple[int, ...], bool]]:
    """Yield each event of a remembered batch: its name, that of its first part, its rows, whether it ends."""
    rows_of = dict(runs_rows)
    for document, facts in json.loads(content):
        if document in _NO_DOCUMENTS:
            continue
        for run, rows, _, *further in chain.from_iterable(map(_plain_facts, facts)):
            part, has_more = further[1:3] if further[1:] else (1, False)
            numbers = tuple(rows) or rows_of[run]
            rows_of[run] = numbers
            yield (run if part == 1 else f"{run}.{part}"), run, numbers, not has_more


def _plain_facts(fact: Any) -> Iterator[Any]:
    """Yield a fact, or those of many events whose rows are in one."""
    if not isinstance(fact, dict):
        yield fact
        return
    every = _rows_in(fact)
    rows = iter(every)
    each = fact.get("each")
    for size in [each] * (len(every) // each) if each else fact["sizes"]:
        numbers = tuple(islice(rows, size))
        yield _event_name(numbers), numbers, fact["max_changes"]


@cache
def _digests_in(content: str) -> frozenset[bytes]:
    """Return the digests of the texts that a batch has on record."""
    facts = [fact for name, listed in json.loads(content) if name not in _NO_DOCUMENTS for fact in listed]
    written = [fact.get("digests", "") if isinstance(fact, dict) else fact[3] for fact in facts]
    digests = [b64decode(text + "==") for text in written]
    return frozenset(each[at : at + 8] for each in digests for at in range(0, len(each), 8))


def _rows_in(fact: Any) -> list[int]:
    """Return the rows of many events."""
    pairs = zip(fact.get("ranges", ())[::2], fact.get("ranges", ())[1::2], strict=True)
    return fact.get("rows") or [n for first, size in pairs for n in range(first, first + size)]


def _event_name(rows: tuple[int, ...]) -> str:
    if len(rows) == 1:
        return f"eventlog:{rows[0]}"
    digest = hashlib.sha256(",".join(map(str, rows)).encode()).hexdigest()[:8]
    return f"eventlog:{rows[0]}-{rows[-1]}:{digest}"


def run_of(event: Event) -> tuple[str, int]:
    """Return the name of an event as a whole, and which part this one is."""
    return run_name(event.name)


def run_name(event_name: str) -> tuple[str, int]:
    """Return the name of the event as a whole that a part belongs to, and which part it is."""
    log, _, digits = event_name.partition(":")
    name, _, part = digits.partition(".")
    return f"{log}:{name}", int(part or 1)
