"""What commands that convert changes share: options, the report of refused records, the exit code."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import IO, Any

from eventlog.cli.options import read_tables
from eventlog.cli.refusals import RefusalPrinter
from eventlog.cli.terminal import print_sentence
from eventlog.core.plurals import quantity
from eventlog.jobs.job import Job
from eventlog.jobs.report import Report
from eventlog.jobs.signals import Signals
from eventlog.transfer.loop import RunLength


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
    expand_truncate: bool = False
    refused: Path | None = None
    strict: bool = False
    given: Mapping[str, Any] = field(default_factory=dict)  # settings by name

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
            self.given,
            self.expand_truncate,
            self.url,
            self.state,
        )


def job_options(command: Callable[..., None]) -> Callable[..., None]:
    """Call a command with its own options by name, and with all others as JobOptions."""
    own = list(inspect.signature(command).parameters)[1:]
    shared = [option.name for option in fields(JobOptions) if option.name != "given"]

    @functools.wraps(command)
    def called(**values: Any) -> None:
        by_name = {name: values.pop(name) for name in own}
        options = {name: values.pop(name) for name in shared if name in values}
        command(JobOptions(**options, given=values), **by_name)

    return called


@contextmanager
def reporting(keep: AbstractContextManager[IO[bytes]] | None, strict: bool) -> Iterator[Report]:
    """Print the refused records while the block runs, and keep them in a file."""
    with ExitStack() as stack:
        file = None if keep is None else stack.enter_context(keep)
        printer = RefusalPrinter()
        stack.callback(printer.close)
        yield Report(printer.print, file, strict, print_sentence)


@contextmanager
def until_signal() -> Iterator[RunLength]:
    """Follow a source until a signal ends the run."""
    with Signals().caught() as signals:
        yield RunLength(True, lambda seconds: not signals.sleep(seconds), lambda: signals.stop)


def exit_if_refused(report: Report, one: str = "bad record was", many: str = "bad records were") -> None:
    """Print how many records were left out, and exit with 1, if there were any."""
    if report.refused:
        print_sentence(f"{quantity(report.refused, one, many)} left out")
        sys.exit(1)
