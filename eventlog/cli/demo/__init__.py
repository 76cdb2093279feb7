"""eventlog demo: see it work, in a database of its own."""

from __future__ import annotations

import click


@click.command()
@click.option("--fast", is_flag=True, help="on a terminal: do not wait for a key between the sections")
@click.option("--keep", is_flag=True, help="keep everything running until Ctrl-C, and print its addresses")
@click.option("--without-spark", is_flag=True, help="leave out the backlog on Spark")
def demo(fast: bool, keep: bool, without_spark: bool) -> None:
    """Start an embedded PostgreSQL, a publisher and a receiver, and show what is logged and what comes.

    Rows change, the publisher is killed and started again, and at the end a backlog is folded on Spark.
    On an idle machine the story takes seconds, and Spark about a minute. On a terminal each section waits
    for a key.
    """
    from eventlog.cli.demo.play import play

    play(keep=keep, fast=fast, spark=not without_spark)
