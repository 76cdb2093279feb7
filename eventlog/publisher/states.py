"""The states of rows, batches and events, and what moves them: the whole of a delivery on one page.

A row has a letter. Only N is ever picked up, and only a leader gives another letter.

    N    pending, on its way, or held         S W    handled, or without an event      E F    failed

A batch is what is on record in `<log>_batch` before its documents leave, by the leader of an epoch.

    row  batch              what happens                        row       batch
    ───  ─────────────────  ──────────────────────────────────  ────────  ─────────────────────────────
    N    none               picked up, has an event             N         recorded, then it is sent
    N    none               picked up, no event                 S         settled, with the reason
    N    none               picked up, cannot be understood     E         settled
    N    none               redriven since the pick-up          N         none: it is picked up anew
    N    none               a pause, or an event is due         N         none: it is picked up anew
    N    none               the same, further parts of an event N         recorded: they are sent first
    N    recorded           answered, the event is finished     S W E F   settled; forgotten with delete
    N    recorded           answered, further parts follow      N         settled, the next one is recorded
    N    recorded           answered with retry                 N, held   settled, with the answer
    N    recorded           no answer                           N, held   unanswered; the answer settled
    N    recorded           surely not sent                     N         forgotten
    N    recorded           under way, and nothing more leaves  N         recorded until its reply is taken
    N    recorded           a stop before it was sent           N         recorded: it is sent first
    N    recorded           a crash, or another leader          N         adopted under the new epoch
    N    adopted            out by the sink's record            S W E F   settled
    N    adopted            not known to be out                 N         unanswered; recorded, same ids
    N    waiting event      its wait is over                    N         recorded, under the same ids
    E F  settled            redriven by people                  N         settled: a new pick-up
    any  recorded           a leader of a later epoch           as it is  LeadershipLost: nothing written

A cycle of a few rows takes four round trips to a server that takes several statements at once:

    round trip                                        what is durable after it
    ────────────────────────────────────────────────  ───────────────────────────────────────────────────
    begin, facts about the moment, pick up            nothing
    read back, look for DDL, commit                   nothing: it only reads
    begin, demand our epoch, record a batch, commit   which rows leave under which event-ids
    (the documents leave, the receiver answers)       a crash sends the batch again, under the same ids
    begin, demand our epoch, letters, settle, commit  the answers, and with more documents the next batch

A settled batch is what `explain` and the pages read. It has documents, rows without an event, refused rows,
and rows with a warning. Every answer that is no first success is kept by row, in the transaction that
settles the batch. Where rows are deleted it is kept until its row is. Each event has the digest of its text,
so `audit` knows what left. So a text is forgotten only if it cannot have left, or where rows are deleted. Of
a batch without an answer the documents that may have left stay, and are marked as unanswered. A text stays so
once. If the next batch has it, it is on record there, also if that batch does not go. A purge forgets it.

Each document that left has a reply, and replies are taken in the order of the documents. A document without a
reply has not left, or is marked as unanswered: at the end of its batch, or by the leader who adopts it. With
`http-connections` several documents are under way. A stop, an outage or fatal lets nothing more leave, and
the replies to those under way are taken, for `http-timeout` at most. Between two batches nothing is under
way: a pause or an event that is due finds all replies taken. If the journal writes within a batch, what is
under way stays on record. A leader who lost the log hangs up. Documents that are under way at one fault are
one moment: all of them wait, and the second moment without an answer is an outage.

A row changes in the transaction that settles its batch and records the next one (`finish`), or in that of
the people who redrive, skip or purge it. So a row is never handled twice, and an event that may be out keeps
its id. An object has one event under way: later rows of it wait for the answer, in a batch or held.
"""

from __future__ import annotations

from enum import Enum, auto

from eventlog.core.entry import Letter
from eventlog.xds.answers import Level, Status


class EventEnd(Enum):
    """The end of an event, or of a part of it, that was answered."""

    FINISHED = auto()
    RETRY = auto()  # it is sent again
    UNFINISHED = auto()  # its further parts are still to come


# What an answer makes of an event: to its last part, and to a part before others. A receiver that wants a
# part again, or gave up, gets no further parts.
ENDS = {
    Level.SUCCESS: (EventEnd.FINISHED, EventEnd.UNFINISHED),
    Level.WARNING: (EventEnd.FINISHED, EventEnd.UNFINISHED),
    Level.ERROR: (EventEnd.FINISHED, EventEnd.UNFINISHED),
    Level.RETRY: (EventEnd.RETRY, EventEnd.RETRY),
    Level.FATAL: (EventEnd.FINISHED, EventEnd.FINISHED),
}

# The letter of the rows of a finished event, by the worst answer to its parts.
LETTERS = {
    Level.SUCCESS: Letter.SUCCESS,
    Level.WARNING: Letter.WARNING,
    Level.ERROR: Letter.ERROR,
    Level.FATAL: Letter.FATAL,
}
FAILED = (Letter.ERROR, Letter.FATAL)

GOOD = Status(Level.SUCCESS)


def end_of(answer: Status, worst: Status, *, further_parts: bool) -> tuple[EventEnd, Status]:
    """Return the end of an event by its answer and the worst one to earlier parts, and the worse of both."""
    status = answer if answer.level > worst.level else worst
    if further_parts and ENDS[answer.level][True] is EventEnd.UNFINISHED:
        return EventEnd.UNFINISHED, status
    return ENDS[status.level][False], status
