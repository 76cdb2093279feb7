"""A record that was changed by hand: each change is named at its row, and damage with its batch."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import text

from eventlog.embedded import Server
from eventlog.operate.recent import recent_records
from eventlog.sql.log.log_record import DamagedBatch, RecordedBatch
from eventlog.sql.log.store import Store
from tests.audit.test_audit import AuditedLog, documents, made_log
from tests.kit.databases import EMBEDDED, server_url, temporary_database
from tests.kit.tiers import drawn

pytestmark = pytest.mark.quick

Named = list[Any]
SINGLE, TOGETHER = 4, 11  # a row whose event is recorded alone, and the second one of a document of four


@pytest.fixture(scope="module")
def recorded_log(embedded: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[AuditedLog]:
    """A log with events that are recorded alone, and with four that are recorded together."""
    with (
        server_url(EMBEDDED, embedded) as url,
        temporary_database(EMBEDDED, url) as database,
        made_log(database, tmp_path_factory.mktemp("record")) as log,
    ):
        log.change("insert into usr values (3, 'A', 'B'), (4, 'A', 'B'), (5, 'A', 'B'), (6, 'A', 'B')")
        log.publish("--batch-size", "10")
        log.change("create table saved_batch as select * from eventlog_batch")
        yield log


@pytest.fixture
def log(recorded_log: AuditedLog) -> AuditedLog:
    recorded_log.change("delete from eventlog_batch", "insert into eventlog_batch select * from saved_batch")
    return recorded_log


def batch_of(log: AuditedLog, row: int) -> tuple[int, Named]:
    """Return the number and the content of the batch with a row."""
    with Store(log.engine, log.log).snapshot() as snapshot:
        (batch,) = snapshot.record().settled_with([row])
    return batch.number, json.loads(batch.content)


def write(log: AuditedLog, number: int, content: str) -> None:
    with log.engine.begin() as connection:
        statement = text("update eventlog_batch set content = :content where batch = :batch")
        connection.execute(statement, {"content": content, "batch": number})


def changed(log: AuditedLog, row: int, change: Callable[[Any], object]) -> int:
    """Change the first entry of a batch. Return the batch's number."""
    number, named = batch_of(log, row)
    change(named[0][1][0])
    write(log, number, json.dumps(named))
    return number


def put(place: int | str, value: Any) -> Callable[[Any], None]:
    """Return a change of a fact of an entry."""

    def change(entry: Any) -> None:
        entry[place] = value

    return change


def swap_digests(log: AuditedLog) -> None:
    (first, named), (second, next_named) = (batch_of(log, row) for row in (3, 4))
    first_entry, second_entry = named[0][1][0], next_named[0][1][0]
    first_entry[3], second_entry[3] = second_entry[3], first_entry[3]
    write(log, first, json.dumps(named))
    write(log, second, json.dumps(next_named))


def rename_everywhere(log: AuditedLog) -> None:
    changed(log, SINGLE, put(0, "eventlog:3"))
    changed(log, SINGLE, put(1, [3]))


def without_digests(entry: Any) -> None:
    del entry["digests"]


def with_zeros(entry: Any) -> None:
    entry["digests"] = ZERO + entry["digests"][len(ZERO) :]


def with_sizes(entry: Any) -> None:
    del entry["each"]
    entry["sizes"] = [1, 3, 2, 2]


ZERO = "A" * 11  # in Base64
ALTERED = ["delivered", "explained"]
CHANGES: dict[str, tuple[Callable[[AuditedLog], object], list[tuple[str, int]]]] = {
    "a digest of zeros": (
        lambda log: changed(log, SINGLE, put(3, ZERO)),
        [(law, 4) for law in ALTERED],
    ),
    "a digest of zeros among others": (
        lambda log: changed(log, TOGETHER, with_zeros),
        [(law, 9) for law in ALTERED],
    ),
    "another digest": (
        lambda log: changed(log, SINGLE, put(3, "AAAAAAAAAAE")),
        [(law, 4) for law in ALTERED],
    ),
    "no digest": (
        lambda log: changed(log, SINGLE, lambda entry: entry.pop(3)),
        [(law, 4) for law in ALTERED],
    ),
    "no digests of several": (
        lambda log: changed(log, TOGETHER, without_digests),
        [(law, 9) for law in ALTERED],
    ),
    "the digests of two events in each other's places": (swap_digests, [("accounted", 3)]),
    "the event-id of another row": (
        lambda log: changed(log, SINGLE, put(0, "eventlog:3")),
        [("accounted", 4)],
    ),
    "the event-id of another log": (
        lambda log: changed(log, SINGLE, put(0, "other:4")),
        [("accounted", 4)],
    ),
    "an event-id with another digest of its rows": (
        lambda log: changed(log, 5, put(0, "eventlog:5-6:00000000")),
        [("accounted", 5)],
    ),
    "no event-id": (lambda log: changed(log, SINGLE, put(0, "")), [("accounted", 4)]),
    "the event-id and the row of another event": (rename_everywhere, [("accounted", 3)]),
    "another row of an event": (lambda log: changed(log, SINGLE, put(1, [3])), [("accounted", 3)]),
    "a row that the log lacks": (lambda log: changed(log, SINGLE, put(1, [99])), [("accounted", 4)]),
    "rows that the log lacks": (
        lambda log: changed(log, TOGETHER, put("ranges", [90, 8])),
        [("accounted", 9)],
    ),
    "the name of another log for several events": (
        lambda log: changed(log, TOGETHER, put("log", "other")),
        [("accounted", 9)],
    ),
    "another number of rows of each event": (
        lambda log: changed(log, TOGETHER, with_sizes),
        [("accounted", 9)],
    ),
    "a batch that is gone": (
        lambda log: log.change(f"delete from eventlog_batch where batch = {batch_of(log, SINGLE)[0]}"),
        [("accounted", 4), ("explained", 4)],
    ),
    "an event that is gone": (
        lambda log: write(log, batch_of(log, SINGLE)[0], "[]"),
        [("accounted", 4), ("explained", 4)],
    ),
}  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.family
def test_each_change_of_the_record_is_named_at_its_row(log: AuditedLog, change: str) -> None:
    apply_change, expected = CHANGES[change]
    apply_change(log)
    broken = log.broken()
    assert set(expected) <= set(broken)
    assert {row for _, row in broken} == {row for _, row in expected}
    assert log.audit("--json", code=1)["not_judged"] == 0


def of_text(content: Callable[[str], str]) -> Callable[[AuditedLog, int], int]:
    """Return what replaces the text of a batch."""

    def damage(log: AuditedLog, row: int) -> int:
        number, named = batch_of(log, row)
        write(log, number, content(json.dumps(named)))
        return number

    return damage


def of_entry(change: Callable[[Any], object]) -> Callable[[AuditedLog, int], int]:
    return lambda log, row: changed(log, row, change)


DAMAGES: dict[str, tuple[int, Callable[[AuditedLog, int], int]]] = {
    "no JSON": (SINGLE, of_text(lambda content: "\x7f")),
    "half of the text": (SINGLE, of_text(lambda content: content[:-20])),
    "no list": (SINGLE, of_text(lambda content: '{"4-4": []}')),
    "a name without entries": (SINGLE, of_text(lambda content: '[["4-4"]]')),
    "lists in lists": (SINGLE, of_text(lambda content: "[" * 100_000)),
    "an entry that is a number": (SINGLE, of_text(lambda content: '[["4-4", [7]]]')),
    "a digest that is too short": (SINGLE, of_entry(put(3, "AAAA"))),
    "a digest that is no Base64": (SINGLE, of_entry(put(3, "?" * 11))),
    "a negative row": (SINGLE, of_entry(put(1, [-4]))),
    "a row that is a text": (SINGLE, of_entry(put(1, ["4"]))),
    "no row": (SINGLE, of_entry(put(1, []))),
    "a name that is a number": (SINGLE, of_entry(put(0, 4))),
    "part 0": (SINGLE, of_entry(lambda entry: entry.extend([0, False, 0]))),
    "a level that no answer has": (SINGLE, of_entry(lambda entry: entry.extend((1, False, 0, "OK", "")))),
    "digests of fewer events": (TOGETHER, of_entry(put("digests", ZERO))),
    "fewer rows than the events have": (TOGETHER, of_entry(put("ranges", [9, 7]))),
    "a range without an end": (TOGETHER, of_entry(put("ranges", [9]))),
    "a range of more rows than there can be": (TOGETHER, of_entry(put("ranges", [1, 8 << 50]))),
    "no log": (TOGETHER, of_entry(lambda entry: entry.pop("log"))),
}  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.family
def test_damage_is_named_with_its_batch_and_nothing_is_judged(log: AuditedLog, damage: str) -> None:
    row, apply_damage = DAMAGES[damage]
    number = apply_damage(log, row)
    words = f"eventlog: batch {number} of eventlog_batch is damaged: "
    for command in (("audit", "--delivered", str(log.documents)), ("explain", str(row))):
        done = log.call(*command)
        assert (done.code, done.stdout) == (2, ""), done
        assert done.stderr.startswith(words), done.stderr
    with pytest.raises(DamagedBatch):
        recent_records(Store(log.engine, log.log), 100)


@pytest.mark.parametrize("damage", ["no JSON", "no row", "fewer rows than the events have"])
def test_a_publisher_does_not_begin_on_a_damaged_record(log: AuditedLog, damage: str) -> None:
    row, apply_damage = DAMAGES[damage]
    number, files = apply_damage(log, row), documents(log)
    log.change(f"update eventlog_batch set settled_at = null where batch = {number}")
    done = log.call("run", "--allow-loopback", "--sink", "files", "--files-folder", "documents")
    assert done.code == 2
    assert f"batch {number} of eventlog_batch is damaged: " in done.stderr
    assert documents(log) == files


def test_a_number_that_two_batches_have_is_damage(log: AuditedLog) -> None:
    number = batch_of(log, SINGLE)[0]
    log.change(
        "alter table eventlog_batch drop constraint eventlog_batch_key",
        f"insert into eventlog_batch select * from eventlog_batch where batch = {number}",
    )
    done = log.call("audit", "--delivered", str(log.documents))
    assert (done.code, done.stdout) == (2, "")
    assert f"batch {number} of eventlog_batch is damaged: it is there twice" in done.stderr


SCALARS = (
    st.none() | st.booleans() | st.integers(-2, 2**65) | st.floats() | st.sampled_from(["", "AAAA", "4"])
)
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3), max_leaves=4)
CONTENT = [
    ["1-9", [
        ["eventlog:1", [1], 9, "AAAAAAAAAAA", 1, True, 0, "WARNING", "x"],
        ["eventlog:1", [], 9, "AAAAAAAAAAA", 2, False, 0],
        {"log": "eventlog", "max_changes": 9, "digests": "A" * 22, "each": 2, "ranges": [2, 4]},
        {"log": "eventlog", "max_changes": 9, "sizes": [1, 2], "rows": [6, 8, 9]},
    ]],
    ["refused", [{"log": "refused", "max_changes": 0, "sizes": [], "ranges": [10, 1]}]],
    ["loopback", [{"log": "loopback", "max_changes": 0, "sizes": [], "rows": [11]}]],
    ["warned", [{"log": "warned", "max_changes": 0, "sizes": [], "ranges": [1, 1]}]],
    ["cut short", [["eventlog:1", 3]]],
    ["backlog sum", [[5, 4, 3]]],
    ["unanswered", []],
]  # fmt: skip


def places(value: Any, way: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the way to each value within a value."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for at, inner in items:
        yield (*way, at)
        yield from places(inner, (*way, at))


@settings(max_examples=drawn(600), deadline=None)
@given(st.sampled_from([*places(CONTENT)]), st.none() | VALUES)
def test_a_content_is_read_or_it_is_damaged(way: tuple[Any, ...], value: Any) -> None:
    """Replace or remove any value: nothing else is raised, and what is read is of the right kinds."""
    content = json.loads(json.dumps(CONTENT))
    *outer, last = way
    holder = content
    for at in outer:
        holder = holder[at]
    if value is None:
        del holder[last]
    else:
        holder[last] = value
    batch = RecordedBatch(7, 1, None, json.dumps(content), "log_batch")
    try:
        entries = [*batch.read().entries()]
    except DamagedBatch:
        return
    assert all(type(row) is int and row > 0 for entry in entries for row in entry.rows)
    assert all(len(entry.rows) == sum(entry.sizes) for entry in entries if entry.sizes)
    assert all(len(entry.digests) in (0, 8 * len(entry.sizes)) for entry in entries)
    for _, events in batch.documents():
        assert all(event.rows and event.part > 0 <= event.tries for event in events)
    assert all(type(row) is int for row in (*dict(batch.rows()), *batch.refused(), *batch.warned()))


def test_what_a_version_before_digests_wrote_is_open_and_nothing_else(log: AuditedLog) -> None:
    """Take the digests from the first batches, and from a later one: only the first are early."""
    for row in (1, 3, SINGLE):
        changed(log, row, lambda entry: entry.pop(3))
    audit = "audit", "--allow-loopback", "--delivered", str(log.documents)
    done = log.call(*audit)
    assert done.code == 1
    assert "3 events not judged: a version before digests recorded them" in done.stdout
    for law in ("what is on record as sent is at the receiver, byte for byte", "the receiver has nothing"):
        assert f"open      {law}" in done.stdout
    assert "broken" not in done.stdout
    report = json.loads(log.call(*audit, "--json").stdout)
    assert (report["not_judged"], [law["breaches"] for law in report["laws"]]) == (3, [0] * 6)
    changed(log, TOGETHER, without_digests)
    assert log.broken() == [("delivered", 9), ("explained", 9)]
