"""explain shows for every pending row why it is sent or held."""

from __future__ import annotations

import pytest

from eventlog.fold import Fate
from eventlog.opening.config import Config
from eventlog.operate.account import read_accounts
from eventlog.web.monitor.page_data import PageData
from eventlog.web.monitor.pages import LOOKED_AT, pages_app
from tests.kit.logs import Receiver, busy, key
from tests.web.conftest import Process
from tests.web.receiver.conftest import HOST, ask
from tests.world.world import World, call

pytestmark = pytest.mark.quick

FUTURE = {"EVENTLOG_HANDLE_FUTURE_EVENTS": "true", "EVENTLOG_DRIVER_USER": "idm", "EVENTLOG_QUERY_LIMIT": "2"}


def crowd(world: World) -> None:
    """Make row 1 wait for a retry and hold 2; 3 is loopback, 4 is due in 2999, 5 to 7 may go."""
    world.write(key(1, event_type=4))
    with world.publisher(Receiver(busy)) as publisher:
        publisher.cycle()
    world.write(
        key(1, event_type=4),
        key(2, event_type=4, perpetrator="idm"),
        key(3, event_type=4, event_time="2999-01-01 00:00:00"),
        *(key(number, event_type=4) for number in (4, 5, 6)),
    )


def explanations(world: World, *words: str) -> dict[str, str]:
    lines = call(world, "explain", *words, **FUTURE).stdout.splitlines()
    return dict(line.split(maxsplit=1) for line in lines if line.split()[0].isdecimal())


def test_the_others_are_summed_up(world: World) -> None:
    crowd(world)
    result = call(world, "explain", **FUTURE)
    assert [line.split()[0] for line in result.stdout.splitlines()] == ["5", "6"]
    for words in (
        "2 rows are held: the first until eventlog:1 is sent again at",
        "1 row of idm is loopback: finished without being sent",
        "1 row is future: the first is due at 2999-01-01",
        "1 row is beyond the next cycle: query-limit is 2",
    ):
        assert words in result.stderr
    config = Config({"sync_tables": "usr", "handle_future_events": True, "driver_user": "idm"})
    page = ask(pages_app(PageData(Process(world.store), config), HOST), "GET", "/next")[1]
    assert "2 rows are held" in str(page)
    assert "1 row of idm is loopback" in str(page)
    assert str(page).count('<a href="/waiting">waiting</a>') == 1


def test_the_name_of_a_user_holds_no_row(world: World) -> None:
    user = "hr held by idm"
    world.write(key(1, event_type=4, perpetrator=user))
    config = Config({"sync_tables": "usr", "driver_user": user})
    page = ask(pages_app(PageData(Process(world.store), config), HOST), "GET", "/next")[1]
    assert f"1 row of {user} is loopback" in str(page)
    assert '<a href="/waiting">waiting</a>' not in str(page)


def test_every_row_is_reported_where_asked(world: World) -> None:
    crowd(world)
    rows = explanations(world, "--all")
    assert list(rows) == ["1", "2", "3", "4", "5", "6", "7"]
    for number, words in {
        "1": "held: eventlog:1 goes again at",
        "2": "held, by row 1: eventlog:1 goes again at",
        "3": "loopback: done by the driver's own user idm: it is finished without being sent",
        "4": "future: due at 2999-01-01",
        "6": "pending",
        "7": "beyond the pick-up: query-limit",
    }.items():
        assert words in rows[number]


def test_a_row_that_cannot_be_read_is_reported_with_its_table(world: World) -> None:
    world.write(key(1, event_type=9), key(2, event_type=4), key(3, event_type=9, table_name="dept"))
    lines = call(world, "explain", "--table", "usr").stdout.splitlines()
    assert [line.split()[:4] for line in lines] == [["1", "9", "usr", "idu=1"], ["2", "4", "usr", "idu=2"]]
    assert "refused: event_type is 9" in lines[0]


def test_a_key_is_looked_for_in_all_tables(world: World) -> None:
    world.write(key(1, event_type=4), key(1, event_type=4, table_name="dept"), key(2, event_type=4))
    assert list(explanations(world, "--key", "idu=1")) == ["1", "2"]
    assert list(explanations(world, "--key", "idu=1", "--table", "dept")) == ["2"]


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        ("--key idu=999999", 1, "no row of the log is of idu=999999"),
        ("--table usr --key idu=9", 1, "no row of the log is of usr idu=9"),
        ("--table nosuch", 1, "no row of the log is of a table nosuch, and no such table is published"),
        ("--table nosuch --all", 1, "no row of the log is of a table nosuch, and no such table is published"),
        ("--table usr", 0, "no row of usr is in the next cycle"),
        ("--table usr --all --json", 0, "no row of usr is pending"),
        ("--all", 0, "no row is pending"),
    ],
)
def test_that_nothing_is_there_is_reported(words: str, code: int, sentence: str, world: World) -> None:
    world.write(key(1, event_type=4))
    world.cycle(Receiver())
    done = call(world, "explain", *words.split())
    assert (done.exit_code, done.stdout) == (code, "")
    assert sentence in done.stderr + str(done.exception)


def test_a_handled_row_that_nobody_understands_has_its_reason(world: World) -> None:
    world.write(key(1, event_type=9))
    assert "refused" in explanations(world, "--key", "idu=1")["1"]
    world.cycle(Receiver())
    assert "refused: event_type is 9, not 1 to 8 (20" in explanations(world, "--key", "idu=1")["1"]


def test_one_object_is_explained_without_the_rows_of_others(world: World) -> None:
    """The work for one object does not grow with what is pending for others: none of it is queried back."""
    world.write(key(1, event_type=4), *(key(number) for number in range(2, 40)))
    config = Config({"sync_tables": "usr", "query_limit": 100})
    with world.statements() as statements:
        accounts = list(read_accounts(config, world.store, "usr", "idu=1"))
    assert [(row.record_id, row.outcome.fate) for row in accounts] == [(1, Fate.PENDING)]
    assert not [statement for statement in statements if "fname" in statement]


def test_a_page_shows_the_first_rows_of_an_object_and_how_to_see_all(world: World) -> None:
    world.write(*(key(1, event_type=4) for _ in range(LOOKED_AT + 5)))
    page_data = PageData(Process(world.store), Config({"sync_tables": "usr"}))
    page = ask(pages_app(page_data, HOST), "GET", "/object?table=usr&key=idu%3D1")[1]
    assert page.count("<tr>") == 1 + LOOKED_AT
    assert f"the first {LOOKED_AT} rows; `eventlog explain --key idu=1` shows all" in page
