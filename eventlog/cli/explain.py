"""eventlog explain: what becomes of each row of a log, and why."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar

import click

from eventlog.cli.convert import clock
from eventlog.cli.format_names import refuse_flags
from eventlog.cli.job import RefusalPrinter, exit_if_refused
from eventlog.cli.options import FILE_NAME, SettingsCommand, read_tables, settings_options, shared_options
from eventlog.cli.terminal import Cell, Listing, print_line, print_sentence, show_json, with_hints
from eventlog.core import tablekey
from eventlog.core.change import Change
from eventlog.core.entry import MAX_RECORD_ID, PlacedEntry
from eventlog.core.errors import EventlogError, Misuse, Refused, shortened
from eventlog.core.formats import Placed
from eventlog.core.identity import names_object
from eventlog.core.settings import declared
from eventlog.files.limits import Limits
from eventlog.files.stores import SortedItems
from eventlog.fold import Fate, Outcome, Rules
from eventlog.formats.log import LogSettings
from eventlog.opening.config import Config
from eventlog.transfer.formats import format_named
from eventlog.transfer.opening import explain as run_explain
from eventlog.transfer.opening import placed_changes
from eventlog.transfer.ordered import SEQUENCERS
from eventlog.transfer.places import End
from eventlog.transfer.report import Report
from eventlog.transfer.settings_by_name import SettingsByName

if TYPE_CHECKING:
    from eventlog.sql.log.record import Try  # SQLAlchemy takes a while to load

R = TypeVar("R")
TriedRow: TypeAlias = "tuple[PlacedEntry, Outcome, Sequence[Try]]"
_RECORDS = Listing(
    ("where", "outcome"), "{:<30}  {}", {"sent": "green", "repeated": "bright_black", "refused": "red"}
)


class NothingMeant(EventlogError):
    """no row of {0} is{1}"""


def _of(table: str | None, key: str | None) -> str:
    """Return the words for the rows that are meant; nothing if all are."""
    names = [name for name in (table, key) if name is not None]
    return f" of {' '.join(names)}" if names else ""


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


def _record_cells(record: Placed | Refused) -> tuple[Cell, ...]:
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


_LONGEST_NAME = 80  # characters of a table and its key in a listing
_LIMITS = tuple(field.name for field in declared(Limits))
_OF_FILES = ("container", "tables_file", "current", "now", "status", *_LIMITS)
_OF_A_LOG = ("current", *(field.name for of in (Rules, LogSettings) for field in declared(of)))
_OF_AN_OBJECT = ("table", "key", "everything")
_OF_A_DATABASE = ("url", "config_file", "log_table", "everything")


@click.command(cls=SettingsCommand)
@click.argument("inputs", nargs=-1, type=FILE_NAME, metavar="[RECORD_ID | INPUT]...")
@click.option(
    "--from",
    "source_format",
    type=click.Choice(["log", *SEQUENCERS]),
    default="log",
    help="what the inputs hold",
)
@shared_options("--as", "--tables", "--current")
@click.option(
    "--url", help="the database whose log is explained, where no INPUTS are given  [env: EVENTLOG_URL]"
)
@shared_options("--config")
@click.option(
    "--log-table", help="the log, optionally with its schema  [default: eventlog]  [env: EVENTLOG_LOG_TABLE]"
)
@click.option("--table", help="only rows of this table, however they spell its name")
@click.option("--key", help="only rows of this table_key, however they spell it")
@click.option("--all", "everything", is_flag=True, help="of a live log every pending row, one by one")
@click.option(
    "--order",
    type=click.Choice(["sequence", "as-is"]),
    default="sequence",
    help="of change tables and messages: by their sequence, or as the inputs have them",
)
@click.option("--json", "as_json", is_flag=True, help="one JSON object a row")
@settings_options([("the log", Rules), ("rows", LogSettings), ("the input", Limits)])
def explain(
    inputs: tuple[str, ...],
    source_format: str,
    container: str | None,
    tables_file: Path | None,
    current: tuple[tuple[str, str], ...],
    url: str | None,
    config_file: Path | None,
    log_table: str | None,
    table: str | None,
    key: str | None,
    everything: bool,
    order: str,
    as_json: bool,
    **values: Any,
) -> None:
    """Report the fate of each row of INPUTS (files, or - for standard input), or of the configured log.

    Of the configured log it reports the rows with these RECORD_IDs, handled ones too, or without any the
    rows that are next. Every row has one outcome: sent (with its event), superseded (by which row), without
    effect, `says nothing`, loopback, future, held, beyond the pick-up, refused or not new; and the reason.
    Of handled rows it is what the log keeps: the event and when it was answered, why it failed, who skipped
    it and why. An event that was tried more than once has each answer. A number is a RECORD_ID; a file of
    such a name is ./17.

    For change tables and messages it reports the change in each record, the place of the row before it,
    and what is repeated or refused.
    """
    if key is not None:
        tablekey.read(key)
    settings = SettingsByName(values | {"order": order}, clock())
    source = End(format_named(source_format), inputs or ("-",), read_tables(tables_file), settings, container)
    if source_format != "log":
        refuse_flags((*_OF_A_DATABASE, *_OF_A_LOG), f"is of a log, and what is explained is {source_format}")
        _explain_changes(source, ChangeFilter(table, key), as_json)
        return
    refuse_flags(("order",), "is of change tables and messages, and what is explained is a log")
    ids = tuple(int(name) for name in inputs if _is_record_id(name))
    for name in inputs:
        if not (_is_record_id(name) or name == "-" or (name and Path(name).exists())):
            raise Misuse(f"{name or repr(name)}: no such file, and no record_id, which is a whole number")
    if ids and len(ids) < len(inputs):
        raise Misuse("name record_ids or files: a file whose name is a number is ./17")
    if ids and max(ids) > MAX_RECORD_ID:
        raise Misuse(f"{max(ids)} is no record_id: the highest is {MAX_RECORD_ID}")
    flags = {"url": url, "log_table": log_table} | {n: v for n, v in values.items() if n not in _OF_FILES}
    config = None if inputs and not ids else _read_settings(flags, config_file)
    if config is not None and (ids or config.values.get("url")):
        refuse_flags(_OF_FILES, "is for files: name them, or - for standard input")
        if ids:
            refuse_flags(_OF_AN_OBJECT, "chooses rows, and they are named by their record_ids")
        _explain_log(config, table, key, everything, ids, as_json)
        return
    refuse_flags(_OF_A_DATABASE, "is for the log of a database, and what is explained are files")
    _explain_files(source, current, table, key, as_json)


def _is_record_id(name: str) -> bool:
    return name.isascii() and name.isdigit()


def _read_settings(flags: Mapping[str, Any], config_file: Path | None) -> Config:
    from eventlog.cli.log_options import read_all  # what a publisher needs, which files do not

    return read_all(flags, config_file)


def _explain_log(
    config: Config, table: str | None, key: str | None, everything: bool, ids: Sequence[int], as_json: bool
) -> None:
    """Print what becomes of the rows of the next cycle, then why others wait.

    With a key print every row of that object, with `everything` every pending row, with ids these rows.
    """
    from eventlog.opening.recorded_settings import opened_as_published
    from eventlog.operate.explaining import (  # SQLAlchemy takes a while to load
        explain_store,
        summarise,
        with_tries,
    )
    from eventlog.operate.upkeep import check_table, demand_rows

    absent = list[int]()

    def noted(rows: Iterable[TriedRow]) -> Iterator[TriedRow]:
        for row in rows:
            if row[1].fate is Fate.NOT_IN_LOG:
                absent.append(row[0].entry.record_id)
            yield row

    with opened_as_published(config) as (config, store):
        explained = explain_store(config, store, table, key, ids=ids, everything=everything)
        tried = noted(with_tries(store, explained))
        if not _print_any(tried, _tried_facts, _tried_cells(), _OUTCOMES, as_json):
            if table is not None:
                check_table(config, store, table)
            if key is not None:
                raise NothingMeant("the log", _of(table, key))
            print_sentence(f"no row{_of(table, key)} is {'pending' if everything else 'in the next cycle'}")
        demand_rows(absent)
        if key is None and not everything and not ids:
            for sentence in summarise(config, store).values():
                print_sentence(f"{sentence} (row by row with --all)")


def _explain_changes(source: End, change_filter: ChangeFilter, as_json: bool) -> None:
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
            if not record.fault and not record.grouped:
                print_sentence(f"{record.where}: {record.reason}")
            elif change_filter.everything:
                yield record

    is_any = _print_any(records(), _record_facts, _record_cells, _RECORDS, as_json)
    exit_if_refused(report, "record is refused", "records are refused")
    if not is_any:
        _report_nothing(change_filter.table, change_filter.key)


def _explain_files(
    source: End, current: Iterable[tuple[str, str]], table: str | None, key: str | None, as_json: bool
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
        is_any = _print_any(explained.in_order(), _outcome_facts, _outcome_cells, _OUTCOMES, as_json)
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
        raise NothingMeant("the inputs", _of(table, key))
    print_sentence("the inputs hold no row")


def _record_id(explained: tuple[PlacedEntry, Outcome]) -> int:
    return explained[0].entry.record_id


def _explained_size(explained: tuple[PlacedEntry, Outcome]) -> int:
    (entry, where, _, names), outcome = explained
    return 800 + 2 * len(entry.table_key) + len(where) + sum(map(len, names)) + len(outcome.reason)


def _print_any(
    records: Iterable[R],
    facts: Callable[[R], Mapping[str, object]],
    cells: Callable[[R], tuple[Cell, ...]],
    listing: Listing,
    as_json: bool,
) -> bool:
    """Print records. Return whether there are any."""
    remaining = iter(records)
    for first in remaining:
        every = chain([first], remaining)
        if as_json:
            show_json(map(facts, every))
        else:
            listing.show(map(cells, every))
        return True
    return False


STYLES: dict[str, str] = {
    Fate.SENT: "green",
    Fate.SUPERSEDED: "bright_black",
    Fate.NO_EFFECT: "bright_black",
    Fate.SAYS_NOTHING: "bright_black",
    Fate.LOOPBACK: "yellow",
    Fate.FUTURE: "yellow",
    Fate.HELD: "yellow",
    Fate.REFUSED: "red",
    Fate.NOT_NEW: "bright_black",
    Fate.FAILED: "red",
    Fate.SKIPPED: "yellow",
    Fate.FINISHED: "bright_black",
    Fate.NOT_IN_LOG: "yellow",
    Fate.BEYOND_LIMIT: "yellow",
}


_OUTCOMES = Listing(("row", "type", "object", "outcome"), "{:>8}  {}  {:<27}  {}", STYLES, indent=12)


def _outcome_cells(explained: tuple[PlacedEntry, Outcome]) -> tuple[Cell, ...]:
    placed_entry, outcome = explained
    entry = placed_entry.entry
    words = str(outcome.fate)
    if outcome.event_id is not None:
        words += f" in {outcome.event_id}"
    if outcome.by is not None:
        words += f", by row {outcome.by}"
    if outcome.reason:
        words += f": {with_hints(outcome.reason)}"
    return (
        str(entry.record_id),
        str(entry.event_type or "-"),
        shortened(f"{entry.table_name} {entry.table_key}", _LONGEST_NAME),
        words,
    )


def _tried_cells() -> Callable[[TriedRow], tuple[Cell, ...]]:
    """Return a function that returns the cells of a row; the tries of an event come with its first row."""
    from eventlog.operate.finished import moment, try_words

    shown: set[Try] = set()

    def cells(tried: TriedRow) -> tuple[Cell, ...]:
        placed_entry, outcome, tries = tried
        *names, words = _outcome_cells((placed_entry, outcome))
        further = [f"{try_words(each)} ({moment(each.at)})" for each in tries if each not in shown]
        shown.update(tries)
        return (*names, (str(words), *further))

    return cells


def _tried_facts(tried: TriedRow) -> dict[str, object]:
    placed_entry, outcome, tries = tried
    answers = [
        {
            "number": answered.number,
            "at": answered.at,
            "answer": answered.status.level.name.lower(),
            "words": answered.status.text,
        }
        for answered in tries
    ]
    return {**_outcome_facts((placed_entry, outcome)), "tries": answers}


def _outcome_facts(explained: tuple[PlacedEntry, Outcome]) -> dict[str, object]:
    placed_entry, outcome = explained
    return {
        "record_id": placed_entry.entry.record_id,
        "where": placed_entry.where,
        "outcome": outcome.fate.value,
        "event_id": outcome.event_id,
        "by": outcome.by,
        "reason": outcome.reason,
    }
