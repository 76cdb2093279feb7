"""The laws between what a log has on record and what a receiver has: a join by the digests of texts.

A text that is on record under a digest is at the receiver under the same one, byte for byte. So nothing is
concluded from the rows, and names are read only in texts that match nothing.
"""

from __future__ import annotations

import enum
import hashlib
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import compress
from typing import NamedTuple, Protocol

import numpy as np

from eventlog.audit.delivered import DeliveredDocument
from eventlog.audit.event_text import EVENT_ID, as_written, names_of, rows_named
from eventlog.audit.on_record import ANSWERED, NONE, OF_BACKLOG, Digests, LogOnRecord, fates_of, find
from eventlog.core.plurals import quantity
from eventlog.core.portions import portions
from eventlog.core.text_digest import digest
from eventlog.fold.by_column.vectors import Flags, Ints, begins

_LEVELS = ("", "success", "warning", "none", "retry", "error", "fatal")  # of answers, the worst last
_LETTERS = {"success": "S", "warning": "W", "error": "E", "fatal": "F"}
_NO_ANSWER = _LEVELS.index("none")
_NOWHERE = int(np.iinfo(np.int64).max)
_AT_ONCE = 20_000  # texts that are looked up together


class StateOfEvents(Protocol):
    """A comparison of what events make of objects."""

    def add(self, texts: Sequence[bytes], levels: Sequence[str], are_late: Flags) -> None:
        """Take the texts of events in the order in which they came, each in our spelling."""


ObjectsOf = Callable[[Sequence[int]], Mapping[int, str]]  # the names of the objects of rows in the log


class Law(enum.StrEnum):
    """A promise; the value is the promise in words."""

    ACCOUNTED = "every row is in an event on record, or has its reason there"
    DELIVERED = "what is on record as sent is at the receiver, byte for byte"
    EXPLAINED = "the receiver has nothing that is not on record as sent"
    IN_ORDER = "the events of an object came in the order in which they were sent"
    ANSWERED = "a row has the letter of the answer to its event"
    SAME_STATE = "the documents make what the table has"


class Breach(NamedTuple):
    """A place where a law does not hold."""

    law: Law
    record_id: int  # the row, or the first row of the event
    words: str
    object: str = ""  # if the log does not have the row


@dataclass
class AuditReport:
    """The result of an audit."""

    letters: Mapping[str, int] = field(default_factory=dict)
    events: int = 0
    late: int = 0  # events that may have come after the log was read
    not_judged: int = 0  # events whose digest is not on record, or not any more
    spelled_anew: int = 0  # events whose XML has another spelling than what left
    open_laws: dict[Law, str] = field(default_factory=dict)  # that are not judged, and why
    is_purged: bool = False
    is_whole: bool = True  # the receiver still has all its documents
    breach_counts: Counter[Law] = field(default_factory=Counter)
    first_breaches: dict[Law, Breach] = field(default_factory=dict)
    not_compared: list[str] = field(default_factory=list)  # present rows that no document can carry
    faults: list[str] = field(default_factory=list)  # what could not be read
    digest: str = ""

    @property
    def is_good(self) -> bool:
        """Return whether no law is broken, and all could be read."""
        return not (self.first_breaches or self.faults)

    @property
    def rows(self) -> int:
        """Return the number of rows."""
        return sum(self.letters.values())

    def add(self, breaches: Iterable[Breach]) -> None:
        """Count breaches; of each law the one at the first row is kept."""
        for breach in breaches:
            self.breach_counts[breach.law] += 1
            first = self.first_breaches.setdefault(breach.law, breach)
            if breach.record_id < first.record_id:
                self.first_breaches[breach.law] = breach

    def name_objects(self, objects_of: ObjectsOf) -> None:
        """Name the objects of the first breaches."""
        names = objects_of([breach.record_id for breach in self.first_breaches.values()])
        for law, breach in self.first_breaches.items():
            name = names.get(breach.record_id, breach.object)
            self.first_breaches[law] = breach._replace(object=name)


class Unmatched(NamedTuple):
    """An event of a receiver whose text is not on record."""

    where: str
    event_id: str
    object: str


class Arrivals:
    """The events of a receiver, joined with the texts on record as it is read."""

    def __init__(self, log: LogOnRecord, state: StateOfEvents | None = None) -> None:
        self._state = state
        digests = np.sort(log.digests)  # np.unique takes ten times as long
        self.digests: Digests = digests[begins(digests) & (digests != 0)]  # of all texts that may have left
        size = max(1, len(self.digests))
        self.places: Ints = np.full(size, _NOWHERE)  # of the first arrival of each
        self.streams: Ints = np.zeros(size, np.int64)
        self.levels: Ints = np.zeros(size, np.int64)  # of the answer to the last one
        self.unmatched: list[Unmatched] = []
        self.backlog_rows: Ints = np.unique(log.rows[log.owners == OF_BACKLOG])
        self.of_backlogs = array("Q")  # the digests of events of such rows, which are on record as a sum
        self.events = self.late = self.spelled_anew = 0
        self.faults: list[str] = []
        self.total = hashlib.sha256()
        self._stream_numbers: dict[str, int] = {}

    def add(self, documents: Iterable[DeliveredDocument]) -> Iterator[int]:
        """Take documents in their order. Yield how many events were taken so far."""
        for portion in portions(documents, _AT_ONCE, lambda document: len(document.texts), _AT_ONCE):
            self.faults += (document.fault for document in portion if document.fault)
            self._join(portion)
            yield self.events

    def _join(self, documents: Sequence[DeliveredDocument]) -> None:
        texts = [text for document in documents for text in document.texts]
        counts = [len(document.texts) for document in documents]
        owners = np.repeat(np.arange(len(documents)), counts)
        codes = np.array([code for d in documents for code in _codes(d)], np.int64)
        written = b"".join(map(digest, texts))
        self.total.update(written + codes.tobytes())
        digests = np.frombuffer(written, np.uint64)
        at, is_known = find(self.digests, digests)
        odd = np.flatnonzero(~is_known)
        is_late = np.array([d.is_late for d in documents], np.bool_)[owners]
        names = [names_of(texts[place]) for place in odd.tolist()]
        for place in odd.tolist():
            texts[place] = as_written(texts[place])
        first_rows = np.array([rows_named(each.event_id)[0] for each in names], np.int64)
        _, is_summed = find(self.backlog_rows, first_rows)
        self.of_backlogs.extend(digests[odd[is_summed & ~is_late[odd]]].tolist())
        anew = np.frombuffer(b"".join(digest(texts[place]) for place in odd.tolist()), np.uint64)
        at[odd], is_known[odd] = find(self.digests, anew)
        self.spelled_anew += int((is_known[odd] & ~is_summed).sum())
        is_known[odd] &= ~is_summed
        for place, name in compress(
            zip(odd.tolist(), names, strict=True), ~(is_known[odd] | is_summed | is_late[odd])
        ):
            where = documents[owners[place]].where
            self.unmatched.append(Unmatched(where, name.event_id, f"{name.table} {name.table_key}".strip()))
        if self._state is not None:
            levels = [level for d in documents for level in d.levels or ("success",) * len(d.texts)]
            self._state.add(texts, levels, is_late)
        stream_of = [self._stream_numbers.setdefault(d.stream, len(self._stream_numbers)) for d in documents]
        answered = is_known & ~is_late
        self.levels[at[answered]] = codes[answered]
        new = np.flatnonzero(is_known)[::-1]  # of those at one place the first is written last
        new = new[self.places[at[new]] == _NOWHERE]
        self.places[at[new]] = self.events + new
        self.streams[at[new]] = np.array(stream_of, np.int64)[owners[new]]
        self.events += len(texts)
        self.late += int(is_late.sum())
        self.spelled_anew += sum(d.spelled_anew for d in documents)


def _codes(document: DeliveredDocument) -> Sequence[int]:
    """Return the level of each event as a number; 0 where the receiver keeps no answers."""
    if document.levels is None:
        return (0,) * len(document.texts)
    return [_LEVELS.index(level if level in _LEVELS[1:] else "none") for level in document.levels]


def judge(
    log: LogOnRecord, arrivals: Arrivals, report: AuditReport, log_name: str, objects_of: ObjectsOf
) -> None:
    """Check the laws that need no present rows; laws that are open are not checked."""
    letters, counts = np.unique(log.letters, return_counts=True)
    report.letters = dict(zip(letters.tolist(), counts.tolist(), strict=True))
    report.events, report.late = arrivals.events, arrivals.late
    report.spelled_anew, report.faults = arrivals.spelled_anew, [*report.faults, *arrivals.faults]
    join = _Join(log, arrivals, report, log_name, objects_of)
    checks = {
        Law.ACCOUNTED: join.unaccounted,
        Law.DELIVERED: join.undelivered,
        Law.EXPLAINED: join.unexplained,
        Law.IN_ORDER: join.out_of_order,
        Law.ANSWERED: join.wrong_letters,
    }
    for law, check in checks.items():
        if law not in report.open_laws:
            report.add(check())
    total = hashlib.sha256(log.ids.tobytes() + log.letters.tobytes() + log.digests.tobytes())
    total.update(arrivals.total.digest())
    report.digest = total.hexdigest()


class _Join:
    """The rows of a log, with what they had on record last and what came of it."""

    def __init__(
        self, log: LogOnRecord, arrivals: Arrivals, report: AuditReport, log_name: str, objects_of: ObjectsOf
    ) -> None:
        self._log, self._arrivals, self._report = log, arrivals, report
        self._log_name = log_name
        self._objects_of = objects_of
        self._last = log.last_owners
        self._at, self._has_digest = find(arrivals.digests, log.digests)
        self._is_skipped = self._among(log.facts.skipped)
        self._has_reason = self._among(log.facts.reasons)
        self._is_warned = self._among(log.warned)

    def _among(self, record_ids: Iterable[int]) -> Flags:
        """Return which rows are among these."""
        return np.isin(self._log.ids, np.fromiter(record_ids, np.int64))

    def _has(self, *letters: str) -> Flags:
        return np.isin(self._log.letters, letters)

    def _each(self, law: Law, chosen: Flags, words: str) -> Iterator[Breach]:
        """Yield a breach for each of these rows."""
        for place in np.flatnonzero(chosen).tolist():
            letter = str(self._log.letters[place])
            yield Breach(law, int(self._log.ids[place]), f"it is {letter}, and {words}")

    def unaccounted(self) -> Iterator[Breach]:
        """Yield finished rows that are on no record, and rows on record that the log lacks."""
        if self._report.is_purged:
            return
        is_nowhere = (self._last == NONE) & ~self._has_reason & ~self._is_skipped
        finished = self._has("S", "W", "E", "F")
        yield from self._each(Law.ACCOUNTED, is_nowhere & finished, "no event on record has it")
        log = self._log
        _, is_there = log.places_of(log.rows)
        for row in np.unique(log.rows[~is_there]).tolist():
            yield Breach(Law.ACCOUNTED, row, "it is on record, and the log does not have it")

    def undelivered(self) -> Iterator[Breach]:
        """Yield events of finished rows that the receiver lacks, or parts of them."""
        is_demanded = self._has("S", "W") & ~self._is_skipped & (self._last >= 0)
        texts_of: dict[int, list[str]] = {}
        for unmatched in self._arrivals.unmatched:
            texts_of.setdefault(rows_named(unmatched.event_id)[0], []).append(unmatched.where)
        events = np.unique(self._last[is_demanded])
        self._report.not_judged += int((~self._has_digest[events]).sum())
        is_missing = self._has_digest[events] & (self._arrivals.places[self._at[events]] == _NOWHERE)
        missing = set(events[is_missing].tolist())
        for number in self._log.parts.keys() & set(events.tolist()) if self._log.parts else ():
            missing.discard(number)  # the part may have been taken back
            missing.update(part for part in self._log.parts[number] if self._is_missing(part))
        for number in sorted(missing):
            row = int(self._log.first_rows[number])
            changed_texts = texts_of.get(row, ())
            words = f", and {changed_texts[0]} has another text of it" if changed_texts else ""
            yield Breach(Law.DELIVERED, row, f"what left of its event is not at the receiver{words}")
        yield from self._wrong_backlogs()

    def _wrong_backlogs(self) -> Iterator[Breach]:
        """Yield that the documents of backlogs do not come to the sum on record."""
        arrived = np.unique(np.array(self._arrivals.of_backlogs, "<u8"))
        totals = (sum(each) for each in zip(*self._log.backlogs, strict=True))
        rows, documents, total = totals if self._log.backlogs else (0, 0, 0)
        if rows != int((self._log.owners == OF_BACKLOG).sum()):  # a sum was purged, or is not there yet
            self._report.not_judged += len(arrived)
        elif (len(arrived), int(arrived.sum())) != (documents, total % (1 << 64)):
            of = quantity(documents, "document")
            words = f"of {of} of backlogs the receiver has {len(arrived)}"
            if len(arrived) == documents:
                words = f"of {of} of backlogs one has another text at the receiver"
            words += ": compare it with the folder that the backlog wrote"
            yield Breach(Law.DELIVERED, int(self._arrivals.backlog_rows[0]), words)

    def _is_missing(self, number: int) -> bool:
        at = self._at[number]
        return bool(self._has_digest[number] and self._arrivals.places[at] == _NOWHERE)

    def unexplained(self) -> Iterator[Breach]:
        """Yield what the receiver has and the log has not on record as sent."""
        log, unmatched = self._log, self._arrivals.unmatched
        named = np.array([rows_named(event.event_id) for event in unmatched], np.int64).reshape(-1, 2)
        is_there: Flags = np.any(np.isin(named, log.rows), axis=1)
        is_unknown = np.isin(named[:, 0], log.first_rows[log.digests == 0]) | (
            ~is_there & self._report.is_purged
        )
        for at, (where, event_id, name) in enumerate(unmatched):
            parsed = EVENT_ID.fullmatch(event_id)
            if parsed is None:
                words = f"{event_id!r} names no rows"
            elif parsed["log"] != self._log_name:
                words = f"event {event_id} is of another log than {self._log_name}"
            elif is_unknown[at]:
                self._report.not_judged += 1
                continue
            else:
                what = "has another text than what left" if is_there[at] else "is not on record as sent"
                words = f"event {event_id} {what}"
            yield Breach(Law.EXPLAINED, int(named[at, 0]), f"{where}: {words}", name)

    def out_of_order(self) -> Iterator[Breach]:
        """Yield an event that came after one of its object that was sent later.

        Where all came in the order in which they were sent, no object is looked up.
        """
        log, arrivals = self._log, self._arrivals
        sent = np.flatnonzero(self._has_digest)  # without an answer, too: such a text may have come first
        first, last = (np.full(len(arrivals.places), -1, np.int64) for _ in range(2))
        first[self._at[sent[::-1]]], last[self._at[sent]] = sent[::-1], sent
        is_answered = np.isin(np.arange(len(first)), self._at[sent[log.fates[sent] == ANSWERED]])
        arrived = np.flatnonzero((arrivals.places != _NOWHERE) & is_answered)
        arrived = arrived[np.argsort(first[arrived], kind="stable")]
        for stream in np.unique(arrivals.streams[arrived]).tolist():
            of_stream = arrived[arrivals.streams[arrived] == stream]
            places = arrivals.places[of_stream]
            before = np.maximum.accumulate(places) > places  # an earlier one arrived later
            after = np.minimum.accumulate(places[::-1])[::-1] < places
            odd = of_stream[before | after]
            rows = log.first_rows[first[odd]].tolist()
            names = self._objects_of(rows) if rows else {}
            latest: dict[str, int] = {}  # the one of each object that arrived last
            for at, row in zip(odd.tolist(), rows, strict=True):
                former = latest.get(names.get(row, ""))
                if row not in names:
                    continue
                if former is not None and arrivals.places[former] > arrivals.places[at]:
                    if last[former] < first[at]:
                        former_row = int(log.first_rows[first[former]])
                        words = f"its event came after one that was sent later, of row {row}"
                        yield Breach(Law.IN_ORDER, former_row, words, names[row])
                else:
                    latest[names[row]] = at

    def wrong_letters(self) -> Iterator[Breach]:
        """Yield rows whose letter is not the outcome on record, or not the answer that the receiver kept."""
        is_on_record, has_event = self._last != NONE, self._last >= 0
        is_old = has_event & ~np.append(self._has_digest, False)[np.where(has_event, self._last, -1)]
        law = Law.ANSWERED
        yield from self._each(law, ~self._has(*"NSWEF"), "no publisher writes that, so it is not judged")
        yield from self._each(law, self._has("S") & self._has_reason, "it failed by the record")
        yield from self._each(law, self._has("S") & self._is_warned, "it had a warning by the record")
        unwarned = self._has("W") & ~self._is_warned & ~self._is_skipped & is_on_record & ~is_old
        yield from self._each(law, unwarned, "no warning to it is on record")
        unfailed = self._has("E", "F") & ~self._has_reason & is_on_record
        yield from self._each(law, unfailed, "no failure of it is on record")
        is_answered = fates_of(self._last, self._log.fates) == ANSWERED
        new = self._has("N") & has_event & is_answered & ~self._among(self._log.open_rows)
        new &= ~np.isin(self._last, np.unique(self._last[self._is_skipped]))  # the others go anew
        yield from self._each(law, new, "its event was answered")
        yield from self._wrong_answers(has_event & ~self._is_skipped & self._has("S", "W", "E", "F"))

    def _wrong_answers(self, judged: Flags) -> Iterator[Breach]:
        arrivals, levels = self._arrivals, np.zeros(len(self._log.digests), np.int64)
        answered = np.flatnonzero(self._has_digest)
        levels[answered] = arrivals.levels[self._at[answered]]
        for number, parts in self._log.parts.items():
            levels[number] = max((int(levels[part]) for part in parts), default=levels[number])
        for place in np.flatnonzero(judged).tolist() if levels.any() else ():
            level, letter = _LEVELS[levels[self._last[place]]], str(self._log.letters[place])
            if level and _LETTERS.get(level) != letter:
                answer = "nothing" if level == _LEVELS[_NO_ANSWER] else level
                words = f"it is {letter}, and the receiver answered {answer}"
                yield Breach(Law.ANSWERED, int(self._log.ids[place]), words)
