"""eventlog compare: what changed between two states of a table, given as files or as tables."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import click

from eventlog.cli.convert import FORMAT_NAMES
from eventlog.cli.format_names import guess
from eventlog.cli.job import JobOptions, exit_if_refused, job_options, reporting
from eventlog.cli.options import (
    FILE_NAME,
    SettingsCommand,
    read_tables,
    refuse_unused_settings,
    settings_options,
    shared_options,
)
from eventlog.cli.progress import progress
from eventlog.compare import compare_memory
from eventlog.core.errors import EventlogError
from eventlog.core.formats import Shape
from eventlog.core.plurals import quantity
from eventlog.core.settings import build
from eventlog.core.tables import Tables
from eventlog.files.durable import open_to_write
from eventlog.files.inputs import container_of
from eventlog.files.limits import Limits
from eventlog.files.outputs import Output
from eventlog.formats.neutral import load
from eventlog.transfer.connectors import Endpoint
from eventlog.transfer.format_registry import FORMATS
from eventlog.transfer.job_output import write_whole_output
from eventlog.transfer.report import Report
from eventlog.transfer.settings_by_name import SettingsByName


@dataclass(frozen=True, slots=True)
class CompareSettings:
    """The settings of a comparison."""

    compare_memory: int = compare_memory()


DECLARING = [
    ("comparing", CompareSettings),
    ("the input", Limits),
    *((name, tables.settings) for name, tables in FORMATS.items()),
]


@click.command(cls=SettingsCommand)
@click.argument("before", type=FILE_NAME, metavar="A")
@click.argument("after", type=FILE_NAME, metavar="B")
@click.option("--to", "target_format", type=FORMAT_NAMES, help="what to write  [default: by name of -o]")
@click.option(
    "-o",
    "--output",
    type=FILE_NAME,
    default="-",
    help="a file, or a folder (DIR/) for several tables  [default: -]",
)
@shared_options("--as", "--output-as", "--tables")
@click.option(
    "--table",
    "rows_of",
    metavar="TABLE",
    help="the table whose rows A and B hold, if their names do not show it",
)
@click.option("--url", help="the database whose tables A and B name, where they are no files")
@click.option("--url-b", help="the database of B, where that is another one than A's")
@click.option(
    "--keep",
    type=click.Path(dir_okay=False),
    help="keep B's rows in this Parquet file when all is written; it may be A, and need not be there yet",
)
@shared_options("--refused", "--strict")
@settings_options(DECLARING, without=("table",))
@job_options
def compare(
    options: JobOptions, before: str, after: str, rows_of: str | None, url_b: str | None, keep: str | None
) -> None:
    """Write the changes that turn A into B: rows that are gone, new and changed.

    A and B are files of rows as --current takes them (.csv, .jsonl, .parquet, also .gz), folders of such
    files named after their tables, or tables of a database. The tables file names the columns of the
    key; for tables in a database the catalogue does. Rows may come in any order.
    """
    from eventlog.cli import compared_sides  # Arrow takes a while to load

    target = guess("changes", options.target_format, (), options.output).target
    refuse_unused_settings(DECLARING, {"comparing", "the input", target})
    tables = read_tables(options.tables_file) if options.tables_file else None
    refused_file = open_to_write(options.refused, "w") if options.refused else None
    with reporting(refused_file, options.strict) as report, ExitStack() as stack:
        files = [name for name in (before, after) if Path(name).exists()]
        advance = stack.enter_context(progress(files, output=options.output or "-"))
        limits = build(Limits, options.settings)
        sides = [
            compared_sides.Side(
                name, url, options.container, limits, advance, stack, rows_of, is_empty=is_empty
            )
            for name, url, is_empty in (
                (before, options.url, compared_sides.starts_empty(before, keep)),
                (after, url_b or options.url, False),
            )
        ]
        memory = build(CompareSettings, options.settings).compare_memory << 20
        model, lines = compared_sides.compare_sides(stack, sides, tables, keep, memory)
        _write(options, target, model, report.accepted(lines), report)
        if report.refused and keep is not None:
            raise NotKept(quantity(report.refused, "change was", "changes were"), keep)
    exit_if_refused(report, "change was left out", "changes were left out")


def _write(options: JobOptions, target: str, model: Tables, lines: Iterator[str], report: Report) -> None:
    """Write the differences in the target's format; lines of `changes` are copied."""
    output = str(options.output)
    if (
        target == "changes"
        and container_of(output, Shape.OBJECTS, options.output_container, "--output-as") == "jsonl"
    ):
        with Output(output, Shape.BYTES, None) as out:
            for line in lines:
                out.write(line.encode() + b"\n")
        return
    settings = SettingsByName(options.settings)
    end = Endpoint(FORMATS[target], (output,), model, settings, options.output_container)
    write_whole_output(end, report, (load(json.loads(line)) for line in lines))


class NotKept(EventlogError):
    """{0} left out, so {1} stays as it was: the next comparison finds them again"""
