"""The live side of `explain`: what the next cycle would do with each row, and why others are not in it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from eventlog.cli.live import ALL
from eventlog.config import Config, read_config, read_file
from eventlog.entry import Entry, Status, read_entry
from eventlog.errors import EventlogError
from eventlog.fold import Fate, Outcome, Rules
from eventlog.opening import open_store
from eventlog.pickup import Found
from eventlog.publisher import PublisherSettings
from eventlog.reading import Reading
from eventlog.session import make_reader

Explained = tuple[Found, Outcome]


def configured(flags: Mapping[str, Any], file: Path | None) -> bool:
    """Whether a database is named: by flag, environment or file."""
    return bool(flags.get("url") or os.environ.get("EVENTLOG_URL") or "url" in read_file(file))


def explain_log(
    flags: Mapping[str, Any], file: Path | None, table: str | None, key: str | None
) -> Iterator[Explained]:
    """The rows of the next cycle; with table and key every row of that object."""
    config = read_config((settings for _, settings in ALL), flags, os.environ, file)
    store = open_store(config)
    reader = make_reader(config, store)
    with store.snapshot() as snapshot:
        reading = reader.pick_up(snapshot, config.build(PublisherSettings).query_limit)
        cells = [] if table is None or key is None else snapshot.rows_of_object(table, key)
    found = {entry.record_id: entry for entry in reading.entries}
    refused = dict(reading.refused)
    for row in cells:
        try:
            found[int(str(row[0]))] = read_entry(row)
        except EventlogError as fault:
            refused[int(str(row[0]))] = str(fault)
    store.engine.dispose()
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
        return Outcome(Fate.LOOPBACK, "done by the driver's own user; it is finished in silence")
    rules = config.build(Rules)
    if entry.perpetrator is not None and entry.perpetrator == rules.driver_user and not rules.allow_loopback:
        return Outcome(Fate.LOOPBACK, f"done by the driver's own user {rules.driver_user}")
    if any(
        other.table_name == entry.table_name and other.table_key == entry.table_key
        for other in reading.entries
    ):
        return Outcome(Fate.BEYOND, "its object is cut by query-limit")
    if len(reading.entries) >= config.build(PublisherSettings).query_limit:
        return Outcome(Fate.BEYOND, "query-limit is reached before it")
    return Outcome(Fate.HELD, "its object waits for a retry, or its time has not come")
