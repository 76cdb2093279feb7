"""The documented rights suffice: owner, publisher, reader and application work with exactly those."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from sqlalchemy import text
from sqlalchemy.engine import URL

from eventlog.cli import cli
from eventlog.opening.open_log import Denied
from eventlog.sql.capture.readers import check_readers, plan_reader
from eventlog.sql.common.dialect import Dialect
from eventlog.sql.connect import DatabaseFailed, connect
from tests.kit.databases import Database
from tests.kit.statements import run_statements

pytestmark = pytest.mark.quick

DOCS = Path(__file__).parents[2] / "docs"
READERS_PAGE = DOCS / "log" / "readers.md"
OWNERS = {
    "postgresql": "databases/postgresql.md",
    "mysql": "databases/mysql.md",
    "mariadb": "databases/mysql.md",
}
READERS = {
    "postgresql": [
        "grant usage on schema eventlog to eventlog_reader",
        "grant select on all tables in schema eventlog to eventlog_reader",
    ],
    "mysql": ["grant select on eventlog.* to eventlog_reader"],
}
READERS["mariadb"] = READERS["mysql"]


def documented(page: str, heading: str) -> list[str]:
    """Return the statements of the first block of SQL under a heading of a page."""
    section = (DOCS / page).read_text(encoding="utf-8").partition(f"## {heading}\n")[2]
    block = re.search(r"```sql\n(.*?)```", section, re.DOTALL)
    assert block is not None
    return [line.strip() for line in re.sub(r"--.*", "", block[1]).split(";") if line.strip()]


@dataclass
class House:
    """A server with a database of an application, whose administrator we are, and users that we make."""

    database: Database
    folder: Path
    mark: str = field(default_factory=lambda: secrets.token_hex(4))
    users: list[str] = field(default_factory=list)

    @property
    def dialect(self) -> Dialect:
        return self.database.dialect

    @property
    def schemas(self) -> bool:
        """Return whether a database contains schemas, so that names of them are its own."""
        return self.dialect.triggers.by_statement

    def named(self, statement: str) -> str:
        """Return the statement with names that no other test has."""
        statement = re.sub(r"\beventlog_(owner|publisher|reader|app|loader)\b", rf"\1_{self.mark}", statement)
        if self.schemas:
            return statement
        statement = re.sub(r"\bapp\b", str(self.database.url.database), statement)
        return re.sub(r"(?<!\.)\beventlog\b(?=[. ]|$)", f"log_{self.mark}", statement)

    @property
    def log(self) -> str:
        return self.named("eventlog.") + "eventlog"

    def run(self, *statements: str) -> None:
        run_statements(self.database.engine(), *map(self.named, statements), autocommit=True)

    def user(self, role: str, *statements: str) -> URL:
        """Make a user of that role with the statements; one of them may create the user."""
        name, password = self.named(f"eventlog_{role}"), secrets.token_hex(12)
        self.users.append(name)
        making = (
            f"create user eventlog_{role} identified by '…'"
            if not self.schemas
            else (f"create role eventlog_{role} login")
        )
        for statement in statements if making in statements else (making, *statements):
            self.run(statement.replace("…", password))
        if self.schemas:
            self.run(f"alter role {name} password '{password}'")
        return self.database.url.set(username=name, password=password)

    def call(self, user: URL, *words: str, **settings: str) -> Result:
        """Return a command of that user."""
        environment = {"EVENTLOG_URL": user.render_as_string(False), "EVENTLOG_LOG_TABLE": self.log}
        done = CliRunner().invoke(cli, words, env=environment | settings)
        assert done.exit_code == 0, (words, done.output, done.stderr)
        return done

    def does(self, user: URL, *statements: str) -> list[Any]:
        """Return what the last statement finds when that user runs it."""
        engine = connect(user)
        with engine.begin() as connection:
            for statement in statements:
                cursor = connection.execute(text(self.named(statement)))
            return list(cursor.all()) if cursor.returns_rows else []

    def refused(self, user: URL, statement: str) -> None:
        with pytest.raises(DatabaseFailed, match=r"denied|must be owner|not exist"):
            self.does(user, statement)

    def clean(self) -> None:
        for user in self.users:
            self.run(
                *(
                    [f"drop owned by {user} cascade", f"drop role {user}"]
                    if self.schemas
                    else [f"drop user {user}"]
                )
            )
        if not self.schemas:
            self.run("drop database if exists eventlog")


@pytest.fixture
def house(database: Database, tmp_path: Path) -> Iterator[House]:
    if database.dialect.sessions.lock_is_transactional:
        pytest.skip("users of Oracle are made in another way")
    new_house = House(database, tmp_path)
    if new_house.schemas:
        new_house.run("create schema app")
    new_house.run("create table app.usr (idu integer primary key, fname varchar(64))")
    yield new_house
    new_house.clean()


@pytest.fixture
def owner(house: House) -> URL:
    """The owner as documented, with its log and the table tracked."""
    user = house.user("owner", *documented(OWNERS[house.dialect.name], "The owner"))
    trusting(house, lambda: house.call(user, "install"))
    trusting(
        house, lambda: house.call(user, "track", house.named("app.usr"), "--insert", "1", "--update", "2")
    )
    return user


def trusting(house: House, act: Callable[[], Result]) -> Result:
    """Do what a server with a binary log allows once its administrator did as documented."""
    if house.schemas:
        return act()
    house.run("set global log_bin_trust_function_creators = on")
    try:
        return act()
    finally:
        house.run("set global log_bin_trust_function_creators = off")


@pytest.fixture
def app(house: House, owner: URL) -> URL:
    """An application, which may write to its table."""
    usage = ["grant usage on schema app to eventlog_app"] if house.schemas else []
    return house.user("app", *usage, "grant select, insert, update, delete on app.usr to eventlog_app")


@pytest.fixture
def publisher(house: House, owner: URL) -> URL:
    """A publisher with the printed grants and the right to read what is read back."""
    words = (
        "install",
        "--sql",
        "--dialect",
        house.dialect.name,
        "--grants",
        house.named("eventlog_publisher"),
    )
    printed = house.call(owner, *words).output
    usage = ["grant usage on schema app to eventlog_publisher"] if house.schemas else []
    grants = re.findall(r"^grant .*?(?=;$)", printed, re.MULTILINE)
    return house.user("publisher", *usage, "grant select on app.usr to eventlog_publisher", *grants)


@pytest.fixture
def reader(house: House, owner: URL) -> URL:
    """A reader with the documented grants and the right to read what is read back."""
    usage = ["grant usage on schema app to eventlog_reader"] if house.schemas else []
    page = (DOCS / "reference" / "security.md").read_text(encoding="utf-8")
    grants = READERS[house.dialect.name]
    assert all(grant in page for grant in grants)
    return house.user("reader", *usage, "grant select on app.usr to eventlog_reader", *grants)


@pytest.mark.long
def test_the_owner_installs_tracks_looks_after_and_takes_away(house: House, owner: URL, app: URL) -> None:
    table = house.named("app.usr")
    assert "is up to date" in trusted(house, owner, "install").stderr
    assert house.call(owner, "check").stderr == "nothing is wrong\n"
    house.does(app, "insert into app.usr values (1, 'Jack')")
    assert "1 row logged" in house.call(owner, "resync", table).stderr
    house.call(owner, "errors")
    house.call(owner, "purge", "--older-than", "0d", "--letters", "N,S")
    replace(house, owner, "track", table)
    assert house.call(owner, "check").stderr == "nothing is wrong\n"
    replace(house, owner, "untrack", table)
    house.does(app, "insert into app.usr values (2, 'Jane')")
    assert house.does(owner, f"select * from {house.log}") == []
    assert "is uninstalled" in house.call(owner, "uninstall").stderr


def test_a_user_that_may_not_track_a_table_is_referred_to_the_script(house: House, owner: URL) -> None:
    house.run("create table app.dept (idd integer primary key)", "grant select on app.dept to eventlog_owner")
    environment = {"EVENTLOG_URL": owner.render_as_string(False), "EVENTLOG_LOG_TABLE": house.log}
    reading = ("track", "app.dept", "--for", "sailpoint", "--identity", "idd")
    changing = [("track", "app.usr"), ("untrack", "app.usr")] if house.schemas else []
    for command, table, *options in [("track", "app.dept"), reading, *changing]:
        words = (command, house.named(table), *options)
        failed = trusting(house, partial(CliRunner().invoke, cli, words, env=environment))
        assert failed.exit_code == 1
        assert f"the triggers of {words[1]}" in str(failed.exception)
        assert "--sql" in str(failed.exception)
        assert house.call(owner, *words, "--sql").output


def test_a_user_that_may_not_install_is_referred_to_the_script(house: House) -> None:
    user = house.user("app", *(["grant usage on schema app to eventlog_app"] if house.schemas else []))
    log = house.named("app.eventlog")
    environment = {"EVENTLOG_URL": user.render_as_string(False), "EVENTLOG_LOG_TABLE": log}
    if not house.schemas:
        house.run("grant select on app.usr to eventlog_app")  # else it may not connect to the database
    failed = CliRunner().invoke(cli, ["install"], env=environment)
    words = ("--sql", "--dialect", house.dialect.name)
    assert failed.exit_code == 1
    assert f"else give it {' '.join(words)}, and let the owner" in str(failed.exception)
    assert "create table" in house.call(user, "install", *words).output


def test_a_user_without_rights_on_a_log_learns_who_has_them(house: House, owner: URL, app: URL) -> None:
    table = house.named("app.usr")
    environment = {"EVENTLOG_URL": app.render_as_string(False), "EVENTLOG_LOG_TABLE": house.log}
    remedies = {"install": "its owner", "track": "let the owner of", "untrack": "let the owner of"}
    for command, remedy in remedies.items():
        words = [command, table] if "track" in command else [command]
        failed = CliRunner().invoke(cli, words, env=environment)
        assert failed.exit_code == 1
        assert remedy in str(failed.exception)


def replace(house: House, owner: URL, *words: str) -> None:
    """Return what removes triggers; on PostgreSQL only the table's owner may run it."""
    if not house.schemas:
        trusted(house, owner, *words)
        return
    script = house.call(owner, *words, "--sql").output
    house.run(re.sub(r"^(\\.*|begin;|commit;)$", "", script, flags=re.MULTILINE))


def trusted(house: House, user: URL, *words: str) -> Result:
    return trusting(house, lambda: house.call(user, *words))


@pytest.mark.long
def test_an_application_writes_to_its_table_and_reaches_nothing_of_the_log(
    house: House, app: URL, owner: URL
) -> None:
    house.does(
        app,
        "insert into app.usr values (1, 'Jack'), (2, 'Jane')",
        "update app.usr set fname = 'John' where idu = 1",
        "delete from app.usr where idu = 2",
    )
    rows = f"select event_type, table_key, new_value, perpetrator from {house.log} order by record_id"
    me = house.named("eventlog_app")
    assert house.does(owner, rows) == [
        (1, "idu=1", "Jack", me),
        (1, "idu=2", "Jane", me),
        (2, "idu=1", "John", me),
        (4, "idu=2", None, me),
    ]
    companions = (
        "",
        "_state",
        "_batch",
        "_retry",
        "_held",
        "_failed",
        "_resync",
        "_notice",
        "_tracked",
        "_version",
    )
    for companion in companions:
        house.refused(app, f"select * from {house.log}{companion}")
        house.refused(app, f"delete from {house.log}{companion}")
    if not house.schemas:  # it would precede the log in the triggers
        house.refused(app, f"create temporary table {house.log} (k integer)")
    routine = "select" if house.schemas else "call"
    house.refused(app, f"{routine} {house.log}_capture_off('no')")
    house.refused(app, f"{routine} {house.log}_event(5, 'usr', 'idu=1', null, null, null)")


def test_a_loader_switches_capture_off_with_the_documented_grant(house: House, owner: URL, app: URL) -> None:
    usage = ["grant usage on schema eventlog to eventlog_app"] if house.schemas else []
    kind, of = ("function", "(text)") if house.schemas else ("procedure", "")
    house.run(*usage, f"grant execute on {kind} {house.log}_capture_off{of} to eventlog_app")
    routine = "select" if house.schemas else "call"
    house.does(
        app, f"{routine} {house.log}_capture_off('first load')", "insert into app.usr values (1, 'Jack')"
    )
    house.does(app, "insert into app.usr values (2, 'Jane')")
    assert house.does(owner, f"select table_key from {house.log}") == [("idu=2",)]
    house.refused(app, f"{routine} {house.log}_event(5, 'usr', 'idu=1', null, null, null)")
    house.run("create table app.dept (idd integer primary key)", "grant select on app.dept to eventlog_owner")
    house.run("grant trigger on app.dept to eventlog_owner")
    trusted(house, owner, "install")
    trusted(house, owner, "track", house.named("app.dept"))
    house.does(app, f"{routine} {house.log}_capture_off('once more')")


def test_a_publisher_publishes_and_answers_for_its_rows(
    house: House, app: URL, publisher: URL, owner: URL, tmp_path: Path
) -> None:
    house.does(
        app, "insert into app.usr values (1, 'Jack')", "update app.usr set fname = 'Joe' where idu = 1"
    )
    assert "usr idu=1" in house.call(publisher, "explain").output
    assert "<add " in house.call(publisher, "preview").output
    house.run(f"insert into {house.log} (event_type, table_name, table_key) values (6, 'nowhere', 'k=1')")
    house.call(publisher, "run", "--once", "--sink", "files", "--files-folder", str(tmp_path / "out"))
    assert any("<add " in file.read_text() for file in (tmp_path / "out").rglob("*.xml"))
    house.call(publisher, "status")
    assert "nowhere" in house.call(publisher, "errors").output
    house.call(publisher, "redrive", "--all")
    house.call(publisher, "run", "--once", "--sink", "files", "--files-folder", str(tmp_path / "out"))
    house.call(publisher, "skip", "3", "--because", "nobody's")
    house.call(publisher, "pause", "--because", "rest")
    house.call(publisher, "resume")
    house.call(publisher, "check")
    house.call(publisher, "purge", "--older-than", "0d", "--letters", "S,W")
    assert house.does(owner, f"select count(*) from {house.log}") == [(0,)]
    house.refused(publisher, f"delete from {house.log}_tracked")
    house.refused(publisher, f"update {house.log} set table_key = 'idu=2'")


@pytest.mark.long
def test_a_reader_reads_and_changes_nothing(house: House, app: URL, reader: URL) -> None:
    house.does(app, "insert into app.usr values (1, 'Jack')")
    assert "usr idu=1" in house.call(reader, "explain").output
    assert "<add " in house.call(reader, "preview").output
    assert "1" in house.call(reader, "status").output
    house.call(reader, "errors")
    done = house.call(reader, "check")
    assert done.stderr == ("nothing is wrong\n" if house.schemas else "nothing else is wrong\n")
    assert done.output.count("this user may not see") == (not house.schemas)
    for statement in ("delete from {}", "update {} set status = 'S'", "delete from {}_tracked"):
        house.refused(reader, statement.format(house.log))


@pytest.mark.parametrize("sees_tables", [False, True])
def test_a_user_without_a_right_on_the_log_is_referred_to_the_grants(
    house: House, owner: URL, sees_tables: bool
) -> None:
    grant = "usage on schema app" if house.schemas else "select on app.*"
    grants = [f"grant {grant} to eventlog_reader"] if sees_tables else []
    stranger = house.user("reader", *grants)
    environment = {"EVENTLOG_URL": stranger.render_as_string(False), "EVENTLOG_LOG_TABLE": house.log}
    for words in (["check"], ["check", "--write-tables", "-"], ["status"]):
        done = CliRunner().invoke(cli, words, env=environment)
        assert isinstance(done.exception, Denied), (words, done.exception)
        assert "denied" in str(done.exception)
        assert "`eventlog install --sql --grants ROLE` prints the rights" in str(done.exception)


def test_a_reader_s_table_whose_triggers_a_user_may_not_see_is_a_note(house: House) -> None:
    if not house.dialect.triggers.are_hidden:
        pytest.skip(f"{house.database.name} shows all triggers")
    table, engine = house.named("app.usr"), house.database.engine()
    with engine.connect() as connection:
        plan_reader(connection, "connid", table, "idu").run(engine)
    with connect(house.user("reader", "grant select on app.* to eventlog_reader")).connect() as connection:
        finding = next(finding for finding in check_readers(connection) if finding.where.startswith(table))
    assert finding.what == f"its triggers cannot be checked: this user may not see those of {table}"
    assert (finding.remedy, finding.fault, finding.shown) == (
        "run check as the user that made it",
        False,
        True,
    )


def test_without_trust_in_the_binary_log_install_and_track_say_the_remedy(house: House) -> None:
    if house.schemas or house.does(house.database.url, "select @@log_bin") != [(1,)]:
        pytest.skip(f"{house.database.name} writes no binary log")
    user = house.user("owner", *documented(OWNERS[house.dialect.name], "The owner"))
    environment = {"EVENTLOG_URL": user.render_as_string(False), "EVENTLOG_LOG_TABLE": house.log}
    for words in (("install",), ("track", "usr")):
        done = CliRunner().invoke(cli, words, env=environment)
        assert done.exit_code == 1
        assert "set persist log_bin_trust_function_creators = on" in str(done.exception)
    trusted(house, user, "install")
    assert "is tracked" in trusted(house, user, "track", "usr").stderr
    again = CliRunner().invoke(cli, ("track", "usr", "--insert", "1"), env=environment)
    assert again.exit_code == 1
    house.run("insert into app.usr values (1, 'Jack')")
    assert house.does(user, f"select event_type from {house.log}") == [(5,)]


def connector_grants(house: House, user: str) -> list[str]:
    """Return the grants that the page of readers names for a connector's user."""
    blocks = re.findall(r"```sql\n(.*?)```", READERS_PAGE.read_text(encoding="utf-8"), re.DOTALL)
    [block] = [block for block in blocks if f" to {user};" in block]
    lines = [line.strip() for line in block.splitlines()]
    grants = [line for line in lines if line and (house.schemas or "PostgreSQL alone" not in line)]
    named = [
        re.sub(r"\b(sailpoint|midpoint)\b", "eventlog_reader", line.partition(";")[0]) for line in grants
    ]
    return [re.sub(r"\bhr\b", "app", line) for line in named]


@pytest.fixture
def reader_owner(house: House) -> URL:
    """The user that makes tables for connectors, with the rights that their page names."""
    if house.schemas:
        grant = "grant usage, create on schema app to eventlog_owner"
        return house.user("owner", grant, "alter table app.usr owner to eventlog_owner")
    page = READERS_PAGE.read_text(encoding="utf-8")
    rights = re.search(r"^\| MariaDB, MySQL \| on `hr\.\*`: `(.*)` \|$", page, re.MULTILINE)
    assert rights is not None
    return house.user("owner", f"grant {rights[1]} on app.* to eventlog_owner")


@pytest.fixture
def writer(house: House, reader_owner: URL) -> URL:
    """An application that may write to its table alone."""
    usage = ["grant usage on schema app to eventlog_app"] if house.schemas else []
    return house.user("app", *usage, "grant select, insert, update, delete on app.usr to eventlog_app")


def test_sailpoint_needs_the_documented_rights(house: House, reader_owner: URL, writer: URL) -> None:
    table = house.named("app.usr")
    words = ("track", "--for", "sailpoint", "--identity", "idu", table)
    trusting(house, lambda: house.call(reader_owner, *words))
    no_log = house.named("app.") + "eventlog"
    checked = house.call(reader_owner, "check", EVENTLOG_LOG_TABLE=no_log)
    assert checked.stderr == "nothing is wrong\n"
    user = house.user("reader", *connector_grants(house, "sailpoint"))
    house.does(
        writer, "insert into app.usr values (1, 'Jack'), (2, 'Jane')", "delete from app.usr where idu = 1"
    )
    house.does(user, "delete from app.usr_delta where idu = 1")
    rows = "select idu, action from app.usr_delta order by idu"
    assert house.does(user, rows) == [(1, "Delete"), (2, "Insert")]
    for statement in (
        "insert into app.usr_delta values (3, 'Insert')",
        "update app.usr_delta set action = 'Delete'",
        "select * from app.usr_delta_waiting",
        "select * from app.usr",
    ):
        house.refused(user, statement)
    for statement in (rows, "select * from app.usr_delta_waiting"):
        house.refused(writer, statement)
    note = (
        "select app.usr_delta_note(3, 'Delete')" if house.schemas else "call app.usr_delta_note(3, 'Delete')"
    )
    for stranger in (user, writer):
        house.refused(stranger, note)
    house.call(reader_owner, "untrack", "--for", "sailpoint", table)
    house.does(writer, "insert into app.usr values (3, 'John')")


def test_a_script_of_connid_needs_the_documented_rights(house: House, reader_owner: URL, writer: URL) -> None:
    words = ("track", "--for", "connid", "--identity", "idu", house.named("app.usr"))
    trusting(house, lambda: house.call(reader_owner, *words))
    user = house.user("reader", *connector_grants(house, "midpoint"))
    house.does(writer, "insert into app.usr values (1, 'Jack')", "delete from app.usr where idu = 1")
    house.does(user, "update app.usr_queue_last set handed = 2", "update app.usr_queue set handed = place")
    house.does(user, "delete from app.usr_queue where handed <= 1")
    assert house.does(user, "select action, handed from app.usr_queue") == [("Delete", 2)]
    assert house.does(user, "select handed, fname from app.usr_queue_last, app.usr") == []
    for statement in (
        "insert into app.usr_queue (idu, action) values (3, 'Insert')",
        "insert into app.usr_queue_last values (3)",
        "delete from app.usr_queue_last",
        "delete from app.usr",
    ):
        house.refused(user, statement)
    house.refused(writer, "select * from app.usr_queue")
