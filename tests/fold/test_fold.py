"""The laws of the fold, against a simple reference and over any log."""

from __future__ import annotations

from collections.abc import Callable
from operator import itemgetter
from random import Random

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from eventlog.core import tablesfile
from eventlog.core.change import ABSENT, Op, scalars
from eventlog.core.entry import Entry
from eventlog.core.tables import Column, Table, Tables
from eventlog.core.typenames import kind_of
from eventlog.fold import Event, Fate, Outcome, QueryKey, Rules, plan, whole_objects
from tests.kit import reference
from tests.kit.support import TABLES as USR_TABLES
from tests.kit.tiers import drawn

pytestmark = pytest.mark.quick

TABLES = tablesfile.read(
    '[tables.t]\nkey = ["k"]\ncolumns = { k = "varchar(9)", a = "text", b = "text", c = "text" }\n'
)
TABLE = TABLES.get("t")
DATA = ["a", "b", "c"]
TIME = "2025-03-23T10:57:19"

values = st.none() | st.sampled_from(["x", "y", "z"])
rows = st.lists(
    st.tuples(
        st.integers(1, 8),
        st.sampled_from(["k=1", "k=2", "k=3"]),
        st.sampled_from(["k", *DATA, "unknown"]),
        values,
        values,
    ),
    max_size=25,
)
currents = st.dictionaries(
    st.sampled_from(["k=1", "k=2", "k=3"]), st.fixed_dictionaries(dict.fromkeys(DATA, values))
)


def entries_of(drawn: list[tuple[int, str, str, str | None, str | None]]) -> list[Entry]:
    return [
        Entry(at * 3 + 1, "N", kind, TIME, None, "t", key, column, old_value, new_value)
        for at, (kind, key, column, old_value, new_value) in enumerate(drawn)
    ]


def lookup_in(current: reference.Current) -> Callable[[Table, QueryKey], list[list[str | None]]]:
    def lookup(table: Table, key: QueryKey) -> list[list[str | None]]:
        row = current.get(f"k={key[0]!s}")
        return [] if row is None else [[row[column] for column in DATA]]

    return lookup


def fold(
    entries: list[Entry], current: reference.Current, rules: Rules | None = None
) -> tuple[list[Event], dict[int, Outcome]]:
    planned = plan(entries, TABLES, rules or Rules(), answerable=[TABLE])
    return planned.events(lookup_in(current)), planned.outcomes


def as_reference(event: Event, add: bool) -> str:
    """Return an event in the words of the reference."""
    change = event.change
    op = {Op.DELETE: "delete", Op.UPDATE: "modify"}.get(
        change.op, "modify" if change.current and not add else "add"
    )
    lines = []
    for column, before, after in change.fields:
        if op == "add":
            if after is not None:
                lines.append(f"{column} = {list(scalars(after))!r}")
        else:
            lines.append(f"{column}: -{'all' if before is ABSENT else repr(before)} +{after!r}")
    ids = ",".join(map(str, event.rows))
    return f"{op} {event.object[1]} [{ids}] {'; '.join(lines)}"


@settings(max_examples=drawn(400))
@given(rows, currents)
def test_whole_rows_are_those_of_query_backs(
    drawn: list[tuple[int, str, str, str | None, str | None]], current: reference.Current
) -> None:
    """Read back every row but a delete, whatever its type: as if the log had rows of type 5."""
    whole = Rules(insert_query_back="add", whole_rows=True)
    queries = [(4 if row[0] == 4 else 5, *row[1:]) for row in drawn]
    events, outcomes = fold(entries_of(drawn), current, whole)
    assert (events, outcomes) == fold(entries_of(queries), current, Rules(insert_query_back="add"))
    assert all(event.change.op is Op.DELETE or set(event.change.after) == {*DATA} for event in events)


def test_whole_rows_refuse_an_unknown_column_where_rows_do() -> None:
    rules = Rules(whole_rows=True, unknown_columns="refuse")
    row = Entry(1, "N", 3, TIME, None, "t", "k=1", "unknown", None, "x")
    _, outcomes = fold([row], {}, rules)
    assert (outcomes[1].fate, "unknown" in outcomes[1].reason) == (Fate.REFUSED, True)


@settings(max_examples=drawn(400))
@given(rows, currents, st.booleans())
@example([(1, "k=1", "a", None, None), (1, "k=1", "b", None, "x"), (1, "k=1", "a", None, "x")], {}, False)
def test_the_fold_gives_what_the_reference_gives(
    drawn: list[tuple[int, str, str, str | None, str | None]], current: reference.Current, add: bool
) -> None:
    entries = entries_of(drawn)
    events, _ = fold(entries, current, Rules(insert_query_back="add" if add else "modify"))
    simple = [
        (e.record_id, e.event_type, e.table_key, e.column_name, e.old_value, e.new_value) for e in entries
    ]
    expected = reference.documents(simple, current, "k", DATA, add)
    assert [as_reference(event, add) for event in events] == [
        reference.render(document) for document in expected
    ]


def test_a_query_back_leaves_rows_of_a_column_that_it_does_not_read() -> None:
    drawn = [(2, "k=1", "gone", "x", "y"), (2, "k=1", "a", "1", "2"), (6, "k=1", "", None, None)]
    events, outcomes = fold(
        entries_of([*drawn, (2, "k=1", "gone", "y", "z")]), {"k=1": dict.fromkeys(DATA, "now")}
    )
    (event,) = events
    as_reference = [(field.column, field.before, field.after) for field in event.change.fields]
    assert as_reference == [("gone", "x", "y"), *((c, ABSENT, "now") for c in DATA), ("gone", "y", "z")]
    assert [outcomes[row].fate for row in sorted(outcomes)] == [
        Fate.SENT,
        Fate.SUPERSEDED,
        Fate.SENT,
        Fate.SENT,
    ]


def test_of_query_backs_an_insert_wins_over_an_update() -> None:
    query_backs = entries_of([(6, "k=1", "a", None, None), (5, "k=1", "a", None, None)])
    events, outcomes = fold(query_backs, {"k=1": dict.fromkeys(DATA, "now")})
    (event,) = events
    assert event.change.op is Op.INSERT
    assert [outcomes[row].fate for row in sorted(outcomes)] == [Fate.SUPERSEDED, Fate.SENT]


@given(rows, currents)
def test_every_row_has_one_outcome_and_every_sent_row_one_event(
    drawn: list[tuple[int, str, str, str | None, str | None]], current: reference.Current
) -> None:
    entries = entries_of(drawn)
    events, outcomes = fold(entries, current)
    assert outcomes.keys() == {entry.record_id for entry in entries}
    settled = [row for event in events if event.part == 1 for row in event.rows]
    assert len(settled) == len(set(settled))
    by_id = {event.event_id: event for event in events}
    for row, outcome in outcomes.items():
        if outcome.fate is Fate.SENT:
            assert outcome.event_id is not None
            assert row in by_id[outcome.event_id].rows
        if outcome.fate is Fate.SUPERSEDED:
            assert outcome.by in outcomes
        assert (row in settled) == (outcome.event_id is not None)


@given(rows, currents, st.sets(st.sampled_from(["k=1", "k=2", "k=3"])))
def test_a_cut_between_objects_changes_nothing(
    drawn: list[tuple[int, str, str, str | None, str | None]], current: reference.Current, first: set[str]
) -> None:
    entries = entries_of(drawn)
    whole, _ = fold(entries, current)
    parts = [
        fold([e for e in entries if (e.table_key in first) is side], current)[0] for side in (True, False)
    ]
    assert sorted((e for part in parts for e in part), key=lambda event: event.place) == whole


@given(rows, currents, st.randoms(use_true_random=False))
def test_the_order_in_which_rows_are_handed_over_does_not_matter(
    drawn: list[tuple[int, str, str, str | None, str | None]], current: reference.Current, random: Random
) -> None:
    entries = entries_of(drawn)
    shuffled = random.sample(entries, len(entries))
    assert fold(shuffled, current) == fold(entries, current)


@given(rows, currents, st.integers(1, 6))
def test_a_cut_event_says_the_same_in_parts_that_are_short_enough(
    drawn: list[tuple[int, str, str, str | None, str | None]], current: reference.Current, most: int
) -> None:
    entries = entries_of(drawn)
    whole, _ = fold(entries, current)
    parts, _ = fold(entries, current, Rules(max_changes=most))
    for event in whole:
        pieces = [part for part in parts if part.rows == event.rows]
        assert [piece.part for piece in pieces] == list(range(1, len(pieces) + 1))
        assert [values_of(piece) for piece in pieces if len(values_of(piece)) > most] == []
        assert [value for piece in pieces for value in values_of(piece)] == values_of(event)


def values_of(event: Event) -> list[tuple[str, str, object]]:
    """Return the values that an event removes and adds, each by itself."""
    values: list[tuple[str, str, object]] = []
    inserts = event.change.op is Op.INSERT and not event.change.current
    for column, before, after in event.change.fields:
        if before is ABSENT and not inserts:
            values.append((column, "-", "all"))
        values += [(column, "-", value) for value in scalars(before)]
        values += [(column, "+", value) for value in scalars(after)]
    return values


def outcomes_of(*entries: Entry, rules: Rules | None = None, now: str | None = None) -> list[Outcome]:
    held_objects = [("t", "k=9")]
    planned = plan(entries, TABLES, rules or Rules(), now=now, held_objects=held_objects, answerable=[TABLE])
    planned.events(lookup_in({"k=1": dict.fromkeys(DATA)}))
    return [planned.outcomes[entry.record_id] for entry in entries]


def entry(record_id: int, event_type: int, key: str = "k=1", **other_fields: object) -> Entry:
    base = Entry(record_id, "N", event_type, TIME, None, "t", key, "a", "x", "y")
    return base._replace(**other_fields)  # type: ignore[arg-type]


def test_rows_that_take_no_part_interrupt_nothing() -> None:
    rules = Rules(driver_user="driver", handle_future_events=True)
    found = outcomes_of(
        entry(1, 2),
        entry(2, 4, perpetrator="driver"),
        entry(3, 4, event_time="2031-01-01T00:00:00"),
        entry(4, 4, status="S"),
        entry(5, 2, key="k=9"),
        entry(6, 2, column_name="b"),
        rules=rules,
        now="2026-01-01T00:00:00",
    )
    assert [outcome.fate for outcome in found] == [
        Fate.SENT,
        Fate.LOOPBACK,
        Fate.FUTURE,
        Fate.NOT_NEW,
        Fate.HELD,
        Fate.SENT,
    ]
    assert found[0].event_id == found[5].event_id


def test_with_future_events_the_order_is_that_of_event_time() -> None:
    entries = [entry(1, 2, event_time="2025-01-02T00:00:00"), entry(2, 4, event_time="2025-01-01T00:00:00")]
    planned = plan(entries, TABLES, Rules(handle_future_events=True), now="2026-01-01T00:00:00")
    assert [event.change.op for event in planned.events()] == [Op.DELETE, Op.UPDATE]


def test_a_row_waits_until_its_time_and_no_longer() -> None:
    now = entry(1, 2, event_time="2026-01-01T00:00:00")
    later = entry(2, 2, event_time="2026-01-01T00:00:00.1")
    found = outcomes_of(now, later, rules=Rules(handle_future_events=True), now="2026-01-01T00:00:00")
    assert [outcome.fate for outcome in found] == [Fate.SENT, Fate.FUTURE]


def test_loopback_is_published_where_it_is_allowed() -> None:
    (found,) = outcomes_of(entry(1, 4, perpetrator="me"), rules=Rules(driver_user="me", allow_loopback=True))
    assert found.fate is Fate.SENT


def reason(of: Entry, rules: Rules | None = None) -> str:
    (outcome,) = outcomes_of(of, rules=rules)
    assert outcome.fate is Fate.REFUSED
    return outcome.reason


def test_each_fault_of_a_row_is_named() -> None:
    assert "unknown table 'u'" in reason(entry(1, 2, table_name="u"))
    assert "at character 2, expected '=' after the column name" in reason(entry(1, 4, key="k"))
    assert "U+0001 at position 2" in reason(entry(1, 1, new_value="a\x01"))
    assert "U+D800" in reason(entry(1, 2, old_value="\ud800"))
    assert "column_name is null" in reason(entry(1, 8, column_name=None))
    assert "the key names a, but the key of t is k" in reason(entry(1, 5, key="a=1"))
    assert "U+0002" in reason(entry(1, 6, key="k=\x02"))
    assert "a value of 11 bytes is over the limit of 10" in reason(
        entry(1, 1, new_value="ä" * 5 + "x"), rules=Rules(max_value=10)
    )


@pytest.mark.parametrize("value", ["x", "ä", "雪", "😀"])
@pytest.mark.parametrize("way", ["logged", "read back"])
def test_a_value_may_have_as_many_bytes_as_the_limit(value: str, way: str) -> None:
    """Count bytes, whatever the characters are, of what is logged and of what is read back."""
    size, limit = len(value.encode()), 24
    for count in (limit // size, limit // size + 1):
        content = value * count
        row = entry(1, 1, new_value=content) if way == "logged" else entry(1, 6)
        planned = plan([row], TABLES, Rules(max_value=limit), answerable=[TABLE])
        events = planned.events(lookup_in({"k=1": {"a": content, "b": None, "c": None}}))
        assert bool([event for event in events if values_of(event)]) == (count * size <= limit)


@pytest.mark.parametrize("kind", [1, 2, 3, 7, 8])
def test_columns_that_a_table_lacks_are_refused_where_that_is_set(kind: int) -> None:
    refused = reason(entry(1, kind, column_name="z"), Rules(unknown_columns="refuse"))
    assert refused == "table t has no column 'z'"


def test_columns_that_a_table_lacks_are_sent_as_strings_and_reported() -> None:
    """A type 7 or 8 of such a column has no value to bring."""
    rows = [entry(1, 3, column_name="z", new_value="7"), entry(2, 8, column_name="y"), entry(3, 8)]
    planned = plan(rows, TABLES, Rules(), answerable=[TABLE])
    events = planned.events(lookup_in({"k=1": {"a": "now", "b": None, "c": None}}))
    assert [values_of(event) for event in events] == [
        [("z", "-", "all"), ("z", "+", "7"), ("a", "-", "all"), ("a", "+", "now")]
    ]
    assert planned.outcomes[2].fate is Fate.SAYS_NOTHING
    assert planned.outcomes[2].reason == "table t has no column 'y'"
    assert set(planned.unknown) == {("t", "z"), ("t", "y")}


@pytest.mark.parametrize("query_back", [7, 8])
@pytest.mark.parametrize("first", [True, False])
def test_a_query_back_of_a_column_that_the_table_lacks_replaces_its_rows(
    query_back: int, first: bool
) -> None:
    """Let only the rows decide: what replaces the others need not have a value."""
    kinds = [query_back, 1, 2, 3] if first else [1, 2, 3, query_back]
    rows = [
        entry(at, kind, column_name="z", old_value="6", new_value="7") for at, kind in enumerate(kinds, 1)
    ]
    planned = plan([*rows, entry(5, 2, old_value="x", new_value="y")], TABLES, Rules(), answerable=[TABLE])
    (event,) = planned.events(lookup_in({"k=1": dict.fromkeys(DATA, "now")}))
    assert (event.rows, [field.column for field in event.change.fields]) == ((5,), ["a"])
    winner = kinds.index(query_back) + 1
    assert planned.outcomes.pop(winner).fate is Fate.SAYS_NOTHING
    fates = {(outcome.fate, outcome.by) for row, outcome in planned.outcomes.items() if row != 5}
    assert fates == {(Fate.SUPERSEDED, winner)}


def test_a_query_back_of_the_row_replaces_what_one_of_an_unknown_column_replaced() -> None:
    rows = [entry(1, 2, column_name="z", old_value="6", new_value="7"), entry(2, 8, column_name="z")]
    planned = plan([*rows, entry(3, 6, column_name=None)], TABLES, Rules(), answerable=[TABLE])
    (event,) = planned.events(lookup_in({"k=1": dict.fromkeys(DATA, "now")}))
    assert (event.rows, [field.column for field in event.change.fields]) == ((1, 2, 3), DATA)


def test_a_childs_column_that_its_parents_row_names_has_one_name() -> None:
    text = '[tables.usr]\nkey = ["idu"]\nmultivalued = ["usr_phone.phoneno"]\n'
    tables = tablesfile.read(f'{text}columns = {{ idu = "integer", "usr_phone.phoneno" = "text" }}\n')
    rows = [
        entry(n, 3, "idu=1", table_name="usr", column_name=name, new_value="1")
        for n, name in enumerate(("phoneno", "PhoneNo", "usr_phone.phoneno"), 1)
    ]
    (event,) = plan(rows, tables, Rules()).events()
    assert {column for column, *_ in event.change.fields} == {"usr_phone.phoneno"}


def test_a_padded_numeric_key_finds_its_row_and_stays_an_object_of_its_own() -> None:
    entries = [
        entry(n, 6, key=key, table_name="usr") for n, key in ((1, "idu= 1"), (2, "idu=1"), (3, "idu=x"))
    ]
    usr = USR_TABLES.get("usr")
    planned = plan(entries, USR_TABLES, Rules(), answerable=[usr])
    assert [need.key for need in planned.needs()] == [(1,)]
    events = planned.events(lambda table, key: [["Jack", None, None]])
    assert [event.change.fact("table_key") for event in events] == ["idu= 1", "idu=1"]
    assert planned.outcomes[3] == Outcome(Fate.REFUSED, "'x' is not an integer")


def test_rows_of_unknown_tables_are_published_as_strings_where_that_is_set() -> None:
    rules = Rules(unknown_tables="string")
    (sent,) = outcomes_of(entry(1, 2, table_name="u"), rules=rules)
    assert sent.fate is Fate.SENT
    assert "unknown table" in reason(entry(1, 5, table_name="u"), rules=rules)


MULTIVALUED_TABLES = tablesfile.read(
    '[tables.m]\nkey = ["k"]\nmultivalued = ["a"]\ncolumns = { k = "text", a = "text", b = "text" }\n'
)


def test_a_queried_attribute_of_many_values_is_cut_also_beside_other_rows() -> None:
    entries = [entry(1, 2, table_name="m", column_name="b"), entry(2, 8, table_name="m")]
    planned = plan(
        entries, MULTIVALUED_TABLES, Rules(max_changes=3), answerable=[MULTIVALUED_TABLES.get("m")]
    )
    events = planned.events(lambda table, key: [["1", None], ["2", None], ["3", None]])
    assert [len(values_of(event)) for event in events] == [3, 3]


@pytest.mark.parametrize("kind", [6, 8])
def test_a_value_that_several_rows_of_an_object_have_comes_once(kind: int) -> None:
    planned = plan(
        [entry(1, kind, table_name="m")],
        MULTIVALUED_TABLES,
        Rules(),
        answerable=[MULTIVALUED_TABLES.get("m")],
    )
    (event,) = planned.events(lambda table, key: [["1", None], ["2", None], ["1", None]])
    assert event.change.after["a"] == ("1", "2")


def test_a_column_that_all_rows_of_an_object_have_alike_has_one_value() -> None:
    planned = plan(
        [entry(1, 6, table_name="m")], MULTIVALUED_TABLES, Rules(), answerable=[MULTIVALUED_TABLES.get("m")]
    )
    (event,) = planned.events(lambda table, key: [["1", "x"], ["2", "x"]])
    assert event.change.after == {"a": ("1", "2"), "b": "x"}


MEBIBYTE = 1 << 20


@given(st.lists(st.tuples(st.integers(0, 9), st.sampled_from((0, 1, MEBIBYTE, 9 * MEBIBYTE)))))
def test_rows_of_an_object_stay_together_and_long_ones_have_few_beside_them(
    rows: list[tuple[int, int]],
) -> None:
    rows.sort()
    reported = list(whole_objects(rows, itemgetter(0), itemgetter(1)))
    assert [row for chunk in reported for row in chunk] == rows
    objects = [{number for number, _ in chunk} for chunk in reported]
    assert sum(map(len, objects)) == len({number for number, _ in rows})
    for chunk in reported:
        *_, (last, _) = chunk
        assert sum(size for number, size in chunk if number != last) < 16 * MEBIBYTE


def test_many_short_rows_are_folded_together() -> None:
    reported = list(whole_objects(range(20_000), lambda row: row // 3, lambda row: 10))
    assert max(map(len, reported)) <= 5_002
    assert len(reported) == 4


# --- a column whose values no query-back can have, such as LONG in Oracle

UNREAD_COLUMNS = {
    name: Column(name, kind, kind_of(kind, "oracle"), name, unread=unread)
    for name, kind, unread in (
        ("K", "NUMBER(10,0)", ""),
        ("A", "VARCHAR2(9)", ""),
        ("B", "LONG", "no expression can read"),
    )
}
UNREAD = Table("S", "T", UNREAD_COLUMNS, ("K",))


def row_of(number: int, kind: int, column: str | None, new: str | None = None) -> Entry:
    return Entry(number, "N", kind, TIME, None, "T", f"K={number}", column, None, new)


def test_it_is_left_out_of_what_is_read_back_and_kept_in_rows_that_say_it() -> None:
    entries = [row_of(1, 6, None), row_of(2, 3, "B", "x"), row_of(3, 8, "A"), row_of(4, 8, "B")]
    planned = plan(entries, Tables([UNREAD], "oracle"), Rules(), answerable={UNREAD})
    assert [column.name for column in UNREAD.data] == ["A"]
    reported = [
        [(field.column, field.after) for field in event.change.fields if field.before is ABSENT]
        for event in planned.events(lambda table, key: [("a",)])
    ]
    assert reported == [[("A", "a")], [("B", "x")], [("A", "a")]]
    assert planned.outcomes[4].fate is Fate.REFUSED
    assert "column B no expression can read" in planned.outcomes[4].reason


def test_a_query_back_of_its_row_does_not_speak_for_it() -> None:
    entries = [row_of(1, 6, None), row_of(2, 3, "B", "x")._replace(table_key="K=1")]
    planned = plan(entries, Tables([UNREAD], "oracle"), Rules(), answerable={UNREAD})
    (event,) = planned.events(lambda table, key: [("a",)])
    assert [(field.column, field.after) for field in event.change.fields] == [("A", "a"), ("B", "x")]
