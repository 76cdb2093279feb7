"""eventlog history: what was done to a log, with who, when and why."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from eventlog.cli.log_options import LOOKING, live_options
from eventlog.cli.options import SettingsCommand
from eventlog.cli.terminal import Listing, ShownCell, print_sentence, show_json
from eventlog.opening.config import Config

if TYPE_CHECKING:
    from eventlog.sql.log.log_record import Notice
    from eventlog.sql.log.row_tries import Try  # SQLAlchemy takes a while to load


@click.command(cls=SettingsCommand)
@click.option("--limit", type=click.IntRange(1), default=100, help="how many, the latest  [default: 100]")
@click.option("--json", "as_json", is_flag=True, help="one JSON object a line")
@live_options(LOOKING)
def history(limit: int, as_json: bool, config: Config) -> None:
    """List skips, redrives, pauses, resyncs and purges, the latest first: when (UTC), who, the rows, and the
    reason. A command is one line. What else must not be lost is among them, as a capture that was switched
    off, and the starts, stops and takeovers of publishers, except those of `run --once`. Below a redrive are
    the tries of its first row, with their answers, from before and after it.
    """
    from eventlog.opening.open_log import opened  # SQLAlchemy takes a while to load
    from eventlog.operate.history import read_history
    from eventlog.operate.notice_sentences import sentence_of
    from eventlog.operate.tries import moment, tries_of_rows, try_words
    from eventlog.sql.log.log_record import NoticeKind

    with (
        opened(config, to_look=True) as store,
        store.admin() as admin,
    ):
        notices = read_history(admin, limit)
        redriven = {n.record_ids[0] for n in notices if n.kind == NoticeKind.REDRIVE and n.record_ids}
        tries_of = tries_of_rows(admin, redriven) if redriven else {}

    def tries(notice: Notice) -> list[Try]:
        """Return the tries of the first row of a redrive."""
        is_redrive = notice.kind == NoticeKind.REDRIVE and bool(notice.record_ids)
        return tries_of.get(notice.record_ids[0], []) if is_redrive else []

    def cells(notice: Notice) -> tuple[ShownCell, ...]:
        row = f"row {notice.record_ids[0]}, " if len(notice.record_ids) > 1 else ""
        further = (f"{row}{try_words(each)} ({moment(each.at)})" for each in tries(notice))
        at = f"{notice.at:%Y-%m-%d %H:%M:%S}"
        return (at, notice.person, notice.kind, (sentence_of(notice), *further))

    if as_json:
        show_json(
            notice._asdict() | {"tries": [each._asdict() for each in tries(notice)]} for notice in notices
        )
        return
    listing = Listing(("at", "who", "kind", "what"), "{}  {}  {:<8}  {}", indent=4)
    listing.show(map(cells, notices))
    if not notices:
        print_sentence("no operator has done anything to this log")
