"""Columns whose collation takes several texts for one: in the log and in commands every text is its own."""

from __future__ import annotations

from functools import partial

import pytest
from sqlalchemy import text

from eventlog.sql.capture.readers import plan_reader
from eventlog.sql.capture.refusals import CannotTrack
from eventlog.sql.connect import DatabaseFailed
from tests.kit.commands import Shell
from tests.slot.rig import SlotWorld, drop_slots
from tests.sql.tracked import Logged, Tracked

pytestmark = pytest.mark.quick

COLLATION = "create collation ci (provider = icu, locale = 'und-u-ks-level2', deterministic = false)"


@pytest.fixture
def lenient(tracking: Tracked) -> Tracked:
    """A log next to a collation that takes a letter and its capital for one."""
    if not tracking.dialect.sessions.has_slots:
        pytest.skip("a collation of users is PostgreSQL's alone")
    try:
        tracking.run(COLLATION)
    except DatabaseFailed:
        pytest.skip("this PostgreSQL is built without ICU")
    return tracking


def test_a_change_is_logged_letter_for_letter(lenient: Tracked) -> None:
    lenient.run(
        "create domain word as text collate ci",
        "create table usr (login word primary key, c char(5) collate ci, a text[] collate ci, v word)",
        "create table mail (login text collate ci references usr, n integer primary key, v text collate ci)",
    )
    lenient.track("usr", insert=1, update=2, children=("mail.v",))
    assert lenient.after(
        "insert into usr values ('a', 'x', array['p', 'q+'], null), ('b;c', null, null, 'y')",
        "insert into mail values ('a', 1, 'm')",
    ) == [
        Logged(1, "login=a", "c", None, "x"),
        Logged(1, "login=a", "a", None, "{p,q+}"),
        Logged(1, 'login="b;c"', "v", None, "y"),
        Logged(2, "login=a", "mail.v", None, "m"),
    ]
    assert lenient.after("update usr set c = 'X', v = 'Y', a = array['P'] where login = 'B;C'") == [
        Logged(2, 'login="b;c"', "c", None, "X"),
        Logged(2, 'login="b;c"', "a", None, "{P}"),
        Logged(2, 'login="b;c"', "v", "y", "Y"),
    ]
    assert lenient.after("update usr set login = 'B;c', a = null where login = 'b;c'") == [
        Logged(4, 'login="b;c"'),
        Logged(1, 'login="B;c"', "c", None, "X"),
        Logged(1, 'login="B;c"', "v", None, "Y"),
    ]
    written = "select eventlog_key_value(login) from usr order by 1"
    with lenient.engine.connect() as connection:
        assert [*connection.execute(text(written)).scalars()] == ['"B;c"', "a"]


@pytest.mark.parametrize("rest", ["deferrable)", ") partition by hash (login)"])
def test_a_key_that_changes_its_case_is_another_one(lenient: Tracked, rest: str) -> None:
    """Log no row of the old key again, as of a key that another row still has."""
    lenient.run(f"create table usr (login text collate ci, v text, primary key (login) {rest}")
    if "partition" in rest:
        lenient.run("create table p partition of usr for values with (modulus 1, remainder 0)")
    lenient.track("usr")
    lenient.run("insert into usr values ('a', 'x'), ('b', 'y')")
    lenient.logged()
    assert sorted(lenient.after("update usr set login = upper(login)")) == [
        *(Logged(4, "login=a"), Logged(4, "login=b"), Logged(5, "login=A"), Logged(5, "login=B"))
    ]


@pytest.mark.slow("it runs fourteen commands")
def test_each_command_takes_each_text_for_its_own(lenient: Tracked, shell: Shell) -> None:
    world = SlotWorld(lenient.engine, lenient.dialect)
    lenient.run("create table usr (login text collate ci primary key, v text collate ci)")
    settings = {"EVENTLOG_SYNC_TABLES": "usr", "EVENTLOG_ALLOW_LOOPBACK": "true"}
    run = partial(shell.run, EVENTLOG_URL=world.url, **settings)

    def publish(mode: str = "trigger") -> None:
        """Publish, and audit what is there."""
        done = run("run", "--once", "--mode", mode, "--sink", "files", "--files-folder", "documents")
        assert done.code == 0, done.stderr
        done = run("audit", "--state", "--delivered", "documents")
        assert done.code == 0, done.stdout + done.stderr

    lenient.run("insert into usr values ('before', 'x;')")
    for words in (("track", "usr"), ("resync", "usr"), ("resync", "usr", "--compare")):
        assert run(*words).code == 0
    lenient.run("insert into usr values ('a', 'x'), ('b+', 'y')")
    lenient.run("update usr set login = 'A' where login = 'a'")
    publish()
    lenient.run("alter table usr disable trigger all", "update usr set login = 'BEFORE' where v = 'x;'")
    lenient.run("alter table usr enable trigger all")
    assert "2 objects differed" in run("resync", "usr", "--compare").stderr
    publish()
    assert "nothing is wrong" in run("check").stderr
    assert run("install", "--mode", "slot").code == 0
    lenient.run("update usr set login = 'B+', v = 'Y' where login = 'b+'")
    lenient.run("insert into usr values ('c\"', 'z')")
    publish("slot")
    assert run("install", "--mode", "compare").code == 0
    lenient.run("update usr set login = 'b+' where login = 'B+'")
    lenient.run("update usr set v = 'Z' where login = 'C\"'")
    publish("compare")
    drop_slots(world)


@pytest.mark.slow("it runs thirteen commands")
def test_blanks_at_the_end_of_a_key_are_a_part_of_it(pg: Tracked, shell: Shell) -> None:
    """Publish, and find nothing wrong in an audit, whatever fills the log."""
    world = SlotWorld(pg.engine, pg.dialect)
    pg.run("create table usr (login bpchar, n integer, v text, primary key (login, n))")
    settings = {"EVENTLOG_SYNC_TABLES": "usr", "EVENTLOG_ALLOW_LOOPBACK": "true"}
    run = partial(shell.run, EVENTLOG_URL=world.url, **settings)

    def publish(mode: str) -> None:
        """Publish, and audit what is there."""
        done = run("run", "--once", "--mode", mode, "--sink", "files", "--files-folder", "documents")
        assert done.code == 0, done.stderr
        done = run("audit", "--state", "--delivered", "documents")
        assert done.code == 0, done.stdout + done.stderr

    assert run("track", "usr").code == 0
    pg.run("insert into usr values ('a ', 1, 'x'), ('b+  ', 2, 'y'), ('', 3, 'z'), (' c', 4, 'w')")
    publish("trigger")
    pg.run("update usr set login = 'a  ' where n = 1", "update usr set v = 'Y' where n = 2")
    publish("trigger")
    assert run("install", "--mode", "slot").code == 0
    pg.run("update usr set login = 'a' where n = 1", "update usr set v = 'Z' where n > 2")
    publish("slot")
    assert run("install", "--mode", "compare").code == 0
    pg.run("update usr set login = 'a ' where n = 1", "delete from usr where n = 2")
    publish("compare")
    drop_slots(world)


def test_a_reader_sees_each_identity_as_its_own(lenient: Tracked) -> None:
    lenient.run("create table usr (login varchar(9) collate ci not null unique, v text)")
    with lenient.engine.connect() as connection:
        plan = plan_reader(connection, "sailpoint", "usr", "login")
    plan.run(lenient.engine)
    lenient.run("insert into usr values ('a', 'x')", "delete from usr_delta", "update usr set login = 'A'")
    with lenient.engine.connect() as connection:
        rows = connection.execute(text("select login, action from usr_delta order by login"))
        assert [tuple(row) for row in rows] == [("A", "Insert"), ("a", "Delete")]


SHY = (  # a type whose values the server never shows
    "create type shy",
    "create function shy_in(cstring) returns shy language internal immutable strict as 'textin'",
    "create function shy_out(shy) returns cstring language internal immutable strict as 'trigger_out'",
    "create type shy (input = shy_in, output = shy_out, like = text)",
)


def test_a_table_whose_triggers_would_fail_is_not_tracked(pg: Tracked) -> None:
    pg.run(
        *SHY,
        "create table usr (idu integer primary key, v shy)",
        "create table mail (idu integer references usr, n integer primary key, v shy)",
        "insert into usr values (1)",
        "insert into mail values (1, 1, 'x')",
    )
    pg.track("usr", insert=1, update=2)
    why = "cannot be tracked: its triggers would fail: the database refused: cannot display a value"
    with pytest.raises(CannotTrack, match=f"mail {why}"):
        pg.track("mail", insert=1, update=2)
    with pytest.raises(CannotTrack, match=f"usr {why}"):
        pg.track("usr", insert=1, update=2, children=("mail.v",))
    pg.run("insert into mail values (1, 2, 'x')")
    assert pg.logged() == []


@pytest.mark.slow("it runs four commands")
def test_a_table_that_cannot_be_read_is_named(pg: Tracked, shell: Shell) -> None:
    pg.run(*SHY, "create table usr (idu integer primary key, v shy)", "insert into usr values (1, 'x')")
    world = SlotWorld(pg.engine, pg.dialect)
    run = partial(shell.run, EVENTLOG_URL=world.url, EVENTLOG_SYNC_TABLES="usr")
    why = "public.usr cannot be read: the database refused: cannot display a value of type trigger"
    assert why in run("resync", "usr", "--compare").stderr
    assert why in run("resync", "usr", "--where", "t.v::text = 'x'").stderr
    assert why in run("install", "--mode", "slot").stderr
    why = why.replace("read: ", "tracked: its triggers would fail: ")
    assert why in run("install", "--mode", "trigger").stderr
    drop_slots(world)
