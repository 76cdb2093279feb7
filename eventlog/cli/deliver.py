"""eventlog deliver: xds documents of a file through any sink."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import click

from eventlog.cli.log_options import INPUT, SINK, live_options
from eventlog.cli.options import FILE_NAME, SettingsCommand
from eventlog.cli.preflight import refuse_other_sinks
from eventlog.cli.terminal import print_sentence
from eventlog.core.errors import Misuse
from eventlog.core.plurals import quantity
from eventlog.files.durable import open_to_write
from eventlog.files.inputs import open_input
from eventlog.files.limits import Limits
from eventlog.opening.config import Config
from eventlog.opening.publisher_settings import PublisherSettings, SessionSettings
from eventlog.opening.waits import Waits
from eventlog.operate.file_delivery import AnswerMemory, FileDelivery, memory_of
from eventlog.sinks import open_sink
from eventlog.xds.split import BEGINNING, may_begin

_CHUNK = 1 << 20
# What only a log has, or a file of rows; and a file's documents go one after another.
NOT_DELIVERING = ("delete_from_log", "query_limit", "wake_up", "post_poll_stmt", "http_connections")


@click.command(cls=SettingsCommand)
@click.argument("file", type=FILE_NAME, default="-")
@click.option(
    "--state",
    type=click.Path(path_type=Path),
    help="remember here what was delivered  [default: FILE.delivered]",
)
@click.option(
    "--tries",
    type=click.IntRange(1),
    metavar="N",
    help="end after N tries, with exit code 1 if events are left  [default: no limit]",
)
@live_options((*INPUT, *SINK, ("retries", PublisherSettings)), without=NOT_DELIVERING)
def deliver(file: str, state: Path | None, tries: int | None, config: Config) -> None:
    """Send the xds documents of FILE, or of standard input, as the publisher would.

    Events that are answered with retry, or not at all, are sent again, and hold back only the later
    events of their object. What was answered is on record, with each try that did not succeed at once; a
    second run sends only the rest.
    """
    from eventlog.publisher.preparation import chosen_kind  # what publishes takes a while to load

    refuse_other_sinks(config)
    settings, limits = config.build(PublisherSettings), config.build(Limits)
    if (kind := chosen_kind(config)) is not None and kind.writer is not None:
        raise Misuse("these documents are XDS, and the setting document is of another kind: leave it out")
    with tempfile.TemporaryDirectory() as folder:
        source = _rereadable(file, Path(folder))
        _need_documents(source, file)
        sink = open_sink(config.build(SessionSettings).sink, config.values)
        answers = AnswerMemory(state) if state else memory_of(Path(source))
        delivery = FileDelivery(
            sink,
            answers,
            Waits(settings.retry_wait, settings.retry_longest),
            print_sentence,
            max_event=limits.max_record,
            max_tries=tries,
        )
        delivery.run(lambda: _chunks(source))
        sink.close()
        answers.close()
    if delivery.is_given_up:
        print_sentence(f"given up after {quantity(tries or 0, 'try', 'tries')}: events are left")
    levels = [f"{count} {level}" for level, count in delivery.levels.items()]
    print_sentence(", ".join(levels) if levels else _why_no_answer(delivery, file))
    if delivery.is_given_up or delivery.levels.keys() - {"success", "warning"}:
        sys.exit(1)


def _why_no_answer(delivery: FileDelivery, name: str) -> str:
    if delivery.is_given_up:
        return "no event was answered"
    return "nothing was left to send" if delivery.has_events else f"{_shown(name)} holds no event"


def _shown(name: str) -> str:
    return "standard input" if name == "-" else name


def _rereadable(name: str, folder: Path) -> str:
    """Return a file that can be read twice: standard input and pipes are copied into the folder."""
    path = Path(name)
    if name == "-":
        return _copy(sys.stdin.buffer, folder / "documents.xml")
    if path.is_fifo():
        with path.open("rb") as pipe:
            return _copy(pipe, folder / path.name)
    if path.exists() and not path.is_file():
        raise Misuse(f"{name} is no regular file: documents may also come by a pipe")
    return name


def _need_documents(source: str, name: str) -> None:
    """Raise Misuse if no document begins in a file, before anything is made for it."""
    with open_input(source) as file:
        if not may_begin(file.read(BEGINNING)):
            raise Misuse(f"{_shown(name)} holds no XDS documents: make them with eventlog convert --to xds")


def _copy(source: IO[bytes], path: Path) -> str:
    with open_to_write(path, "w") as copy:
        shutil.copyfileobj(source, copy)
    return str(path)


def _chunks(name: str) -> Iterator[bytes]:
    with open_input(name) as source:
        while piece := source.read(_CHUNK):
            yield piece
