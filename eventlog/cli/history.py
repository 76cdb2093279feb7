"""eventlog history: what operators did to a log, with who, when and why."""

from __future__ import annotations

import click

from eventlog.cli.log_options import DATABASE, live_options
from eventlog.cli.options import SettingsCommand
from eventlog.cli.terminal import Listing, print_sentence, show_json
from eventlog.opening.config import Config


@click.command(cls=SettingsCommand)
@click.option("--limit", type=click.IntRange(1), default=100, help="how many, the latest  [default: 100]")
@click.option("--json", "as_json", is_flag=True, help="one JSON object a line")
@live_options(DATABASE)
def history(limit: int, as_json: bool, config: Config) -> None:
    """List skips, redrives, pauses, resyncs and purges, the latest first: when (UTC), who, the rows, and the
    reason. What else must not be lost is among them, as a capture that was switched off.
    """
    from eventlog.opening.open_log import opened  # SQLAlchemy takes a while to load
    from eventlog.operate.notice_sentences import sentence_of

    with (
        opened(config) as store,
        store.admin() as admin,
    ):
        notices = admin.notices(limit)
    if as_json:
        show_json(notice._asdict() for notice in notices)
        return
    listing = Listing(("at", "who", "kind", "what"), "{}  {}  {:<7}  {}")
    listing.show(
        (f"{notice.at:%Y-%m-%d %H:%M:%S}", notice.person, notice.kind, sentence_of(notice))
        for notice in notices
    )
    if not notices:
        print_sentence("no operator has done anything to this log")
