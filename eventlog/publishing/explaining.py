"""What becomes of each row of a live log: what the next cycle would do, and why others are not in it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from eventlog.config import Config
from eventlog.entry import Entry, Status, read_entry
from eventlog.errors import EventlogError
from eventlog.fold import Fate, Outcome, Rules
from eventlog.pickup import Found
from eventlog.publisher import PublisherSettings
from eventlog.publishing.reading import Reading
from eventlog.publishing.session import make_reader
from eventlog.sql.store import Store

Explained = tuple[Found, Outcome]


def explain_store(
    config: Config, store: Store, table: str | None = None, key: str | None = None, limit: int | None = None
) -> Iterator[Explained]:
    """The rows of the next cycle, or the first of them; with table and key every row of that object."""
    reader = make_reader(config, store)
    choice = config.build(PublisherSettings).choice(limit)
    with store.snapshot() as snapshot:
        reading = reader.pick_up(snapshot, choice)
        cells = [] if table is None or key is None else snapshot.rows_of_object(table, key)
    with store.upkeep() as upkeep:
        excluded = upkeep.unusable(choice.limit, table, key)
    for lost in excluded:
        entry = Entry(0, "N", 0, "", None, lost.table_name or "", lost.table_key or "", lost.column_name)
        outcome = Outcome(Fate.REFUSED, f"no usable record_id: {lost.reason}")
        yield Found(entry, f"record_id {lost.record_id}", b""), outcome
    found = {entry.record_id: entry for entry in reading.entries}
    refused = dict(reading.refused)
    for row in cells:
        try:
            found[int(str(row[0]))] = read_entry(row)
        except EventlogError as fault:
            refused[int(str(row[0]))] = str(fault)
    for number in sorted(found.keys() | refused.keys()):
        entry = found.get(number) or Entry(number, "N", 0, "", None, "", "")
        if table in (None, entry.table_name) and key in (None, entry.table_key):
            yield Found(entry, f"record_id {number}", b""), _outcome(entry, reading, refused, config)


def _outcome(entry: Entry, reading: Reading, refused: Mapping[int, str], config: Config) -> Outcome:
    number = entry.record_id
    if number in refused:
        return Outcome(Fate.REFUSED, refused[number])
    if number in reading.outcomes:
        return reading.outcomes[number]
    if entry.status != Status.NEW:
        return Outcome(Fate.NOT_NEW, f"its status is {entry.status}")
    if number in reading.silent:
        return Outcome(Fate.LOOPBACK, "done by the driver's own user; it is marked S without being sent")
    rules = config.build(Rules)
    if entry.perpetrator is not None and entry.perpetrator == rules.driver_user and not rules.allow_loopback:
        return Outcome(Fate.LOOPBACK, f"done by the driver's own user {rules.driver_user}")
    if any(
        other.table_name == entry.table_name and other.table_key == entry.table_key
        for other in reading.entries
    ):
        return Outcome(Fate.BEYOND, "its object is cut by query-limit")
    if reading.full:
        return Outcome(Fate.BEYOND, "query-limit, or what completes inserts, is reached before it")
    return Outcome(Fate.HELD, "its object waits for a retry, or its time has not come")
