"""What commands that convert changes share: options, the report of refused records, the exit code."""

from __future__ import annotations

import functools
import inspect
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import IO, Any

from eventlog.cli.options import read_tables
from eventlog.cli.terminal import print_line, print_sentence
from eventlog.core.errors import Refused
from eventlog.core.plurals import quantity
from eventlog.files.signals import Signals
from eventlog.transfer.job import Job
from eventlog.transfer.loop import RunLength
from eventlog.transfer.report import Report

IN_FULL = 3  # refused records of one kind that are printed
_KINDS = 1000  # of reasons that are counted
_PARTICULAR = re.compile(r"'[^']*'|\"[^\"]*\"|\d+")


@dataclass(frozen=True)
class JobOptions:
    """The options for what is read and written; a command has some or all of them."""

    inputs: tuple[str, ...] = ()
    source_format: str | None = None
    target_format: str | None = None
    output: str | None = None
    container: str | None = None
    output_container: str | None = None
    tables_file: Path | None = None
    current: tuple[tuple[str, str], ...] = ()
    url: str | None = None
    state: Path | None = None
    cases: Path | None = None
    expand_truncate: bool = False
    refused: Path | None = None
    strict: bool = False
    settings: Mapping[str, Any] = field(default_factory=dict)  # settings by name

    def job(self, source: str, target: str, inputs: tuple[str, ...], output: str = "-") -> Job:
        """Return the job of these options."""
        return Job(
            source,
            target,
            inputs,
            output,
            self.container,
            self.output_container,
            read_tables(self.tables_file),
            self.current,
            self.settings,
            self.expand_truncate,
            self.url,
            self.state,
            self.cases,
        )


def job_options(command: Callable[..., None]) -> Callable[..., None]:
    """Call a command with its own options by name, and with all others as JobOptions."""
    command_parameters = list(inspect.signature(command).parameters)[1:]
    shared = [option.name for option in fields(JobOptions) if option.name != "settings"]

    @functools.wraps(command)
    def called(**values: Any) -> None:
        by_name = {name: values.pop(name) for name in command_parameters}
        options = {name: values.pop(name) for name in shared if name in values}
        command(JobOptions(**options, settings=values), **by_name)

    return called


class RefusalPrinter:
    """A printer of bad records; `close` reports those that were only counted."""

    def __init__(self, print_line: Callable[[str], object] = print_line) -> None:
        self._print_line = print_line
        self._counts: Counter[str] = Counter()
        self._last: dict[str, Refused] = {}

    def print(self, refused: Refused) -> None:
        """Print or count a bad record; reasons of one kind differ only in numbers and quoted words."""
        kind = _PARTICULAR.sub("…", refused.reason)
        if kind not in self._counts and len(self._counts) >= _KINDS:
            kind = "other reasons"
        self._counts[kind] += 1
        if self._counts[kind] <= IN_FULL:
            self._print_line(f"{refused.where}: {refused.reason}")
        else:
            self._last[kind] = refused

    def close(self) -> None:
        """Print the number of records of each kind that were only counted."""
        for kind, last in self._last.items():
            unprinted_count = self._counts[kind] - IN_FULL
            self._print_line(f"and {unprinted_count} more, the last at {last.where}: {last.reason}")


@contextmanager
def reporting(
    refused_file: AbstractContextManager[IO[bytes]] | None, strict: bool, *, in_lines: bool = True
) -> Iterator[Report]:
    """Print the refused records while the block runs, and keep them in a file."""
    with ExitStack() as stack:
        opened_file = None if refused_file is None else stack.enter_context(refused_file)
        printer = RefusalPrinter()
        stack.callback(printer.close)
        yield Report(printer.print, opened_file, strict, print_sentence, in_lines=in_lines)


@contextmanager
def until_signal() -> Iterator[RunLength]:
    """Follow a source until a signal ends the run."""
    with Signals().caught() as signals:
        yield RunLength(True, lambda seconds: not signals.sleep(seconds), lambda: signals.stop)


def exit_if_refused(
    report: Report, singular: str = "bad record was left out", plural: str = "bad records were left out"
) -> None:
    """Print how many records are bad, and exit with 1 if there are any, with 2 if a file is bad.

    One bad file has a line of its own already.
    """
    records = report.refused - report.bad_files
    if records:
        print_sentence(quantity(records, singular, plural))
    if report.bad_files > 1:
        print_sentence(f"{quantity(report.bad_files, 'file')} could not be read to its end")
    if report.refused:
        sys.exit(2 if report.bad_files else 1)
