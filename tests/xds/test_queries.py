"""Queries are read as the engine writes them, and ask for nothing but what may leave."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from eventlog.core import tablesfile
from eventlog.core.change import Change, Field, Op
from eventlog.core.errors import InvalidDocument
from eventlog.xds.answers import MOST_QUERIES, Level, Status, read_reply
from eventlog.xds.documents import answer_document, validate
from eventlog.xds.queries import (
    MOST_VALUES,
    Query,
    Search,
    Unanswerable,
    Value,
    read_queries,
    understand,
    write_query,
)
from eventlog.xds.settings import XdsSettings
from eventlog.xds.write import EventWriter

pytestmark = pytest.mark.quick

TABLES = tablesfile.read(
    """
    [tables.usr]
    schema = "indirect"
    key = ["idu"]
    withhold = ["pw"]
    references = { mgr = "usr" }
    columns = { idu = "integer", fname = "text", photo = "blob", born = "date", mgr = "integer", pw = "text" }

    [tables.grp]
    schema = "indirect"
    key = ["idg", "part"]
    columns = { idg = "integer", part = "integer", fname = "text", pw = "text" }

    [tables.nokey]
    columns = { fname = "text" }
    """
)
SETTINGS = XdsSettings(time_syntax=3)


def read(text: str) -> Query:
    (query,) = read_queries(etree.fromstring(f"<nds><input>{text}</input></nds>"))
    return query


def searches(**asked: object) -> list[Search]:
    return understand(Query(**asked), TABLES, SETTINGS)  # type: ignore[arg-type]


def refusal(**asked: object) -> str:
    with pytest.raises(Unanswerable) as caught:
        searches(**asked)
    return str(caught.value)


def test_a_query_says_which_objects_and_which_of_their_attributes() -> None:
    text = """<query class-name="ignored" event-id="q1" scope="entry" dest-entry-id="7">
        <association> idu=1,table=usr,schema=indirect </association>
        <search-class class-name="usr"/><search-class class-name="grp"/>
        <search-attr attr-name="fname"><value type="string">Jack</value><value>Jim</value></search-attr>
        <search-attr attr-name="mgr"><value association-ref="idu=2,table=usr">2</value></search-attr>
        <read-attr attr-name="fname"/><read-attr attr-name="photo" type="xml"/><read-parent/></query>"""
    assert read(text) == Query(
        "q1",
        ("usr", "grp"),
        "idu=1,table=usr,schema=indirect",
        (
            ("fname", Value("Jack")),
            ("fname", Value("Jim")),
            ("mgr", Value("2", "idu=2,table=usr")),
        ),
        ("fname", "photo"),
        "entry",
        named_otherwise=True,
    )


def test_what_is_left_out_means_everything() -> None:
    assert read("<query/>") == Query()
    assert read('<query class-name="usr"><read-attr/></query>') == Query(classes=("usr",), read=())


def test_queries_are_found_wherever_they_stand_in_a_reply() -> None:
    said = read_reply(b'<nds><output><query event-id="1"/><status level="success"/></output></nds>')
    assert [query.event_id for query in said.queries] == ["1"]
    assert len(read_reply(b"<nds><input><query/><query/></input></nds>").queries) == 2
    many = "<query/>" * (MOST_QUERIES + 1)
    with pytest.raises(InvalidDocument, match="asks more than"):
        read_reply(f"<nds><input>{many}</input></nds>".encode())
    with pytest.raises(InvalidDocument, match="no nds document with an output"):
        read_reply(b"<nds><input/></nds>")


def test_an_association_names_one_object_of_one_table() -> None:
    (search,) = searches(association="idu=1,table=usr,schema=indirect")
    assert (str(search.table), search.table_key, search.criteria) == ("indirect.usr", "idu=1", ())
    assert search.columns == {"fname", "photo", "born", "mgr"}
    assert searches(association="idu=1,table=usr", scope="subordinates") == []
    assert searches(association="idu=1,table=usr", classes=("grp",)) == []
    assert len(searches(association="idu=1,table=usr", classes=("grp", "USR"), named_otherwise=True)) == 1


def test_several_classes_are_alternatives_and_none_is_all() -> None:
    assert [search.table.name for search in searches(classes=("grp", "usr", "grp"))] == ["grp", "usr"]
    assert [search.table.name for search in searches()] == ["usr", "grp"]
    assert [s.table.name for s in searches(search=(("mgr", Value("1")),))] == ["usr"]
    assert [sorted(s.columns) for s in searches(read=("mgr", "fname"))] == [["fname", "mgr"], ["fname"]]
    assert searches(scope="entry") == []


def test_values_are_converted_to_the_columns_own_texts() -> None:
    def text(name: str, value: str, association: str | None = None) -> str:
        (search,) = searches(classes=("usr",), search=((name, Value(value, association)),))
        return search.criteria[0].text

    assert text("idu", "05") == "5"  # as a log writes it, so that it meets what was published
    assert text("photo", "qqo=") == "qqo="
    assert text("born", "2001-02-03") == "2001-02-03"
    assert text("mgr", "x", "idu=2,table=usr,schema=indirect") == "2"
    seconds = understand(Query(classes=("usr",), search=(("born", Value("86400")),)), TABLES, XdsSettings())
    assert seconds[0].criteria[0].text == "1970-01-02"
    for name, wrong in (("idu", "one"), ("photo", "?"), ("born", "soon")):
        assert f"attribute {name!r} of class indirect.usr" in refusal(
            classes=("usr",), search=((name, Value(wrong)),)
        )
    compound = Value("", "idg=1+part=2,table=grp")
    assert "a key of several columns" in refusal(classes=("usr",), search=(("mgr", compound),))


def test_what_is_withheld_and_what_does_not_exist_are_refused_alike() -> None:
    for withheld, missing in (
        (refusal(classes=("usr",), read=("pw",)), refusal(classes=("usr",), read=("xx",))),
        (
            refusal(classes=("usr",), search=(("pw", Value("x")),)),
            refusal(classes=("usr",), search=(("xx", Value("x")),)),
        ),
        (
            refusal(association="idu=1,table=usr", read=("pw",)),
            refusal(association="idu=1,table=usr", read=("xx",)),
        ),
    ):
        assert withheld.replace("'pw'", "'xx'") == missing
    assert refusal(classes=("nokey",)) == refusal(classes=("ghost",)).replace("ghost", "nokey")
    assert "class 'ghost' is not there to be read" in refusal(classes=("usr", "ghost"))
    assert "class 'x.ghost'" in refusal(association="a=1,table=ghost,schema=x")
    assert [search.columns for search in searches(read=("pw",))] == [
        set(),
        {"pw"},
    ]  # of the one that contains it
    assert {search.table.name for search in searches(search=(("pw", Value("x")),))} == {"grp"}


def test_what_cannot_be_meant_is_refused() -> None:
    assert "an object is named by its association" in refusal(named_otherwise=True)
    assert "the scope is 'all'" in refusal(scope="all")
    assert "malformed association" in refusal(association="usr")
    assert "more than 100 values" in refusal(search=(("fname", Value("x")),) * (MOST_VALUES + 1))


def test_an_object_is_reported_as_an_instance() -> None:
    fields = (Field("fname", after="<J>"), Field("photo", after=None), Field("mgr", after=2))
    change = Change(Op.INSERT, "indirect", "usr", (("idu", 1),), fields, current=True)
    text = EventWriter(TABLES, SETTINGS).instance(change, "q", {"idu", "fname"})
    assert text == (
        '<instance class-name="usr" event-id="q"><association>idu=1,table=usr,schema=indirect</association>'
        '<attr attr-name="idu"><value type="int">1</value></attr>'
        '<attr attr-name="fname"><value type="string">&lt;J&gt;</value></attr>'
        '<attr attr-name="mgr"><value type="dn" association-ref="idu=2,table=usr,schema=indirect">2</value>'
        "</attr>"
        "</instance>"
    )
    validate(answer_document([text, Status(Level.ERROR, "q", "a\0b")]))


texts = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), min_size=1, max_size=8)
queries = st.builds(
    Query,
    st.none() | texts,
    st.lists(texts, max_size=2).map(tuple),
    st.none() | texts.map(str.strip),
    st.lists(st.tuples(texts, st.builds(Value, texts, st.none() | texts)), max_size=3).map(tuple),
    st.none() | st.lists(texts, max_size=3).map(tuple),
    st.sampled_from(("entry", "subtree")),
    named_otherwise=st.just(False),
)


@given(queries)
def test_what_is_written_is_read(query: Query) -> None:
    text = write_query(query)
    assert read(text) == query
    validate(f'<nds dtdversion="4.0"><input>{text}</input></nds>')
