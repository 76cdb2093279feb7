"""eventlog demo: see it work, in a database of its own."""

from __future__ import annotations

import logging
import tempfile
from pathlib import Path

import click


@click.command(short_help="See it work: a database of its own, changes, their documents, a backlog.")
@click.option("--keep", is_flag=True, help="leave the database up until Ctrl-C, and say how to reach it")
@click.option("--backlog/--no-backlog", default=True, help="end with a hundred thousand rows  [default: yes]")
def demo(keep: bool, backlog: bool) -> None:
    """Start an embedded PostgreSQL, change a few rows, and print what is logged and what is sent."""
    from eventlog.demo import play
    from eventlog.demo.backlog import show

    # What is refused is told in the story itself.
    logging.getLogger("eventlog").handlers[:] = [logging.NullHandler()]
    with tempfile.TemporaryDirectory(prefix="eventlog-demo-") as folder:
        play.play(keep=keep, last=lambda: show(Path(folder)) if backlog else None)
