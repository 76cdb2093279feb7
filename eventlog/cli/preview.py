"""eventlog preview: the documents that the next cycle would send."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from eventlog.cli.log_options import READING, live_options, read_live
from eventlog.cli.options import SettingsCommand
from eventlog.cli.terminal import draws, print_sentence, write_output
from eventlog.publisher import batches
from eventlog.publisher.open_log import opened
from eventlog.publisher.session import make_reader
from eventlog.publisher.settings import PublisherSettings
from eventlog.sinks.sink import document_text
from eventlog.xds.documents import indent
from eventlog.xds.settings import XdsSettings


@click.command(cls=SettingsCommand, short_help="Show what the next cycle would send")
@live_options(READING, without=("delete_from_log", "retry_wait", "retry_longest"))
def preview(config_file: Path | None, verbose: bool, log_format: str, **flags: Any) -> None:
    """Print the documents of the pending rows that may go now, on a terminal indented. Nothing is sent and
    nothing changed.
    """
    config = read_live(flags, config_file, verbose, log_format)
    with opened(config) as store:
        xds = config.build(XdsSettings)
        reader, choice = make_reader(config, store), config.build(PublisherSettings).choice()
        reading = store.read(lambda snapshot: reader.preview(snapshot, choice))
        for draft in batches.pack(reading.sendings, xds.batch_size):
            text = document_text([sending.text for sending in draft.sendings])
            is_pretty = text.startswith("<") and (xds.pretty or draws(sys.stdout))
            write_output((indent(text) if is_pretty else text) + "\n")
    if not reading.sendings and not reading.refused:
        print_sentence("no document would be sent")
    for row, reason in reading.refused:
        print_sentence(f"row {row} would get E: {reason}")
    if reading.refused:
        sys.exit(1)
