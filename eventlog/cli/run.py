"""eventlog run: the publisher, as a daemon or for one cycle."""

from __future__ import annotations

import errno
import logging
import re
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import click

from eventlog.cli.log_options import publisher_options
from eventlog.cli.options import SettingsCommand
from eventlog.cli.preflight import refuse_contradictions
from eventlog.core.errors import Misuse
from eventlog.core.plurals import quantity
from eventlog.core.settings import build
from eventlog.files.signals import Signals
from eventlog.opening.config import Config
from eventlog.opening.publisher_settings import DatabaseSettings, SessionSettings
from eventlog.sinks import check_sink, sink_kind
from eventlog.web.monitor import CLOSING, MonitorSettings

if TYPE_CHECKING:
    from eventlog.publisher.monitor import Monitor

logger = logging.getLogger("eventlog.run")


@click.command(cls=SettingsCommand)
@click.option("--once", is_flag=True, help="one cycle, then stop")
@publisher_options()
def run(once: bool, config: Config) -> None:
    """Publish the rows of the log until SIGTERM or SIGINT.

    Several publishers may run: one publishes, the others take over when its session ends.
    """
    from eventlog.opening.log_address import address_of_log
    from eventlog.opening.open_log import place_of_log
    from eventlog.publisher.daemon import Daemon  # what publishes takes a while to load
    from eventlog.publisher.monitor import Monitor
    from eventlog.publisher.tracing import tracing

    signals = Signals()
    monitor = Monitor(address_of_log(config))
    daemon = Daemon(config, signals, once=once, monitor=monitor)
    refuse_contradictions(config)
    check_sink(config.build(SessionSettings).sink, config.values)
    place_of_log(config).address()
    spans = tracing(config.build(DatabaseSettings).log_table, config.build(SessionSettings).sink)
    with signals.caught(), spans as monitor.tracing, serving(config, monitor) as port:
        logger.info(announcement(config, port))
        logger.info(
            "settings: %s", ", ".join(f"{name} = {value}" for name, value in config.shown()) or "none"
        )
        try:
            daemon.run()
        finally:
            counts = (
                quantity(monitor.cycles, "cycle"),
                quantity(monitor.documents, "document"),
                quantity(monitor.events, "event"),
            )
            logger.info("ended after %s", ", ".join(counts))


@contextmanager
def serving(config: Config, monitor: Monitor) -> Iterator[int | None]:
    """The port of /metrics, /healthz, /readyz and the status page is open while the block runs.

    Yield its number, None where none is wanted, and where another process has it: publishing goes on.
    """
    settings = config.build(MonitorSettings)
    host, port = settings.monitor_host, settings.monitor_port
    if not port:
        yield None
        return
    from eventlog.web.monitor.page_data import PageData
    from eventlog.web.monitor.pages import monitor_app  # imports Starlette and Jinja2
    from eventlog.web.server import PausingConnection, serve  # imports uvicorn

    page_data, ended = PageData(monitor, config), threading.Event()
    with ExitStack() as stack:
        try:
            app = monitor_app(monitor, page_data, host)
            address = stack.enter_context(serve(app, host, port, PausingConnection))
        except OSError as fault:
            words = f"{host}, port {port} (the setting monitor-port): {fault.strerror}"
            if fault.errno != errno.EADDRINUSE:
                raise Misuse(words) from fault
            monitor.no_page = words
            logger.warning("%s; this publisher has no status page, /metrics, /healthz and /readyz", words)
            yield None
            return
        stack.callback(ended.set)
        if settings.readers:
            logging.getLogger("eventlog.monitor").warning("%s: %s", settings.readers, CLOSING)
        threading.Thread(target=page_data.sample_often, args=(ended,), daemon=True).start()
        yield address.port


def announcement(config: Config, port: int | None) -> str:
    """Return a sentence about what is published, from where, to where, and about the status page."""
    sink = config.build(SessionSettings).sink
    kind = sink_kind(sink)
    settings: Any = build(kind.settings, config.values)
    place = f" {re.split('[ ?#]', str(getattr(settings, kind.place)))[0]}" if kind.place else ""
    page = f"; status page at http://{config.build(MonitorSettings).monitor_host}:{port}/" if port else ""
    return f"publishing {_source(config)} to {sink}{place}{page}"


def _source(config: Config) -> str:
    from eventlog.sql.connect import read_url

    settings = config.build(DatabaseSettings)
    if not settings.url:
        return settings.log_table
    url = read_url(settings.url)
    port = f":{url.port}" if url.port else ""
    place = f"{url.get_backend_name()}://{url.host or ''}{port}/{url.database or ''}"
    return f"{settings.log_table} of {place}" + (f" as {url.username}" if url.username else "")
