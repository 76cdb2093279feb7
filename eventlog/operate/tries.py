"""Every try of a row with its answer: those on record by themselves, and those that only batches have."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from itertools import accumulate, chain, islice

from eventlog.sql.log.log_admin import LogAdmin
from eventlog.sql.log.log_record import RecordedRow
from eventlog.sql.log.row_tries import Try, was_dropped

NO_ANSWER = "unanswered"  # in place of an answer
LOST = "it may have left, and no answer came"


def all_tries(recorded_tries: Sequence[Try], sendings: Iterable[RecordedRow]) -> list[Try]:
    """Return every try of a row, oldest first, by its tries and its documents on record.

    Return nothing if its only try succeeded.
    """
    with_own_try = {(each.batch, each.event_id) for each in recorded_tries}
    tries = [*recorded_tries]
    for sending in sendings:
        event, at, batch = sending.event, sending.settled_at, sending.batch
        if event is None or at is None or (batch, event.run_id) in with_own_try:
            continue
        if not sending.has_answer:
            tries.append(Try(0, event.run_id, NO_ANSWER, LOST, at, batch))
        elif not (event.has_more_parts or was_dropped(recorded_tries, batch)):
            tries.append(Try(0, event.run_id, "success", "", at, batch))
    if not recorded_tries and [each.answer for each in tries] == ["success"]:
        return []
    tries.sort(key=lambda each: (each.at, each.number))
    numbers = accumulate((each.number for each in tries), _next_number, initial=0)
    numbered = zip(tries, islice(numbers, 1, None), strict=True)
    return [each._replace(number=number) for each, number in numbered]


def _next_number(last: int, recorded: int) -> int:
    return max(last + 1, recorded)


def tries_of_rows(admin: LogAdmin, ids: Collection[int]) -> dict[int, list[Try]]:
    """Return every try of these rows, oldest first."""
    sendings: dict[int, list[RecordedRow]] = {row: [] for row in ids}
    for row, recorded in chain.from_iterable(batch.rows() for batch in admin.settled_with(ids)):
        if row in sendings:
            sendings[row].append(recorded)
    recorded_tries = admin.tries_of(ids)
    return {row: all_tries(recorded_tries.get(row, ()), documents) for row, documents in sendings.items()}


def moment(at: datetime | None) -> str:
    """Return a time of the database's clock for people."""
    return "an unknown time" if at is None else f"{at:%Y-%m-%d %H:%M:%S}Z"


def try_words(answered: Try) -> str:
    """Return the answer to a try, for people."""
    words = f": {answered.words}" if answered.words else ""
    return f"try {answered.number}: {answered.answer}{words}"
