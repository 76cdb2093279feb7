"""One object in every spelling: its table, its key columns, their order, unneeded quotes."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlog.core import tablekey, tablesfile
from eventlog.core.entry import Entry
from eventlog.core.identity import object_of
from eventlog.fold import Event, Fate, Rules, plan
from eventlog.xds.write import EventWriter
from eventlog.xds.xds_settings import XdsSettings
from tests.kit import reference

pytestmark = pytest.mark.quick

TABLES = tablesfile.read("""
[tables.usr]
schema = "indirect"
key = ["site", "idu"]
columns = { site = "varchar(9)", idu = "integer", fname = "text", "usr_phone.phoneno" = "text" }
multivalued = ["usr_phone.phoneno"]

[tables.grp]
schema = "indirect"
key = ["idg"]
columns = { idg = "integer", name = "text" }

[tables."x.grp2"]
schema = "x"
key = ["a"]
columns = { a = "integer" }

[tables."y.grp2"]
schema = "y"
key = ["a"]
columns = { a = "integer" }
""")
DESCRIBED = [
    reference.Described("indirect", "usr", ["site", "idu"], ["usr_phone"]),
    reference.Described("indirect", "grp", ["idg"], []),
]
TIME = "2025-03-23T10:57:19"
VALUES = st.text('aA1 ,+"\\=é', max_size=4)
Spelling = tuple[str, str]


def cased(text: str) -> st.SearchStrategy[str]:
    return st.sampled_from([text, text.upper(), text.capitalize()])


@st.composite
def spellings(draw: st.DrawFn, values: tuple[str, str]) -> Spelling:
    """Return a way to name the user with these values."""
    name = draw(st.sampled_from(["usr", "indirect.usr", "usr_phone"]))
    pairs = [(draw(cased(column)), value) for column, value in zip(("site", "idu"), values, strict=True)]
    texts = []
    for column, value in draw(st.permutations(pairs)):
        quoted = tablekey.quote(value)
        adds_quotes = draw(st.booleans()) and quoted == value
        texts.append(f"{column}=" + (f'"{value}"' if adds_quotes else quoted))
    return draw(cased(name)), "+".join(texts)


@given(st.data(), VALUES, VALUES)
def test_every_spelling_is_one_object(data: st.DataObject, site: str, idu: str) -> None:
    name, key = data.draw(spellings((site, idu)))
    canonical = ("usr", tablekey.write((("site", site), ("idu", idu))))
    assert object_of(TABLES, name, key) == canonical == reference.object_of(DESCRIBED, name, key)
    assert object_of(TABLES, *canonical) == canonical


@pytest.mark.parametrize(
    ("name", "key", "found"),
    [
        ("GRP", "IDG=1", ("grp", "idg=1")),
        ("indirect.grp", "idg=01", ("grp", "idg=01")),
        ("grp", "idg= 1", ("grp", "idg= 1")),
        ("grp", "name=x", ("grp", "name=x")),
        ("grp", "idg=1+idg=1", ("grp", "idg=1+idg=1")),
        ("grp", "idg", ("grp", "idg")),
        ("elsewhere", "ID=1", ("elsewhere", "ID=1")),
        ("Elsewhere", "ID=1", ("Elsewhere", "ID=1")),
        ("x.grp2", "A=1", ("x.grp2", "a=1")),
        ("grp2", "A=1", ("grp2", "A=1")),
        ("usr_phone", "idu=1", ("usr_phone", "idu=1")),
    ],
)
def test_names_of_objects(name: str, key: str, found: Spelling) -> None:
    assert object_of(TABLES, name, key) == found


def entries_of(drawn: list[tuple[int, Spelling, str]]) -> list[Entry]:
    return [
        Entry(at, "N", kind, TIME, None, *spelling, "fname", "old", text)
        for at, (kind, spelling, text) in enumerate(drawn, 1)
    ]


def folded(entries: list[Entry], association: str = "canonical") -> list[Event]:
    return plan(entries, TABLES, Rules(association=association)).events()


users = st.sampled_from([("a", "1"), ("a", "2"), ("b+", "1")])
written = st.lists(
    users.flatmap(lambda values: st.tuples(st.integers(1, 4), spellings(values), st.sampled_from("xyz"))),
    max_size=12,
)


@given(written)
def test_rows_of_many_spellings_fold_as_those_of_one(drawn: list[tuple[int, Spelling, str]]) -> None:
    entries = entries_of(drawn)
    alike = []
    for entry in entries:
        name, key = object_of(TABLES, *entry[5:7])
        child = "usr_phone." if entry.table_name.lower() == "usr_phone" else ""
        alike.append(entry._replace(table_name=name, table_key=key, column_name=f"{child}fname"))
    assert folded(entries) == folded(alike)


@given(written)
def test_as_logged_the_association_is_that_of_the_events_first_row(
    drawn: list[tuple[int, Spelling, str]],
) -> None:
    entries = entries_of(drawn)
    for event, canonical in zip(folded(entries, "as-logged"), folded(entries), strict=True):
        first = entries[event.rows[0] - 1]
        assert event.change.fact("table_key") == first.table_key
        assert event[1:3] == canonical[1:3]
        assert event.object == canonical.object
        assert event.change[:3] == canonical.change[:3]
        assert event.change.fields == canonical.change.fields


def test_the_first_row_of_an_event_that_a_query_back_speaks_for_is_the_first_that_it_swallowed() -> None:
    rows = [(2, "IDG=1"), (6, "idg=1")]
    entries = [
        Entry(n, "N", kind, TIME, None, "grp", key, None if kind == 6 else "name", "a", "b")
        for n, (kind, key) in enumerate(rows, 1)
    ]
    planned = plan(entries, TABLES, Rules(), answerable=[TABLES.get("grp")])
    (event,) = planned.events(lambda table, key: [["x"]])
    assert (event.change.fact("table_key"), event.rows) == ("IDG=1", (1, 2))


@given(written, st.sets(users), st.randoms(use_true_random=False))
def test_what_is_held_is_held_under_every_spelling(
    drawn: list[tuple[int, Spelling, str]], users_held: set[tuple[str, str]], random: Random
) -> None:
    entries = entries_of(drawn)
    random.shuffle(entries)
    held = {("usr", tablekey.write((("site", site), ("idu", idu)))) for site, idu in users_held}
    planned = plan(entries, TABLES, Rules(), held_objects=held)
    assert not held & {event.object for event in planned.events()}
    for entry in entries:
        is_held = object_of(TABLES, *entry[5:7]) in held
        assert (planned.outcomes[entry.record_id].fate is Fate.HELD) == is_held


def test_a_childs_rows_are_of_its_parents_class() -> None:
    rows = [
        ("usr_phone", "phoneno", "1"),
        ("USR_PHONE", "usr_phone.phoneno", "2"),
        ("usr_phone", "IDU", "1"),  # the key of its parent, which has no content
        ("usr", "fname", "Jo"),
    ]
    entries = [
        Entry(n, "N", 1, TIME, None, name, "site=a+idu=1", column, None, text)
        for n, (name, column, text) in enumerate(rows, 1)
    ]
    (event,) = folded(entries)
    assert event.change[:3] == ("insert", "indirect", "usr")
    assert [(f.column, f.after) for f in event.change.fields] == [
        ("usr_phone.phoneno", ("1", "2")),
        ("fname", "Jo"),
    ]


@pytest.mark.parametrize(
    ("key", "reason"),
    [
        ("idu=1", "the key names idu, but the key of indirect.usr is site, idu"),
        ("site=a+idu=1+x=2", "the key names site, idu, x, but the key of indirect.usr is site, idu"),
        ("site=a+idu=1+IDU=1", "the key names site, idu, IDU, but"),
    ],
)
@pytest.mark.parametrize("kind", range(1, 9))
def test_a_key_is_exactly_the_tables_for_every_event_type(kind: int, key: str, reason: str) -> None:
    entry = Entry(1, "N", kind, TIME, None, "usr", key, "fname", "a", "b")
    planned = plan([entry], TABLES, Rules(), answerable=[TABLES.get("usr")])
    planned.events()
    assert planned.outcomes[1].fate is Fate.REFUSED
    assert reason in planned.outcomes[1].reason


ORACLE = tablesfile.read("""
dialect = "oracle"

[tables."INDIRECT.USR"]
schema = "INDIRECT"
key = ["IDU"]
columns = { IDU = "number(10)", FNAME = "varchar2(64)", MGR = "number(10)", "Odd" = "varchar2(9)" }
references = { MGR = "INDIRECT.USR" }
""")
EXPECTED_NAMES: list[tuple[str, str, str, str]] = [
    ("usr", "idu=1", "usr", "idu=1,table=usr,schema=indirect"),
    ("USR", "IDU=1", "USR", "IDU=1,table=USR,schema=INDIRECT"),
    ("indirect.usr", "IDU=1", "usr", "idu=1,table=usr,schema=indirect"),
]


@pytest.mark.parametrize(("name", "key", "class_name", "association"), EXPECTED_NAMES)
def test_plain_names_that_a_catalogue_keeps_in_capitals_are_written_as_the_trigger_writes_them(
    name: str, key: str, class_name: str, association: str
) -> None:
    columns = [("fname", "x"), ("mgr", "2"), ("Odd", "y")]
    entries = [Entry(n, "N", 3, TIME, None, name, key, c, None, v) for n, (c, v) in enumerate(columns, 1)]
    (event,) = plan(entries, ORACLE, Rules(association="canonical")).events()
    text = EventWriter(ORACLE, XdsSettings()).write(event.change, event.event_id)
    assert f'<modify class-name="{class_name}"' in text
    assert f"<association>{association}</association>" in text
    lower = class_name == "usr"
    for column in ("fname", "mgr") if lower else ("FNAME", "MGR"):
        assert f'attr-name="{column}"' in text
    assert 'attr-name="Odd"' in text
    assert f'association-ref="{association.replace("=1", "=2")}"' in text
    assert event.object == ("USR", "IDU=1")
