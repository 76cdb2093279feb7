"""eventlog receive: a receiver that plays the engine, with a page that shows what came."""

from __future__ import annotations

from contextlib import ExitStack, closing
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from eventlog.cli.terminal import print_line
from eventlog.core.errors import Misuse
from eventlog.files.signals import Signals
from eventlog.web.receiver.archive import KEEP, Archive
from eventlog.web.receiver.receiver import Receiver
from eventlog.web.server import serve
from eventlog.xds.answers import Level

FILE = "received.sqlite"
_LOOK = 3600.0  # seconds of one sleep, which a signal ends


class NoPort(Misuse):
    """nothing can be received at {0}, port {1}: {2}; --port 0 takes one that is free"""


@click.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="the address to listen at")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=8780, show_default=True, help="0 takes any that is free"
)
@click.option(
    "--answer",
    type=click.Choice([level.name.lower() for level in Level]),
    default="success",
    show_default=True,
    help="the level by which documents are answered, until the page sets another",
)
@click.option(
    "--file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="where documents are kept  [default: a temporary file, until the receiver ends]",
)
@click.option(
    "--keep",
    type=click.IntRange(1),
    default=KEEP,
    show_default=True,
    help="how many documents; older ones make room",
)
def receive(host: str, port: int, answer: str, file: Path | None, keep: int) -> None:
    """Accept nds documents by HTTP POST, answer them by one level, and show them in a page.

    The page is not protected: everyone who reaches the address sees what came.
    """
    with ExitStack() as stack:
        place = file or Path(stack.enter_context(TemporaryDirectory(prefix="eventlog-receive-"))) / FILE
        archive = stack.enter_context(closing(Archive(place, keep)))
        receiver = Receiver(archive, Level[answer.upper()])
        try:
            address = stack.enter_context(serve(receiver.app(host), host, port))
        except OSError as fault:
            raise NoPort(host, port, fault.strerror) from fault
        storage = f"in {file}" if file else "until it ends (--file keeps them for longer)"
        signals = stack.enter_context(Signals().caught())
        print_line(f"receiving at {address.url}; documents are kept {storage}; Ctrl-C ends it")
        while not signals.sleep(_LOOK):
            pass
