"""TPC-C, a workload of others, becomes tables of a lake: each round that is done has its whole transactions.

go-tpc works in bursts. A capture reads the log of the server, and writes transactions into change tables as
Qlik Replicate does. `apply --follow` makes rounds of them, and is killed five times within a round. In every
round that is done the conditions of TPC-C hold that hold between transactions. In the last one the nine
tables are equal to the source, value by value. DuckDB reads the lake.
"""

from __future__ import annotations

import random
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import zip_longest
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest
from sqlalchemy import text
from sqlalchemy.engine import Connection

from eventlog.core import tablesfile
from eventlog.core.change import ABSENT, Change, Field, Op
from eventlog.core.tables import Table, Tables
from eventlog.embedded import Server
from eventlog.sql.catalogue import Catalogue
from tests.kit.commands import Shell
from tests.kit.databases import Database, temporary_database
from tests.kit.lake import Duck, write_changes
from tests.kit.statements import run_statements
from tests.kit.support import until
from tests.laws.tpcc import KEYS, KILLS, SECONDS, Judge, warehouse
from tests.sql import pgoutput
from tests.sql.pgoutput import Act
from tests.world.commands import Commands
from tests.world.rig import SEED

pytestmark = [pytest.mark.nightly, pytest.mark.timeout(1200 + 5 * SECONDS)]

ROUND_TIME = "1"  # seconds: short, so that there are many rounds
BURST = "200"  # transactions of go-tpc between two looks of the capture
PAUSE = 1.0  # the longest time between the beginning of a round and a kill
CONDITIONS = {  # of clause 3.3.2 of TPC-C: each is a query for what breaks it, empty between transactions
    1: """
        select w_id from warehouse join district on d_w_id = w_id group by all
        having max(w_ytd) <> sum(d_ytd)""",
    2: """
        select d_id from district
        join (select o_d_id, max(o_id) as last from orders group by all) on o_d_id = d_id
        left join (select no_d_id, max(no_o_id) as newest from new_order group by all) on no_d_id = d_id
        where last <> d_next_o_id - 1 or newest <> d_next_o_id - 1""",
    3: """
        select no_d_id from new_order group by all
        having max(no_o_id) - min(no_o_id) + 1 <> count(*)""",
    4: """
        select * from (select o_d_id as d, sum(o_ol_cnt) as n from orders group by all)
        full join (select ol_d_id as d, count(*) as m from order_line group by all) using (d)
        where n is distinct from m""",
    5: """
        select o_id from orders left join new_order on no_d_id = o_d_id and no_o_id = o_id
        where (o_carrier_id is null) <> (no_o_id is not null)""",
    6: """
        select * from (select o_d_id as d, o_id as o, o_ol_cnt as n from orders)
        full join (select ol_d_id as d, ol_o_id as o, count(*) as m from order_line group by all) using (d, o)
        where n is distinct from m""",
    7: """
        select o_id from order_line join orders on o_d_id = ol_d_id and o_id = ol_o_id
        where (ol_delivery_d is null) <> (o_carrier_id is null)""",
    8: """
        select w_id from warehouse join history on h_w_id = w_id group by all
        having max(w_ytd) <> sum(h_amount)""",
    9: """
        select d_id from district join history on h_w_id = d_w_id and h_d_id = d_id group by all
        having max(d_ytd) <> sum(h_amount)""",
    10: """
        select c_id from customer
        left join (select o_d_id as d, o_c_id as c, sum(ol_amount) as delivered from orders
            join order_line on ol_d_id = o_d_id and ol_o_id = o_id
            where ol_delivery_d is not null group by all) on d = c_d_id and c = c_id
        join (select h_c_d_id, h_c_id, sum(h_amount) as paid from history group by all)
            on h_c_d_id = c_d_id and h_c_id = c_id
        where c_balance <> coalesce(delivered, 0) - paid""",
    12: """
        select c_id from customer
        left join (select o_d_id as d, o_c_id as c, sum(ol_amount) as delivered from orders
            join order_line on ol_d_id = o_d_id and ol_o_id = o_id
            where ol_delivery_d is not null group by all) on d = c_d_id and c = c_id
        where c_balance + c_ytd_payment <> coalesce(delivered, 0)""",
}


class Capture:
    """A capture of a database's transactions, which are rows of change tables then."""

    def __init__(self, connection: Connection, tables: Tables, shell: Shell, to: Database) -> None:
        self._connection, self._shell = connection, shell
        self._tables = {table.name: table for table in tables}
        self._file = shell.folder / "captured.jsonl"
        reading = ("--from", "changes", "--tables", "tables.toml", self._file.name)
        self._words = (*reading, "--to", "qlik-table", "--url", to.address, "--no-op-updates", "write")
        self.transactions = 0

    def step(self) -> None:
        """Send the transactions since the last step."""
        changes, now = [], datetime.now(UTC).isoformat()
        for acts in pgoutput.transactions(self._connection):
            if acts:
                self.transactions += 1
                changes += [self._change(act)._replace(time=now) for act in acts]
        if changes:
            write_changes(self._file, changes)
            done = self._shell.run("convert", *self._words)
            assert done.code == 0, done

    def _change(self, act: Act) -> Change:
        table = self._tables[act.table]
        before, after = (_values(table, side) for side in (act.before, act.after))
        op = Op.UPDATE if before and after else Op.INSERT if after else Op.DELETE
        fields = (Field(name, before.get(name, ABSENT), after.get(name, ABSENT)) for name in table.columns)
        key = tuple((name, (after or before)[name]) for name in table.key)
        return Change(op, None, act.table, key, tuple(fields), transaction=str(self.transactions))


def _values(table: Table, row: Mapping[str, str | None] | None) -> dict[str, Any]:
    """Return the values of a row as changes have them."""
    return {
        name: int(value) if value is not None and table.columns[name].bounds is not None else value
        for name, value in (row or {}).items()
    }


class Lake:
    """A lake that `apply --follow` writes."""

    def __init__(self, folder: Path, words: tuple[str, ...]) -> None:
        self.folder = folder / "lake"
        self._commands = Commands("", folder, {"EVENTLOG_ROUND_TIME": ROUND_TIME})
        self._words = ("apply", "--to-lake", "delta:lake", "--from", "qlik-table", *words)
        self._dice = random.Random(SEED)
        self._duck = Duck()
        self._process = self._started("--follow")

    def _started(self, *words: str) -> subprocess.Popen[bytes]:
        return self._commands.start(*self._words, *words)

    @property
    def output(self) -> str:
        """Return all that `apply` has written."""
        return self._commands.output()

    @property
    def entries(self) -> int:
        """Return how many commits the table of rounds has."""
        return len(list(self.folder.glob("eventlog_rounds/_delta_log/*.json")))

    def kill(self, before: int) -> None:
        """Kill `apply` a moment after it began another round; the first entry made the table."""
        until(lambda: self.entries > before and self.entries % 2 == 0, 300, fault=lambda: self.output)
        time.sleep(self._dice.random() * PAUSE)
        self._process.send_signal(signal.SIGKILL)
        assert self._process.wait() == -signal.SIGKILL, self.output
        self._process = self._started("--follow")

    def drain(self) -> None:
        """Apply what is left, in a run that ends."""
        self.close()
        assert self._commands.run(*self._words) == 0, self.output

    def close(self) -> None:
        self._process.kill()
        self._process.wait()

    def rounds(self) -> dict[int, dict[str, int]]:
        """Return the versions of the tables after each round that is done."""
        rows = self._duck.rows(self.folder, "eventlog_rounds", "round, table_name, version, state")
        rounds: dict[int, dict[str, int]] = {}
        for number, name, version, state in rows:
            if state == "done":
                rounds.setdefault(number, {})[name] = version
        return dict(sorted(rounds.items()))

    def broken(self, versions: Mapping[str, int]) -> dict[int, list[Any]]:
        """Return what breaks conditions, by their numbers, in these versions of the tables."""
        for name in KEYS:
            place, version = self.folder / name, versions.get(name, 0)
            self._duck.query(
                f"create or replace temp table {name} as from delta_scan('{place}', version={version})"
            )
        broken = {number: self._duck.query(query) for number, query in CONDITIONS.items()}
        return {number: rows for number, rows in broken.items() if rows}

    def rows(self, name: str, columns: str, version: int) -> list[Any]:
        """Return the rows of a table by its key."""
        place = self.folder / name
        return self._duck.query(
            f"select {columns} from delta_scan('{place}', version={version}) order by {KEYS[name]}"
        )


@contextmanager
def captured(database: Database) -> Iterator[Connection]:
    """Keep what the server writes to its log from now on."""
    run_statements(database.engine(), "alter table history add h_id bigserial primary key")
    pgoutput.begin(database.engine(), tuple(KEYS))
    with database.engine().connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        yield connection
        connection.execute(text("select pg_drop_replication_slot(current_database())"))


def load(connection: Connection, tables: Tables, folder: Path) -> None:
    """Make the tables of the lake as somebody else would: with all rows."""
    for table in tables:
        columns = list(table.columns.values())
        types = [_arrow_type(column.type) for column in columns]
        form = pa.schema([pa.field(c.name, of) for c, of in zip(columns, types, strict=True)])
        names = ", ".join(form.names)
        rows = connection.execute(text(f"select {names} from {table.name}")).all()
        cells = zip(*rows, strict=True)
        arrays = [pa.array(column, of) for column, of in zip(cells, types, strict=True)]
        deltalake.write_deltalake(str(folder / table.name), pa.table(arrays, schema=form))


def _arrow_type(name: str) -> pa.DataType:
    if name.startswith("numeric"):
        precision, scale = name.removeprefix("numeric(").removesuffix(")").split(",")
        return pa.decimal128(int(precision), int(scale))
    if name.startswith("timestamp"):
        return pa.timestamp("us")
    return {"integer": pa.int32(), "bigint": pa.int64()}.get(name, pa.string())


def test_a_lake_has_whole_transactions_after_each_round_and_all_at_the_end(
    embedded: Server, tmp_path: Path
) -> None:
    with warehouse("PostgreSQL", embedded) as (database, server), captured(database) as connection:
        tables = Tables([Catalogue(connection).find(name).table for name in KEYS], "postgresql")
        (tmp_path / "tables.toml").write_text(tablesfile.write(tables, "postgresql"))
        load(connection, tables, tmp_path / "lake")
        with temporary_database(database.name, server) as change_tables:
            capture = Capture(connection, tables, Shell(tmp_path), change_tables)
            run_statements(database.engine(), *map(touch, KEYS))  # so that all change tables are there
            capture.step()
            words = ("--tables", "tables.toml", "--settle", "2", "--url", change_tables.address)
            lake = Lake(tmp_path, (*words, *(f"{name}__ct" for name in KEYS)))
            try:
                work_and_kill(database, capture, lake)
                capture.step()
                lake.drain()
            finally:
                lake.close()
        assert "Traceback" not in lake.output
        rounds = lake.rounds()
        assert len(rounds) > KILLS
        assert {number: broken for number, at in rounds.items() if (broken := lake.broken(at))} == {}
        *_, last = rounds.values()
        differences = [first_difference(connection, lake, table, last.get(table.name, 0)) for table in tables]
        assert differences == [""] * len(KEYS)


def touch(name: str) -> str:
    """Return a statement that writes a row of a table as it is."""
    key = KEYS[name]
    first, *_ = key.split(", ")
    return f"update {name} set {first} = {first} where ({key}) in (select {key} from {name} limit 1)"


def work_and_kill(database: Database, capture: Capture, lake: Lake) -> None:
    """Let go-tpc work in bursts, which the capture follows, and kill `apply` meanwhile."""
    judge, began, kills = Judge(database), time.monotonic(), 0
    while kills < KILLS or time.monotonic() < began + SECONDS:
        before = lake.entries
        judge.run("run", "--interval", "24h", "--count", BURST)
        capture.step()
        if kills < KILLS and time.monotonic() >= began + SECONDS * kills / KILLS:
            lake.kill(before)
            kills += 1


def first_difference(connection: Connection, lake: Lake, table: Table, version: int) -> str:
    """Return the first rows of a table that differ, and nothing if all are equal."""
    columns = ", ".join(table.columns)
    rows = connection.execute(text(f"select {columns} from {table.name} order by {KEYS[table.name]}"))
    pairs = zip_longest(map(tuple, rows), lake.rows(table.name, columns, version))
    return next((f"{table}: {row} is {in_lake}" for row, in_lake in pairs if row != in_lake), "")
