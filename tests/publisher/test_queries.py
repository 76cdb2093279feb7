"""What a receiver asks before it answers: current rows of one moment, and nothing that is withheld."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree

from eventlog.publisher import answering
from eventlog.publisher.answering import QueryAnswers
from eventlog.publisher.session import read_known
from eventlog.sinks import open_sink
from eventlog.sinks.conversation import NothingKnown, converse
from eventlog.sinks.sink import Item, OutgoingDocument, Reply, answered, unanswered, unreachable
from eventlog.sql.capture.resync import Resync, resync
from eventlog.sql.catalogue import Catalogue
from eventlog.sql.connect import ConnectionLost
from eventlog.sql.log.pending import Selection
from eventlog.xds.documents import validate
from eventlog.xds.queries import Query, Value, write_query
from tests.proofs.rig import Arrivals
from tests.publisher.test_daemon import running, until
from tests.publisher.test_opening import config
from tests.publisher.world import World, key
from tests.receiver.conftest import receiving
from tests.sql.columns import BOUND, COLUMNS
from tests.tiers import drawn

pytestmark = pytest.mark.quick

DONE = b'<nds><output><status level="success"/></output></nds>'


def asking(*queries: Query) -> bytes:
    return f"<nds><input>{''.join(map(write_query, queries))}</input></nds>".encode()


def answers(world: World, rounds: int = 100, **given: Any) -> QueryAnswers:
    return QueryAnswers(world.store, lambda: read_known(config(world, **given), world.store), rounds)


def answers_of(document: str) -> list[Any]:
    """Return instances as (association, values by attribute), statuses as (level, text)."""
    validate(document)
    output = etree.fromstring(document.encode()).find("output")
    assert output is not None
    return [_answer(element) for element in output]


def _answer(element: etree._Element) -> tuple[str, Any]:
    if element.tag == "status":
        return str(element.get("level")), element.text or ""
    values = {
        str(attr.get("attr-name")): [value.text or "" for value in attr] for attr in element.iterfind("attr")
    }
    return str(element.findtext("association")).partition(",")[0], values


def ask(world: World, *queries: Query, **given: Any) -> list[Any]:
    with answers(world, **given).conversation() as answer:
        return answers_of(answer(queries))


OK = ("success", "")


def usr(**asked: Any) -> Query:
    return Query(classes=("usr",), **asked)


def has(**values: str) -> tuple[tuple[str, Value], ...]:
    return tuple((name, Value(text)) for name, text in values.items())


@pytest.fixture
def people(world: World) -> World:
    for idu, fname, lname in ((1, "Jack", "Frost"), (2, "Jane", "Frost"), (3, "Jim", None)):
        world.user(idu, fname, lname)
    return world


def test_an_object_is_reported_as_it_is_now(people: World) -> None:
    one = Query(association="idu=1,table=usr")
    assert ask(people, one) == [("idu=1", {"fname": ["Jack"], "lname": ["Frost"]}), OK]
    assert ask(people, one._replace(read=("fname", "idu"))) == [
        ("idu=1", {"idu": ["1"], "fname": ["Jack"]}),
        OK,
    ]
    assert ask(people, one._replace(read=())) == [("idu=1", {}), OK]
    assert ask(people, Query(association="idu=3,table=usr", read=("lname",))) == [("idu=3", {}), OK]
    assert ask(people, Query(association="idu=9,table=usr")) == [OK]


def test_objects_are_found_by_their_values(people: World) -> None:
    frost = [("idu=1", {"fname": ["Jack"]}), ("idu=2", {"fname": ["Jane"]}), OK]
    assert ask(people, usr(search=has(lname="Frost"), read=("fname",))) == frost
    both = has(lname="Frost", fname="Jane")
    assert ask(people, usr(search=both, read=())) == [("idu=2", {}), OK]
    assert ask(people, usr(search=has(idu="3"), read=())) == [("idu=3", {}), OK]
    assert ask(people, usr(search=has(fname="Nobody"))) == [OK]
    hostile = "x' or 1=1 -- :a \\ \" {x}"
    assert ask(people, usr(search=has(fname=hostile))) == [OK]
    assert len(ask(people, usr(read=()))) == 4
    assert ask(people, Query(association="idu=1,table=usr", search=has(lname="Frost"), read=())) == [
        ("idu=1", {}),
        OK,
    ]
    assert ask(people, Query(association="idu=3,table=usr", search=has(lname="Frost"))) == [OK]


def test_values_that_are_none_of_their_columns_cost_their_query_alone(people: World) -> None:
    wrong, right = usr(event_id="1", search=has(idu="one")), usr(event_id="2", search=has(idu="1"), read=())
    assert [level for level, _ in ask(people, wrong, right)] == ["error", "idu=1", "success"]
    ((level, text),) = ask(people, usr(search=has(idu="9" * 30)))
    assert (level, "idu" in text or "integer" in text) == ("error", True)
    ((level, text),) = ask(people, Query(association="fname=1,table=usr"))
    assert level == "error"


def test_withheld_columns_cannot_be_asked_about(people: World) -> None:
    tables = {"usr": {"withhold": ["lname"]}}
    everything = ask(people, usr(search=has(fname="Jack")), tables=tables)
    assert everything == [("idu=1", {"fname": ["Jack"]}), OK]
    shapes: list[Callable[[str], Query]] = [
        lambda name: usr(read=(name,)),
        lambda name: usr(search=((name, Value("Frost")),)),
        lambda name: Query(association="idu=1,table=usr", read=(name,)),
    ]
    for shape in shapes:
        said = set()
        for name in ("lname", "LNAME", "ghost"):
            ((level, text),) = ask(people, shape(name), tables=tables)
            assert level == "error"
            said.add(text.replace(name, "x"))
        assert len(said) == 1


def test_only_configured_tables_are_read(people: World) -> None:
    people.change("create table secrets (id integer primary key, pw varchar(9))")
    try:
        people.change("insert into secrets values (1, 'x')")
        kept = ask(people, Query(classes=("secrets",)))
        assert [level for level, _ in kept] == ["error"]
        absent = ask(people, Query(classes=("ghosts",)))
        assert kept[0][1].replace("secrets", "ghosts") == absent[0][1]
        by_name = ask(people, Query(association="id=1,table=secrets"))
        assert [level for level, _ in by_name] == ["error"]
        log = ask(people, Query(classes=(people.log.table,)))
        assert [level for level, _ in log] == ["error"]
    finally:
        people.change("drop table secrets")


def test_a_table_that_is_published_later_is_read(people: World) -> None:
    with people.engine.connect() as connection:
        schema = Catalogue(connection).find("usr").table.schema
    asked = answers(people, sync_tables=None, sync_schema=schema)
    later = Query(classes=("later",))
    with asked.conversation() as answer:
        assert [level for level, _ in answers_of(answer([later]))] == ["error"]
    people.change("create table later (id integer primary key)")
    try:
        people.change("insert into later values (7)")
        with asked.conversation() as answer:
            assert answers_of(answer([later])) == [("id=7", {}), OK]
    finally:
        people.change("drop table later")


def test_one_documents_answers_are_of_one_moment(people: World) -> None:
    with answers(people).conversation() as answer:
        before = answers_of(answer([usr(read=("fname",))]))
        people.change("update usr set fname = 'John' where idu = 1")
        people.change("delete from usr where idu = 2")
        assert answers_of(answer([usr(read=("fname",))])) == before
        assert answers_of(answer([Query(association="idu=2,table=usr", read=())])) == [("idu=2", {}), OK]
    assert ask(people, Query(association="idu=2,table=usr")) == [OK]


def test_columns_of_many_values(people: World) -> None:
    people.change("create table phone (idu integer, nr varchar(9))")
    people.change(
        "create view v_usr as select u.idu as pk_idu, u.fname as sv_fname, p.nr as mv_nr"
        " from usr u left join phone p on p.idu = u.idu"
    )
    try:
        for idu, number in ((1, "10"), (1, "11"), (2, "10")):
            people.change(f"insert into phone values ({idu}, '{number}')")

        def find(*numbers: str, **asked: Any) -> list[Any]:
            search = tuple(("nr", Value(number)) for number in numbers)
            query = Query(classes=("v_usr",), search=search, **asked)
            return [(name, *values.values()) for name, values in ask(people, query, sync_tables="v_usr")[:-1]]

        def keys(*numbers: str) -> list[str]:
            return [name for name, *_ in find(*numbers, read=("fname",))]

        assert keys("10") == ["pk_idu=1", "pk_idu=2"]
        assert keys("10", "11") == ["pk_idu=1"]
        assert keys("12") == []
        assert [(name, fname, sorted(numbers)) for name, fname, numbers in find("11")] == [
            ("pk_idu=1", ["Jack"], ["10", "11"])
        ]
    finally:
        people.change("drop view v_usr")
        people.change("drop table phone")


def test_an_object_is_found_by_each_value_that_is_reported_of_it(people: World) -> None:
    """Find an object by each published value, for every type of column."""
    dialect = people.log.dialect
    kinds = COLUMNS.get(dialect.name)
    if kinds is None:
        pytest.skip(f"no columns of {dialect.title} are drawn")
    columns = [f"c{number} {kind.type}" for number, kind in enumerate(kinds)]
    people.change(f"create table wide (id integer primary key, {', '.join(columns)})")
    marks = ", ".join(
        BOUND[dialect.name].format(p=f":c{number}", type=kind.type) for number, kind in enumerate(kinds)
    )

    @settings(max_examples=drawn(15))
    @given(st.tuples(*(kind.drawn for kind in kinds)))
    def check(values: tuple[Any, ...]) -> None:
        people.change("delete from wide")
        bound = {f"c{number}": value for number, value in enumerate(values)}
        people.change(f"insert into wide values (1, {marks})", **bound)
        given = {"sync_tables": "wide", "time_syntax": 3}
        ((name, attributes), *_) = ask(people, Query(association="id=1,table=wide"), **given)
        assert (name, len(attributes)) == ("id=1", len(kinds))
        queries = [
            Query(classes=("wide",), search=((attribute, Value(value)),), read=())
            for attribute, (value,) in attributes.items()
        ]
        found = ask(people, *queries, **given)
        assert found == [("id=1", {}), OK] * len(kinds), [*zip(attributes.items(), found, strict=False)]

    try:
        check()
    finally:
        people.change("drop table wide")


def test_so_many_objects_are_reported_and_no_more(people: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answering, "MOST_INSTANCES", 3)
    assert len(ask(people, usr(read=()))) == 4
    monkeypatch.setattr(answering, "MOST_INSTANCES", 2)
    ((level, text),) = ask(people, usr(read=()))
    assert (level, text) == ("error", "more than 2 objects are found: ask for fewer")
    monkeypatch.setattr(answering, "MOST_CHARACTERS", 300)
    first, second = usr(event_id="a", search=has(idu="1")), usr(event_id="b", search=has(idu="2"))
    assert [level for level, _ in ask(people, first, second)] == ["idu=1", "success", "error"]


def test_an_object_that_cannot_be_reported_costs_itself(people: World) -> None:
    people.change("update usr set fname = :f where idu = 2", f="a\x01b")
    found = ask(people, usr(search=has(lname="Frost"), read=("fname",)))
    assert found[0] == ("idu=1", {"fname": ["Jack"]})
    assert (found[1][0], "U+0001" in found[1][1]) == ("warning", True)


class Script:
    """A receiver that follows a script, and keeps what it was sent."""

    def __init__(self, *replies: bytes | Reply) -> None:
        self.replies = list(replies)
        self.sent: list[str] = []

    def __call__(self, text: str) -> Reply:
        self.sent.append(text)
        reply = self.replies.pop(0)
        return answered(reply) if isinstance(reply, bytes) else reply


def test_a_conversation_ends_with_a_reply_that_asks_nothing(people: World) -> None:
    script = Script(
        asking(usr(event_id="1", read=())), asking(Query("2", association="idu=1,table=usr")), DONE
    )
    reply = converse("<doc/>", script, answers(people))
    assert ([status.level.name for status in reply.statuses], reply.fault) == (["SUCCESS"], None)
    assert script.sent[0] == "<doc/>"
    assert [len(answers_of(text)) for text in script.sent[1:]] == [4, 2]
    assert [s.get("event-id") for s in etree.fromstring(script.sent[1].encode()).iter("status")] == ["1"]


def test_what_stands_beside_a_query_settles_nothing() -> None:
    both = b'<nds><output><status level="fatal">no</status><query/></output></nds>'
    reply = converse("<doc/>", Script(both, DONE), NothingKnown())
    assert [status.level.name for status in reply.statuses] == ["SUCCESS"]


FAULTS: list[tuple[Sequence[bytes | Reply], str]] = [
    ([asking(usr())] * 4, "the receiver asked more than 3 times about one document"),
    ([asking(usr()), unanswered("too late")], "too late"),
    ([asking(usr()), unreachable("refused")], "refused"),
    ([asking(usr()), b"<nds>"], "the answer is no XML"),
    ([asking(usr()), b""], "the answer is no XML"),
]


@pytest.mark.parametrize(("replies", "fault"), FAULTS, ids=lambda value: str(value)[:30])
def test_a_conversation_that_leads_nowhere_is_no_answer(replies: list[bytes | Reply], fault: str) -> None:
    known = NothingKnown()
    known.rounds = 3
    reply = converse("<doc/>", Script(*replies), known)
    assert fault in str(reply.fault)
    assert (reply.arrived, reply.statuses) == (True, ())


def test_without_a_database_nothing_can_be_asked() -> None:
    script = Script(asking(usr(event_id="7")), DONE)
    converse("<doc/>", script, NothingKnown())
    assert answers_of(script.sent[1]) == [("error", "nothing can be asked here: no database is at hand")]


def test_a_lost_database_is_no_answer_but_a_fault(people: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def lose(*_: object) -> Any:
        raise ConnectionLost("gone")

    monkeypatch.setattr(answering, "understand", lose)
    with answers(people).conversation() as answer, pytest.raises(ConnectionLost):
        answer([usr()])


def test_the_longest_double_is_reported_whole(people: World) -> None:
    """Keep the last digit, though MariaDB keeps 23 characters of a sum in temporary results."""
    number = -2.0747597310833455e-207
    people.change("create table wide (id double precision primary key, d double precision)")
    try:
        people.change("insert into wide values (:v, :v)", v=number)
        asked = Query(association=f"id={number},table=wide")
        assert ask(people, asked, sync_tables="wide") == [(f"id={number}", {"d": [str(number)]}), OK]
        found = Query(classes=("wide",), search=(("d", Value(str(number))),), read=())
        assert ask(people, found, sync_tables="wide") == [(f"id={number}", {}), OK]
        with people.engine.connect() as connection:
            table = Catalogue(connection).find("wide").table
        list(resync(people.store, Resync(table), lambda rows: None))
        with people.store.snapshot() as snapshot:
            assert [row[6] for row in snapshot.pick_up(Selection(10)).cells] == [f"id={number}"]
    finally:
        people.change("drop table wide")


@pytest.fixture
def arrivals() -> Iterator[Arrivals]:
    made = Arrivals()
    yield made
    made.close()


def test_a_receiver_asks_before_it_answers(people: World, arrivals: Arrivals) -> None:
    """Settle a document by the reply that asks nothing, and answer the queries before it."""

    def behave(handler: Any) -> None:
        arrivals.documents.append(handler.document)
        if "<input>" in handler.document:
            handler.reply(asking(Query("q", association="idu=1,table=usr", read=("lname",))))
        else:
            handler.reply(b'<nds><output><status level="warning">seen</status></output></nds>')

    arrivals.behave = behave
    people.write(key(1, event_type=4))
    with running(people, arrivals):
        until(lambda: people.counts() == {"W": 1})
    document, answer = arrivals.documents
    assert "<delete " in document
    assert answers_of(answer) == [("idu=1", {"lname": ["Frost"]}), OK]


def test_one_that_asks_without_end_is_asked_again_later(people: World, arrivals: Arrivals) -> None:

    def behave(handler: Any) -> None:
        arrivals.documents.append(handler.document)
        handler.reply(asking(usr(read=())))

    arrivals.behave = behave
    people.write(key(1, event_type=4))
    with running(people, arrivals, max_queries=2, retry_wait=0.01):
        until(lambda: len(arrivals.documents) >= 6)
    assert people.counts() == {"N": 1}
    assert [text.count("<input>") for text in arrivals.documents[:6]] == [1, 0, 0, 1, 0, 0]
    assert len({text for text in arrivals.documents if "<input>" in text}) == 1  # the same event-id


ASKING = """
import sys
for line in sys.stdin:
    query = '<query event-id="q" class-name="usr"><read-attr attr-name="fname"/></query>'
    asks = f'<nds><input>{query}</input></nds>'
    print(asks if '<input>' in line else '<nds><output/></nds>', flush=True)
    print(line, end='', file=open(sys.argv[1], 'a'))
"""


def test_a_program_asks_too(people: World, tmp_path: Path) -> None:
    (tmp_path / "asks.py").write_text(ASKING)
    given = {"command": f"{sys.executable} {tmp_path / 'asks.py'} {tmp_path / 'seen'}"}
    sink = open_sink("command", given, answers(people))
    (reply,) = sink.deliver(
        [OutgoingDocument("1-1", [Item("eventlog:1", '<delete event-id="eventlog:1"/>')])]
    )
    sink.close()
    assert (reply.fault, reply.statuses) == (None, ())
    _, answer = (tmp_path / "seen").read_text().splitlines()
    assert [values for _, values in answers_of(answer)[:-1]] == [
        {"fname": ["Jack"]},
        {"fname": ["Jane"]},
        {"fname": ["Jim"]},
    ]


def test_the_receiver_of_the_demo_asks(people: World, tmp_path: Path) -> None:
    rules = 'rule = [{ class = "usr", ask = ["fname"], answer = "warning", text = "seen" }]'
    with receiving(tmp_path, rules) as client:
        sink = open_sink("http", {"http_url": f"http://127.0.0.1:{client.port}/"}, answers(people))
        event = '<delete class-name="usr" event-id="e:1"><association>idu=1,table=usr</association></delete>'
        (reply,) = sink.deliver([OutgoingDocument("1-1", [Item("e:1", event)])])
        sink.close()
        assert [(status.level.name, status.text) for status in reply.statuses] == [("WARNING", "seen")]
        assert "1 document is kept" in client.get()
