"""A queue in a table of a database, which is read while others write to it."""

from __future__ import annotations

import json
import time
from base64 import b64decode
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from eventlog.core.errors import Misuse, Refused
from eventlog.formats.linter.columns import DISPATCH
from eventlog.transfer.convert import convert
from eventlog.transfer.job import Job
from eventlog.transfer.report import Report
from tests.formats.linter.helpers import LAYOUT, ROW_1, end, operation
from tests.kit.databases import Database
from tests.kit.statements import run_statements
from tests.kit.support import CLOCK

pytestmark = pytest.mark.quick

KINDS: dict[str, Callable[[], Any]] = {
    "int": sa.BigInteger,
    "bytes": lambda: sa.LargeBinary(3400),
    "text": lambda: sa.String(80),
}
QUEUE = sa.Table(
    "dispatch_queue", sa.MetaData(), *(sa.Column(c.name.lower(), KINDS[c.type]()) for c in DISPATCH)
)


@pytest.fixture
def engine(database: Database) -> sa.Engine:
    engine = database.engine()
    QUEUE.create(engine)
    return engine


def add(engine: sa.Engine, *reported: tuple[Any, ...]) -> None:
    with engine.begin() as connection:
        for cells in reported:
            values = {
                c.name.lower(): bytes.fromhex(cell) if c.type == "bytes" and cell is not None else cell
                for c, cell in zip(DISPATCH, cells, strict=True)
            }
            connection.execute(QUEUE.insert().values(values))


def job(folder: Path, engine: sa.Engine, output: str = "out.jsonl") -> Job:
    url = engine.url.render_as_string(hide_password=False)
    state, out = folder / "state.json", f"{folder}/{output}"
    return Job("linter", "changes", ("dispatch_queue",), out, tables=LAYOUT, url=url, state=state)


def test_bad_records_are_on_disk_before_the_state_passes_them_over(tmp_path: Path, engine: sa.Engine) -> None:
    add(engine, operation(2, ROW_1, b"contradicts"), end())
    with open("/dev/full", "wb", buffering=1 << 16) as full:
        with pytest.raises(OSError, match="No space left"):
            convert(job(tmp_path, engine), Report(lambda reported: None, full), CLOCK)
        with pytest.raises(OSError, match="No space left"):
            full.close()
    kept = tmp_path / "refused"
    with kept.open("wb") as file:
        convert(job(tmp_path, engine), Report(lambda reported: None, file), CLOCK)
    assert b"contradicts" in kept.read_bytes()


def test_what_is_removed_while_a_queue_is_read_is_read_whole(tmp_path: Path, engine: sa.Engine) -> None:
    """Read a transaction on both sides of the journal's new start, which is sent meanwhile."""
    later = "3b9acbff4000"
    add(engine, operation(2, ROW_1, SYSLOG_ADDR=800, TRANSACT_ID=4), end(SYSLOG_ADDR=810, TRANSACT_ID=4))
    convert(job(tmp_path, engine), Report(print), CLOCK)
    add(
        engine,
        operation(2, ROW_1, SYSLOG_ADDR=900),
        operation(6, ROW_1, SYSLOG_ADDR=910),
        operation(3, ROW_1, ROW_1, SYSLOG_ADDR=4, OPER_DATE=later),
        end(SYSLOG_ADDR=5, OPER_DATE=later),
    )

    def send(reported: Refused) -> None:
        with engine.begin() as connection:
            connection.execute(QUEUE.delete())

    convert(job(tmp_path, engine), Report(send), CLOCK)
    reported = [json.loads(line)["op"] for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert reported == ["insert", "insert", "update"]


def test_columns_that_differ_in_case_alone_are_misuse(tmp_path: Path, postgres: Database) -> None:
    """Refuse such columns, because it would be unknown which one is read."""
    engine = postgres.engine()
    QUEUE.create(engine)
    run_statements(engine, 'alter table dispatch_queue add "DATA" bytea')
    with pytest.raises(Misuse, match="dispatch_queue has the columns data and DATA, which are one name"):
        convert(job(tmp_path, engine), Report(print), CLOCK)


def test_rows_without_an_address_come_last(tmp_path: Path, engine: sa.Engine) -> None:
    """Read rows of transaction ends without addresses last; databases sort nulls differently."""
    add(engine, end(SYSLOG_ADDR=None), operation(2, ROW_1))
    convert(job(tmp_path, engine), Report(print), CLOCK)
    assert len((tmp_path / "out.jsonl").read_text().splitlines()) == 1


def test_a_queue_without_addresses_is_read_by_its_dates(tmp_path: Path, engine: sa.Engine) -> None:
    """Read a receiving queue: parts follow each other, and an end follows the operations of its date."""
    columns = [column for column in QUEUE.columns if column.name != "syslog_addr"]
    received = sa.Table("received", sa.MetaData(), *(sa.Column(c.name, c.type) for c in columns))
    received.create(engine)
    data = bytes(range(4)) * 900
    halves = [(data[:3400], 1700, 1700), (data[3400:], 100, 100)]
    with engine.begin() as connection:
        for second in (2, 1):
            date = bytes.fromhex(f"3b9acaf{second}0000")
            common = {"oper_date": date, "transact_id": second, "tabnum_src": 7, "rowid_src": 1}
            rows = [
                common | {"typ": 4, "extdata": 0, "len1": 0, "len2": 0},
                *(
                    common | {"typ": 3, "extdata": at, "len1": len1, "len2": len2, "data": part}
                    for at, (part, len1, len2) in enumerate(halves)
                ),
            ]
            for row in reversed(rows):
                connection.execute(received.insert().values(row))
    convert(replace(job(tmp_path, engine), inputs=("received",)), Report(print), CLOCK)
    changes = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [change["transaction"] for change in changes] == ["/1", "/2"]
    images = [b64decode(change["raw"]["after"]["base64"]) for change in changes]
    assert images == [data[1700:3400] + data[3500:]] * 2


@pytest.mark.long
def test_work_grows_with_the_queue(tmp_path: Path, postgres: Database) -> None:
    """Keep the work linear; it was quadratic, because each change looked at all earlier ones."""
    engine = postgres.engine()
    QUEUE.create(engine)
    taken = []
    for part in (range(1000), range(1000, 8000)):
        reported = [
            row
            for n in part
            for row in (
                operation(2, ROW_1, SYSLOG_ADDR=1000 + 10 * n, TRANSACT_ID=n),
                end(SYSLOG_ADDR=1005 + 10 * n, TRANSACT_ID=n),
            )
        ]
        add(engine, *reported)
        started = time.process_time()
        folder = tmp_path / str(len(part))
        folder.mkdir()
        convert(job(folder, engine, "out/"), Report(lambda reported: None), CLOCK)
        taken.append(time.process_time() - started)
    assert taken[1] < 16 * taken[0]  # of eight times as many
