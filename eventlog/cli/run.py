"""eventlog run: the publisher, as a daemon or for one cycle."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from eventlog.cli.live import ALL, live_options, read_live
from eventlog.cli.options import SettingsCommand
from eventlog.config import Config
from eventlog.daemon import Daemon
from eventlog.monitor import MonitorSettings
from eventlog.monitor.board import Board
from eventlog.monitor.monitor import Monitor
from eventlog.monitor.server import serving
from eventlog.publishing.wake import Signals


@click.command(cls=SettingsCommand, short_help="Publish the log: a daemon, or one cycle.")
@click.option("--once", is_flag=True, help="one cycle, then stop")
@live_options(ALL, without=("pretty", "validate"))
def run(once: bool, config_file: Path | None, verbose: bool, log_format: str, **flags: Any) -> None:
    """Publish what stands in the log, until SIGTERM or SIGINT; SIGHUP reads the settings again.

    Several may run: one publishes, the others stand by and take over when it is gone.
    """
    config = read_live(flags, config_file, verbose, log_format)
    signals = Signals()
    monitor = Monitor()
    board = Board(monitor, config)

    def reread() -> Config:
        board.config = read_live(flags, config_file, verbose, log_format)
        return board.config

    daemon = Daemon(config, reread, signals, once=once, monitor=monitor)
    with signals.caught(), serving(config.build(MonitorSettings), monitor, board):
        daemon.run()
