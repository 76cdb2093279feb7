"""Record ids that come again: found before a new event bears the name of an old one, and set right."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import event, text

from eventlog.core.entry import MAX_RECORD_ID
from eventlog.sinks.files import FilesSink
from eventlog.sql.connect import DatabaseFailed, connect, execute_plain
from eventlog.sql.log.position import IdsComeAgain, read_position
from eventlog.sql.log.store import Store
from eventlog.sql.queries import Queries
from eventlog.sql.schema.migrate import grants_script
from tests.kit.logs import Receiver, key
from tests.world.world import World, call

pytestmark = pytest.mark.quick


def begin_again(world: World) -> None:
    """Truncate a log."""
    world.change(
        "truncate eventlog" + (" restart identity" if world.log.dialect.schema.transactional else "")
    )


def deletes(*numbers: int) -> list[dict[str, object]]:
    return [key(number, event_type=4) for number in numbers]


def test_a_leader_that_starts_finds_them_and_check_sets_the_sequence_past_them(world: World) -> None:
    world.write(*deletes(1, 2, 3))
    world.cycle(Receiver())
    begin_again(world)
    assert world.write(*deletes(4)) == [1]
    receiver = Receiver()
    with pytest.raises(IdsComeAgain, match="the next one is 2, but rows up to 3 were sent before"):
        world.cycle(receiver)
    assert receiver.documents == []
    assert world.letters() == {1: "N"}
    reported = call(world, "check")
    assert reported.exit_code == 1
    assert "record ids come again: the next one is 2" in reported.output
    (statement,) = (line.strip() for line in reported.output.splitlines() if line.endswith(";"))
    refused = str(call(world, "run", "--once").exception)
    assert statement.removesuffix(";") in " ".join(refused.split())
    world.change(statement)
    assert world.write(*deletes(5)) == [1, 4]
    world.cycle(receiver)
    assert world.counts() == {"S": 2}
    assert "come again" not in call(world, "check").output


def test_a_leader_at_work_finds_them(world: World) -> None:
    receiver = Receiver()
    with world.publisher(receiver) as publisher:
        world.write(*deletes(1, 2, 3))
        publisher.cycle()
        begin_again(world)
        world.write(*deletes(4, 5))
        with pytest.raises(IdsComeAgain):
            publisher.cycle()
    assert receiver.event_ids == ["eventlog:1", "eventlog:2", "eventlog:3"]
    assert world.counts() == {"N": 2}


def test_rows_that_go_out_between_two_looks_are_no_ids_that_come_again(world: World) -> None:
    world.write(*deletes(1))
    world.cycle(Receiver())
    engine, ids = connect(world.engine.url), iter([2])

    def publish(connection: object, cursor: object, statement: str, *words: object) -> None:
        if "select max(" in statement and (number := next(ids, None)) is not None:
            world.write(*deletes(number))
            world.cycle(Receiver())

    event.listen(engine, "before_cursor_execute", publish)
    Store(engine, world.log).position().demand_new(world.log)
    assert next(ids, None) is None


def test_what_commits_late_is_no_id_that_comes_again(world: World) -> None:
    receiver = Receiver()
    with world.publisher(receiver) as publisher:
        world.write(*deletes(1), key(2, event_type=4, record_id=5))
        if world.log.dialect.schema.transactional:
            world.change("select setval(pg_get_serial_sequence('eventlog', 'record_id'), 5)")
        publisher.cycle()
        world.write(key(3, event_type=4, record_id=3))
        publisher.cycle()
    assert receiver.event_ids == ["eventlog:1", "eventlog:5", "eventlog:3"]


def test_the_sinks_own_record_tells_what_a_restored_database_has_forgotten(
    world: World, tmp_path: Path
) -> None:
    world.write(*deletes(1, 2, 3))
    sink = FilesSink(tmp_path)
    world.cycle(sink)
    sink.close()
    world.change("delete from eventlog_sent")
    begin_again(world)
    world.write(*deletes(4))
    again = FilesSink(tmp_path)
    with pytest.raises(IdsComeAgain, match="up to 3") as refused:
        world.cycle(again)
    again.close()
    world.change(str(refused.value).partition("past both: ")[2])
    world.change("delete from eventlog")
    assert world.write(*deletes(5)) == [4]
    last = FilesSink(tmp_path)
    world.cycle(last)
    last.close()
    assert len(list(tmp_path.glob("*.xml"))) == 4


def test_a_document_that_is_on_record_of_a_log_before_goes_out(world: World, tmp_path: Path) -> None:
    def publish() -> None:
        with closing(FilesSink(tmp_path)) as sink:
            world.cycle(sink)

    world.write(*deletes(1))
    publish()
    world.change("delete from eventlog_sent")
    begin_again(world)
    assert world.write(*deletes(2)) == [1]
    publish()
    names = ["000000000000001-1-1.xml", "000000000000002-1-1~2.xml"]
    assert sorted(path.name for path in tmp_path.glob("*.xml")) == names
    assert ["idu=2" in (tmp_path / name).read_text() for name in names] == [False, True]
    assert world.letters() == {1: "S"}


def test_a_log_whose_ids_come_from_elsewhere_is_published(world: World) -> None:
    if not world.log.dialect.schema.transactional:
        pytest.skip("auto_increment is part of the column there")
    world.change("alter table eventlog alter column record_id drop identity")
    try:
        world.write(key(1, event_type=4, record_id=7))
        world.cycle(Receiver())
        assert world.letters() == {7: "S"}
    finally:
        world.change("truncate eventlog")
        world.change("alter table eventlog alter column record_id add generated always as identity")


def test_with_the_printed_grants_a_publisher_sees_where_the_sequence_stands(world: World) -> None:
    if not world.log.dialect.schema.sequence_hidden:
        return  # who reads the log sees it there
    role = 'sees "ids"'
    quoted = world.log.dialect.quote(role)
    world.change(f"create role {quoted} login password 'x'")
    try:
        world.write(*deletes(1, 2))
        engine = connect(world.engine.url.set(username=role, password="x"))
        found = []
        for right in (
            f"grant select on eventlog_state, eventlog_sent to {quoted}",
            grants_script(world.log, role),
        ):
            with world.engine.begin() as connection:
                execute_plain(connection, right.replace("\\set ON_ERROR_STOP on", ""))
            with engine.connect() as connection:
                found.append(read_position(connection, Queries(world.log)).last)
        engine.dispose()
        assert found == [None, 2]
    finally:
        world.change(f"drop owned by {quoted}")
        world.change(f"drop role {quoted}")


def test_a_cycle_adds_no_version_to_the_state_row(world: World) -> None:
    """Each version would be read by all later cycles while somebody keeps an old snapshot open."""
    if not world.log.dialect.schema.sequence_hidden:
        return  # the only database at hand whose versions stay in the table

    def versions() -> list[str]:
        state = "select cast(xmin as text) from eventlog_state union all select 'sent' from eventlog_sent"
        with world.engine.connect() as connection:
            return list(connection.execute(text(state)).scalars())

    seen = []
    with world.publisher(Receiver()) as publisher:
        for number in range(1, 4):
            world.write(*deletes(number))
            publisher.cycle()
            seen.append(versions())
    assert seen[0] == seen[1] == seen[2]
    assert seen[0][1:] == ["sent"]


def given_ids(world: World) -> bool:
    """Return whether the database keeps the log's sequence apart from the ids that writers give."""
    return world.log.dialect.schema.sequence_hidden


@pytest.mark.parametrize("ahead", [MAX_RECORD_ID, 1_000_000])
def test_a_row_whose_id_is_ahead_of_the_sequence_is_refused_and_the_others_go_on(
    world: World, ahead: int
) -> None:
    if not given_ids(world):
        pytest.skip("auto_increment goes on after each id that a writer gives")
    world.write(*deletes(1), key(2, event_type=4, record_id=ahead))
    receiver = Receiver()
    world.cycle(receiver)
    assert receiver.event_ids == ["eventlog:1"]
    assert world.letters() == {1: "S", ahead: "E"}
    (failed,) = world.failures()
    assert f"record_id {ahead} is beyond" in str(failed.reason)
    assert world.store.position().highest == 1
    world.write(*deletes(3))
    world.cycle(receiver)
    assert receiver.event_ids == ["eventlog:1", "eventlog:2"]


def test_writers_give_no_ids_to_a_log_of_ours(world: World) -> None:
    if not given_ids(world):
        pytest.skip("nothing there refuses them")
    columns = "record_id, event_type, table_name, table_key"
    with pytest.raises(DatabaseFailed, match="GENERATED ALWAYS"):
        world.change(f"insert into eventlog ({columns}) values (7, 4, 'usr', 'idu=1')")
