"""The writes of the leader: each transaction first checks that no one else leads by now."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy.engine import Connection

from eventlog.core.entry import Letter
from eventlog.core.errors import EventlogError
from eventlog.core.identity import ObjectName, object_hash
from eventlog.sql.common.dialect import Call
from eventlog.sql.connect import keepable
from eventlog.sql.log.log_record import LogRecord, Notice, NoticeKind, Range, ranges_of
from eventlog.sql.log.receiver_state import ReceiverState
from eventlog.sql.log.row_tries import Answered, RowTries
from eventlog.sql.log.slot_state import SlotState
from eventlog.sql.queries import Queries, pipeline_of

LONG = 100  # ids from which on a range is worth a statement of its own
Spelling = tuple[ObjectName, tuple[str, str]]  # an object, and a table_name and table_key of its rows


class LeadershipLost(EventlogError):
    """another publisher leads this log by now (epoch {0}, ours was {1}): nothing was changed"""


class WaitingEvent(NamedTuple):
    """An event that is sent again later; the later rows of its object are held until then."""

    event_id: str
    table_name: str  # of the object, in its one spelling
    table_key: str
    record_ids: tuple[int, ...]
    max_changes: int  # after how many values it was cut
    tries: int
    next_at: datetime  # in UTC, as the database counts it
    reason: str

    @property
    def object(self) -> ObjectName:
        return self.table_name, self.table_key


class Failure(NamedTuple):
    """The reason why a row has E or F."""

    record_id: int
    event_id: str | None
    reason: str
    document: str | None = None
    tries: int = 1


class PickUpEnded(EventlogError):
    """{0}: the rest of this pick-up is picked up again later"""


# Why a demand is not met; the error of a statement that fails for it contains these words.
PAUSED, REDRIVEN, DUE = "the publisher is paused", "rows were redriven", "events are due again"


class Precondition(NamedTuple):
    """A condition on the log, without which a transaction of the leader is not written."""

    redriven: int | None = None  # the notice of the last redrive that may be, None for any
    leaves: bool = False  # documents leave after it, so the publisher must not be paused
    due: datetime | None = None  # no event may be due by then


NO_PRECONDITION = Precondition()


class LeaderTransaction:
    """One transaction of the leader; nothing of it is visible before it is committed.

    It begins with the first statement whose answer is needed, else all goes to the database together at the
    end. Nothing of it is written if another publisher leads by now, or if a demand is not met.
    """

    def __init__(self, connection: Connection, queries: Queries, epoch: int, demand: Precondition) -> None:
        self._unbegun = connection
        self._queries = queries
        self.epoch = epoch
        self._demands = self._demand_calls(demand)  # by why one is not met
        self._opening = [queries.call("work"), *self._demands.values()]  # none once it is begun
        self.finished = 0  # rows that were still new, once it is committed
        self._finishing: list[Call] = []  # what gives rows their letters, at the end
        self._last_calls: list[Call] = []  # what is written after that, in this order

    def _demand_calls(self, demand: Precondition) -> dict[str, Call]:
        """Return the statements that must return a row, by why one does not."""
        call, (redriven, leaves, due) = self._queries.call, demand
        calls = {PAUSED: call("demand_epoch", epoch=self.epoch, leaves=int(leaves))}
        if redriven is not None:
            calls[REDRIVEN] = call("demand_redrive", redriven=redriven)
        if due is not None:
            calls[DUE] = call("demand_none_due", due=due)
        return calls

    def _begun(self) -> Connection:
        if self._opening:
            _, *answers = self._queries.run_calls(self._unbegun, self._opening)
            self._opening = []
            for reason, rows in zip(self._demands, answers, strict=True):
                if not rows:
                    self.explain_failure(reason)
        return self._unbegun

    def last_calls(self) -> list[Call]:
        """Return the statements that are left to the end."""
        if pipeline_of(self._queries.log.dialect, self._unbegun) is None:
            self._begun()  # the first statements do not fail there
        return [*self._opening, *self._finishing, *self._last_calls]

    def count(self, results: Sequence[Any]) -> None:
        """Count the rows that were finished, by the results of these statements."""
        first = len(self._opening)
        self.finished += sum(results[first : first + len(self._finishing)])

    def explain_failure(self, words: str) -> None:
        """Raise LeadershipLost or PickUpEnded if a statement failed for it, by the words of the database."""
        self._unbegun.rollback()
        epoch = self._queries.run(self._unbegun, "epoch").scalar()
        if epoch != self.epoch:
            raise LeadershipLost(epoch, self.epoch)
        for reason in self._demands:
            if reason in words:
                raise PickUpEnded(reason)

    def latest_redrive(self) -> int:
        """Return the notice of the last redrive, 0 without any; no other one comes before the end."""
        return int(self._queries.run(self._begun(), "latest_redrive").scalar())

    def _write_later(self, name: str, **values: Any) -> None:
        """Run a statement at the end of the transaction, because nothing in it depends on the result."""
        self._last_calls.append(self._queries.call(name, **values))

    def receiver_state(self) -> ReceiverState:
        """Return the state of the receiver, if the log is filled by comparing."""
        return ReceiverState(self._begun(), self._queries)

    def slot(self) -> SlotState:
        """Return the state of the slot, if the log is filled by one."""
        return SlotState(self._begun(), self._queries)

    def write_last(self, calls: Iterable[Call]) -> None:
        """Run statements at the end of the transaction."""
        self._last_calls += calls

    def finish(self, letters: Mapping[Letter, Iterable[int]], *, delete: bool = False) -> None:
        """Give rows their letters. With `delete`, delete those that did not fail."""
        for letter, ids in letters.items():
            if delete and letter not in (Letter.ERROR, Letter.FATAL):
                self._in_ranges("remove", ids)
            else:
                self._in_ranges("finish", ids, letter=str(letter))

    def _in_ranges(self, name: str, ids: Iterable[int], **values: Any) -> None:
        """Run a statement at the end on rows by their ids, on long ranges of them at once."""
        log, call = self._queries.log, self._queries.call
        allows_ranges = log.ranged and (name != "finish" or log.dialect.statements.updates_ranges)
        ranges, single_ids = long_ranges(ids) if allows_ranges else ([], ids)
        self._finishing += [call(f"{name}_range", low=low, high=high, **values) for low, high in ranges]
        self._finishing += [call(name, ids=chunk, **values) for chunk in self._queries.chunks(single_ids)]

    def fail(self, failures: Iterable[Failure]) -> None:
        """Keep why pending rows fail, in place of what was kept before."""
        failures = list(failures)
        if not failures:
            return
        pending = {
            int(row)
            for chunk in self._queries.chunks(failure.record_id for failure in failures)
            for (row,) in self._queries.run(self._begun(), "pending_among", ids=chunk)
        }
        failed = [failure for failure in failures if failure.record_id in pending]
        self._queries.run_by_ids(self._begun(), "forget_failure", (f.record_id for f in failed))
        self._queries.run_all(self._begun(), "fail", [self._storable(failure) for failure in failed])

    def _storable(self, failure: Failure) -> dict[str, Any]:
        document = failure.document and keepable(self._begun(), failure.document)
        reason = keepable(self._begun(), failure.reason)
        return failure._replace(reason=reason, document=document)._asdict()

    def keep_tries(
        self, answers: Sequence[Answered], place_of: Callable[[str | None], int], *, delete: bool
    ) -> None:
        """Keep answers to events, each with the batch that has the document on record.

        With `delete`, rows of an event may be gone, because they were finished without it.
        """
        if answers and delete:
            chunks = self._queries.chunks({row for each in answers for row in each.rows})
            results = (self._queries.run(self._begun(), "spelled_by_id", ids=chunk) for chunk in chunks)
            present = {int(row) for rows in results for row, *_ in rows}
            answers = [each._replace(rows=[*present.intersection(each.rows)]) for each in answers]
        if answers:
            RowTries(self._begun(), self._queries).keep(answers, place_of)

    def forget_tries(self, ids: Collection[int]) -> None:
        """Forget the tries of rows that are deleted."""
        if ids:
            RowTries(self._begun(), self._queries).forget(ids)

    def remember(self, number: int, content: str, rows: Range) -> None:
        """Keep what is about to go out, and between which record_ids its rows are."""
        first, last = rows
        self._write_later(
            "remember", batch=number, epoch=self.epoch, first_id=first, last_id=last, content=content
        )

    def note_highest(self, record_id: int, former: int = 0) -> None:
        """Keep the highest record_id that went out, in place of a former one."""
        self._write_later("note_highest", highest=record_id)
        self._write_later("forget_lower", former=former, highest=record_id)

    def note(self, notice: Notice) -> None:
        """Leave a notice."""
        LogRecord(self._begun(), self._queries).note(notice)

    def note_published(self, words: str) -> None:
        """Leave a notice of what is published from now on, unless it is what the last one has."""
        record = LogRecord(self._begun(), self._queries)
        if [notice.words for notice in record.notices_of(NoticeKind.PUBLISH, 1)] != [words]:
            record.note(Notice(NoticeKind.PUBLISH, words=words))

    def passing_tables(self) -> set[str]:
        """Return the tables whose next poll may delete any number of objects."""
        last_kinds = dict(self._queries.run(self._begun(), "brake_noted").all())
        return {str(name) for name, kind in last_kinds.items() if kind == "resume"}

    def adopt(self) -> None:
        """Make what a former leader remembered our own."""
        self._queries.run(self._begun(), "adopt", epoch=self.epoch)

    def settle_batch(self, number: int) -> None:
        """Keep a batch, after its rows were finished, as the record of what became of them."""
        self._write_later("settle", batch=number)

    def forget_batch(self, number: int) -> None:
        """Forget a batch whose rows wait, or are deleted."""
        self._write_later("forget_batch", batch=number)

    def hold_events(self, waiting: Sequence[WaitingEvent]) -> None:
        """Keep events for later, and hold their objects under every spelling that their rows have.

        Each takes the place of what was kept of it before.
        """
        rows = [
            event._asdict()
            | {
                "record_ids": json.dumps(event.record_ids),
                "object_hash": object_hash(*event.object),
                "first_id": min(event.record_ids),
                "reason": keepable(self._begun(), event.reason),
            }
            for event in waiting
        ]
        if rows:
            self._queries.run_all(self._begun(), "forget_event", [_of_event(row) for row in rows])
            self._queries.run_all(self._begun(), "hold", rows)
            self.hold_spellings(self._spellings(waiting))

    def hold_spellings(self, spellings: Iterable[Spelling]) -> None:
        """Hold objects under these spellings too, so that no pick-up reads their rows."""
        rows = [
            {
                "object_hash": object_hash(*name),
                "spelling_hash": object_hash(table_name, table_key),
                "table_name": table_name,
                "table_key": table_key,
            }
            for name, (table_name, table_key) in dict.fromkeys(spellings)
        ]
        hashes = [{name: row[name] for name in ("object_hash", "spelling_hash")} for row in rows]
        if rows:
            self._queries.run_all(self._begun(), "forget_spelling", hashes)
            self._queries.run_all(self._begun(), "hold_spelling", rows)

    def _spellings(self, waiting: Sequence[WaitingEvent]) -> Iterator[Spelling]:
        objects = {row: event.object for event in waiting for row in event.record_ids}
        for event in waiting:
            yield event.object, event.object
        for chunk in self._queries.chunks(objects):
            for row, *names in self._queries.run(self._begun(), "spelled_by_id", ids=chunk):
                yield objects[row], (str(names[0]), str(names[1]))

    def release_events(self, events: Iterable[tuple[ObjectName, str]]) -> None:
        """Forget events; an object goes on where it has no other that waits."""
        rows = [{"object_hash": object_hash(*name), "event_id": event_id} for name, event_id in events]
        objects = [{"object_hash": row["object_hash"]} for row in rows]
        if rows:
            self._queries.run_all(self._begun(), "forget_event", rows)
            self._queries.run_all(self._begun(), "forget_spellings", objects)

    def end_waits(self, reasons: Collection[str]) -> None:
        """Make the events due that wait for one of these reasons, as they are on record."""
        texts = {keepable(self._begun(), reason) for reason in reasons}
        for event_id, hashed, reason in self._queries.run(self._begun(), "retry_reasons").all():
            if reason in texts:
                self._write_later("try_now", object_hash=hashed, event_id=event_id)

    def rename(self, object_of: Callable[[str, str], ObjectName]) -> None:
        """Give every hold the name that its object has by now; holds that become one keep their events."""
        moved: dict[str, ObjectName] = {}
        changes = []
        for former_hash, first, _, *names, record_ids in self._queries.run(
            self._begun(), "every_retry"
        ).all():
            name = object_of(*names)
            new_hash, new_first = object_hash(*name), min(json.loads(record_ids))
            if (new_hash, new_first) != (former_hash, first):
                columns = {
                    "table_name": name[0],
                    "table_key": name[1],
                    "new_hash": new_hash,
                    "new_id": new_first,
                }
                changes.append(columns | {"object_hash": former_hash, "first_id": first})
            if new_hash != former_hash:
                moved[former_hash] = name
        self._queries.run_all(self._begun(), "rename_retry", changes)
        for former_hash, name in moved.items():
            rows = self._queries.run(self._begun(), "spellings_of", object_hash=former_hash).all()
            self.hold_spellings([(name, name), *((name, (table, key)) for table, key in rows)])
            self._queries.run(self._begun(), "forget_spellings", object_hash=former_hash)

    def record_cycle(self, facts: str) -> None:
        """Keep the facts of the last cycle for `status`."""
        self._write_later("record_cycle", facts=facts)

    def record_rest(self) -> None:
        """Keep that the publisher rests, because it is paused."""
        self._write_later("record_rest")

    def record_settings(self, settings: str) -> None:
        """Keep the settings by which this leader publishes."""
        self._write_later("record_settings", settings=settings)

    def record_heartbeat(self) -> None:
        self._write_later("record_heartbeat")


def _of_event(row: Mapping[str, object]) -> dict[str, object]:
    return {name: row[name] for name in ("object_hash", "event_id")}


def long_ranges(ids: Iterable[int]) -> tuple[list[Range], list[int]]:
    """Return the ranges of ids that are worth a statement of their own, and the ids in none of them.

    The last id of a range is not in it, and is finished after it, because InnoDB waits for a writer of the
    row that follows the deleted ones.
    """
    ranges = ranges_of(ids)
    long = [(low, high - 1) for low, high in ranges if high - low >= LONG]
    outside = (range(high if high - low >= LONG else low, high + 1) for low, high in ranges)
    return long, [number for ids_outside in outside for number in ids_outside]
