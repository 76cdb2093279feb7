"""A live log on each database at hand: frozen by executors, delivered, finished, while writers go on."""

from __future__ import annotations

import re
import threading
from pathlib import Path
from typing import Any

import pytest
from eventlog_spark import live_log
from eventlog_spark.live_log import PublisherLeads
from sqlalchemy import text

from eventlog.core.entry import MAX_RECORD_ID
from eventlog.fold import Fate
from eventlog.opening.config import Config
from eventlog.operate.account import read_accounts
from eventlog.publisher import backlog_copy, backlog_rows
from eventlog.sql.log.store import Store
from tests.kit.databases import own_ids
from tests.kit.logs import Crash, Receiver, crash
from tests.spark.lives import (
    CONFIG,
    ROWS,
    audit,
    backlog,
    documents,
    documents_of,
    failures,
    letters,
    pending,
    publish,
    published,
    write,
)

pytestmark = pytest.mark.quick


@pytest.mark.slow("Spark and a publisher run the same log")
@pytest.mark.parametrize("order", ["object", pytest.param("log", marks=pytest.mark.long)])
def test_a_live_log_gives_what_the_publisher_gives(
    spark: Any, store: Store, tmp_path: Path, order: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module, size in ((live_log, "_COPIED"), (backlog_copy, "CHUNK"), (backlog_rows, "_RECORDED")):
        monkeypatch.setattr(module, size, 4)
    out = tmp_path / "out"
    expected = published(store)
    result = backlog(spark, store, out, lambda: write(store, ROWS[:3]), finish=True, order=order)
    assert result.rows == len(ROWS)
    assert pending(store) == 3
    assert store.position().highest == len(ROWS)
    refused = dict(expected.refused)
    assert len(refused) >= 4
    assert letters(store) == "".join("E" if n in refused else "S" for n in range(1, len(ROWS) + 1)) + "NNN"
    assert failures(store) == refused
    found = documents(out)
    assert sorted(found) == sorted(documents_of(expected))
    assert (found == documents_of(expected)) or order == "object"
    assert "secret" not in "".join(found)
    assert not store.remembered()
    again = backlog(spark, store, out, finish=True, order=order)
    assert again == (0, 0, 0)
    assert pending(store) == 3
    assert documents(out) == found
    assert audit(store, out) == ([], 0)
    corrupt(out, b"Ann", b"Eve")
    of_all = f"of {len(found)} documents of backlogs"
    assert audit(store, out) == ([f"{of_all} one has another text at the receiver"], 0)
    corrupt(out, b".*Eve.*\n", b"")
    assert audit(store, out) == ([f"{of_all} the receiver has {len(found) - 1}"], 0)


def corrupt(out: Path, before: bytes, after: bytes) -> None:
    """Replace a text in the only file of documents that has it."""
    ((path, text_before),) = [
        (path, path.read_bytes())
        for path in (out / "documents").glob("part-*")
        if re.search(before, path.read_bytes())
    ]
    path.write_bytes(re.sub(before, after, text_before, count=1))


@pytest.mark.one_database
@pytest.mark.long  # two jobs of Spark
@pytest.mark.parametrize("deletes", [False, True])
def test_loopback_rows_are_finished_as_a_publisher_does(
    spark: Any, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, deletes: bool
) -> None:
    monkeypatch.setattr(backlog_rows, "_CHUNK", 2)
    rows = "(event_type, table_name, table_key, perpetrator) values"
    with store.engine.begin() as connection:
        connection.execute(text("update eventlog set status = 'S'"))
        for number in range(3):
            connection.execute(text(f"insert into eventlog {rows} (4, 'usr', 'idu={number}', 'idm')"))
        connection.execute(text(f"insert into eventlog {rows} (4, 'usr', 'idu=9', 'hr')"))
    settings = {"allow_loopback": False, "driver_user": "idm", "delete_from_log": deletes}
    config = Config({**CONFIG.values, **settings}, tables=CONFIG.tables)
    assert backlog(spark, store, tmp_path / "out", config=config).rows is None
    assert letters(store)[len(ROWS) :] == "NNNN"
    assert backlog(spark, store, tmp_path / "out", finish=True, config=config).rows == 4
    assert letters(store)[len(ROWS) :] == ("" if deletes else "SSSS")
    assert [line.count("idu=9") for line in documents(tmp_path / "out")] == [1]
    if not deletes:
        numbers = [len(ROWS) + place for place in (1, 2, 3, 4)]
        outcomes = [account.outcome for account in read_accounts(config, store, ids=numbers)]
        assert [outcome.fate for outcome in outcomes] == [*[Fate.LOOPBACK] * 3, Fate.SENT]
        assert "by a backlog, finished at" in outcomes[3].reason


@pytest.mark.long
def test_rows_whose_ids_are_ahead_of_the_sequence_are_left(spark: Any, store: Store, tmp_path: Path) -> None:
    if not store.log.dialect.schema.sequence_hidden:
        pytest.skip("auto_increment goes on after each id that a writer gives")
    with store.engine.begin() as connection:
        values = f"{own_ids(store.log.dialect)}values ({MAX_RECORD_ID}, 4, 'usr', 'idu=77')"
        columns = "record_id, event_type, table_name, table_key"
        connection.execute(text(f"insert into eventlog ({columns}) {values}"))
    result = backlog(spark, store, tmp_path / "out", finish=True)
    assert result.rows == len(ROWS)
    assert pending(store) == 1
    assert store.position().highest == len(ROWS)
    assert "idu=77" not in "".join(documents(tmp_path / "out"))


def test_a_job_that_died_reads_the_same_again(spark: Any, store: Store, tmp_path: Path) -> None:
    class Died(Exception):
        pass

    def die() -> None:
        write(store, ROWS)
        raise Died

    with pytest.raises(Died):
        backlog(spark, store, tmp_path / "out", die)
    assert not (tmp_path / "out" / "done").exists()
    assert pending(store) == 2 * len(ROWS)
    result = backlog(spark, store, tmp_path / "out", finish=True)
    assert result.rows == len(ROWS)
    assert pending(store) == len(ROWS)


@pytest.mark.slow("a publisher and a job of Spark")
def test_an_event_that_a_publisher_left_is_judged_by_the_text_that_left_later(
    spark: Any, store: Store, tmp_path: Path
) -> None:
    with pytest.raises(Crash):
        publish(store, Receiver(crash))
    assert store.remembered()
    write(store, [], "update usr set lname = 'Poe' where idu = 2")
    out = tmp_path / "out"
    backlog(spark, store, out, finish=True)
    assert any("Poe" in document for document in documents(out))
    assert audit(store, out) == ([], 0)
    corrupt(out, b"Poe", b"Doe")
    assert len(audit(store, out)[0]) == 1


@pytest.mark.one_database
@pytest.mark.long
def test_what_is_on_record_does_not_outlive_another_leader(spark: Any, store: Store, tmp_path: Path) -> None:
    class Died(Exception):
        pass

    def die() -> None:
        write(store, ROWS[:2])
        raise Died

    with pytest.raises(Died):
        backlog(spark, store, tmp_path / "out", die)
    receiver = Receiver()
    publish(store, receiver)
    assert sorted(receiver.event_ids) != []
    assert not store.remembered()
    result = backlog(spark, store, tmp_path / "out", finish=True)
    assert result.rows == 0
    assert pending(store) == 0


@pytest.mark.one_database
@pytest.mark.long
def test_rows_and_current_rows_are_of_one_moment_while_writers_go_on(
    spark: Any, store: Store, tmp_path: Path
) -> None:
    over = threading.Event()

    def go_on() -> None:
        number = 0
        while not over.wait(0.002):
            number += 1
            change = f"update usr set fname = '{number}' where idu = 2"
            write(store, [(2, "idu=1", "fname", None, str(number)), (6, "idu=2", None, None, None)], change)

    writer = threading.Thread(target=go_on)
    writer.start()
    try:
        result = backlog(spark, store, tmp_path / "out", finish=True)
    finally:
        over.set()
        writer.join()
    per_object = {n: [line for line in documents(tmp_path / "out") if f">idu={n}," in line] for n in (1, 2)}
    assert result.rows is not None
    last = (result.rows - len(ROWS)) // 2
    assert sorted(numbers("".join(per_object[1]))) == list(range(1, last + 1))
    (now,) = numbers(per_object[2][0])
    assert now == last
    found = letters(store)
    assert "N" not in found.rstrip("N")
    assert len(found.rstrip("N")) == len(ROWS) + 2 * last == result.rows


def numbers(text: str) -> list[int]:
    """Return the numbers among the values that are added."""
    return list(map(int, re.findall(r">([0-9]+)</value></add-value>", text)))


def test_a_publisher_stands_by(spark: Any, store: Store, tmp_path: Path) -> None:
    leader = store.lead("publisher")
    assert leader is not None
    with leader, pytest.raises(PublisherLeads):
        backlog(spark, store, tmp_path / "out")
