"""Truncates of parents, of children and of tables of views, from the statement to what the receiver has."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest
from lxml import etree
from sqlalchemy import text

from eventlog.sql.capture.track import install_routines
from tests.world.world import World, call

pytestmark = pytest.mark.quick

Objects = dict[str, dict[str, Counter[str]]]  # by key and attribute: values, each as often as it is there
CHILDREN = ("--child", "usr_phone.phoneno", "--child", "usr_phone.k")
TYPES = {"values": ("--insert", "1", "--update", "2"), "read back": ()}
REFILL = "insert into usr values (1, 'John', null); insert into usr_phone values (1, '55'), (1, '56')"
TRUNCATES = {
    "the child": "truncate usr_phone",
    "the child, which is filled again": "truncate usr_phone; insert into usr_phone values (2, '9')",
    "the parent and what refers to it": "truncate usr cascade",
    "the parent and the child": "truncate usr, usr_phone",
    "the child and the parent": "truncate usr_phone, usr",
    "both, which are filled again": f"truncate usr cascade; {REFILL}",
    "both, filled again, then the child": f"truncate usr cascade; {REFILL}; truncate usr_phone",
    "the child after a lock of the parent": "lock table usr; truncate usr_phone",
    "the child after a lock, filled again": "lock table usr; truncate usr_phone;"
    " insert into usr_phone values (1, '9')",
    "the child after other changes": "delete from usr_phone where phoneno = '11';"
    " insert into usr_phone values (2, '31'); truncate usr_phone",
    "the table to which values refer": "truncate kind cascade",
}


@pytest.fixture
def family(world: World) -> Iterator[World]:
    """Make users with phone numbers, each of a kind."""
    if not world.log.dialect.triggers.on_truncate:
        pytest.skip("a truncate fires no trigger")
    world.change("create table kind (k varchar(9) primary key)")
    world.change(
        "create table usr_phone (idu integer references usr (idu), phoneno varchar(20),"
        " k varchar(9) references kind)"
    )
    yield world
    call(world, "untrack", "usr")
    world.change("drop table usr_phone")
    world.change("drop table kind")


class Directory:
    """A receiver that takes nothing that does not fit what it has."""

    def __init__(self) -> None:
        self.objects: Objects = {}

    def apply(self, documents: str) -> None:
        """Apply what `eventlog run` writes, a document a line."""
        for line in filter(None, documents.splitlines()):
            for event in etree.fromstring(line.encode()).iterfind("input/*"):
                key = str(event.findtext("association")).partition(",")[0]
                getattr(self, f"_{event.tag!s}")(key, event)

    def _add(self, key: str, event: etree._Element) -> None:
        assert key not in self.objects, f"{key} is added twice"
        self.objects[key] = {
            str(attr.get("attr-name")): values(attr, "value") for attr in event.iterfind("add-attr")
        }

    def _modify(self, key: str, event: etree._Element) -> None:
        attributes = self.objects[key]
        for attr in event.iterfind("modify-attr"):
            present_values = attributes.setdefault(str(attr.get("attr-name")), Counter())
            if attr.find("remove-all-values") is not None:
                present_values.clear()
            removed = values(attr, "remove-value/value")
            assert removed <= present_values
            present_values -= removed
            present_values += values(attr, "add-value/value")

    def _delete(self, key: str, event: etree._Element) -> None:
        del self.objects[key]


def values(attr: etree._Element, path: str) -> Counter[str]:
    return Counter(value.text or "" for value in attr.iterfind(path))


def published(world: World, directory: Directory, **environment: str) -> Objects:
    """Publish what is pending; return what the receiver has, without attributes that have no value."""
    done = call(world, "run", "--once", "--allow-loopback", "--insert-query-back", "add", **environment)
    assert done.exit_code == 0, done.output
    directory.apply(done.stdout)
    return {
        key: {name: content for name, content in attributes.items() if content}
        for key, attributes in directory.objects.items()
    }


def present(world: World) -> Objects:
    """Return what the tables have."""
    objects: Objects = {}
    with world.engine.connect() as connection:
        for idu, fname, lname in connection.execute(text("select * from usr")):
            named = {"fname": fname, "lname": lname}
            objects[f"idu={idu}"] = {name: Counter([value]) for name, value in named.items() if value}
        for idu, phoneno, kind in connection.execute(text("select * from usr_phone where idu is not null")):
            for name, value in (("usr_phone.phoneno", phoneno), ("usr_phone.k", kind)):
                if value is not None:
                    objects[f"idu={idu}"].setdefault(name, Counter())[value] += 1
    return objects


@pytest.mark.parametrize("types", TYPES)
@pytest.mark.parametrize("truncate", TRUNCATES)
@pytest.mark.family
def test_the_receiver_has_what_the_tables_have(family: World, types: str, truncate: str) -> None:
    done = call(family, "track", "usr", *TYPES[types], *CHILDREN)
    assert done.exit_code == 0, done.output
    for number in (1, 2, 3):
        family.user(number)
    family.change("insert into kind values ('home'), ('work')")
    family.change(
        "insert into usr_phone values (1, '11', 'home'), (1, '12', null), (2, '11', 'work'),"
        " (null, '13', null)"
    )
    directory = Directory()
    assert published(family, directory) == present(family)
    with family.engine.begin() as connection:
        connection.exec_driver_sql(TRUNCATES[truncate])
    assert published(family, directory) == present(family)


@pytest.fixture
def view(world: World) -> Iterator[World]:
    """A view of users with their skills, published by its name."""
    install_routines(world.engine, world.log)
    world.change("create table skill (idu integer, skill varchar(20))")
    world.change(
        "create view v_usr as select u.idu as pk_idu, u.fname as sv_fname, s.skill as mv_skill"
        " from usr u left join skill s on s.idu = u.idu"
    )
    yield world
    world.change("drop view v_usr")
    world.change("drop table skill")


def ways_round(world: World, where: str, mode: str = "trigger") -> list[str]:
    """Return the lines of `check --ways-round` about a truncate of something that is published."""
    settings = {
        "EVENTLOG_SYNC_TABLES": "v_usr" if where == "v_usr" else "usr",
        "EVENTLOG_PUBLICATION_MODE": mode,
    }
    done = call(world, "check", "--ways-round", **settings)
    assert done.exit_code == 0, done.output
    joined = " ".join(line.strip() for line in done.output.splitlines())
    return [f"{where}{part}" for part in joined.split(where)[1:] if "truncate" in part]


def test_a_view_names_the_tables_whose_truncate_nobody_logs(view: World) -> None:
    reported = ways_round(view, "v_usr")
    assert len(reported) == 1
    assert ways_round(view, "v_usr", "compare") == []
    if not view.log.dialect.triggers.on_truncate:
        assert "a truncate of a table that it reads fires no trigger" in reported[0]
        return
    assert "a truncate of public.skill, public.usr, which it reads" in reported[0]
    with view.engine.begin() as connection:
        connection.exec_driver_sql(
            """
            create function log_no_skill() returns trigger language plpgsql as $$
            begin
              perform eventlog_event(8, 'v_usr', 'pk_idu=' || eventlog_key_value(idu::text), 'mv_skill')
              from (select distinct idu from skill) truncated;
              return null;
            end $$;
            create trigger log_no_skill before truncate on skill
            for each statement execute function log_no_skill()
            """
        )
    call(view, "track", "usr")  # whose truncate trigger knows nothing of the view
    try:
        assert "a truncate of public.usr, which it reads" in ways_round(view, "v_usr")[0]
        view.user(1)
        view.change("insert into skill values (1, 'skating')")
        directory = Directory()
        view.write({"event_type": 5, "table_name": "v_usr", "table_key": "pk_idu=1"})
        v_usr = {"fname": Counter(["Jack"]), "skill": Counter(["skating"])}
        assert published(view, directory, EVENTLOG_SYNC_TABLES="v_usr")["pk_idu=1"] == v_usr
        view.change("truncate skill")
        del v_usr["skill"]
        assert published(view, directory, EVENTLOG_SYNC_TABLES="v_usr")["pk_idu=1"] == v_usr
    finally:
        call(view, "untrack", "usr")
        view.change("drop function log_no_skill cascade")


def test_a_child_whose_truncate_fires_no_trigger_is_named(world: World) -> None:
    if world.log.dialect.triggers.on_truncate:
        pytest.skip("a truncate of a child is logged")
    world.change(
        "create table usr_phone (idu integer, phoneno varchar(20), foreign key (idu) references usr (idu))"
    )
    assert call(world, "track", "usr", "--child", "usr_phone.phoneno").exit_code == 0
    try:
        assert any("fire no trigger on it" in line for line in ways_round(world, "usr_phone"))
    finally:
        call(world, "untrack", "usr")
        world.change("drop table usr_phone")
