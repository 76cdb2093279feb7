"""From settings to an open log: where it is, how its columns are bound, what may be read back.

The example of a settings file is complete and true."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from eventlog.cli.log_options import ALL
from eventlog.core.errors import EventlogError, InvalidValue, Misuse
from eventlog.core.settings import WrongType, declared
from eventlog.fold import Rules
from eventlog.opening.config import Config, InvalidSettings, names, read_config, statements
from eventlog.opening.open_log import driver_user, open_store
from eventlog.opening.publisher_settings import (
    DaemonSettings,
    DatabaseSettings,
    PublisherSettings,
    TablePublishing,
)
from eventlog.opening.publisher_tables import read_tables
from eventlog.publisher.cycle import Publisher
from eventlog.publisher.preparation import make_reader
from eventlog.sql.catalogue import Catalogue, Directory, NoSuchTable
from eventlog.sql.log.store import Store
from eventlog.sql.names import Log, log_named
from eventlog.sql.schema import migrate
from eventlog.xds.xds_settings import XdsSettings
from tests.kit.logs import Receiver, key
from tests.world.world import World

pytestmark = pytest.mark.quick

DECLARED = (DatabaseSettings, TablePublishing, Rules, XdsSettings, PublisherSettings, DaemonSettings)


def config(world: World, *, columns: Any = None, tables: Any = None, **settings: Any) -> Config:
    url = world.url
    return Config({"url": url, "sync_tables": "usr"} | settings, columns or {}, tables or {})


@pytest.fixture
def family(world: World) -> Iterator[World]:
    """Make a table that refers to usr, a view, and a table without a name in the settings."""
    world.change("create table dept (id integer primary key, boss integer references usr (idu), born date)")
    world.change("create view people as select idu as pk_idu, fname as sv_fname, lname as mv_lname from usr")
    yield world
    world.change("drop view people")
    world.change("drop table dept")


def publish(world: World, store: Store, configured: Config) -> Receiver:
    receiver = Receiver()
    leader = world.elect()
    with leader:
        settings = configured.build(PublisherSettings)
        Publisher(store, lambda: make_reader(configured, store), receiver, leader.epoch, 1, settings).cycle()
    store.engine.dispose()
    return receiver


def test_flag_then_environment_then_file_then_default(tmp_path: Path) -> None:
    file = tmp_path / "eventlog.toml"
    file.write_text("batch-size = 2\nquery_limit = 3\ndelete-from-log = 'yes'\nallow-loopback = 0\n")
    environment = {"EVENTLOG_BATCH_SIZE": "4", "EVENTLOG_TIME_SYNTAX": "3", "OTHER": "x"}
    found = read_config(DECLARED, {"time_syntax": "2", "url": None}, environment, file)
    assert found.values == {
        "batch_size": 4,
        "query_limit": 3,
        "delete_from_log": True,
        "allow_loopback": False,
        "time_syntax": 2,
    }
    assert found.build(XdsSettings).batch_size == 4
    assert found.build(DaemonSettings).polling_interval == 10


def test_a_text_is_built_into_no_number() -> None:
    with pytest.raises(WrongType, match=r"^polling-interval is '10': expected a whole number$"):
        Config({"polling_interval": "10"}).build(DaemonSettings)


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("delete_from_log", "maybe"),
        ("polling_interval", "0"),
        ("polling_interval", "604801"),
        ("time_of_day", "noon"),
        ("batch_size", "0"),
        ("batch_size", "100001"),
        ("query_limit", "2147483648"),
        ("pub_heartbeat_interval", "-1"),
        ("enable_refs", "2"),
        ("time_syntax", "4"),
        ("reconnect", "soon"),
        ("log_time", "cet"),
        ("layout", "new"),
        ("include_table_filter", "a(b"),
        ("sync_tables", 'a "b'),
    ],
)
def test_a_value_that_is_not_legal_is_named(name: str, wrong: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidSettings) as caught:
        read_config(DECLARED, {name: wrong}, {}, None)
    assert "--" + name.replace("_", "-") in str(caught.value)
    assert wrong in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "x = [",
        "log = 1",
        "[tables.usr]\npublish = 1",
        "[tables.usr]\nno = []",
        "query-limit = 0x" + "f" * 5000,
        "sink = 0x" + "f" * 5000,
        "x" + ".x" * 50_000 + " = 1",
        'x = { "a" ' + ".'b'" * 50_000 + " = 1 }",
        "# " + "x" * (1 << 20),
    ],
    ids=lambda text: text[:30],
)
def test_a_file_that_cannot_be_used_is_reported(text: str, tmp_path: Path) -> None:
    file = tmp_path / "eventlog.toml"
    file.write_text(text)
    with pytest.raises(Misuse):
        read_config(DECLARED, {}, {}, file)


def test_a_file_without_an_end_is_reported() -> None:
    with pytest.raises(Misuse, match="/dev/zero"):
        read_config(DECLARED, {}, {}, Path("/dev/zero"))


def test_a_long_list_of_names_is_no_name_of_many_parts(tmp_path: Path) -> None:
    file = tmp_path / "eventlog.toml"
    listed = ", ".join(f"hr.table_{number}" for number in range(500))
    file.write_text(f'# {"." * 500}\nsync-tables = "{listed}"\n')
    assert read_config(DECLARED, {}, {}, file).values["sync_tables"] == listed


def test_lists_in_settings() -> None:
    assert statements(" a ;; b; ") == ("a", "b")
    assert names("a, b,,") == ("a", "b")
    assert names("indirect.usr; indirect.grp\tview_usr\n x,y") == (
        "indirect.usr",
        "indirect.grp",
        "view_usr",
        "x",
        "y",
    )
    assert names('hr."my table", "a;b"') == ("hr.my table", "a;b")
    with pytest.raises(InvalidValue, match="double quote"):
        names('a, "b')


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({}, {"usr", "dept", "people"}),
        ({"include_table_filter": "(?i)(usr|dept)"}, {"usr", "dept"}),
        ({"include_table_filter": "us|dept"}, {"dept"}),
        ({"exclude_table_filter": "(?i)de.*"}, {"usr", "people"}),
        ({"include_table_filter": ".*e.*", "exclude_table_filter": "d.*"}, {"people"}),
    ],
)
def test_the_filters_choose_among_the_tables_of_a_schema(
    family: World, given: dict[str, str], found: set[str]
) -> None:
    with family.engine.connect() as connection:
        schema = Catalogue(connection).find("usr").table.schema
    reported = config(family, sync_tables=None, sync_schema=schema, **given)
    assert {table.name for table in read_tables(family.engine, family.log, reported)} == found


def test_filters_without_a_schema_choose_nothing(world: World) -> None:
    for name in ("include_table_filter", "exclude_table_filter"):
        with pytest.raises(Misuse, match="sync-schema"):
            read_tables(world.engine, world.log, config(world, **{name: "usr"}))


def test_without_a_database_there_is_nothing_to_open() -> None:
    with pytest.raises(Misuse, match="EVENTLOG_URL"):
        open_store(Config({}))


def test_the_log_is_found_under_its_own_names(world: World) -> None:
    renamed = Log(world.log.dialect, "changes", columns={"table_key": "the_key", "new_value": "value"})
    migrate.install(world.engine, renamed)
    try:
        configured = config(world, log_table="changes", columns=dict(renamed.columns))
        store = open_store(configured)
        names_of = renamed.names()
        insert = f"insert into {names_of['log']} (event_type, table_name, the_key) values (4, 'usr', 'idu=1')"
        world.change(insert)
        leader = store.lead("test")
        assert leader is not None
        receiver = Receiver()
        with leader:
            settings = PublisherSettings()
            given = Config({**configured.values, "allow_loopback": True})
            reader = make_reader(given, store)
            Publisher(store, lambda: reader, receiver, leader.epoch, 1, settings).cycle()
        assert receiver.event_ids == ["changes:1"]
        store.engine.dispose()
        with pytest.raises(EventlogError, match="nothing_like_it"):
            open_store(config(world, log_table="nothing_like_it"))
        with pytest.raises(EventlogError, match="no_such"):
            open_store(config(world, columns={"old_value": "no_such"}))
    finally:
        migrate.uninstall(world.engine, renamed, discard=True)


def test_a_log_with_its_schema(world: World) -> None:
    assert log_named(world.log.dialect, "app.log").schema == "app"


def test_events_are_named_after_the_log_unless_a_name_is_set(world: World) -> None:
    world.write(key(1, event_type=4), key(2, event_type=4))
    assert publish(world, world.store, config(world, query_limit=1)).event_ids == ["eventlog:1"]
    assert publish(world, world.store, config(world, log_name="staff")).event_ids == ["staff:2"]


def test_our_own_user_is_loopback_unless_another_is_named(world: World) -> None:
    user = driver_user(world.engine, world.log)
    world.user(1)
    world.write(key(1, perpetrator=user), key(1, event_type=4, perpetrator="somebody"))
    assert publish(world, world.store, config(world)).event_ids == ["eventlog:2"]
    world.write(key(1, event_type=4, perpetrator=user))
    assert publish(world, world.store, config(world, driver_user="idm")).event_ids == ["eventlog:3"]


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({"sync_tables": "usr, dept"}, {"usr", "dept"}),
        ({"sync_tables": "people"}, {"people"}),
        ({"sync_tables": None}, set()),
    ],
)
def test_only_the_tables_that_are_named_may_be_read_back(
    family: World, given: dict[str, Any], found: set[str]
) -> None:
    tables = read_tables(family.engine, family.log, config(family, **given))
    assert {table.name for table in tables} == found


def test_a_name_without_a_table_is_misuse_unless_states_are_compared(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    wrong = config(world, sync_tables="usr, nowhere")
    with pytest.raises(NoSuchTable, match="nowhere"):
        read_tables(world.engine, world.log, wrong)
    assert "nowhere" not in caplog.text
    compared = config(world, sync_tables="usr, nowhere", publication_mode="compare")
    assert [table.name for table in read_tables(world.engine, world.log, compared)] == ["usr"]
    assert "nowhere" in caplog.text


def test_names_are_listed_once_however_many_are_looked_for(family: World) -> None:
    with family.engine.connect() as connection:
        catalogue = Catalogue(connection)
        directory = Directory(catalogue)
        with family.statements() as first:
            directory.find("usr")
        with family.statements() as second:
            place = directory.find("DEPT").place
        with family.statements() as known:
            catalogue.at(place)
    assert place[1] == "dept"
    assert second == known
    assert len(first) == len(known) + 1


def test_a_schema_is_all_of_its_tables_but_ours(family: World) -> None:
    with family.engine.connect() as connection:
        home = Catalogue(connection).home()
    tables = read_tables(family.engine, family.log, config(family, sync_tables=None, sync_schema=home))
    assert {"usr", "dept", "people"} <= {table.name for table in tables}
    assert not any(table.name.startswith("eventlog") for table in tables)


def test_references_only_to_published_tables_and_only_if_wanted(family: World) -> None:
    def reference(**given: Any) -> str | None:
        tables = read_tables(family.engine, family.log, config(family, **given))
        return tables.get("dept").columns["boss"].reference

    known = read_tables(family.engine, family.log, config(family, sync_tables="usr"))
    assert reference(sync_tables="usr, dept") == str(known.get("usr"))
    assert reference(sync_tables="dept") is None
    assert reference(sync_tables="usr, dept", enable_refs=False) is None


def test_prefixes_of_a_view_have_meaning_if_wanted(family: World) -> None:
    def columns(wanted: bool) -> list[tuple[str, bool]]:
        configured = config(family, sync_tables="people", enable_meta_identifiers=wanted)
        table = read_tables(family.engine, family.log, configured).get("people")
        return [(column.published, column.multivalued) for column in table.columns.values()]

    assert columns(True) == [("pk_idu", False), ("fname", False), ("lname", True)]
    assert columns(False) == [("pk_idu", False), ("sv_fname", False), ("mv_lname", False)]


@pytest.mark.parametrize(("syntax", "text"), [(1, "1000000000"), (2, "20010909"), (3, "2001-09-09")])
def test_times_are_written_in_the_syntax_that_is_wanted(family: World, syntax: int, text: str) -> None:
    family.change("insert into dept values (1, null, '2001-09-09')")
    family.write({"table_name": "dept", "table_key": "id=1"})
    receiver = publish(family, family.store, config(family, sync_tables="dept", time_syntax=syntax))
    (event,) = receiver.events
    found = event.xpath("string(modify-attr[@attr-name='born']/add-value/value)")
    assert found == (text if syntax > 1 else "999993600")


EXAMPLE = Path(__file__).parents[2] / "examples" / "eventlog.toml"
NOT_FOR_FILES = {"status", "http_password"}  # N is the only letter published; passwords are elsewhere
FREE = {"http_url", "url", "sink", "driver_user", "command_environment"}  # their values are no defaults

EXPLAINED = {field.name: field for _, settings in ALL for field in declared(settings)}


def uncommented() -> str:
    lines = EXAMPLE.read_text().splitlines()
    return "\n".join(re.sub(r"^# (?=[\w-]+ = |\[)", "", line) for line in lines)


def test_every_setting_stands_in_the_example() -> None:
    shown = {name.replace("-", "_") for name in tomllib.loads(uncommented())}
    assert shown - {"log", "tables"} == EXPLAINED.keys() - NOT_FOR_FILES


def test_the_example_can_be_used_with_every_line(tmp_path: Path) -> None:
    file = tmp_path / "eventlog.toml"
    file.write_text(uncommented())
    found = read_config([settings for _, settings in ALL], {}, {}, file)
    assert found.columns["table_key"] == "obj_key"
    assert found.tables["usr"]["withhold"] == ["password_hash"]


def test_what_is_commented_out_is_the_default() -> None:
    plain = tomllib.loads(uncommented())
    for name, value in plain.items():
        default: Any = EXPLAINED[name.replace("-", "_")].default if name not in ("log", "tables") else value
        if default not in (None, "") and name.replace("-", "_") not in FREE:
            assert value == default or float(value) == float(default), name
