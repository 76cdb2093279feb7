"""A capture in a file is read on from the state after any delivery, and applied once, wherever it was cut."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from eventlog.core import tablesfile
from eventlog.core.change import ABSENT, Change, Field, Op
from eventlog.files.current_files import CurrentFiles
from eventlog.sql.connect import connect
from eventlog.transfer.connectors import SourceRequest
from eventlog.transfer.job import Job
from eventlog.transfer.opening import open_source
from eventlog.transfer.report import Report
from tests.formats.gbase.helpers import write_changes
from tests.kit.commands import Shell
from tests.kit.databases import Database as Placed
from tests.kit.statements import select_rows

pytestmark = pytest.mark.quick


def captured(size: int) -> bytes:
    """Return a capture of more than one piece: a transaction of seven rows, and others of so many."""
    changes = [
        Change(op, None, "usr", (("id", n),), _capture_fields(op, n), transaction=str((n + size - 7) // size))
        for n in range(3_000)
        for op in ((Op.INSERT, Op.UPDATE) if n % 3 else (Op.INSERT, Op.UPDATE, Op.DELETE))
    ]
    return write_changes(changes, USR)


@pytest.mark.parametrize("size", [7, 2_993])
@pytest.mark.long
def test_the_state_after_a_delivery_goes_on_with_what_follows(tmp_path: Path, size: int) -> None:
    capture = tmp_path / "usr.bin"
    capture.write_bytes(captured(size))
    job = Job("gbase", "changes", inputs=(str(capture),), tables=USR)

    def read(state: str | None) -> list[tuple[list[Change], str | None]]:
        report = Report(lambda refused: pytest.fail(refused.reason))
        with CurrentFiles() as current:
            source = open_source(SourceRequest(job.source, state, report, current))
            with closing(source):
                return [(list(one.changes), source.state) for one in report.accepted(source.round())]

    whole = read(None)
    assert sum(len(changes) for changes, _ in whole) == 7_000
    for number in (1, len(whole) // 2, len(whole)):
        assert read(whole[number - 1][1]) == whole[number:]


@pytest.mark.parametrize(("cut", "size"), [(0.3, 7), (0.8, 2_993)])
def test_a_capture_that_grows_is_applied_once(
    postgres: Placed, tmp_path: Path, cut: float, size: int
) -> None:
    """Apply a part of a capture, cut anywhere, and then all of it."""
    data = captured(size)
    capture, tables = tmp_path / "usr.bin", tmp_path / "t.toml"
    tables.write_text(USR_FILE)
    words = ("apply", "--from", "gbase", "--to-url", postgres.address)
    inserted = 0
    for part in (data[: int(len(data) * cut)], data):
        capture.write_bytes(part)
        done = Shell(tmp_path).run(*words, "--tables", str(tables), str(capture))
        assert " inserted" in done.stderr, done.stderr
        inserted += int(done.stderr.split(" inserted")[0].split()[-1])
    assert (done.code, inserted) == (0, 3_000), done
    kept = [n for n in range(3_000) if n % 3]
    found = select_rows(connect(postgres.url), "select id, name from usr order by id")
    assert found == [(n, f"John {n}") for n in kept]


USR_FILE = '[tables.usr]\nnumber = 1\nkey = ["id"]\ncolumns = { id = "integer", name = "varchar(40)" }\n'
USR = tablesfile.read(USR_FILE)


def _capture_fields(op: Op, number: int) -> tuple[Field, ...]:
    before = ABSENT if op is Op.INSERT else f"{'John' if op is Op.DELETE else 'Jack'} {number}"
    after = ABSENT if op is Op.DELETE else f"{'Jack' if op is Op.INSERT else 'John'} {number}"
    key = Field("id", ABSENT if op is Op.INSERT else number, ABSENT if op is Op.DELETE else number)
    return key, Field("name", before, after)
