"""eventlog compare: what changed between two states of a table, given as files or as tables."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import pyarrow as pa
from sqlalchemy.engine import Connection

from eventlog.cli.backlog import Setting
from eventlog.cli.complaints import Complaints
from eventlog.cli.convert import FORMAT_NAMES
from eventlog.cli.guessing import guess, refuse_flags, refuse_strangers
from eventlog.cli.options import SettingsCommand, read_tables, settings_options, tables_option
from eventlog.cli.progress import progress
from eventlog.cli.terminal import say
from eventlog.compare.changes import changes, in_order
from eventlog.compare.files import files_of, read_file
from eventlog.compare.kept import Kept
from eventlog.compare.meeting import Difference, compare_memory, differences
from eventlog.compare.tables import at_hand, read_table, snapshot
from eventlog.convert.conversion import Job, Report, format_named, write_changes
from eventlog.core.errors import EventlogError, InvalidTables, Misuse
from eventlog.core.extras import extra
from eventlog.core.settings import build
from eventlog.core.tables import Table, Tables
from eventlog.files.inputs import Advance, check_inputs
from eventlog.files.limits import Limits
from eventlog.formats import FORMATS
from eventlog.publisher.references import among
from eventlog.sql.connect import connect

Found = tuple[Tables, Iterator[tuple[Table, Difference]]]  # the tables, and what differs in its order
Batches = Callable[[], Iterator[pa.RecordBatch]]


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


@click.command(cls=SettingsCommand, short_help="What changed between two states of a table.")
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
@click.option("--conf", multiple=True, type=Setting(), help="with --master, a setting of Spark")
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
    memory = settings.compare_memory << 20
    known = read_tables(tables_file) if tables_file else None
    with ExitStack() as stack:
        if master is None:
            files = [name for name in (old, new) if Path(name).exists()]
            advance = stack.enter_context(progress(files))
            sides = [
                _Side(name, address, container, limits, advance, stack, rows_of, begins=begins)
                for name, address, begins in ((old, url, _begins(old, keep)), (new, url_b or url, False))
            ]
            model, ordered = _here(stack, sides, known, keep, memory)
        else:
            model, ordered = _on_spark(stack, master, dict(conf), (old, new), known, rows_of)
        bad = stack.enter_context(refused.open("wb")) if refused else None
        complaints = Complaints()
        stack.callback(complaints.close)
        report = Report(complaints.tell, bad, strict)
        job = Job("changes", target, (), output, None, output_container, model, given=given)
        writing = {name: value for name, value in given.items() if value is not None}
        write_changes(job, format_named(target), report.good(changes(ordered)), report, writing, False)
        if report.refused and keep is not None:
            raise NotKept(report.refused, keep)
    if report.refused:
        say(f"{report.refused} changes were left out")
        sys.exit(1)


def _here(
    stack: ExitStack, sides: Sequence[_Side], known: Tables | None, keep: str | None, memory: int
) -> Found:
    """What differs between two sides that this process reads."""
    pairs = _pairs(known, *sides)
    model = Tables(among([one for one, *_ in pairs]), known.dialect if known else None)
    if keep is not None:
        pairs = [stack.enter_context(_keeping(keep, pairs))]
    return model, in_order(model, _differences(model, pairs, memory), memory)


def _on_spark(
    stack: ExitStack,
    master: str,
    conf: Mapping[str, str],
    names: tuple[str, str],
    known: Tables | None,
    rows_of: str | None,
) -> Found:
    """What differs between two states that Spark reads."""
    with extra("spark", "--master"):
        from eventlog_spark.cluster.session import session, translated
        from eventlog_spark.comparing import states
    if known is None:
        raise NoKeys
    stack.enter_context(translated())
    spark = stack.enter_context(session(master, conf))
    model, pairs = states.pairs_of(spark, *names, known, rows_of)
    return model, states.in_order(model, pairs)


def _begins(old: str, keep: str | None) -> bool:
    """Whether A is the file that is to be kept and is not there yet: then it holds nothing."""
    return keep is not None and Path(old).absolute() == Path(keep).absolute() and not Path(old).exists()


@contextmanager
def _keeping(
    name: str, pairs: Sequence[tuple[Table, Batches, Batches]]
) -> Iterator[tuple[Table, Batches, Batches]]:
    """The one pair of sides, the new one's rows being kept."""
    if len(pairs) > 1:
        raise Misuse("--keep: a file holds the rows of one table, and several are compared")
    ((table, old, new),) = pairs
    with Kept(name, table) as kept:
        yield table, old, lambda: kept.passing(new())


class NoKeys(Misuse):
    """which columns make the key? --tables names a tables file that says so"""


class NotKept(EventlogError):
    """{0} changes were left out, so {1} stays as it was: the next comparison finds them again"""


class _Side:
    """One of the two states."""

    def __init__(
        self,
        name: str,
        url: str | None,
        container: str | None,
        limits: Limits,
        advance: Advance,
        stack: ExitStack,
        table: str | None,
        *,
        begins: bool,
    ) -> None:
        self.name = name
        self._container = container
        self._limits = limits
        self._advance = advance
        self._only = table
        self._connection: Connection | None = None
        self.begins = begins  # nothing is there yet
        if begins:
            return
        if not Path(name).exists():
            if url is None:
                raise Misuse(f"{name}: no such file; of a table, --url says where it is")
            self._connection = stack.enter_context(snapshot(connect(url)))
        elif not Path(name).is_dir():
            check_inputs([name])

    @property
    def of_catalogue(self) -> Table | None:
        """The table as the catalogue describes it, None where the side is in files."""
        return None if self._connection is None else at_hand(self._connection, self.name).table

    def batches(self, tables: Tables) -> dict[Table, Batches]:
        """What reads the rows of each table that the side has."""
        if self.begins:
            return {table: lambda: iter(()) for table in tables}
        if self._connection is None:
            found = files_of(self.name, tables, self._only)
            return {table: self._reading(table, file) for table, file in found.items()}
        (table,) = (tables.get(self._only),) if self._only else _only(tables, self.name)
        readable = at_hand(self._connection, self.name, table)
        connection = self._connection
        return {table: lambda: read_table(connection, table, readable)}

    def _reading(self, table: Table, file: str) -> Batches:
        return lambda: read_file(table, file, self._container, self._advance, self._limits)


def _only(tables: Tables, name: str) -> tuple[Table]:
    """The table that a name means."""
    found = tables.find(name) or tables.find(name.rpartition(".")[2])
    if found is None and len(tables) == 1:
        (found,) = tables
    if found is None:
        raise Misuse(f"{name}: which table of the tables file is that? Say --rows-of TABLE")
    return (found,)


def _pairs(known: Tables | None, old: _Side, new: _Side) -> list[tuple[Table, Batches, Batches]]:
    """Each table with both of its sides; a folder that lacks a table's file is an error."""
    if known is None:
        own = new.of_catalogue or old.of_catalogue
        if own is None:
            raise NoKeys
        known = Tables([own])
    after = new.batches(known)
    before = old.batches(Tables(after) if old.begins else known)
    for one, other, side in ((before, after, new), (after, before, old)):
        for table in one.keys() - other.keys():
            raise Misuse(f"{side.name} has no rows of {table}")
    for table in after:
        if not table.key:
            raise InvalidTables(f"table {table} has no key: its rows cannot be told apart")
    return [(table, before[table], after[table]) for table in after]


def _differences(
    model: Tables, pairs: Iterable[tuple[Table, Batches, Batches]], memory: int
) -> Iterator[tuple[Table, Difference]]:
    for table, old, new in pairs:
        own = model.get(str(table))
        for one in differences(own, old(), new(), memory):
            yield own, one
