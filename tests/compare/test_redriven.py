"""Failed events that are redriven or skipped, between polls and after them: nothing is left wrong."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from lxml import etree
from sqlalchemy import text

from eventlog.operate.upkeep import skip
from eventlog.publisher.cycle import ReceiverFatal
from eventlog.sinks.sink import ACCEPTED, OutgoingDocument, Reply
from eventlog.sql.queries import each_row_looked_up
from eventlog.xds.answers import Level, Status
from tests.compare.rig import Life, life
from tests.kit.logs import Crash, Receiver
from tests.kit.tiers import drawn
from tests.world.world import World

pytestmark = pytest.mark.quick

Values = dict[str, set[str]]
KEYS = range(2)
REFUSED = "\x01"  # no XML can have it
TEXTS = st.sampled_from([None, "a", "b", REFUSED])
ROW = st.tuples(st.just("row"), st.sampled_from(KEYS), TEXTS, TEXTS)
DELETED = st.tuples(st.just("gone"), st.sampled_from(KEYS))
LEVELS = st.sampled_from(["retry", "error", "error", "warning", "fatal", "crash"])
ANSWER = st.tuples(st.just("answer"), st.sampled_from(KEYS), LEVELS)
REDRIVE = st.just(("redrive",))
SKIP = st.just(("skip",))
PUBLISH = st.sampled_from([("send",), ("poll",), ("cycle",)])
STEPS = st.lists(
    st.one_of(ROW, PUBLISH, ANSWER, PUBLISH, DELETED, REDRIVE, SKIP, st.just(("start",))),
    min_size=12,
    max_size=30,
)


class SetReceiver(Receiver):
    """A receiver whose attributes are sets; it refuses what cannot be done, as most do."""

    def __init__(self) -> None:
        super().__init__(self._answer)
        self.rows: dict[str, Values] = {}
        self.moods: dict[str, str] = {}
        self._seen_ids: set[str] = set()

    def _answer(self, document: OutgoingDocument) -> Reply:
        statuses, crashes = [], False
        for event in etree.fromstring(document.text.encode()).iterfind("input/*"):
            key = str(event.findtext("association")).partition(",table=")[0]
            event_id = str(event.get("event-id"))
            mood = "success" if event_id in self._seen_ids else self.moods.pop(key, "success")
            crashes = crashes or mood == "crash"
            if mood in ("success", "warning", "crash") and event_id not in self._seen_ids:
                if getattr(self, f"_{event.tag!s}")(key, event):
                    self._seen_ids.add(event_id)
                else:
                    mood = "error"
            if mood not in ("success", "crash"):
                statuses.append(Status(Level[mood.upper()], event_id, "no"))
        if crashes:
            raise Crash
        return Reply(tuple(statuses)) if statuses else ACCEPTED

    def _add(self, key: str, event: Any) -> bool:
        if key in self.rows:
            return False
        attributes = event.iterfind("add-attr")
        self.rows[key] = {
            str(a.get("attr-name")): {v.text or "" for v in a.iterfind("value")} for a in attributes
        }
        return True

    def _modify(self, key: str, event: Any) -> bool:
        if key not in self.rows:
            return False
        for attribute in event.iterfind("modify-attr"):
            values = self.rows[key].setdefault(str(attribute.get("attr-name")), set())
            for change in attribute:
                named = {value.text or "" for value in change.iterfind("value")}
                if change.tag == "remove-all-values":
                    values.clear()
                elif change.tag == "remove-value":
                    values -= named
                else:
                    values |= named
        return True

    def _delete(self, key: str, event: Any) -> bool:
        return self.rows.pop(key, None) is not None

    @property
    def content(self) -> dict[str, Values]:
        """Return the objects with what they have."""
        return {key: {n: values for n, values in row.items() if values} for key, row in self.rows.items()}


def content(world: World) -> dict[str, Values]:
    with world.engine.connect() as connection:
        rows = connection.execute(text("select idu, fname, lname from usr")).all()
    named = {f"idu={idu}": {"fname": fname, "lname": lname} for idu, fname, lname in rows}
    return {key: {n: {value} for n, value in row.items() if value is not None} for key, row in named.items()}


def skip_all(world: World) -> set[str]:
    """Skip what failed or is new; the objects."""
    with world.engine.connect() as connection:
        letters = "select record_id, table_key from eventlog where status in ('N', 'E', 'F')"
        rows = connection.execute(text(letters)).all()
    if rows:
        skip(world.store, [record_id for record_id, _ in rows], "a test")
    return {key for _, key in rows}


def change(world: World, step: tuple[Any, ...]) -> None:
    world.change("delete from usr where idu = :i", i=step[1])
    if step[0] == "row":
        world.change("insert into usr values (:i, :f, :l)", i=step[1], f=step[2], l=step[3])


def do(
    world: World, receiver: SetReceiver, publisher: Life, step: tuple[Any, ...], skipped: set[str]
) -> None:
    match step:
        case ("poll" | "send" | "cycle" as word,):
            getattr(publisher, word)()
        case ("answer", idu, mood):
            receiver.moods[f"idu={idu}"] = mood
        case ("redrive",):
            world.redrive()
        case ("skip",):
            skipped |= skip_all(world)
        case _:
            change(world, step)


OLD_RETURNS = [  # an event is redriven and sent between two polls, and its row returns to the old value
    *(
        ("row", 0, "a", None),
        ("cycle",),
        ("row", 0, "b", None),
        ("answer", 0, "error"),
        ("cycle",),
        ("poll",),
    ),
    *(("redrive",), ("send",), ("row", 0, "a", None), ("cycle",)),
]
SUPERSEDED = [  # an event failed, and its row returned before it is redriven
    *(("row", 0, "a", "a"), ("cycle",), ("row", 0, "b", "a"), ("answer", 0, "error"), ("cycle",)),
    *(("row", 0, "a", "a"), ("cycle",), ("redrive",), ("send",), ("cycle",)),
]
ADDED_AFTER_ALL = [  # an add failed, its row left, and then the add was redriven
    *(("row", 0, "a", "a"), ("answer", 0, "error"), ("cycle",), ("gone", 0), ("cycle",), ("redrive",)),
    *(("send",), ("cycle",)),
]
DELETED_AFTER_ALL = [  # a delete failed, its row came back, and then the delete was redriven
    *(("row", 0, "a", "a"), ("cycle",), ("gone", 0), ("answer", 0, "error"), ("cycle",)),
    *(("row", 0, "a", "a"), ("cycle",), ("redrive",), ("send",), ("cycle",)),
]
FAILED_AGAIN = [
    *(("row", 0, "a", "a"), ("cycle",), ("row", 0, "b", "b"), ("answer", 0, "error"), ("cycle",), ("poll",)),
    *(("answer", 0, "error"), ("redrive",), ("send",), ("row", 0, "a", "b"), ("cycle",)),
]
SKIPPED_WHILE_NEW = [
    *(("row", 0, "a", "a"), ("cycle",), ("row", 0, "b", "a"), ("poll",), ("skip",), ("row", 0, "c", "a")),
    *(("cycle",), ("cycle",)),
]


IN_PART = [  # a row of an event is refused, the others are sent, and the row of the table returns
    *(
        ("row", 0, "a", "a"),
        ("cycle",),
        ("row", 0, REFUSED, "b"),
        ("cycle",),
        ("poll",),
        ("row", 0, "a", "a"),
    ),
    *(("row", 1, REFUSED, "b"), ("cycle",), ("poll",), ("row", 1, "a", "a"), ("cycle",)),
]


@pytest.mark.parametrize(
    ("steps", "delete", "state_values"),
    [
        (OLD_RETURNS, False, True),
        (OLD_RETURNS, True, True),
        (OLD_RETURNS, True, False),
        (SUPERSEDED, False, True),
        (ADDED_AFTER_ALL, True, True),
        (DELETED_AFTER_ALL, True, True),
        (FAILED_AGAIN, False, True),
        (IN_PART, False, True),
        (IN_PART, True, True),
        (SKIPPED_WHILE_NEW, False, True),
    ],
)
@pytest.mark.family
def test_once_all_of_a_story_is_settled_the_receiver_has_what_the_table_has(
    world: World, steps: list[tuple[Any, ...]], delete: bool, state_values: bool
) -> None:
    settle_and_compare(world, steps, delete=delete, state_values=state_values)


@pytest.mark.one_database
@pytest.mark.slow("each example is many cycles")
@settings(
    max_examples=drawn(8),
    phases=(Phase.explicit, Phase.reuse, Phase.generate),  # shrinking would take minutes
)
@given(steps=STEPS, delete=st.booleans(), state_values=st.booleans())
@pytest.mark.long
def test_once_all_is_settled_the_receiver_has_what_the_table_has(
    world: World, steps: list[tuple[Any, ...]], delete: bool, state_values: bool
) -> None:
    settle_and_compare(world, steps, delete=delete, state_values=state_values)


def settle_and_compare(
    world: World, steps: list[tuple[Any, ...]], *, delete: bool, state_values: bool
) -> None:
    """Take the steps. Expect that only what was skipped is left out, and that only until its row changes."""
    world.clear()
    receiver, skipped, coming = SetReceiver(), set[str](), iter(steps)
    facts: dict[str, Any] = {"state_values": state_values, "retry_wait": 0, "batch_size": 1}
    facts["delete_from_log"] = delete
    goes_on = True
    while goes_on:
        goes_on = False
        with contextlib.suppress(Crash, ReceiverFatal), life(world, receiver, **facts) as publisher:
            goes_on = True
            for step in coming:
                if step[0] == "start":
                    break
                do(world, receiver, publisher, step, skipped)
            else:
                goes_on = False
                break
    settle(world, receiver, facts)
    refused = {key for key, row in content(world).items() if {REFUSED} in row.values()}
    unskipped = (
        {k: v for k, v in sides.items() if k not in skipped | refused}
        for sides in (receiver.content, content(world))
    )
    assert next(unskipped) == next(unskipped)
    for idu in KEYS:
        change(world, ("row", idu, "in the end", None))
    settle(world, receiver, facts)
    assert receiver.content == content(world)


def settle(world: World, receiver: SetReceiver, facts: dict[str, Any]) -> None:
    """Publish until nothing is new, and redrive once what failed."""
    receiver.moods.clear()
    with life(world, receiver, **facts) as publisher:
        quieten(publisher, receiver)
        world.redrive()
        quieten(publisher, receiver)


def quieten(publisher: Life, receiver: SetReceiver) -> None:
    """Publish until two cycles find nothing, and send nothing: the state follows the log a poll later."""
    quiet = 0
    for _ in range(12):
        documents = len(receiver.documents)
        quiet = quiet + 1 if publisher.cycle() == 0 and len(receiver.documents) == documents else 0
        if quiet == 2:
            return
    raise AssertionError("it does not become quiet")


@pytest.mark.parametrize("analyzed", ["after the rows", "before the rows", "never"])
@pytest.mark.long
def test_the_rows_of_events_are_looked_up_by_their_ids(world: World, analyzed: str) -> None:
    """Read no row of the log for each event, whatever the statistics are."""
    rows = ", ".join(f"({key}, 'Jack', null)" for key in range(3000))
    dialect, queries = world.log.dialect, world.store.queries
    world.clear()
    if analyzed == "before the rows":
        analyze(world)
    world.change(f"insert into usr values {rows}")
    if analyzed == "after the rows":
        analyze(world)
    with life(world, Receiver()) as publisher:
        publisher.poll()
        with world.engine.connect() as connection, each_row_looked_up(connection, dialect):
            explain = "explain" if dialect.schema.transactional else "explain format = traditional"
            explained = text(f"{explain} {queries.clause('known_letters').text}")
            plan = connection.execute(explained, {"after": 0, "upto": 6000}).all()
        reported = " ".join(str(row) for row in plan)
        by_id = "Index Cond: ((record_id >= k.first_id)" if dialect.schema.transactional else "Range checked"
        assert by_id in reported
        publisher.cycle()
        assert publisher.cycle() == 0
    assert world.counts() == {"S": 6000}


def analyze(world: World) -> None:
    world.change(f"analyze {'' if world.log.dialect.schema.transactional else 'table '}eventlog")
