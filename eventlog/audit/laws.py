"""The laws between what a log has on record and what a receiver has: a join by the digests of texts.

A text that is on record under a digest is at the receiver under the same one, byte for byte. So nothing is
concluded from the rows, and names are read only in texts that match nothing.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, compress
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from eventlog.audit.audit_report import AuditReport, Breach, Law, ObjectsOf
from eventlog.audit.backlog_arrivals import BacklogArrivals
from eventlog.audit.delivered import DeliveredDocument
from eventlog.audit.event_text import EVENT_ID, as_written, event_id_of, names_of, rows_named
from eventlog.audit.on_record import (
    ANSWERED,
    MISNAMED,
    NONE,
    Digests,
    LogOnRecord,
    fates_of,
    find,
    hash_of_name,
)
from eventlog.core.plurals import quantity
from eventlog.core.portions import portions
from eventlog.core.text_digest import digest
from eventlog.fold.by_column.vectors import Flags, Ints

_LEVELS = ("", "success", "warning", "none", "retry", "error", "fatal")  # of answers, the worst last
_LETTERS = {"success": "S", "warning": "W", "error": "E", "fatal": "F"}
_NO_ANSWER = _LEVELS.index("none")
_NOWHERE = int(np.iinfo(np.int64).max)
_AT_ONCE, _BYTES = 20_000, 8 << 20  # documents that are looked up together, and how long their texts are


class StateOfEvents(Protocol):
    """A comparison of what events make of objects."""

    def add(self, texts: Sequence[bytes], levels: Sequence[str], are_late: Flags) -> None:
        """Take the texts of events in the order in which they came, each in our spelling."""


class Unmatched(NamedTuple):
    """An event of a receiver whose text is not on record."""

    where: str
    event_id: str
    object: str


class Arrivals:
    """The events of a receiver, joined with the texts on record as it is read."""

    def __init__(self, log: LogOnRecord, state: StateOfEvents | None = None) -> None:
        self._state = state
        self.digests = _sorted_digests(log)  # of all texts that may have left
        size = max(1, len(self.digests))
        self.places: Ints = log.memory.full(size, _NOWHERE, np.int64)  # of the first arrival of each
        self.streams: Ints = log.memory.full(size, 0, np.int32)
        self.levels: Ints = log.memory.full(size, 0, np.int8)  # of the answer to the last one
        self.names = _names_on_record(log, self.digests)  # then those of arrivals, where they differ
        self.unmatched: list[Unmatched] = []
        self.of_backlogs = BacklogArrivals(log)
        self.events = self.late = self.spelled_anew = 0
        self.faults: list[str] = []
        self.totals = hashlib.sha256(), hashlib.sha256()  # of all digests, and of the levels of all answers
        self._stream_numbers: dict[str, int] = {}

    def add(self, documents: Iterable[DeliveredDocument]) -> Iterator[int]:
        """Take documents in their order. Yield how many events were taken so far."""
        for portion in portions(documents, _AT_ONCE, lambda document: sum(map(len, document.texts)), _BYTES):
            self.faults += (document.fault for document in portion if document.fault)
            self._join(portion)
            yield self.events

    def _join(self, documents: Sequence[DeliveredDocument]) -> None:
        texts = [text for document in documents for text in document.texts]
        counts = [len(document.texts) for document in documents]
        owners = np.repeat(np.arange(len(documents)), counts)
        codes = np.array([code for d in documents for code in _codes(d)], np.int64)
        written = b"".join(map(digest, texts))
        for total, column in zip(self.totals, (written, codes.tobytes()), strict=True):
            total.update(column)
        digests = np.frombuffer(written, np.uint64)
        at, is_known = find(self.digests, digests)
        odd = np.flatnonzero(~is_known)
        is_late = np.array([d.is_late for d in documents], np.bool_)[owners]
        names = [names_of(texts[place]) for place in odd.tolist()]
        for place in odd.tolist():
            texts[place] = as_written(texts[place])
        first_rows = np.array([rows_named(each.event_id)[0] for each in names], np.int64)
        _, is_summed = find(self.of_backlogs.rows, first_rows)
        begins_with_row = is_known & self.of_backlogs.are_earlier(digests)
        begins_with_row[odd] = is_summed
        chosen = np.flatnonzero(begins_with_row & ~is_late)
        chosen_texts = [texts[place] for place in chosen.tolist()]
        self.of_backlogs.add(digests[chosen], chosen_texts, is_known[chosen])
        anew = np.frombuffer(b"".join(digest(texts[place]) for place in odd.tolist()), np.uint64)
        at[odd], is_known[odd] = find(self.digests, anew)
        self.spelled_anew += int((is_known[odd] & ~is_summed).sum())
        is_known[odd] &= ~is_summed
        for place, name in compress(
            zip(odd.tolist(), names, strict=True), ~(is_known[odd] | is_summed | is_late[odd])
        ):
            where = documents[owners[place]].where
            self.unmatched.append(Unmatched(where, name.event_id, f"{name.table} {name.table_key}".strip()))
        named = np.flatnonzero(is_known)
        named = named[self.names[at[named]] != 0]
        for place, of_text in zip(named.tolist(), at[named].tolist(), strict=True):
            self.names[of_text] = _name_in(texts[place], int(self.names[of_text]))
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


def _sorted_digests(log: LogOnRecord) -> Digests:
    """Return all digests on record, each once, ascending."""
    digests: Digests = log.memory.full(len(log.digests) - log.early, 0, np.uint64)
    digests[:] = log.digests[log.early :]
    digests.sort()  # in its place, where that may be on disk
    last = ~digests[:1]

    def are_new(part: slice) -> Flags:
        nonlocal last
        differ: Flags = np.diff(digests[part], prepend=last) != 0
        last = digests[part.stop - 1 : part.stop]
        return differ

    (unique_digests,) = log.memory.keep((digests,), are_new)
    return unique_digests


def _names_on_record(log: LogOnRecord, digests: Digests) -> npt.NDArray[np.int32]:
    """Return the hash of the event-id that each text has by the record, 0 where it is not compared."""
    names: npt.NDArray[np.int32] = log.memory.full(max(1, len(digests)), 0, np.int32)
    for part in log.memory.blocks(len(log.names)):
        alone = np.flatnonzero(log.names[part])
        places, is_there = find(digests, log.digests[part][alone])
        names[places[is_there]] = log.names[part][alone[is_there]]
    return names


def _name_in(text: bytes, expected: int) -> int:
    """Return the hash of a text's event-id, or the expected one if the text has none."""
    if hash_of_name(event_id_of(text)) == expected:
        return expected
    event_id = names_of(text).event_id
    return hash_of_name(event_id) if event_id else expected


def _codes(document: DeliveredDocument) -> Sequence[int]:
    """Return the level of each event as a number; 0 where the receiver keeps no answers."""
    if document.levels is None:
        return (0,) * len(document.texts)
    return [_LEVELS.index(level if level in _LEVELS[1:] else "none") for level in document.levels]


def judge(
    log: LogOnRecord, arrivals: Arrivals, report: AuditReport, log_name: str, objects_of: ObjectsOf
) -> None:
    """Check the laws that need no present rows; laws that are open are not checked."""
    letter_counts = Counter[str]()
    for part in log.memory.blocks(len(log.letters)):
        letters, counts = np.unique(log.letters[part], return_counts=True)
        letter_counts.update(dict(zip(letters.tolist(), counts.tolist(), strict=True)))
    report.letters = dict(sorted(letter_counts.items()))
    report.events, report.late = arrivals.events, arrivals.late
    report.spelled_anew, report.faults = arrivals.spelled_anew, [*report.faults, *arrivals.faults]
    join = _Join(log, arrivals, report, log_name, objects_of)
    checks: dict[Law, Callable[[], Iterator[Breach]]] = {
        Law.ACCOUNTED: lambda: chain(join.unaccounted(), join.misnamed()),
        Law.DELIVERED: join.undelivered,
        Law.EXPLAINED: join.unexplained,
        Law.IN_ORDER: join.out_of_order,
        Law.ANSWERED: join.wrong_letters,
    }
    for law, check in checks.items():
        if law not in report.open_laws:
            report.add(check())
    if report.not_judged:
        words = f"{quantity(report.not_judged, 'event')} not judged"
        for law in (Law.DELIVERED, Law.EXPLAINED):
            if law not in report.first_breaches:
                report.open_laws.setdefault(law, words)
    total = hashlib.sha256()
    for column in (log.ids, log.letters.view(np.uint8), log.digests):
        total.update(column.data)
    for arrived in arrivals.totals:
        total.update(arrived.digest())
    report.digest = total.hexdigest()


class _Rows(NamedTuple):
    """A part of the rows of a log."""

    ids: Ints
    letters: npt.NDArray[Any]
    last: Ints  # the event that each had on record last

    def have(self, *letters: str) -> Flags:
        """Return which rows have one of these letters."""
        return np.isin(self.letters, letters)

    def are_among(self, record_ids: Ints) -> Flags:
        """Return which rows are among these, which are ascending."""
        return find(record_ids, self.ids)[1]


class _Join:
    """The rows of a log, with what they had on record last and what came of it."""

    def __init__(
        self, log: LogOnRecord, arrivals: Arrivals, report: AuditReport, log_name: str, objects_of: ObjectsOf
    ) -> None:
        self._log, self._arrivals, self._report = log, arrivals, report
        self._log_name = log_name
        self._objects_of = objects_of
        self._blocks = log.memory.blocks
        self._last = log.last_owners
        self._at: Ints = log.memory.full(len(log.digests), 0, np.int32)
        self._has_digest: Flags = log.memory.full(len(log.digests), False, np.bool_)
        for part in self._blocks(len(log.digests)):
            self._at[part], self._has_digest[part] = find(arrivals.digests, log.digests[part])
        self._has_digest[: log.early] = False
        self._not_judged: Ints = np.empty(0, np.int64)  # the first rows of early events that are demanded
        facts = log.facts
        self._skipped, self._reasons, self._refused, self._tried, self._warned = (
            np.array(sorted(rows), np.int64)
            for rows in (facts.skipped, facts.reasons, facts.refused, facts.tried, log.warned)
        )

    def _rows(self) -> Iterator[_Rows]:
        """Yield all rows of the log, many at once."""
        for part in self._blocks(len(self._log.ids)):
            yield _Rows(self._log.ids[part], self._log.letters[part], self._last[part])

    def unaccounted(self) -> Iterator[Breach]:
        """Yield finished rows that are on no record, and rows on record that the log lacks."""
        if self._report.is_purged:
            return
        for rows in self._rows():
            is_nowhere = (rows.last == NONE) & ~rows.are_among(self._reasons) & ~rows.are_among(self._skipped)
            yield from _each(
                Law.ACCOUNTED, rows, is_nowhere & rows.have("S", "W", "E", "F"), "no event on record has it"
            )
        absent = set[int]()
        for part in self._blocks(len(self._log.rows)):
            recorded_rows = self._log.rows[part]
            absent.update(recorded_rows[~self._log.places_of(recorded_rows)[1]].tolist())
        for row in sorted(absent):
            yield Breach(Law.ACCOUNTED, row, "it is on record, and the log does not have it")

    def misnamed(self) -> Iterator[Breach]:
        """Yield events whose id on record is not that of their rows, or not that of their text."""
        log, arrivals = self._log, self._arrivals
        for part in self._blocks(len(log.names)):
            names, at = log.names[part], self._at[part]
            has_text = self._has_digest[part] & (arrivals.places[at] != _NOWHERE)
            wrong = (names == MISNAMED) | ((names != 0) & has_text & (names != arrivals.names[at]))
            for row in log.first_rows[part][wrong].tolist():
                yield Breach(Law.ACCOUNTED, row, "its event has another event-id on record than when it left")

    def undelivered(self) -> Iterator[Breach]:
        """Yield events of finished rows that the receiver lacks, or parts of them."""
        texts_of: dict[int, list[str]] = {}
        for unmatched in self._arrivals.unmatched:
            texts_of.setdefault(rows_named(unmatched.event_id)[0], []).append(unmatched.where)
        is_demanded: Flags = self._log.memory.full(len(self._at), False, np.bool_)
        for rows in self._rows():
            chosen = rows.have("S", "W") & ~rows.are_among(self._skipped) & (rows.last >= 0)
            is_demanded[rows.last[chosen]] = True
        missing = set[int]()
        self._not_judged = self._log.first_rows[: self._log.early][is_demanded[: self._log.early]]
        self._report.not_judged += len(self._not_judged)
        for part in self._blocks(len(self._at)):
            is_missing = self._has_digest[part] & (self._arrivals.places[self._at[part]] == _NOWHERE)
            missing.update((np.flatnonzero(is_demanded[part] & is_missing) + part.start).tolist())
        for number in (number for number in self._log.parts if is_demanded[number]):
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
        backlogs = self._arrivals.of_backlogs
        if backlogs.rows_summed != len(backlogs.rows):  # a sum was purged, or is not there yet
            if self._report.is_purged:
                self._report.without_record += backlogs.count
            else:
                self._report.not_judged += backlogs.count
        elif fault := backlogs.fault():
            words = f"{fault}: compare it with the folder that the backlog wrote"
            yield Breach(Law.DELIVERED, int(backlogs.rows[0]), words)

    def _is_missing(self, number: int) -> bool:
        at = self._at[number]
        return bool(self._has_digest[number] and self._arrivals.places[at] == _NOWHERE)

    def unexplained(self) -> Iterator[Breach]:
        """Yield what the receiver has and the log has not on record as sent."""
        log, unmatched = self._log, self._arrivals.unmatched
        named = np.array([rows_named(event.event_id) for event in unmatched], np.int64).reshape(-1, 2)
        on_record = (log.rows[part] for part in self._blocks(len(log.rows)))
        is_there: Flags = np.any(_are_in(named, on_record), axis=1)
        is_early = _are_in(named[:, 0], [log.first_rows[: log.early]])
        is_counted = _are_in(named[:, 0], [self._not_judged])
        is_tried: Flags = np.any(_are_in(named, [self._tried]), axis=1)
        for at, (where, event_id, name) in enumerate(unmatched):
            parsed = EVENT_ID.fullmatch(event_id)
            if parsed is None:
                words = f"{event_id!r} names no rows"
            elif parsed["log"] != self._log_name:
                words = f"event {event_id} is of another log than {self._log_name}"
            elif is_early[at]:
                self._report.not_judged += not is_counted[at]
                continue
            elif self._report.is_purged and (is_tried[at] or not is_there[at]):
                self._report.without_record += 1
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
        first, last = (log.memory.full(len(arrivals.places), -1, np.int32) for _ in range(2))
        is_answered: Flags = log.memory.full(len(first), False, np.bool_)
        parts = [*self._blocks(len(self._at))]
        for part in parts:
            sent = np.flatnonzero(self._has_digest[part])  # without an answer, too: it may have come first
            at = self._at[part][sent]
            last[at] = sent + part.start
            is_answered[at[log.fates[part][sent] == ANSWERED]] = True
            at, sent = at[::-1], sent[::-1]  # of those at one place the first is written last
            is_new = first[at] < 0
            first[at[is_new]] = sent[is_new] + part.start
        odd = set[int]()
        for step in (1, -1):  # one that was sent earlier arrived later, and the other way
            limits: dict[int, int] = {}
            for part in parts[::step]:
                at = self._at[part]
                chosen = first[at] == np.arange(part.start, part.stop)
                chosen &= self._has_digest[part] & is_answered[at] & (arrivals.places[at] != _NOWHERE)
                at = at[chosen][::step]
                for stream in np.unique(arrivals.streams[at]).tolist():
                    of_stream = at[arrivals.streams[at] == stream]
                    places = step * arrivals.places[of_stream]
                    reached = np.maximum.accumulate(np.append(limits.get(stream, -_NOWHERE), places))
                    limits[stream] = int(reached[-1])
                    odd.update(of_stream[reached[1:] > places].tolist())
        ordered = np.array(sorted(odd, key=lambda at: int(first[at])), np.int64)
        rows = log.first_rows[first[ordered]].tolist()
        names = self._objects_of(rows) if rows else {}
        latest: dict[tuple[int, str], int] = {}  # the one of each object that arrived last
        for at, row in zip(ordered.tolist(), rows, strict=True):
            if row not in names:
                continue
            name = int(arrivals.streams[at]), names[row]
            former = latest.get(name)
            if former is None or arrivals.places[former] < arrivals.places[at]:
                latest[name] = at
            elif last[former] < first[at]:
                words = f"its event came after one that was sent later, of row {row}"
                yield Breach(Law.IN_ORDER, int(log.first_rows[first[former]]), words, names[row])

    def wrong_letters(self) -> Iterator[Breach]:
        """Yield rows whose letter is not the outcome on record, or not the answer that the receiver kept."""
        open_rows = np.array(sorted(self._log.open_rows), np.int64)
        places, is_there = self._log.places_of(self._skipped)
        anew = self._last[places[is_there]]  # events with a skipped row; the others go anew
        levels = self._levels()
        for rows in self._rows():
            is_on_record, has_event = rows.last != NONE, rows.last >= 0
            owners = np.where(has_event, rows.last, 0)
            is_old = has_event & ~self._has_digest[owners] if len(levels) else has_event
            failed, warned, skipped = map(rows.are_among, (self._reasons, self._warned, self._skipped))
            is_answered = fates_of(rows.last, self._log.fates) == ANSWERED
            is_new = rows.have("N") & has_event & is_answered & ~rows.are_among(open_rows)
            is_refused = rows.are_among(self._refused) & ~failed & ~skipped
            is_unwarned = rows.have("W") & ~warned & ~skipped & is_on_record & ~is_old
            for chosen, words in (
                (~rows.have(*"NSWEF"), "no publisher writes that, so it is not judged"),
                (rows.have("S") & failed, "it failed by the record"),
                (rows.have("S", "W") & is_refused, "the receiver refused its event, by the record"),
                (rows.have("S") & warned, "it had a warning by the record"),
                (is_unwarned, "no warning to it is on record"),
                (rows.have("E", "F") & ~failed & is_on_record, "no failure of it is on record"),
                (is_new & ~np.isin(rows.last, anew), "its event was answered"),
            ):
                yield from _each(Law.ANSWERED, rows, chosen, words)
            if has_event.any():
                level = np.where(has_event & ~skipped & rows.have("S", "W", "E", "F"), levels[owners], 0)
                for number in np.unique(level[level > 0]).tolist():
                    wrong = (level == number) & (rows.letters != _LETTERS.get(_LEVELS[number], ""))
                    answer = "nothing" if number == _NO_ANSWER else _LEVELS[number]
                    yield from _each(Law.ANSWERED, rows, wrong, f"the receiver answered {answer}")

    def _levels(self) -> Ints:
        """Return the level of the answer to each event; 0 where the receiver keeps none."""
        levels: Ints = self._log.memory.full(len(self._at), 0, np.int8)
        for part in self._blocks(len(levels)):
            levels[part] = np.where(self._has_digest[part], self._arrivals.levels[self._at[part]], 0)
        for number, parts in self._log.parts.items():
            levels[number] = max((int(levels[part]) for part in parts), default=levels[number])
        return levels


def _each(law: Law, rows: _Rows, chosen: Flags, words: str) -> Iterator[Breach]:
    """Yield a breach for each of these rows."""
    for place in np.flatnonzero(chosen).tolist():
        yield Breach(law, int(rows.ids[place]), f"it is {rows.letters[place]}, and {words}")


def _are_in(numbers: Ints, columns: Iterable[Ints]) -> Flags:
    """Return which of a few numbers are in parts of a long column."""
    few = np.unique(numbers)
    are_there = np.zeros(len(few), np.bool_)
    for column in columns if len(few) else ():
        places, is_there = find(few, column)
        are_there[places[is_there]] = True
    are_in: Flags = np.isin(numbers, few[are_there])
    return are_in
