"""A tracked copy gives changes of any source a receipt, whatever is killed (docs/convert/any-source.md)."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from itertools import groupby
from pathlib import Path

import pytest
from confluent_kafka import Producer
from sqlalchemy import text

from eventlog.core import tablesfile
from eventlog.core.change import ABSENT, Change, Field, Op
from eventlog.sql.connect import connect
from tests.formats.gbase.helpers import write_changes
from tests.kit.brokers import MOCK, addresses, own_name
from tests.kit.commands import ROOT, Shell
from tests.kit.databases import Database
from tests.kit.statements import run_statements
from tests.kit.support import until
from tests.world.rig import PATIENCE, SEED

pytestmark = pytest.mark.long

TABLES = '[tables.usr]\nnumber = 1\nkey = ["id"]\ncolumns = { id = "integer", name = "varchar(40)" }\n'
KEYS, TRANSACTIONS, STEPS = 12, 120, 6
Reveal = Callable[[float], object]  # this share of the source


def history(dice: random.Random) -> tuple[list[Change], dict[int, str]]:
    """Return transactions on a few hot rows, and the rows after them."""
    rows: dict[int, str] = {}
    changes = []
    for number in range(TRANSACTIONS):
        for key in dice.sample(range(KEYS), dice.randint(1, 4)):
            is_new, name = key not in rows, f"{key} in {number}"
            op = Op.INSERT if is_new else dice.choice((Op.UPDATE, Op.UPDATE, Op.DELETE))
            before, after = rows.pop(key, ABSENT), (ABSENT if op is Op.DELETE else name)
            ends = (ABSENT if side is ABSENT else key for side in (before, after))
            fields = (Field("id", *ends), Field("name", before, after))
            changes.append(Change(op, None, "usr", (("id", key),), fields, transaction=str(number)))
            if op is not Op.DELETE:
                rows[key] = name
    return changes, rows


@contextmanager
def debezium(folder: Path) -> Iterator[tuple[list[str], Reveal]]:
    converted = Shell(folder).run(
        *("convert", "--from", "gbase", "--to", "debezium", "--message-keys"),
        *("--tables", "tables.toml", "usr.bin", "-o", "usr.jsonl"),
    )
    assert converted.code == 0, converted
    messages = [json.loads(line) for line in (folder / "usr.jsonl").read_text().splitlines()]
    topic, sent = own_name("usr"), 0
    with addresses(MOCK) as brokers:
        producer = Producer({"bootstrap.servers": brokers, "log_level": 0})

        def reveal(share: float) -> None:
            """Send more; what was sent last comes again, as after a restart of the connector."""
            nonlocal sent
            upto = int(share * len(messages))
            for message in messages[max(0, sent - 3) : upto]:
                value = None if message["value"] is None else json.dumps(message["value"])
                producer.produce(topic, value, json.dumps(message["key"]), partition=message["key"]["id"] % 2)
            producer.flush(30)
            sent = upto

        options = ("--kafka", topic, "--kafka-brokers", brokers, "--kafka-timeout", "2")
        yield ["--from", "debezium", *options, "--kafka-options", "log_level=0"], reveal


@contextmanager
def change_table(folder: Path) -> Iterator[tuple[list[str], Reveal]]:
    converted = Shell(folder).run(
        *("convert", "--from", "gbase", "--to", "qlik-table"),
        *("--tables", "tables.toml", "usr.bin", "-o", "whole__ct.csv"),
    )
    assert converted.code == 0, converted
    head, *lines = (folder / "whole__ct.csv").read_text().splitlines(keepends=True)
    at = head.split(",").index("header__transaction_id")
    parts = ["".join(part) for _, part in groupby(lines, key=lambda line: line.split(",")[at])]

    def reveal(share: float) -> None:
        (folder / "next").write_text(head + "".join(parts[: int(share * len(parts))]))
        (folder / "next").replace(folder / "usr__ct.csv")

    yield ["--from", "qlik-table", "usr__ct.csv"], reveal


@contextmanager
def capture(folder: Path) -> Iterator[tuple[list[str], Reveal]]:
    data = (folder / "usr.bin").read_bytes()

    def reveal(share: float) -> None:
        (folder / "growing.bin").write_bytes(data[: int(share * len(data))])

    yield ["--from", "gbase", "growing.bin"], reveal


@pytest.mark.parametrize("source", [debezium, change_table, capture])
def test_what_the_receiver_has_is_the_copy_and_the_copy_is_the_source(
    source: Callable[[Path], AbstractContextManager[tuple[list[str], Reveal]]],
    postgres: Database,
    tmp_path: Path,
) -> None:
    dice = random.Random(SEED)
    changes, rows = history(dice)
    (tmp_path / "usr.bin").write_bytes(write_changes(changes, tablesfile.read(TABLES)))
    (tmp_path / "tables.toml").write_text(TABLES)
    url = postgres.address

    run = partial(Shell(tmp_path).run, EVENTLOG_URL=url)
    run_statements(connect(postgres.url), "create table usr (id integer primary key, name varchar(40))")
    assert run("install").code == 0
    assert run("track", "usr").code == 0
    environment = os.environ | {"PYTHONPATH": str(ROOT), "EVENTLOG_URL": url}

    def started(*words: str) -> subprocess.Popen[bytes]:
        with (tmp_path / f"{words[0]}.log").open("ab") as log:
            command = [sys.executable, "-m", "eventlog", *words]
            return subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=log, stderr=log)

    def rows_logged() -> int:
        with connect(postgres.url).connect() as connection:
            return int(connection.execute(text("select count(*) from eventlog")).scalar_one())

    def await_more_rows(count: int) -> None:
        log = tmp_path / "apply.log"
        until(lambda: rows_logged() > count, PATIENCE, 0.05, lambda: log.read_text()[-2000:])

    with source(tmp_path) as (words, reveal):
        reveal(0)
        applying = ("apply", "--to-url", url, "--tables", "tables.toml", *words)
        publishing = ("run", "--allow-loopback", "--sink", "files", "--files-folder", "out")
        for step in range(1, STEPS + 1):
            last_row = rows_logged()
            reveal(step / STEPS)
            group = str(dice.choice((1, 5, 1000)))
            limit = str(dice.choice((3, 1000)))
            processes = [
                started(*applying, "--follow", "--follow-interval", "0.1", "--group", group),
                started(*publishing, "--polling-interval", "0.1", "--query-limit", limit),
            ]
            await_more_rows(last_row)
            time.sleep(dice.uniform(0, 1))  # so that a kill meets the publisher in any state
            for process in processes:
                process.kill()
                process.wait()
        last = run(*applying)
        assert last.code == 0, last
    while not (done := run(*publishing, "--once")).stderr.endswith("0 documents, 0 events\n"):
        assert done.code == 0, done
    with connect(postgres.url).connect() as connection:
        copy = connection.execute(text("select id, name from usr")).all()
    assert sorted(map(tuple, copy)) == sorted(rows.items())
    receipt = run("audit", "--delivered", "out", "--state")
    assert receipt.code == 0, receipt
