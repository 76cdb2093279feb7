"""Run tests in turn until two functions have failed, and print ids: `python -m tests.mutants.finding`.

Each line of standard input is a job in JSON. `tests` are ids with or without parameters, or files; `finders`
fail for sure and do not run; after so many `seconds` a run ends if one function has failed. The output of a
job ends with the id of the first failure of each function, and with the exit code of pytest.

A job runs in a child of this process, which has imported libraries, but nothing that a fault may be in. Their
import takes three quarters of the CPU of a small job.
"""

from __future__ import annotations

import json
import os
import sys
import time
import traceback
from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Any

import pytest

from tests.mutants.faults import EXIT, file_of, function_of

ENOUGH = 2  # functions that fail, because one of them may be changed one day without a thought of this fault
SECONDS = 240.0  # after which one is enough
OPTIONS = ("-q", "-n", "0", "-p", "no:cacheprovider", "--continue-on-collection-errors", "--timeout", "120")


LIBRARIES = (
    *("alembic.command", "click.testing", "jinja2", "lxml.etree", "numpy"),
    *("prometheus_client", "psycopg", "pyarrow.compute", "pyarrow.csv", "pyarrow.parquet", "uvicorn"),
    *("rich.progress", "rich.table", "sqlalchemy.dialects.postgresql.psycopg"),
    *("http.client", "sqlalchemy.ext.compiler"),
)
OURS = "eventlog", "eventlog_spark", "tests"  # packages that each child imports


class Finders:
    """A plugin that runs tests in their turn, and ends the run when enough functions have failed."""

    def __init__(self, tests: Sequence[str], finders: Sequence[str], seconds: float) -> None:
        self._turns = {test: turn for turn, test in enumerate(tests)}
        self._functions = set(map(function_of, finders))  # that fail for sure
        self._patient_until = time.monotonic() + seconds
        self.ids: dict[str, str] = {}  # of the first failure, by function

    @pytest.hookimpl(wrapper=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> Iterator[None]:
        yield
        turns = {item: self._turn(item.nodeid) for item in items}
        items[:] = sorted(
            (
                item
                for item in items
                if turns[item] < len(self._turns) and function_of(item.nodeid) not in self._functions
            ),
            key=turns.__getitem__,
        )

    def _turn(self, test: str) -> int:
        names = test, function_of(test), file_of(test)
        return min(self._turns.get(name, len(self._turns)) for name in names)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        if function_of(item.nodeid) in self.ids:
            pytest.skip("another parameter has failed")

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.ids[report.nodeid] = report.nodeid

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.ids.setdefault(function_of(report.nodeid), report.nodeid)

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> None:
        enough = ENOUGH if time.monotonic() < self._patient_until else 1
        if len(self._functions) + len(self.ids) >= enough:
            item.session.shouldstop = "enough functions have failed"


def run(job: dict[str, Any]) -> int:
    """Run the tests of a job, print the ids, and return the exit code of pytest."""
    finders = Finders(**job)
    files = dict.fromkeys(map(file_of, job["tests"]))
    try:
        return pytest.main([*OPTIONS, *sys.argv[1:], *files], plugins=[finders])
    finally:  # pytest raises at its end if a failed test has left an open file
        print(f"\n{json.dumps(list(finders.ids.values()))}", flush=True)


def main() -> None:
    """Fork for each job; a child ends whatever threads a failed test has left."""
    for name in LIBRARIES:
        import_module(name)
    for line in iter(sys.stdin.readline, ""):
        child = os.fork()
        if not child:
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            for module in [name for name in sys.modules if name.partition(".")[0] in OURS]:
                del sys.modules[module]
            try:
                os._exit(import_module("tests.mutants.finding").run(json.loads(line)))
            except BaseException:
                traceback.print_exc()
                os._exit(pytest.ExitCode.INTERNAL_ERROR)
        print(f"{EXIT}{os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])}", flush=True)


if __name__ == "__main__":
    main()
