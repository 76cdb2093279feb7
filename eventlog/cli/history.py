"""eventlog history: what operators did to a log, with who, when and why."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from eventlog.cli.log_options import DATABASE, live_options
from eventlog.cli.options import SettingsCommand
from eventlog.cli.terminal import Listing, print_sentence, show_json
from eventlog.core.plurals import quantity
from eventlog.opening.config import Config

if TYPE_CHECKING:
    from eventlog.sql.log.record import Notice

SENTENCES = {  # by the kinds of notices
    "capture off": "in session {session_id}: {words}",
    "compare": "the state of this table begins",
    "pass": "{row_count} {words}",
    "pause": "{words}",
    "publish": "the tables and columns that are published from now on",
    "purge": "{rows} of {answer} {words}",
    "redrive": "{rows}",
    "resume": "",
    "resync": "{rows} {words}",
    "skip": "{rows}: {words}",
}


@click.command(cls=SettingsCommand)
@click.option("--limit", type=click.IntRange(1), default=100, help="how many, the latest  [default: 100]")
@click.option("--json", "as_json", is_flag=True, help="one JSON object a line")
@live_options(DATABASE)
def history(limit: int, as_json: bool, config: Config) -> None:
    """List skips, redrives, pauses, resyncs and purges, the latest first: when (UTC), who, the rows, and the
    reason. What else must not be lost is among them, as a capture that was switched off.
    """
    from eventlog.opening.open_log import opened  # SQLAlchemy takes a while to load

    with (
        opened(config) as store,
        store.upkeep() as upkeep,
    ):
        notices = upkeep.notices(limit)
    if as_json:
        show_json(notice._asdict() for notice in notices)
        return
    listing = Listing(("at", "who", "kind", "what"), "{}  {}  {:<7}  {}")
    listing.show(
        (f"{notice.at:%Y-%m-%d %H:%M:%S}", notice.person, notice.kind, _what(notice)) for notice in notices
    )
    if not notices:
        print_sentence("no operator has done anything to this log")


def _what(notice: Notice) -> str:
    """Return what happened, after the table or the object that it is about."""
    object_name = " ".join(name for name in (notice.table_name, notice.table_key) if name)
    sentence = SENTENCES[notice.kind].format(**notice._asdict(), rows=_rows(notice))
    return ": ".join(part for part in (object_name, sentence) if part)


def _rows(notice: Notice) -> str:
    """Return which rows, or how many."""
    if notice.record_ids:
        return f"{'rows' if notice.record_ids[1:] else 'row'} {', '.join(map(str, notice.record_ids))}"
    return "rows" if notice.row_count is None else quantity(notice.row_count, "row")
