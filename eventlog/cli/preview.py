"""eventlog preview: the documents that the next cycle would send."""

from __future__ import annotations

import sys

import click

from eventlog.cli.log_options import READING, live_options
from eventlog.cli.options import SettingsCommand
from eventlog.cli.terminal import draws, print_sentence, write_output
from eventlog.opening.config import Config
from eventlog.opening.publisher_settings import PublisherSettings
from eventlog.xds.documents import indent
from eventlog.xds.xds_settings import XdsSettings


@click.command(cls=SettingsCommand)
@live_options(READING, without=("delete_from_log", "retry_wait", "retry_longest"))
def preview(config: Config) -> None:
    """Print the documents of the pending rows that may go now, on a terminal indented. Nothing is sent and
    nothing changed.
    """
    from eventlog.opening.recorded_settings import opened_as_published
    from eventlog.publisher import batches  # what publishes takes a while to load
    from eventlog.publisher.preparation import chosen_kind, make_reader

    with opened_as_published(config, to_look=True) as (config, store):
        xds = config.build(XdsSettings)
        reader, choice = make_reader(config, store), config.build(PublisherSettings).choice()
        reading = store.read(lambda snapshot: reader.preview(snapshot, choice))
        is_pretty = chosen_kind(config) is None and (xds.pretty or draws(sys.stdout))
        for document in batches.pack(reading.events, xds.batch_size):
            write_output((indent(document.text) if is_pretty else document.text) + "\n")
    if not len(reading.events) and not reading.refused:
        print_sentence("no document would be sent")
    for row, reason in reading.refused:
        print_sentence(f"row {row} would get E: {reason}")
    if reading.refused:
        sys.exit(1)
