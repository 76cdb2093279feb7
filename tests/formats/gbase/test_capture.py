"""A capture of a busy server: the tables, then the stream, with nothing lost and nothing sent twice."""

from __future__ import annotations

import json
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from eventlog.core.change import Change, Op
from eventlog.core.errors import InvalidValue, Misuse, Refused
from eventlog.core.tables import Tables
from eventlog.formats.gbase.address import read_address
from eventlog.formats.gbase.catalogue import NotThere
from eventlog.formats.gbase.changes import ReadItem
from eventlog.formats.gbase.faults import SessionOver
from eventlog.formats.gbase.gbase_settings import GbaseSettings
from eventlog.formats.gbase.session import MissingCatalogue, ServerError
from eventlog.transfer.sources.capture import Capture, LogGone
from eventlog.transfer.sources.capture_settings import CaptureSettings
from tests.formats.gbase.world import World

pytestmark = pytest.mark.quick

NAMES = ("shop:own.t1", "shop:own.t2")
ADDRESS = read_address("informix://cdc@localhost:9088/shop?server=ol1")


def capture(world: World, state: Path | None = None, **options: Any) -> Capture:
    names = options.pop("names", NAMES)
    settings = CaptureSettings(**options)
    since = state.read_text() if state and state.exists() else None
    return PersistentCapture(state, world, ADDRESS, names, Tables(), GbaseSettings(), settings, since=since)


class PersistentCapture(Capture):
    """A capture whose state is kept after each piece, as a target does."""

    def __init__(self, path: Path | None, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._path = path

    def answers(self, *, once: bool = False) -> Generator[Iterator[ReadItem]]:
        for piece in super().answers(once=once):
            yield self._save_after(piece)

    def _save_after(self, piece: Iterator[ReadItem]) -> Iterator[ReadItem]:
        yield from piece
        if self._path is not None and (state := self.state) is not None:
            self._path.write_text(state)


def changes_of(session: Capture, pieces: int | None = None) -> list[Change]:
    """Return the changes of some pieces, or of all until the server has no more; each piece is
    taken whole.
    """
    changes: list[Change] = []
    with closing(session), closing(session.answers(once=True)) as answers:
        for count, piece in enumerate(answers):
            if count == pieces:
                break
            for answer in piece:
                assert isinstance(answer, Change) or not answer.fault, answer
                changes += [answer] if isinstance(answer, Change) else []
    return changes


class Copy:
    """The tables to which changes are applied."""

    def __init__(self) -> None:
        self.rows: dict[str, dict[Any, Any]] = {}

    @property
    def tables(self) -> dict[str, dict[Any, Any]]:
        return {name: self.rows.get(name, {}) for name in NAMES}

    def upsert(self, changes: Iterable[Change]) -> None:
        """Apply changes as a consumer that replaces rows."""
        for change in changes:
            rows = self.rows.setdefault(f"shop:{change.schema}.{change.table}", {})
            if change.op is Op.DELETE:
                rows.pop(change.before["k"], None)
            else:
                rows[change.after["k"]] = change.after["v"]


def at_work(seed: int, lag: int = 2) -> World:
    """Return a server with rows and with transactions that are open."""
    world = World(NAMES, seed, steps=150, lag=lag)
    for _ in range(80):
        world.step()
    world.steps += 100
    return world


LOCKS = ("share", "repeatable-read")


def to_the_end(world: World, session: Capture) -> Iterator[Change]:
    """Yield all changes; after a while everybody else ends what they do, and the rest is read."""
    with closing(session), closing(session.answers()) as answers:
        for count, piece in enumerate(answers):
            for answer in piece:
                if isinstance(answer, Change):
                    yield answer
            if count == 60:
                world.finish()
            if count > 60 and not world.server.sent:
                return


@pytest.mark.parametrize("lock", LOCKS)
@pytest.mark.parametrize("seed", range(12))
def test_rows_and_changes_together_are_the_tables(seed: int, lock: str) -> None:
    world, copy = at_work(seed), Copy()
    copy.upsert(to_the_end(world, capture(world, snapshot_lock=lock)))
    assert copy.tables == world.tables


@pytest.mark.parametrize("seed", range(12))
def test_a_capture_that_is_stopped_anywhere_goes_on_without_loss(seed: int, tmp_path: Path) -> None:
    world, copy = at_work(seed), Copy()
    for run in range(6):
        copy.upsert(changes_of(capture(world, tmp_path / "state"), pieces=world.draw.randrange(1, 12)))
        for _ in range(world.draw.randrange(10)):
            world.step()  # no one listens meanwhile
        assert run or world.server.session is None
    world.finish()
    copy.upsert(changes_of(capture(world, tmp_path / "state")))
    assert copy.tables == world.tables


def test_a_server_that_hides_sysmaster_is_locked_for_the_moment() -> None:
    for seed in range(12):
        world, copy = at_work(seed), Copy()
        world.sysmaster = False
        copy.upsert(to_the_end(world, capture(world)))
        assert copy.tables == world.tables
        activated = world.statements.index("execute function informix.cdc_activatesess(?, ?)")
        assert 'lock table "own".t2 in share mode' in world.statements[:activated]


def test_a_row_of_a_snapshot_is_not_marked() -> None:
    world = World(NAMES, 1, steps=0)
    known = world.begin()
    world.change(known, NAMES[0], 3)
    early = capture(world)
    with closing(early), closing(early.answers(once=True)) as answers:
        found = [answer for piece in answers for answer in piece if isinstance(answer, Change)]
    assert [(change.op, change.after["k"], change.extra) for change in found] == [
        (Op.SNAPSHOT, 3, (("number", 1),))
    ]


def test_a_snapshot_row_is_typed_as_the_stream_types_it() -> None:
    world = World(("shop:own.t1",), 1, steps=0)
    world.tables["shop:own.t1"][4] = "four"
    (row,) = changes_of(capture(world, names=("own.t1",)))
    assert (row.op, row.schema, row.table, row.key) == (Op.SNAPSHOT, "own", "t1", (("k", 4),))
    assert row.after == {"k": 4, "v": "four"}


def test_without_a_snapshot_only_what_commits_from_now_on_comes() -> None:
    world = World(("shop:own.t1",), 1, steps=0, lag=0)
    world.server.full_rows.add("shop:own.t1")
    for key in (1, 2):
        known = world.begin()
        world.change(known, key=key)
        if key == 1:
            world.end(known, keep=True)
    session = capture(world, names=("own.t1",), snapshot_lock="none")
    found: list[Any] = []
    with closing(session), closing(session.answers(once=True)) as answers:
        for count, piece in enumerate(answers):
            found += piece
            if not count:
                world.end(known, keep=True)
    assert [change.after["k"] for change in found if isinstance(change, Change)] == [2]
    assert world.tables["shop:own.t1"].keys() == {1, 2}


def test_a_log_that_is_gone_stops_the_capture(tmp_path: Path) -> None:
    world = World(NAMES, 1, steps=0)
    changes_of(capture(world, tmp_path / "state"))
    known = world.begin()
    world.change(known, NAMES[0], 1)
    world.end(known, keep=True)
    changes_of(capture(world, tmp_path / "state"))
    world.server.oldest = 99 << 32
    with pytest.raises(LogGone, match=r"log 7, .*the oldest is 99"):
        changes_of(capture(world, tmp_path / "state"))


def test_a_log_that_goes_while_tables_are_read_stops_the_capture() -> None:
    world = World(NAMES, 1, steps=0)

    def forget(statement: str) -> None:
        if 'from "own".t1' in statement:
            world.server.oldest = 99 << 32

    world.before_statement = forget
    with pytest.raises(LogGone):
        changes_of(capture(world))
    assert world.server.session is None


def test_an_error_record_ends_the_session_with_its_code() -> None:
    world = World(NAMES, 1, steps=0)
    session = capture(world)
    found: list[Any] = []
    activated = world.server.cdc_activatesess

    def break_then(number: int, position: int) -> int:
        result = activated(number, position)
        world.server.break_session()
        return result

    world.server.cdc_activatesess = break_then  # type: ignore[assignment, method-assign]
    with closing(session), pytest.raises(SessionOver, match="-83790"):
        found.extend(answer for piece in session.answers() for answer in piece)
    assert [answer for answer in found if isinstance(answer, Refused)]
    assert world.server.session is None


def test_full_row_logging_stays_on_unless_reported_otherwise() -> None:
    world = World(NAMES, 1, steps=0)
    changes_of(capture(world))
    assert world.server.full_rows == set(NAMES)
    changes_of(capture(world, keep_logging=False))
    assert world.server.full_rows == set()


def test_a_stop_comes_between_two_pieces() -> None:
    world = World(NAMES, 1, steps=0)
    changes_of(capture(world), pieces=3)
    assert world.server.session is None
    assert "cdc_endcapture" in world.server.calls


def test_a_table_that_is_not_there_is_said() -> None:
    with pytest.raises(NotThere, match=r"shop:own\.t9"):
        capture(World(NAMES, 1), names=("own.t9",))


@pytest.mark.parametrize("name", ["t1", "shop:t1", "a:b:c.d", 'own."t1', "own.t1;drop", "shop:own.t 1", ""])
def test_a_name_that_is_none_is_misuse(name: str) -> None:
    with pytest.raises(Misuse, match=r"database:owner\.table"):
        capture(World(NAMES, 1), names=(name,))


def test_columns_that_no_stream_carries_are_left_and_said() -> None:
    world = World(("shop:own.t1",), 1, steps=0)
    world.catalogue["shop:own.t1"] = [
        *world.catalogue["shop:own.t1"],
        (3, "photo", 41, 72, "blob"),
        (4, "note", 12, 56, None),
        (5, "two words", 2, 4, None),
    ]
    session = capture(world, names=("own.t1",))
    assert [column for _, column in session.uncarried_columns] == ["photo", "note", "two words"]
    changes_of(session)


def test_a_missing_catalogue_names_the_command() -> None:
    world = World(NAMES, 1, steps=0)
    world.server.installed = False
    with pytest.raises(MissingCatalogue, match=r"dbaccess - syscdcv1\.sql"):
        changes_of(capture(world))


def test_a_state_is_of_numbers_that_a_person_can_read(tmp_path: Path) -> None:
    world = at_work(3)
    changes_of(capture(world, tmp_path / "state"))
    state = json.loads((tmp_path / "state").read_text())
    assert set(state) == {"restart", "delivered", "unseen", "tables"}
    assert list(state["tables"]) == list(NAMES)
    (tmp_path / "state").write_text("{}")
    with pytest.raises(InvalidValue, match="the state of a capture"):
        capture(world, tmp_path / "state")


@pytest.mark.parametrize(
    "text",
    [
        "informix://localhost:9088/shop?server=ol1",
        "informix://cdc@localhost/shop?server=ol1",
        "informix://cdc@localhost:9088/shop",
        "informix://cdc:geheim@localhost:9088/shop?server=ol1",
        "informix://cdc@localhost:9088/shop?server=ol1&password=geheim",
        "informix://cdc@localhost:9088/shop?server=ol1;password=geheim",
        "informix://cdc@localhost:99999/shop?server=ol1",
        "postgresql://cdc@localhost:9088/shop?server=ol1",
        "informix://[cdc@localhost:9088/shop?server=ol1",
    ],
)
def test_an_address_that_is_none_is_misuse_and_tells_no_secret(text: str) -> None:
    with pytest.raises(Misuse) as caught:
        read_address(text)
    assert "geheim" not in str(caught.value)


def test_an_address_becomes_that_of_the_driver() -> None:
    known = read_address("gbase://cdc@db:9088/shop?server=gb1&DB_LOCALE=zh_CN.utf8")
    assert known.jdbc("syscdcv1") == (
        "jdbc:gbasedbt-sqli://db:9088/syscdcv1:GBASEDBTSERVER=gb1;DB_LOCALE=zh_CN.utf8"
    )


def test_a_connection_that_fails_is_reported() -> None:
    world = World(NAMES, 1, steps=0)

    def refuse(statement: str) -> None:
        raise ServerError("[-951] Incorrect password or user cdc is not known on the database server.")

    world.before_statement = refuse
    with pytest.raises(ServerError, match="-951"):
        capture(world)
