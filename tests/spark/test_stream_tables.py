"""A stream of messages into tables: whole transactions, restarted by its checkpoint, nothing twice."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from eventlog_spark import into_tables

from eventlog.core.errors import EventlogError, Refused
from tests.installed import ROOT
from tests.spark.messages import TABLES, deliver, message, stream

pytestmark = pytest.mark.quick

pytest.importorskip("google.protobuf", reason="protobuf is not installed")
Placed = tuple[str, int, int, bytes]


def transfer(number: int, partitions: int = 2) -> list[Placed]:
    """Return a transaction: an entry of each of two accounts, whose amounts change; over all partitions."""
    first = 10 * number
    reported: list[tuple[str, str, dict[str, Any]]] = [
        ("account", "INSERT" if number == 1 else "UPDATE", {"id": 1, "owner": "Jack", "amount": -number}),
        ("account", "INSERT" if number == 1 else "UPDATE", {"id": 2, "owner": "Jane", "amount": number}),
        ("entry", "INSERT", {"id": first, "account": 1, "amount": -1}),
        ("entry", "INSERT", {"id": first + 1, "account": 2, "amount": 1}),
    ]
    if number > 1:
        reported.append(("entry", "DELETE", {"id": first - 10, "account": 1, "amount": -1}))
    return [
        (
            "bank",
            n % partitions,
            first + n,
            message(table, op, data, first + n, number, n + 1, n + 1 == len(reported)),
        )
        for n, (table, op, data) in enumerate(reported)
    ]


def delta(folder: Path, table: str) -> list[tuple[Any, ...]]:
    found = DeltaTable(folder / table).to_pyarrow_table().to_pylist()
    return sorted(tuple(row.values()) for row in found)


def versions(folder: Path) -> dict[str, int]:
    return {name: DeltaTable(folder / name).version() for name in ("account", "entry")}


@pytest.fixture
def inbox(tmp_path: Path) -> Path:
    folder = tmp_path / "in"
    folder.mkdir()
    return folder


@pytest.mark.long
def test_a_batch_that_one_table_failed_is_ended_by_the_next_run(
    spark: Any, tmp_path: Path, inbox: Path
) -> None:
    """The other table has it, and is left alone."""
    target, refused = tmp_path / "lake", list[Refused]()

    def run() -> None:
        into_tables(
            stream(spark, inbox),
            TABLES,
            checkpoint=str(tmp_path / "checkpoint"),
            to_delta=target,
            refused=refused.append,
            available_now=True,
        )

    one, two = transfer(1), transfer(2)
    deliver(inbox, "1", [*one, *two[:3]])  # the second transaction is open
    run()
    assert delta(target, "account") == [(1, "Jack", -1), (2, "Jane", 1)]
    assert delta(target, "entry") == [(10, 1, -1), (11, 2, 1)]
    assert [reported.reason for reported in refused] == [
        f"transaction {2:032X} is open: 3 of its changes arrived"
    ]

    deliver(inbox, "2", two[3:])
    in_the_way = target / "account" / "_delta_log" / f"{versions(target)['account'] + 1:020}.json"
    in_the_way.mkdir()
    with pytest.raises(Exception, match="account: "):
        run()
    in_the_way.rmdir()
    assert delta(target, "account") == [(1, "Jack", -1), (2, "Jane", 1)]
    assert delta(target, "entry") == [(11, 2, 1), (20, 1, -1), (21, 2, 1)]

    before = versions(target)
    run()
    assert delta(target, "account") == [(1, "Jack", -2), (2, "Jane", 2)]
    assert versions(target) == {"account": before["account"] + 1, "entry": before["entry"]}
    run()
    assert versions(target) == {"account": before["account"] + 1, "entry": before["entry"]}


@pytest.mark.long
def test_the_example(
    spark: Any,
    tmp_path: Path,
    inbox: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    jack, john = {"idu": 1, "fname": "Jack"}, {"idu": 1, "fname": "John"}
    whole = [message("usr", "INSERT", jack, 1, 1, 1), message("usr", "UPDATE", john, 2, 1, 2, True)]
    part = message("usr", "INSERT", {"idu": 2, "fname": "Jane"}, 3, 2, 1)
    deliver(inbox, "1", [("users", 0, offset, value) for offset, value in enumerate([*whole, part])])
    monkeypatch.setattr(sys, "argv", ["stream.py", str(inbox), str(tmp_path)])
    runpy.run_path(str(ROOT / "examples" / "stream.py"), run_name="__main__")
    assert delta(tmp_path / "tables", "usr") == [(1, "John")]
    assert capsys.readouterr().out == f"users[0]: transaction {2:032X} is open: 1 of its changes arrived\n"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "name the target: to_url, or to_delta"),
        ({"to_delta": "a", "to_url": "b"}, "name the target: to_url, or to_delta"),
        ({"to_delta": "a", "encoding": "xml"}, "xml"),
        ({"to_delta": "a", "encoding": "avro", "schema_registry": "ftp://x"}, "ftp"),
        ({"to_delta": "a", "framing": "confluent"}, "unknown setting 'framing'"),
        ({"to_delta": "a", "since": "1"}, "unknown setting 'since'"),
        ({"to_delta": "a", "open_transactions": "wait"}, "wait"),
        ({"to_delta": "a", "open_time": 0}, "between 1 and"),
    ],
)
def test_what_is_misused_is_reported_before_the_stream_begins(
    spark: Any, inbox: Path, given: dict[str, Any], said: str
) -> None:
    with pytest.raises(EventlogError, match=said):
        into_tables(stream(spark, inbox), TABLES, checkpoint=str(inbox), **given)
