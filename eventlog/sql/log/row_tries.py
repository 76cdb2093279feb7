"""The tries of each row with their answers, except a first success, which the batch has.

A row that was redriven may go in another event, together with other rows. So tries are kept by row, each with
the event that it was. Equal answers to the events of a batch are kept once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from itertools import chain
from typing import Any, NamedTuple

from sqlalchemy.engine import Connection

from eventlog.sql.connect import keepable
from eventlog.sql.queries import Queries
from eventlog.xds.answers import FIRST_TRIES, LAST_TRIES, LONGEST_WORDS

REFUSED = "refused"  # in place of an answer: no event could be made of the row
FAILED_ANSWERS = ("error", "fatal")


class Answered(NamedTuple):
    """The answer to an event, or why no event could be made of a row."""

    event_id: str | None
    rows: Sequence[int]
    answer: str  # success, warning, retry, error, fatal, or refused
    words: str = ""
    at: datetime | None = None  # None: now


class Try(NamedTuple):
    """A try of a row, with its answer."""

    number: int  # of the row, from 1
    event_id: str | None  # None: no event could be made of the row
    answer: str
    words: str
    at: datetime  # when the answer was put on record, by the database's clock
    batch: int  # that has the document


class KeptAnswer(NamedTuple):
    """An answer that some events of a batch had, with these rows."""

    batch: int
    answer: str
    words: str
    at: datetime
    rows: Sequence[tuple[str, int]]  # each with its event


def was_dropped(tries: Sequence[Try], batch: int) -> bool:
    """Return whether the answer of a batch to a row was dropped, because the row has many tries."""
    if len(tries) <= FIRST_TRIES:
        return False
    before, after = tries[FIRST_TRIES - 1 : FIRST_TRIES + 1]
    return before.number + 1 < after.number and before.batch < batch < after.batch


class RowTries:
    """Keeps and forgets the tries of rows, in one transaction, in which no one else does."""

    def __init__(self, connection: Connection, queries: Queries) -> None:
        self._connection = connection
        self._queries = queries

    def keep(self, answers: Iterable[Answered], place_of: Callable[[str | None], int]) -> None:
        """Keep answers to the events of batches. A row keeps its first tries and its last ones."""
        rows_of: dict[int, dict[tuple[str, str, datetime | None], dict[int, str | None]]] = {}
        for event_id, rows, answer, words, at in answers:
            if rows:
                groups = rows_of.setdefault(place_of(event_id), {})
                groups.setdefault((answer, words, at), {}).update(dict.fromkeys(rows, event_id))
        every_group = chain.from_iterable(groups.values() for groups in rows_of.values())
        numbers = self._numbers(chain.from_iterable(every_group))
        tries, dropped = list[dict[str, object]](), list[tuple[int, int, int]]()
        for batch, groups in rows_of.items():
            first_part = 1 + int(self._run("last_part", batch=batch).scalar())
            for part, ((answer, words, at), events) in enumerate(groups.items(), first_part):
                kept_words = keepable(self._connection, words) if words else None
                self._run(
                    "keep_answer", batch=batch, part=part, answer=answer, words=kept_words, answered_at=at
                )
                for row, event_id in events.items():
                    row_tries = numbers.setdefault(row, [])
                    number = row_tries[-1][0] + 1 if row_tries else 1
                    row_tries.append((number, batch))
                    facts: dict[str, object] = {"record_id": row, "try_number": number, "event_id": event_id}
                    tries.append(facts | {"batch": batch, "part": part})
                    if len(row_tries) > FIRST_TRIES + LAST_TRIES:
                        dropped.append((row, *row_tries.pop(FIRST_TRIES)))
        self._queries.run_all(self._connection, "keep_try", tries)
        drops: list[dict[str, Any]] = [{"record_id": row, "try_number": number} for row, number, _ in dropped]
        self._queries.run_all(self._connection, "drop_try", drops)
        self._forget_answers({batch for *_, batch in dropped})

    def keep_failures(self, ids: Iterable[int]) -> None:
        """Keep why rows failed, as far as no try of them has it."""
        failures = [
            row for chunk in self._queries.chunks(ids) for row in self._run("failed_before", ids=chunk).all()
        ]
        last = {row: tries[-1] for row, tries in self.of(row for row, *_ in failures).items()}
        missing = [
            Answered(
                event_id,
                (row,),
                REFUSED if event_id is None else "fatal" if letter == "F" else "error",
                str(reason)[:LONGEST_WORDS],
                at,
            )
            for row, letter, event_id, reason, at in failures
            if event_id is None
            or row not in last
            or (last[row].event_id, last[row].answer in FAILED_ANSWERS) != (event_id, True)
        ]
        if missing:
            place = min(0, int(self._run("first_place").scalar())) - 1
            self.keep(missing, lambda _: place)

    def of(self, ids: Iterable[int]) -> dict[int, list[Try]]:
        """Return the tries of these rows that are on record, oldest first."""
        tries: dict[int, list[Try]] = {}
        for chunk in self._queries.chunks({*ids}):
            for row, number, event_id, answer, words, at, batch in self._run("answers_to", ids=chunk):
                recorded = Try(number, event_id, answer, words or "", at, batch)
                tries.setdefault(int(row), []).append(recorded)
        return tries

    def before(self, batch: int) -> list[KeptAnswer]:
        """Return the answers to the last batch before one that has any."""
        rows = self._run("answers_last", before=batch).all()
        return [
            KeptAnswer(number, answer, words or "", at, self._rows_with(number, part))
            for number, part, answer, words, at in rows
        ]

    def _rows_with(self, batch: int, part: int) -> Sequence[tuple[str, int]]:
        rows = self._run("answered_with", batch=batch, part=part)
        return [(str(event_id or ""), int(row)) for event_id, row in rows]

    def forget(self, ids: Iterable[int]) -> None:
        """Forget the tries of rows, and the answers that no other row had."""
        batches = set[int]()
        for chunk in self._queries.chunks(ids):
            batches.update(int(batch) for _, _, batch, _ in self._run("tries_of", ids=chunk))
            if batches:
                self._run("forget_tries", ids=chunk)
        self._forget_answers(batches)

    def _forget_answers(self, batches: Iterable[int]) -> None:
        """Forget the answers of these batches that no row has any more."""
        for chunk in self._queries.chunks(batches):
            self._run("forget_answers", ids=chunk)

    def _numbers(self, ids: Iterable[int]) -> dict[int, list[tuple[int, int]]]:
        """Return the tries of rows that are on record, each with its number and its batch."""
        numbers: dict[int, list[tuple[int, int]]] = {}
        for chunk in self._queries.chunks({*ids}):
            for row, number, batch, _ in self._run("tries_of", ids=chunk):
                numbers.setdefault(int(row), []).append((int(number), int(batch)))
        return numbers

    def _run(self, name: str, **values: Any) -> Any:
        return self._queries.run(self._connection, name, None, **values)
