"""A delta table: a reader that deletes what it read loses nothing, whatever is written meanwhile."""

from __future__ import annotations

import random
import shlex
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event, text
from sqlalchemy.engine import Connection, Engine

from eventlog.sql.capture.readers import READERS, check_readers, plan_no_reader, plan_reader
from eventlog.sql.capture.refusals import CannotTrack
from eventlog.sql.catalogue import Catalogue, NoSuchTable
from eventlog.sql.connect import DatabaseFailed
from eventlog.sql.dialects import dialect_of
from tests.kit.commands import Shell
from tests.kit.databases import Database
from tests.kit.statements import run_statements
from tests.sql.own_types import OWN_TYPES, making_own_types

pytestmark = pytest.mark.quick

SECONDS = 3.0
WRITERS = 3


@pytest.fixture
def engine(database: Database) -> Iterator[Engine]:
    new_engine = database.engine()
    run_statements(
        new_engine,
        "create table usr (idu integer primary key, login varchar(20) not null unique, name varchar(40))",
    )
    with new_engine.connect() as connection:
        plan = plan_reader(connection, "sailpoint", "usr", "login")
    plan.run(new_engine)
    yield new_engine
    new_engine.dispose()


def faults(engine: Engine) -> list[str]:
    """Return what is wrong in this database; on MariaDB the databases of other tests are checked, too."""
    with engine.connect() as connection:
        place = f"{Catalogue(connection).home()}."
        findings = [*check_readers(connection)]
    return [finding.what for finding in findings if finding.fault and finding.where.startswith(place)]


def rows(engine: Engine, query: str = "select * from usr_delta order by 1") -> list[tuple[Any, ...]]:
    with engine.connect() as connection:
        return [tuple(row) for row in connection.execute(text(query))]


def test_each_change_of_an_object_is_a_row(engine: Engine) -> None:
    run_statements(engine, "insert into usr values (1, 'anne', 'Anne'), (2, 'bob', 'Bob'), (3, 'eve', 'Eve')")
    assert rows(engine) == [("anne", "Insert"), ("bob", "Insert"), ("eve", "Insert")]
    run_statements(engine, "delete from usr_delta")
    run_statements(
        engine,
        "update usr set name = 'Anna' where idu = 1",
        "delete from usr where idu = 3",
        "update usr set login = 'rob' where idu = 2",
    )
    assert rows(engine) == [("anne", "Update"), ("bob", "Delete"), ("eve", "Delete"), ("rob", "Insert")]
    with engine.connect() as connection:
        columns = connection.execute(text("select * from usr_delta")).keys()
    assert list(columns) == ["login", "action"]


def test_an_update_that_changes_no_value_is_none_where_rows_can_be_compared(engine: Engine) -> None:
    compares = dialect_of(engine).triggers.on_truncate
    run_statements(engine, "insert into usr values (1, 'anne', 'Anne')")
    run_statements(engine, "delete from usr_delta", "update usr set name = name")
    assert rows(engine) == ([] if compares else [("anne", "Update")])
    if compares:
        run_statements(engine, "alter table usr add extra json", "update usr set extra = '{}'")
        run_statements(engine, "delete from usr_delta", "update usr set extra = '{}'")
        assert rows(engine) == []
        run_statements(engine, "update usr set extra = '[]'")
        assert rows(engine) == [("anne", "Update")]


@pytest.mark.parametrize(
    "where",
    [
        "where login = 'anne'",
        "where login = 'anne' and action in ('Insert', 'Update')",
        "where login in ('anne', 'nobody')",
        "where login in (select login from usr where idu = 1)",
        "where action <> 'Delete' and not login = 'bob'",
    ],
)
def test_a_change_after_the_read_waits_behind_the_row_that_is_deleted(engine: Engine, where: str) -> None:
    run_statements(engine, "insert into usr values (1, 'anne', 'Anne'), (2, 'bob', 'Bob')")
    assert rows(engine) == [("anne", "Insert"), ("bob", "Insert")]
    run_statements(engine, "update usr set name = 'Anna'", "update usr set name = 'Ann'")
    for count in range(3):
        assert run_statements(engine, f"delete from usr_delta {where}") == 1
        assert rows(engine) == [("anne", "Update"), ("bob", "Insert")]
        run_statements(engine, f"update usr set name = '{count}' where idu = 1")
    run_statements(engine, "delete from usr")
    assert run_statements(engine, "delete from usr_delta") == 2
    assert rows(engine) == [("anne", "Delete"), ("bob", "Delete")]
    run_statements(engine, "delete from usr_delta")
    assert rows(engine) == []


def test_a_truncate_of_the_table_deletes_its_objects_and_one_of_the_delta_is_refused(engine: Engine) -> None:
    run_statements(engine, "insert into usr values (1, 'anne', 'Anne')", "delete from usr_delta")
    if dialect_of(engine).triggers.on_truncate:
        run_statements(engine, "truncate table usr")
        assert rows(engine) == [("anne", "Delete")]
    else:
        with engine.connect() as connection:
            notes = [finding.what for finding in check_readers(connection)]
        assert any("truncate" in note and "fire no trigger" in note for note in notes)
        run_statements(engine, "delete from usr")
    if not dialect_of(engine).sessions.lock_is_transactional:  # else its owner may, and no one else
        with pytest.raises(DatabaseFailed):
            run_statements(engine, "truncate table usr_delta")
    assert rows(engine) == [("anne", "Delete")]


def read_each(connection: Connection, aggregated_names: dict[str, Any]) -> None:
    """Read, aggregate, and delete what was read, one row at a time."""
    read = connection.execute(text("select login, action from usr_delta")).all()
    connection.commit()
    for login, action in read:
        aggregated_names[login] = name_of(connection, login, action)
        connection.commit()
        try:
            connection.execute(text("delete from usr_delta where login = :login"), {"login": login})
            connection.commit()
        except DatabaseFailed:  # it comes again
            connection.rollback()


def read_in_a_transaction(connection: Connection, aggregated_names: dict[str, Any]) -> None:
    """Do it in one transaction, which may have to be done again."""
    try:
        read = connection.execute(text("select login, action from usr_delta")).all()
        aggregated = {login: name_of(connection, login, action) for login, action in read}
        for login, _ in read:
            connection.execute(text("delete from usr_delta where login = :login"), {"login": login})
        connection.commit()
    except DatabaseFailed:
        connection.rollback()
    else:
        aggregated_names.update(aggregated)


def name_of(connection: Connection, login: str, action: str) -> Any:
    name = connection.execute(text("select name from usr where login = :login"), {"login": login}).scalar()
    return None if action == "Delete" else name


def write(engine: Engine, number: int, ends: float, failures: list[str]) -> None:
    """Write to objects of its own, because they all wait for its row.

    A writer that updates rows which are not there locks gaps, where its database does.
    """
    dice = random.Random(number)
    present: set[int] = set()
    count = 0
    with engine.connect() as connection:
        while time.monotonic() < ends:
            count += 1
            key = dice.randrange(4) * WRITERS + number
            values = f"({key}, 'u{key}', '{count}')"
            renaming = f"update usr set name = '{count}' where idu = {key}"
            after = present | {key}
            try:
                connection.execute(text(renaming if key in present else f"insert into usr values {values}"))
                if dice.random() < 0.3:
                    connection.execute(text(f"delete from usr where idu = {key}"))
                    after = present - {key}
                time.sleep(dice.uniform(0, 0.01))  # so that the reader meets transactions that are open
                if dice.random() < 0.1:
                    connection.rollback()
                    continue
                connection.commit()
            except DatabaseFailed as failure:
                failures.append(str(failure))
                connection.rollback()
            else:
                present = after


@pytest.mark.slow("writers need time to meet the reader")
@pytest.mark.parametrize("has_snapshot", [False, True], ids=["read-committed", "snapshot"])
@pytest.mark.parametrize("reader", [read_each, read_in_a_transaction])
@pytest.mark.family
def test_a_reader_that_deletes_what_it_read_loses_nothing(
    engine: Engine, reader: Callable[[Connection, dict[str, Any]], None], has_snapshot: bool
) -> None:
    dialect = dialect_of(engine)
    snapshot = "SERIALIZABLE" if dialect.sessions.lock_is_transactional else "REPEATABLE READ"
    aggregated_names: dict[str, Any] = {}
    failures: list[str] = []
    ends = time.monotonic() + SECONDS
    writers = [
        threading.Thread(target=write, args=(engine, number, ends, failures)) for number in range(WRITERS)
    ]
    for writer in writers:
        writer.start()
    reads = 0
    isolation = snapshot if has_snapshot else "READ COMMITTED"
    with engine.connect().execution_options(isolation_level=isolation) as connection:
        while any(writer.is_alive() for writer in writers):
            reader(connection, aggregated_names)
            reads += 1
        while rows(engine):
            reader(connection, aggregated_names)
    assert reads > 3
    locks_gaps = not dialect.triggers.cascades_fire
    if not (locks_gaps and reader is read_in_a_transaction):
        assert failures == []
    assert all("Deadlock" in failure for failure in failures)
    assert faults(engine) == []
    present = {login: name for _, login, name in rows(engine, "select * from usr")}
    assert {login: name for login, name in aggregated_names.items() if name is not None} == present


def test_doing_it_again_changes_nothing(engine: Engine) -> None:
    with engine.connect() as connection:
        assert plan_reader(connection, "sailpoint", "usr", "login").statements == ()
    assert faults(engine) == []
    for left in (0, 0):
        with engine.connect() as connection:
            plan_no_reader(connection, "sailpoint", "usr").run(engine)
        with engine.connect() as connection:
            assert [
                name for _, name, _ in Catalogue(connection).names(None) if "_delta" in name.lower()
            ] == []
            assert len(plan_no_reader(connection, "sailpoint", "usr").statements) == left


def test_check_names_what_is_missing(engine: Engine) -> None:
    dialect = dialect_of(engine)
    with engine.connect() as connection:
        removing = plan_no_reader(connection, "sailpoint", "usr").statements
    run_statements(engine, next(statement for statement in removing if "drop trigger" in statement))
    if dialect.triggers.cascades_fire:
        run_statements(engine, "insert into usr_delta_waiting (login, action) values ('anne', 'Update')")
    else:
        stuck = "insert into usr_delta_waiting values ('anne', 0, 'Update', 0, 'anne', 1)"
        run_statements(engine, "set foreign_key_checks = 0", stuck, "set foreign_key_checks = 1")
    filling, stuck = faults(engine)
    assert filling.endswith("usr that fills it is missing or disabled")
    assert stuck == "1 changes wait for rows to go that it does not have"
    if dialect.triggers.on_truncate:
        run_statements(engine, "alter table usr_delta disable trigger usr_delta_read")
        emptying = "a trigger on it is missing or disabled: what waits for its rows to go stays there"
        assert faults(engine) == [filling, emptying, stuck]


def test_a_remedy_is_one_word_to_a_shell(database: Database) -> None:
    engine = database.engine()
    column = dialect_of(engine).quote("log in")
    run_statements(engine, f"create table odd (k integer primary key, {column} varchar(20) not null unique)")
    with engine.connect() as connection:
        plan_reader(connection, "connid", "odd", "log in").run(engine)
    with engine.connect() as connection:
        removing = plan_no_reader(connection, "connid", "odd").statements
    run_statements(engine, next(statement for statement in removing if "drop trigger" in statement))
    with engine.connect() as connection:
        commands = [finding.commands for finding in check_readers(connection) if "odd_queue" in finding.where]
    (untracking, tracking) = next(filter(None, commands))
    assert shlex.split(tracking)[:-1] == ["eventlog", "track", "--for", "connid", "--identity", "log in"]
    assert shlex.split(tracking)[-1] == shlex.split(untracking)[-1]
    engine.dispose()


@pytest.mark.parametrize("reader", READERS)
def test_it_is_removed_once_its_table_is_gone(database: Database, reader: str) -> None:
    engine = database.engine()
    run_statements(engine, "create table usr (idu integer primary key)")
    for plan_of, facts in ((plan_reader, ("idu",)), (plan_no_reader, ())):
        with engine.connect() as connection:
            plan = plan_of(connection, reader, "usr", *facts)
        plan.run(engine)
        run_statements(engine, "drop table if exists usr")
    with engine.connect() as connection:
        assert not list(Catalogue(connection).tables())
        with pytest.raises(NoSuchTable):
            plan_no_reader(connection, reader, "usr")
    engine.dispose()


def test_a_cascade_that_fires_no_trigger_is_reported(engine: Engine) -> None:
    key = "foreign key (dept) references dept (id) on delete cascade"
    run_statements(
        engine,
        "create table dept (id integer primary key)",
        f"create table emp (id integer primary key, dept integer, {key})",
    )
    with engine.connect() as connection:
        plan = plan_reader(connection, "sailpoint", "emp", "id")
    plan.run(engine)
    run_statements(
        engine, "insert into dept values (7)", "insert into emp values (1, 7)", "delete from emp_delta"
    )
    run_statements(engine, "delete from dept")
    reports = [*plan.warnings, *faults(engine)]
    if dialect_of(engine).triggers.cascades_fire:
        assert (rows(engine, "select * from emp_delta"), reports) == ([(1, "Delete")], [])
    else:
        assert rows(engine, "select * from emp_delta") == []
        assert len(reports) == 2
        assert all("to dept cascades and fires no trigger" in report for report in reports)


def test_nothing_is_left_where_it_cannot_be_made(engine: Engine) -> None:
    run_statements(
        engine,
        "create table app (login varchar(20) not null unique)",
        "create view app_delta as select 1 as one",
    )
    with engine.connect() as connection, pytest.raises(CannotTrack, match="_delta is there already"):
        plan_reader(connection, "sailpoint", "app", "login")
    run_statements(engine, "drop view app_delta")
    with engine.connect() as connection:
        plan = plan_reader(connection, "sailpoint", "app", "login")
    with pytest.raises(DatabaseFailed):
        plan._replace(statements=(*plan.statements, "insert into nowhere values (1)")).run(engine)
    with engine.connect() as connection:
        assert [name for _, name, _ in Catalogue(connection).names(None) if "app_" in name.lower()] == []


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("name", ["changed", "done", "number of", "wait''s", "Größe"])
@pytest.mark.family
def test_an_identity_may_have_any_name(database: Database, name: str, reader: str) -> None:
    engine, column = database.engine(), database.dialect.quote(name)
    run_statements(engine, f"create table odd ({column} varchar(9) not null unique, extra integer)")
    with engine.connect() as connection:
        plan_reader(connection, reader, "odd", name).run(engine)
    run_statements(
        engine,
        "insert into odd values ('anne', 1)",
        "insert into odd values ('bob', 1)",
        "update odd set extra = 2",
    )
    assert faults(engine) == []
    seen = rows(engine, f"select {column}, action from odd{READERS[reader]} order by 1, 2")
    assert (seen[0], seen[-1][0]) == (("anne", "Insert"), "bob")
    with engine.connect() as connection:
        plan_no_reader(connection, reader, "odd").run(engine)
    engine.dispose()


@pytest.mark.parametrize("reader", READERS)
def test_a_table_for_readers_may_be_dropped_while_it_is_checked(database: Database, reader: str) -> None:
    engine, other = database.engine(), database.engine()
    run_statements(engine, "create table odd (login varchar(9) not null unique)")
    with engine.connect() as connection:
        plan_reader(connection, reader, "odd", "login").run(engine)
    dropped: list[str] = []

    def drop(*words: Any) -> None:
        if not dropped and "eventlog for " in str(words[3]):  # the list of these tables was read
            dropped.append("odd")
            with other.connect() as connection:
                plan_no_reader(connection, reader, "odd").run(other)

    event.listen(engine, "after_cursor_execute", drop)
    assert faults(engine) == []
    assert dropped == ["odd"]
    engine.dispose()
    other.dispose()


def test_a_key_that_one_statement_may_exchange_is_refused(engine: Engine) -> None:
    if not dialect_of(engine).triggers.by_statement:
        pytest.skip("keys of this database are checked at once, or its triggers are compound")
    run_statements(engine, "create table late (login varchar(20) not null unique deferrable)")
    with engine.connect() as connection, pytest.raises(CannotTrack, match="must be not null, and unique"):
        plan_reader(connection, "sailpoint", "late", "login")


INDEXES: dict[str, bool] = {  # of a column that is not null, and whether it names objects by itself
    "unique (login)": True,
    "primary key (login)": True,
    "unique (login, extra)": False,
    "unique (login) deferrable": False,
    "unique (login) deferrable initially deferred": False,
}


def test_an_index_names_objects_if_it_is_unique_by_itself_at_once(postgres: Database) -> None:
    engine = postgres.engine()
    names_objects = {}
    for number, index in enumerate(INDEXES):
        run_statements(engine, f"create table t{number} (login varchar(20) not null, extra integer, {index})")
        with engine.connect() as connection:
            try:
                names_objects[index] = plan_reader(connection, "sailpoint", f"t{number}", "login").makes
            except CannotTrack:
                names_objects[index] = False
    assert names_objects == INDEXES
    engine.dispose()


@pytest.mark.parametrize("reader", READERS)
def test_a_name_that_something_has_is_left_to_it(database: Database, reader: str) -> None:
    engine = database.engine()
    taken = f"app{READERS[reader]}"
    run_statements(
        engine,
        "create table app (login varchar(20) not null unique)",
        f"create table {taken} (note varchar(20))",
        f"insert into {taken} values ('mine')",
    )
    with engine.connect() as connection, pytest.raises(CannotTrack, match=f"{taken} is there already"):
        plan_reader(connection, reader, "app", "login")
    assert rows(engine, f"select * from {taken}") == [("mine",)]
    engine.dispose()


def test_a_reader_whose_snapshot_is_older_than_a_change_deletes_nothing(engine: Engine) -> None:
    """Refuse its delete, because the row that it read names a change that it did not see, too."""
    if not dialect_of(engine).triggers.by_statement:
        pytest.skip("a delete takes the rows of now there, whatever the snapshot is")
    run_statements(engine, "insert into usr values (1, 'anne', 'Anne')")
    with engine.connect().execution_options(isolation_level="REPEATABLE READ") as reader:
        assert reader.execute(text("select login from usr_delta")).scalars().all() == ["anne"]
        run_statements(engine, "update usr set name = 'Anna'")
        with pytest.raises(DatabaseFailed, match="could not serialize"):
            reader.execute(text("delete from usr_delta where login = 'anne'"))
    assert rows(engine) == [("anne", "Insert")]


def test_a_column_that_names_no_object_is_refused(engine: Engine) -> None:
    with engine.connect() as connection:
        plan_no_reader(connection, "sailpoint", "usr").run(engine)
    for identity, reason in {
        "name": "must be not null, and unique",
        "nobody": "it has no column nobody",
    }.items():
        with engine.connect() as connection, pytest.raises(CannotTrack, match=reason):
            plan_reader(connection, "sailpoint", "usr", identity)


def test_the_commands(engine: Engine, database: Database, tmp_path: Path) -> None:
    url = database.address
    with engine.connect() as connection:
        plan = plan_no_reader(connection, "sailpoint", "usr")
    with closing(Shell(tmp_path)) as shell:
        made = shell.run("track", "--for", "sailpoint", "--identity", "login", "usr", "--url", url)
        assert made.stdout + made.stderr == f"{plan.table} is there already\n"
        assert shell.run("check", "--url", url).code == 0
        dropping = next(statement for statement in plan.statements if "drop trigger" in statement)
        run_statements(engine, dropping)
        wrong = shell.run("check", "--url", url)
        assert (wrong.code, "eventlog track --for sailpoint" in wrong.stdout) == (1, True)
        removed = shell.run("untrack", "--for", "sailpoint", "usr", "--url", url)
        assert removed.stdout + removed.stderr == f"{plan.table} is removed\n"
        script = shell.run("track", "--for", "sailpoint", "--identity", "login", "usr", "--sql", "--url", url)
        assert "'eventlog for sailpoint by " in script.stdout
        alone = shell.run("track", "--for", "sailpoint", "usr", "--url", url)
        assert (alone.code, "--for and --identity go together" in alone.stderr) == (2, True)
        words = ("--identity", "login", "--insert", "1", "usr", "--url", url)
        mixed = shell.run("track", "--for", "sailpoint", *words)
        assert (mixed.code, "--insert is of the log" in mixed.stderr) == (2, True)


@pytest.mark.parametrize("own_type", [*OWN_TYPES, "ext.login"])
@pytest.mark.parametrize("reader", READERS)
@pytest.mark.long
def test_an_identity_may_have_an_equality_of_its_own(database: Database, reader: str, own_type: str) -> None:
    """Hold types of PostgreSQL as texts; what a collation of MariaDB holds equal is one object."""
    engine = database.engine()
    has_types = database.dialect.triggers.by_statement
    if has_types:
        run_statements(engine, *making_own_types(), "create domain ext.login as ext.nocase")
    column = own_type if has_types else "varchar(20) collate utf8mb4_general_ci"
    run_statements(engine, f"create table own (login {column} not null unique, extra integer)")
    with engine.connect() as connection:
        plan_reader(connection, reader, "own", "login").run(engine)
    with engine.begin() as connection:
        if has_types:
            connection.execute(text("set local statement_timeout = '20s'"))
        connection.execute(text("insert into own values ('Bob', 1), ('Eve', 2)"))
        connection.execute(text("update own set extra = 3 where extra = 2"))
        connection.execute(text("update own set login = 'BOB' where extra = 1"))
        connection.execute(text("delete from own where extra = 3"))
    aggregated_names: dict[str, str] = {}
    table = f"own{READERS[reader]}"
    while seen := rows(engine, f"select login, action from {table}"):
        for login, action in seen:
            run_statements(engine, f"delete from {table} where login = '{login}' and action = '{action}'")
            aggregated_names[login] = action
    assert faults(engine) == []
    assert aggregated_names.pop("Eve") == "Delete"
    one_object = {"Bob": "Insert", "BOB": "Update"}
    assert aggregated_names == ({"Bob": "Delete", "BOB": "Insert"} if has_types else one_object)
    engine.dispose()
