"""What becomes of the rows of log files, and of the records of change tables and messages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

from eventlog.cli.convert import clock
from eventlog.cli.job import RefusalPrinter, exit_if_refused
from eventlog.cli.options import read_tables
from eventlog.cli.outcome_listing import (
    OUTCOMES,
    NothingMeant,
    names_meant,
    outcome_cells,
    outcome_facts,
    print_any,
)
from eventlog.cli.terminal import Listing, ShownCell, print_line, print_sentence, with_hints
from eventlog.core import tablekey
from eventlog.core.change import Change
from eventlog.core.entry import PlacedEntry
from eventlog.core.errors import BadFile, Refused
from eventlog.core.formats import Placed
from eventlog.core.identity import names_object
from eventlog.files.stores import SortedItems
from eventlog.fold import Outcome
from eventlog.transfer.connectors import Endpoint
from eventlog.transfer.format_registry import format_named
from eventlog.transfer.opening import explain as run_explain
from eventlog.transfer.opening import placed_changes
from eventlog.transfer.report import Report
from eventlog.transfer.settings_by_name import SettingsByName

_RECORDS = Listing(
    ("where", "outcome"), "{:<30}  {}", {"sent": "green", "repeated": "bright_black", "refused": "red"}
)


class ChangeFilter(NamedTuple):
    """The changes that are explained."""

    table: str | None
    key: str | None

    def matches(self, change: Change) -> bool:
        """Return whether a change is one of these."""
        names = {change.table.lower(), f"{change.schema}.{change.table}".lower()}
        if self.table is not None and self.table.lower() not in names:
            return False
        if self.key is None:
            return True
        key_values = {column.lower(): value for column, value in tablekey.read(self.key)}
        return key_values == {column.lower(): str(value) for column, value in change.key}

    @property
    def everything(self) -> bool:
        return self.table is None and self.key is None


def _record_cells(record: Placed | Refused) -> tuple[ShownCell, ...]:
    if isinstance(record, Refused):
        return record.where, f"{'refused' if record.fault else 'repeated'}: {with_hints(record.reason)}"
    change, image_place = record.change, record.image_where
    key = tablekey.write((column, str(value)) for column, value in change.key) if change.key else ""
    with_image = f", with its before row at {image_place}" if image_place else ""
    place = change.position or "no position"
    return record.where, f"sent: {change.op} {change.table} {key} at {place}{with_image}"


def _record_facts(record: Placed | Refused) -> dict[str, object]:
    if isinstance(record, Refused):
        outcome = "refused" if record.fault else "repeated"
        return {"where": record.where, "outcome": outcome, "reason": record.reason}
    change = record.change
    facts = {"op": str(change.op), "table": change.table, "position": change.position}
    return {"where": record.where, "outcome": "sent", **facts, "before": record.image_where or None}


def source_of(
    format_name: str,
    inputs: tuple[str, ...],
    tables_file: Path | None,
    container: str | None,
    values: dict[str, Any],
) -> Endpoint:
    """Return the inputs as a source."""
    settings = SettingsByName(values, clock())
    return Endpoint(
        format_named(format_name), inputs or ("-",), read_tables(tables_file), settings, container
    )


def explain_changes(source: Endpoint, change_filter: ChangeFilter, as_json: bool) -> None:
    """Print what becomes of the records of change tables or messages, in the order of the changes; exit as
    `convert` does if some are refused.
    """
    report = Report(lambda record: None)  # each is in the listing

    def records() -> Iterator[Placed | Refused]:
        for record in placed_changes(source):
            if isinstance(record, Placed):
                if change_filter.matches(record.change):
                    yield record
                continue
            report.refuse(record)
            if isinstance(record, BadFile):
                print_line(f"{record.where}: {record.reason}")
            if not record.fault and not record.grouped:
                print_sentence(f"{record.where}: {record.reason}")
            elif change_filter.everything:
                yield record

    is_any = print_any(records(), _record_facts, _record_cells, _RECORDS, as_json)
    exit_if_refused(report, "record is refused", "records are refused")
    if not is_any:
        _report_nothing(change_filter.table, change_filter.key)


def explain_files(
    source: Endpoint, current: Iterable[tuple[str, str]], table: str | None, key: str | None, as_json: bool
) -> None:
    """Print what becomes of the rows of log files, by record_id; exit as `convert` does if one is refused."""
    unlisted = UnlistedRefusals()
    report = Report(unlisted.add, inform=print_sentence)
    with closing(SortedItems(_record_id, _explained_size)) as explained:

        def add_outcome(placed_entry: PlacedEntry, outcome: Outcome) -> None:
            unlisted.leave_out(placed_entry.where)
            entry = placed_entry.entry
            if names_object(source.tables, entry.table_name, entry.table_key, table, key):
                entry = entry._replace(old_value=None, new_value=None)
                explained.add((placed_entry._replace(entry=entry, raw=b""), outcome))

        run_explain(source, current, report, add_outcome)
        is_any = print_any(
            explained.in_order(),
            lambda pair: outcome_facts(pair[0].entry, pair[0].where, pair[1]),
            lambda pair: outcome_cells(pair[0].entry, pair[1]),
            OUTCOMES,
            as_json,
        )
    unlisted.print()
    exit_if_refused(report, "row is refused", "rows are refused")
    if not is_any:
        _report_nothing(table, key)


class UnlistedRefusals:
    """The refused rows that have no line in the listing, to be printed after it."""

    def __init__(self) -> None:
        self._lines: list[str] = []  # few, because the printer counts most rows of one kind
        self._printer = RefusalPrinter(self._lines.append)
        self._last: Refused | None = None

    def add(self, row: Refused) -> None:
        """Take a refused row; an outcome that follows it directly may be its own."""
        if self._last is not None:
            self._printer.print(self._last)
        self._last = row

    def leave_out(self, where: str) -> None:
        """Leave out the last row if it is of this place, because its outcome is listed."""
        if self._last is not None and self._last.where == where:
            self._last = None

    def print(self) -> None:
        """Print the rows, and how many of each kind were only counted."""
        if self._last is not None:
            self._printer.print(self._last)
        self._printer.close()
        for line in self._lines:
            print_line(line)


def _report_nothing(table: str | None, key: str | None) -> None:
    """Report that files have no row; raise NothingMeant if they have none of those that are meant."""
    if table is not None or key is not None:
        raise NothingMeant("the inputs", names_meant(table, key))
    print_sentence("the inputs hold no row")


def _record_id(explained: tuple[PlacedEntry, Outcome]) -> int:
    return explained[0].entry.record_id


def _explained_size(explained: tuple[PlacedEntry, Outcome]) -> int:
    (entry, where, _, names), outcome = explained
    return 800 + 2 * len(entry.table_key) + len(where) + sum(map(len, names)) + len(outcome.reason)
