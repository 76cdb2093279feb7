"""The progress of reading files with states is reported byte by byte, like that of other files."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from eventlog.core import tablesfile
from eventlog.core.errors import Refused
from eventlog.targets.tables.apply_settings import ApplySettings
from eventlog.transfer.apply import apply_to_database
from eventlog.transfer.job import Job
from eventlog.transfer.report import Report
from tests.kit.databases import Database

pytestmark = pytest.mark.quick

TABLES = tablesfile.read('[tables.usr]\nkey = ["idu"]\ncolumns = { idu = "integer", fname = "varchar(8)" }\n')
HEAD = "header__change_seq,header__change_oper,header__stream_position,header__timestamp,idu,fname\n"


@pytest.mark.parametrize("tables", [1, 3])
def test_every_byte_of_change_tables_is_reported_once(
    postgres: Database, tmp_path: Path, tables: int
) -> None:
    names = []
    for number in range(tables):
        lines = [
            f"20250101000000{number * 9 + n:021},I,1,2025-01-01 00:00:00,{number * 9 + n},n\n"
            for n in range(9)
        ]
        path = tmp_path / str(number) / "usr__ct.csv"
        path.parent.mkdir()
        path.write_text(HEAD + "".join(lines))
        names.append(str(path))
    reported: list[int] = []
    refused: list[Refused] = []
    job = Job("qlik-table", "changes", tuple(names), tables=TABLES)
    url = postgres.address
    report = Report(refused.append, io.BytesIO(), False)
    tally = apply_to_database(
        job, url, ApplySettings(), report, "2025-01-02 00:00:00.000000", reported.append
    )
    assert (refused, tally.inserted) == ([], 9 * tables)
    assert sum(reported) == sum(Path(name).stat().st_size for name in names)
