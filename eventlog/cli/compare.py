"""eventlog compare: what changed between two states of a table, given as files or as tables."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from eventlog.cli.backlog import NameAndValue
from eventlog.cli.convert import FORMAT_NAMES
from eventlog.cli.distinct_files import require_distinct_files
from eventlog.cli.format_names import guess, refuse_flags, refuse_strangers
from eventlog.cli.options import SettingsCommand, read_tables, settings_options, tables_option
from eventlog.cli.progress import progress
from eventlog.cli.refusals import RefusalPrinter
from eventlog.cli.terminal import print_sentence
from eventlog.compare.memory import compare_memory
from eventlog.convert.conversion import Job, Report, format_named, write_changes
from eventlog.core.errors import EventlogError
from eventlog.core.formats import Shape
from eventlog.core.plurals import quantity
from eventlog.core.settings import build
from eventlog.files.inputs import container_of
from eventlog.files.limits import Limits
from eventlog.files.outputs import Output
from eventlog.files.writing import opened
from eventlog.formats import FORMATS
from eventlog.neutral import load


@dataclass(frozen=True, slots=True)
class CompareSettings:
    """How two states are compared."""

    compare_memory: int = compare_memory()


DECLARING = [
    ("comparing", CompareSettings),
    ("the input", Limits),
    *((name, known.settings) for name, known in FORMATS.items()),
]


_NOT_ON_SPARK = {"url", "url_b", "keep", "container"}


@click.command(cls=SettingsCommand, short_help="Find what changed between two states of a table")
@click.argument("old", metavar="A")
@click.argument("new", metavar="B")
@click.option("--to", "target_format", type=FORMAT_NAMES, help="what to write  [default: by name of -o]")
@click.option(
    "-o", "--output", default="-", help="a file, or a folder (DIR/) for several tables  [default: -]"
)
@click.option("--as", "container", help="the files' container where names do not tell: csv, jsonl, parquet")
@click.option("--output-as", "output_container", help="the output's container, likewise")
@tables_option
@click.option("--rows-of", metavar="TABLE", help="the table whose rows A and B hold, where names do not tell")
@click.option("--url", help="the database whose tables A and B name, where they are no files")
@click.option("--url-b", help="the database of B, where that is another one than A's")
@click.option(
    "--keep",
    type=click.Path(dir_okay=False),
    help="keep B's rows in this Parquet file when all is written; it may be A, and need not be there yet",
)
@click.option("--master", help="compare on Spark, on this master, as in local[*]: A and B are Parquet then")
@click.option("--conf", multiple=True, type=NameAndValue(), help="with --master, a setting of Spark")
@click.option("--refused", type=click.Path(path_type=Path), help="keep changes that cannot be told here")
@click.option("--strict", is_flag=True, help="stop at the first of them")
@settings_options(DECLARING)
def compare(
    old: str,
    new: str,
    target_format: str | None,
    output: str,
    container: str | None,
    output_container: str | None,
    tables_file: Path | None,
    rows_of: str | None,
    url: str | None,
    url_b: str | None,
    keep: str | None,
    master: str | None,
    conf: Sequence[tuple[str, str]],
    refused: Path | None,
    strict: bool,
    **given: Any,
) -> None:
    """Write what has to happen to A for it to be B: rows that are gone, new and changed.

    A and B are files of rows as --current takes them (.csv, .jsonl, .parquet, also .gz), folders of such
    files named after their tables, or tables of a database. The tables file says which columns make the
    key; of tables in a database the catalogue does. Rows may come in any order.

    With --master Spark compares: A and B are Parquet files, or folders of them, on any storage that it reads.
    """
    target = guess("changes", target_format, (), output).target
    if master is None:
        refuse_flags({"conf"}, "is a setting of Spark: --master says where that runs")
        refuse_strangers(DECLARING, {"comparing", "the input", target})
    else:
        refuse_flags(_NOT_ON_SPARK, "takes no part on Spark: it compares Parquet with Parquet")
        refuse_strangers(DECLARING, {target})
    settings, limits = build(CompareSettings, given), build(Limits, given)
    known = read_tables(tables_file) if tables_file else None
    written = {"-o": output, "--refused": refused}
    require_distinct_files(written, () if url else (old,))
    require_distinct_files(
        {**written, "--keep": keep}, (tables_file,) if url_b or url else (new, tables_file)
    )
    from eventlog.cli import states  # Arrow takes a while to load

    with ExitStack() as stack:
        if master is None:
            files = [name for name in (old, new) if Path(name).exists()]
            advance = stack.enter_context(progress(files))
            sides = [
                states.GivenState(name, address, container, limits, advance, stack, rows_of, begins=begins)
                for name, address, begins in (
                    (old, url, states.begins(old, keep)),
                    (new, url_b or url, False),
                )
            ]
            model, found = states.here(stack, sides, known, keep, settings.compare_memory << 20)
        else:
            model, found = states.on_spark(stack, master, dict(conf), (old, new), known, rows_of)
        bad = stack.enter_context(opened(refused, "w")) if refused else None
        complaints = RefusalPrinter()
        stack.callback(complaints.close)
        report = Report(complaints.print, bad, strict)
        job = Job("changes", target, (), output, None, output_container, model, given=given)
        writing = {name: value for name, value in given.items() if value is not None}
        lines: Iterator[str] = report.good(found)
        if target == "changes" and _on_lines(output, output_container):
            _write_lines(output, lines)
        else:
            told = (load(json.loads(line)) for line in lines)
            write_changes(job, format_named(target), told, report, writing, False)
        if report.refused and keep is not None:
            raise NotKept(quantity(report.refused, "change was", "changes were"), keep)
    if report.refused:
        print_sentence(f"{quantity(report.refused, 'change was', 'changes were')} left out")
        sys.exit(1)


def _on_lines(output: str, container: str | None) -> bool:
    return container_of(output, Shape.OBJECTS, container, "--output-as") == "jsonl"


def _write_lines(name: str, lines: Iterable[str]) -> None:
    with Output(name, Shape.BYTES, None) as output:
        for line in lines:
            output.write(line.encode() + b"\n")


class NotKept(EventlogError):
    """{0} left out, so {1} stays as it was: the next comparison finds them again"""
