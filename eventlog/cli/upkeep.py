"""eventlog errors, redrive, skip, purge, pause and resume: what an operator does to the rows of a log."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeVar

import click

from eventlog.cli.log_options import DATABASE, LOOKING, by_option, live_options
from eventlog.cli.options import SettingsCommand
from eventlog.cli.progress import counter
from eventlog.cli.terminal import Listing, ShownCell, print_sentence, show_json
from eventlog.core.entry import cell_as_text
from eventlog.core.errors import Misuse
from eventlog.core.plurals import quantity
from eventlog.core.remedies import Remedy
from eventlog.opening.config import Config

# Each function imports what opens a log, because SQLAlchemy takes longer to load than a help to print.
if TYPE_CHECKING:
    from eventlog.operate.upkeep import Retried
    from eventlog.sql.log.failure_reasons import FailureReason
    from eventlog.sql.log.log_admin import FailedRow, FailureFilter
    from eventlog.sql.log.store import Store

_REASONS = Listing(("rows", "reason"), "{:>8}  {}", indent=10)
F = TypeVar("F", bound=Callable[..., Any])
_FAILED = Listing(
    ("row", "status", "type", "object", "reason"),
    "{:>8}  {} {}  {:<25}  {}",
    {"E": "red", "F": "red"},
    indent=10,
)


whole_reason_option = click.option(
    "--reason",
    "whole_reason",
    help="only rows of this reason, as `errors --by-reason` prints it; numbers in it do not count",
)


def _demand_words(ctx: click.Context, option: click.Parameter, words: str | None) -> str | None:
    """Return the words of a selection; refuse empty ones, which every row would fit."""
    if words is not None and not words.strip():
        raise Misuse(f"{option.opts[0]} is empty, and selects nothing: leave it out, or name what it selects")
    return words


def failure_options(command: F) -> F:
    """Add the options that select failed rows: their ids, the table, words of the reason, and all of it."""
    for option in (
        click.argument("ids", nargs=-1, type=int, metavar="[RECORD_ID]..."),
        click.option(
            "--because", "reason", callback=_demand_words, help="only rows whose reason holds these words"
        ),
        whole_reason_option,
        click.option("--table", callback=_demand_words, help="only rows of this table_name"),
    ):
        command = option(command)
    return command


@click.command(cls=SettingsCommand)
@failure_options
@click.option("--by-reason", is_flag=True, help="the reasons, and how many rows have each; # is a number")
@click.option("--with-document", is_flag=True, help="also the document that failed")
@click.option("--json", "as_json", is_flag=True, help="one JSON object a row, with everything that is kept")
@live_options(LOOKING)
def errors(
    ids: tuple[int, ...],
    table: str | None,
    reason: str | None,
    whole_reason: str | None,
    by_reason: bool,
    with_document: bool,
    as_json: bool,
    config: Config,
) -> None:
    """List the rows with E and F, each with its reason; RECORD_IDs name events by their rows."""
    from eventlog.opening.recorded_settings import opened_as_published
    from eventlog.operate.upkeep import demand_present, failures, whole_events
    from eventlog.sql.log.log_admin import FailureFilter

    with opened_as_published(config, to_look=True) as (config, store):
        with store.admin() as upkeep:
            event_rows = whole_events(upkeep, ids)
        selection = FailureFilter(event_rows, table, reason, whole_reason)
        rows = failures(store, selection)
        first = next(rows, None)
        if first is None:
            _report_none(config, store, replace(selection, ids=ids))
        elif by_reason:
            with store.admin() as upkeep:
                _show_reasons(upkeep.reasons(selection), as_json=as_json)
        elif as_json:
            show_json(failed._asdict() for failed in chain([first], rows))
        else:
            _FAILED.show(_cells(failed, with_document) for failed in chain([first], rows))
        demand_present(store, ids)


def _show_reasons(reasons: Sequence[FailureReason], *, as_json: bool) -> None:
    """Print the reasons, and how all rows of one are sent again or given up."""
    if as_json:
        show_json(reason._asdict() for reason in reasons)
        return
    _REASONS.show((str(reason.rows), reason.text) for reason in reasons)
    print_sentence(f"{quantity(sum(reason.rows for reason in reasons), 'row')} failed in all")
    needs = {} if reasons[1:] or not reasons[0].text.isprintable() else {"REASON": reasons[0].text}
    print_sentence(f"to send all rows of a reason again: `{Remedy.REDRIVE_REASON.command(**needs)}`")
    print_sentence(f"to give them up: `{Remedy.SKIP_REASON.command(**needs)}`")


def _report_none(config: Config, store: Store, selection: FailureFilter) -> None:
    from eventlog.operate.upkeep import unmatched

    for sentence in unmatched(config, store, selection):
        print_sentence(sentence)


def _cells(failed: FailedRow, with_document: bool) -> tuple[ShownCell, ...]:
    from eventlog.operate.redriving import has_several_rows

    tries = f", after {failed.tries} tries" if (failed.tries or 1) > 1 else ""
    of = f", of {failed.event_id}" if has_several_rows(failed.event_id) else ""
    reason = f"{failed.why}{tries}{of}"
    cells = (str(failed.record_id), failed.status, cell_as_text(failed.event_type), _short(_where(failed)))
    return *cells, (reason, failed.document) if with_document and failed.document is not None else reason


def _where(row: FailedRow) -> str:
    column = "" if row.column_name is None else f" {row.column_name}"
    return f"{cell_as_text(row.table_name)} {cell_as_text(row.table_key)}{column}"


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= 120 else f"{text[:119]}…"


@click.command(cls=SettingsCommand)
@failure_options
@click.option("--all", "everything", is_flag=True, help="every row with E or F")
@by_option
@live_options(DATABASE)
def redrive(
    ids: tuple[int, ...],
    table: str | None,
    reason: str | None,
    whole_reason: str | None,
    everything: bool,
    who: str,
    config: Config,
) -> None:
    """Make events with E or F new again: those of RECORD_IDs, of a table, with a reason, or all.

    An event goes whole, with all its rows, and its values are read back as they are now. A delete stays if
    its object exists. Rows of a table that may not be queried back stay; skip them.
    """
    from eventlog.opening.recorded_settings import opened_as_published
    from eventlog.operate.redriving import redrive_by
    from eventlog.sql.log.log_admin import FailureFilter

    if not (ids or table or reason or whole_reason or everything):
        raise Misuse("which rows? name record_ids, --table, --because, --reason or --all")
    if everything and (ids or table or reason or whole_reason):
        raise Misuse("--all is every row that failed: leave it out, or what selects some of them")
    with opened_as_published(config) as (config, store):
        redriven = redrive_by(
            config, store, selection := FailureFilter(ids, table, reason, whole_reason), who
        )
        if not (redriven.rows or redriven.reports):
            _report_none(config, store, selection)
    print_sentence(f"{quantity(redriven.rows, 'row is', 'rows are')} new again")
    for report in redriven.reports:
        print_sentence(str(report))
    if redriven.refused:
        sys.exit(1)


@click.command(cls=SettingsCommand)
@click.argument("ids", nargs=-1, type=int, metavar="[RECORD_ID]...")
@click.option("--all", "everything", is_flag=True, help="every event that waits for a retry")
@by_option
@live_options(DATABASE)
def retry(ids: tuple[int, ...], everything: bool, who: str, config: Config) -> None:
    """Send waiting events now, without the rest of their wait: those of RECORD_IDs, or all.

    A receiver that is down is tried within a second. If it asked for a wait itself, that takes --all.
    """
    from eventlog.opening.open_log import opened
    from eventlog.operate.upkeep import retry_now

    if bool(ids) == everything:
        raise Misuse("which rows? name record_ids, or --all")
    with opened(config) as store:
        retried = retry_now(store, ids, who)
    for sentence in _retried(retried, everything=everything):
        print_sentence(sentence)
    if retried.reports:
        sys.exit(1)


def _retried(retried: Retried, *, everything: bool) -> Iterator[str]:
    """Yield what a retry did, and what it did not do."""
    rows = f"{quantity(len(retried.rows), 'row goes', 'rows go')} again now"
    if retried.tries_receiver:
        yield f"{rows if retried.rows else 'no event waits'}; the receiver is tried now"
    elif retried.rows:
        yield rows
    elif everything:
        yield "no event waits, and the receiver is not down: nothing was changed"
    yield from retried.reports
    if retried.obstacle and (retried.rows or retried.tries_receiver):
        yield f"nothing goes at present: {retried.obstacle}"


@click.command(cls=SettingsCommand)
@click.argument("ids", nargs=-1, type=int, metavar="[RECORD_ID]...")
@click.option("--because", "reason", required=True, help="why; it is kept with who and when")
@click.option("--table", help="only failed rows of this table_name")
@whole_reason_option
@by_option
@live_options(DATABASE)
def skip(
    ids: tuple[int, ...],
    reason: str,
    table: str | None,
    whole_reason: str | None,
    who: str,
    config: Config,
) -> None:
    """Give rows with N, E or F, with all rows of their events, the letter W without publishing them.

    These are the rows of RECORD_IDs, or with --table or --reason those that failed.
    """
    from eventlog.opening.open_log import opened
    from eventlog.operate import upkeep
    from eventlog.sql.log.log_admin import FailureFilter

    if not (ids or table or whole_reason):
        raise Misuse("which rows? name record_ids, --table or --reason")
    if not reason.strip():
        raise Misuse("why? --because is empty, and the reason is kept with who skipped the rows")
    with opened(config) as store:
        skipped = upkeep.skip(store, ids, reason, who, table=table, whole_reason=whole_reason)
        if not (skipped.rows or skipped.reports):
            _report_none(config, store, FailureFilter(ids, table, whole_reason=whole_reason))
    print_sentence(f"{quantity(skipped.rows, 'row is', 'rows are')} skipped")
    if skipped.further_rows:
        print_sentence(f"of the same events: {', '.join(map(str, skipped.further_rows))}")
    for report in skipped.reports:
        print_sentence(str(report))
    if skipped.reports:
        sys.exit(1)


@click.command(cls=SettingsCommand)
@click.option(
    "--older-than", required=True, metavar="AGE", help="30d, 12h, or a time in UTC: 2025-03-23 10:00:00"
)
@click.option("--letters", default="S,W", help="which; N, E and F only if named  [default: S,W]")
@click.option("--chunk", type=click.IntRange(1, 100_000), default=1000, help="rows of one transaction")
@click.option("--rest", "pause", type=click.FloatRange(0, 60), default=0.0, help="seconds between two chunks")
@by_option
@live_options(DATABASE)
def purge(
    older_than: str,
    letters: str,
    chunk: int,
    pause: float,
    who: str,
    config: Config,
) -> None:
    """Delete rows that are handled and old, a chunk at a time, and the record of their events.

    The number of rows is kept as a notice.
    """
    from eventlog.opening.open_log import opened
    from eventlog.operate import upkeep
    from eventlog.status.log_status import read_log_status

    statuses = upkeep.read_letters(letters)
    with opened(config) as store:
        before = upkeep.read_age(older_than, read_log_status(store, counted=False).now)
        selection = upkeep.Purge(before, statuses, chunk, pause, who)
        with counter() as count:
            deleted = upkeep.purge(
                store, selection, lambda rows: count(f"{quantity(rows, 'row')} deleted", 0)
            )
    print_sentence(f"{quantity(deleted, 'row')} from before {before} deleted")


@click.command(cls=SettingsCommand)
@click.option("--because", "reason", default="no reason given", help="why; `status` shows it")
@by_option
@live_options(DATABASE)
def pause(reason: str, who: str, config: Config) -> None:
    """Let the leading publisher rest after its batch until `eventlog resume`. Rows pile up as new."""
    from eventlog.opening.open_log import opened
    from eventlog.status.log_status import read_log_status

    with opened(config) as store:
        with store.admin() as upkeep:
            upkeep.pause(who, reason)
        is_pausing = read_log_status(store, counted=False).pausing
    print_sentence("pausing: this batch ends first; `status` shows when it has" if is_pausing else "paused")


@click.command(cls=SettingsCommand)
@click.option(
    "--table",
    "tables",
    multiple=True,
    metavar="NAME",
    help="a table that max-deletes stopped: its next poll passes; once for each table",
)
@by_option
@live_options(DATABASE)
def resume(tables: tuple[str, ...], who: str, config: Config) -> None:
    """Let a paused publisher go on, or only tables that max-deletes stopped."""
    from eventlog.opening.open_log import opened
    from eventlog.operate.upkeep import resume_tables

    with opened(config) as store:
        if not tables:
            with store.admin() as upkeep:
                was_paused = upkeep.resume(who)
            print_sentence("going on" if was_paused else "the publisher was not paused: nothing was changed")
            return
        for table in resume_tables(store, tables, who):
            print_sentence(f"{table}: the next poll may delete any number of its objects")
