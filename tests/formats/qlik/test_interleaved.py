"""Transactions that interrupt each other: each is counted as a whole, in messages that never fall."""

from __future__ import annotations

import json
import random
import tracemalloc
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventlog import library
from eventlog.core import tablesfile
from eventlog.core.change import ABSENT, Change, Field, Op
from eventlog.core.errors import Refused
from eventlog.files.stores import SortedItems
from eventlog.formats.qlik import messages
from eventlog.formats.qlik.message_settings import MessageSettings
from eventlog.formats.qlik.message_writer import FallingSequence
from eventlog.transfer import job_output
from eventlog.transfer.convert import convert
from eventlog.transfer.job import Job
from eventlog.transfer.loop import RunLength
from eventlog.transfer.report import Report
from tests.formats.qlik.helpers import write_messages
from tests.kit.support import CLOCK, convert_job
from tests.kit.tiers import drawn
from tests.transactions.test_states import Line, written

pytestmark = pytest.mark.quick

TABLES = tablesfile.read("""
[tables.usr]
key = ["idu"]
columns = { idu = "integer", name = "nvarchar(20)" }
[tables.phone]
key = ["idp"]
columns = { idp = "integer", name = "nvarchar(20)" }
""")
HEADERS = "change_seq,change_oper,change_mask,stream_position,operation,transaction_id,timestamp"
OPERATIONS = {"I": "INSERT", "U": "UPDATE", "B": "BEFOREIMAGE", "D": "DELETE"}
FIRST, SECOND, THIRD = (f"{number:032X}" for number in (0x60008, 0x60009, 0x6000A))
TIME = "2025032310571900"  # 23 March 2025, 10:57:19


def seq(number: int, time: str = TIME) -> str:
    return f"{time}{number:019}"


def row(number: int, letter: str, mask: str, transaction: str, *data: object, time: str = TIME) -> str:
    """Return a row of a change table with the seven header columns of the manual."""
    cells = (seq(number, time), letter, mask, f"p{number}", OPERATIONS[letter], transaction)
    return ",".join(map(str, (*cells, "2025-03-23 10:57:18.000", *data)))


# two transactions that change two tables in turn, and a third one in the next second
USR = [
    row(7, "I", "8001", THIRD, 4, "d", time="2025032310572000"),
    row(1, "I", "8001", FIRST, 1, "a"),
    row(5, "D", "80", FIRST, 3, "c"),
    row(4, "U", "0001", SECOND, 2, "bb"),
    row(4, "B", "", SECOND, 2, "b"),
]
PHONE = [
    row(2, "I", "8001", SECOND, 1, "a"),
    row(6, "I", "8001", SECOND, 3, "c"),
    row(3, "I", "8001", FIRST, 2, "b"),
]
PLACES = [
    *((1, 1, False), (2, 1, False), (3, 2, False), (4, 2, False), (5, 3, True), (6, 3, True)),
    (7, 1, True),
]


def change_tables(folder: Path) -> tuple[str, ...]:
    """Return the files of two change tables, whose rows have no order."""
    heading = ",".join(f"header__{name}" for name in HEADERS.split(","))
    for table, key, rows in (("usr", "idu", USR), ("phone", "idp", PHONE)):
        (folder / f"{table}__ct.csv").write_text("\n".join([f"{heading},{key},name", *rows, ""]))
    return str(folder / "usr__ct.csv"), str(folder / "phone__ct.csv")


class Written(NamedTuple):
    """The place of a data message, as it states it."""

    seq: str
    transaction: str
    counter: int | None
    last: bool | None


def places_in(records: Sequence[dict[str, Any]]) -> list[Written]:
    """Return the places of data messages."""
    headers = [r["message"]["headers"] for r in records if r["type"] == "DT"]
    names = ("changeSequence", "transactionId", "transactionEventCounter", "transactionLastEvent")
    return [Written(*(header[name] for name in names)) for header in headers]


def messages_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def short(places: Sequence[Written]) -> list[tuple[int, int | None, bool | None]]:
    return [(int(place.seq[16:]), place.counter, place.last) for place in places]


def job(inputs: Sequence[str], output: Path, source: str = "qlik-table", **options: Any) -> Job:
    return Job(source, "qlik-message", tuple(inputs), str(output), tables=TABLES, options=options)


def test_change_tables_become_messages_that_count_whole_transactions(tmp_path: Path) -> None:
    assert convert_job(job(change_tables(tmp_path), tmp_path / "m.jsonl")) == []
    assert short(places_in(messages_of(tmp_path / "m.jsonl"))) == PLACES


def test_messages_in_avro_count_whole_transactions(tmp_path: Path) -> None:
    """Read them back, and the reader finds each transaction whole."""
    assert convert_job(job(change_tables(tmp_path), tmp_path / "m.avro", encoding="avro")) == []
    options = {"encoding": "avro", "whole_transactions": True}
    inputs, output = (str(tmp_path / "m.avro"),), str(tmp_path / "c.jsonl")
    assert convert_job(Job("qlik-message", "changes", inputs, output, tables=TABLES, options=options)) == []
    changes = [json.loads(line) for line in (tmp_path / "c.jsonl").read_text().splitlines()]
    facts = [(c["position"], c["extra"]["event_counter"], c["extra"]["last_event"]) for c in changes]
    assert sorted((int(position[16:]), *place) for position, *place in facts) == PLACES
    assert [c["transaction"] for c in changes] == [FIRST] * 3 + [SECOND] * 3 + [THIRD]


def test_changes_in_no_order_become_messages_that_count_whole_transactions(tmp_path: Path) -> None:
    """Write them by change_seq, with places that their lines do not state."""
    lines = [
        json.dumps(
            {
                "op": "insert",
                "table": "usr",
                "key": {"idu": number},
                "fields": [{"column": "idu", "after": number}],
                "position": seq(number),
                "transaction": transaction,
            }
        )
        for number, transaction in enumerate((FIRST, SECOND, FIRST, SECOND, FIRST, SECOND), 1)
    ]
    for order in (lines, lines[::-1]):
        (tmp_path / "c.jsonl").write_text("\n".join([*order, ""]))
        assert convert_job(job([str(tmp_path / "c.jsonl")], tmp_path / "m.jsonl", "changes")) == []
        assert short(places_in(messages_of(tmp_path / "m.jsonl"))) == PLACES[:-1]


def test_changes_without_a_change_seq_are_counted_to_the_end_of_the_input(tmp_path: Path) -> None:
    """Give transactions that overlap one time, or a reader would see two transactions of one id."""
    lines = [
        json.dumps({"op": "insert", "table": "usr", "key": {"idu": n}, "transaction": t, "time": time})
        for n, (t, time) in enumerate(
            [
                ("a", "2025-03-23T10:57:19Z"),
                ("b", "2025-03-23T10:57:20Z"),
                ("a", "2025-03-23T10:57:21Z"),
                ("c", "2025-03-23T10:57:22Z"),
            ]
        )
    ]
    (tmp_path / "c.jsonl").write_text("\n".join([*lines, ""]))
    assert convert_job(job([str(tmp_path / "c.jsonl")], tmp_path / "m.jsonl", "changes")) == []
    places = places_in(messages_of(tmp_path / "m.jsonl"))
    assert short(places) == [(1, 1, False), (2, 1, True), (3, 2, True), (4, 1, True)]
    assert [place.seq[8:16] for place in places] == ["10571900", "10571900", "10571900", "10572200"]


def test_one_id_with_two_commits_is_two_transactions() -> None:
    """Count them by the commit that a capture or a queue states, because ids are used again."""
    facts = [("A", 1), ("B", 2), ("A", 3)]
    changes = [insert(n, t, None)._replace(extra=(("commit", at),)) for n, (t, at) in enumerate(facts)]
    places = places_in(write_messages(changes, TABLES))
    assert [(place.counter, place.last) for place in places] == [(1, True)] * 3


def insert(number: int, transaction: str | None, position: str | None, *, fits: bool = True) -> Change:
    """Return an insert; the key of one that does not fit is no integer, so it has no message."""
    key = number if fits else "none"
    fields = (Field("idu", ABSENT, key), Field("name", ABSENT, "a"))
    return Change(Op.INSERT, None, "usr", (("idu", key),), fields, position, transaction)


def test_places_that_the_source_states_are_kept_less_what_is_refused() -> None:
    """The end of a transaction moves to its last message, whatever lies between the two."""
    facts = {("A", 1): False, ("B", 1): False, ("A", 2): False, ("B", 2): True, ("A", 3): True}
    changes = [
        insert(n, t, seq(n), fits=(t, counter) not in (("A", 1), ("A", 3)))._replace(
            extra=(("event_counter", counter), ("last_event", last))
        )
        for n, ((t, counter), last) in enumerate(facts.items(), 1)
    ]
    items = write_messages(changes, TABLES)
    assert sum(isinstance(item, Refused) for item in items) == 2
    data = [item for item in items if not isinstance(item, Refused)]
    assert short(places_in(data)) == [(2, 1, False), (3, 1, True), (4, 2, True)]
    partly = write_messages(changes[1:4], TABLES)  # the rest of both is in another file
    assert short(places_in(partly)) == [(2, 1, False), (3, 2, False), (4, 2, True)]


@pytest.mark.parametrize(
    ("limit", "places"),
    [
        ({"until": seq(4)}, [(n, None, None) for n in (1, 2, 3, 4)]),
        ({"since": seq(2)}, [*((n, None, None) for n in (3, 4, 5, 6)), (7, 1, True)]),
        ({"until": seq(9, "2025032310572100")}, PLACES),
    ],
    ids=["until", "since", "whole"],
)
def test_transactions_that_a_limit_may_cut_have_no_places(
    tmp_path: Path, limit: dict[str, Any], places: list[Any]
) -> None:
    notices = convert_job(job(change_tables(tmp_path), tmp_path / "m.jsonl", **limit))
    assert short(places_in(messages_of(tmp_path / "m.jsonl"))) == places
    count = sum(counter is None for _, counter, _ in places)
    assert [notice.reason.split()[0] for notice in notices] == [str(count)] * bool(count)


# --- the order of a run


def test_what_goes_as_it_is_states_no_places_and_says_so(tmp_path: Path) -> None:
    ordered = sorted(PHONE)
    heading = ",".join(f"header__{name}" for name in HEADERS.split(","))
    (tmp_path / "phone__ct.csv").write_text("\n".join([f"{heading},idp,name", *ordered, ""]))
    one = job([str(tmp_path / "phone__ct.csv")], tmp_path / "m.jsonl", order="as-is")
    (notice,) = convert_job(one)
    assert not notice.fault
    assert notice.reason.startswith("3 messages do not state transactionEventCounter")
    assert notice.reason.endswith("--order as-is does not show where transactions end")
    assert short(places_in(messages_of(tmp_path / "m.jsonl"))) == [(n, None, None) for n in (2, 3, 6)]


def test_what_goes_as_it_is_never_falls(tmp_path: Path) -> None:
    inputs = change_tables(tmp_path)
    with pytest.raises(FallingSequence, match=f"usr: change_seq {seq(1)} .*: --order sequence sorts"):
        convert_job(job(inputs, tmp_path / "m.jsonl", order="as-is"))
    assert not (tmp_path / "m.jsonl").exists()


def test_a_change_seq_that_is_made_between_others_is_refused() -> None:
    """A time of its own could lie after theirs."""
    changes = [insert(1, None, seq(1)), insert(2, None, None)._replace(time="2026-01-01T00:00:00Z")]
    with pytest.raises(FallingSequence, match="a change without a change_seq"):
        write_messages([*changes, insert(3, None, seq(3))], TABLES)


@pytest.mark.parametrize("size", [1, 2, 50_000])
def test_parts_of_interleaved_transactions_never_fall(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    """Cut no part between transactions that overlap, although they come by their ends."""
    monkeypatch.setattr(job_output, "CHANGES", size)
    lines = [Line(n, 1, t, "usr") for n, t in enumerate("ABABCCDED", 1)]
    inputs = [written(tmp_path, "in", lines, 300)]
    parts = Job("qlik-table", "qlik-message", tuple(inputs), f"{tmp_path / 'out'}/", state=tmp_path / "state")
    assert convert_job(parts) == []
    names = sorted((tmp_path / "out").glob("part-*"))
    assert len(names) == {1: 3, 2: 3, 50_000: 1}[size]
    places = places_in([message for name in names for message in messages_of(name)])
    assert [int(place.seq[16:]) for place in places] == list(range(1, 10))
    assert [(p.counter, p.last) for p in places] == [
        *((1, False), (1, False), (2, True), (2, True), (1, False), (2, True)),
        *((1, False), (1, True), (2, True)),
    ]


def test_a_run_ends_before_a_change_seq_that_falls_and_the_next_one_begins_with_it(tmp_path: Path) -> None:
    """Deliver each row of a table that becomes visible after later rows of another one."""
    usr, grp = Line(9, 9, "A", "usr"), Line(5, 5, "B", "grp")
    inputs = [written(tmp_path, "in", [usr], 300), written(tmp_path, "in", [grp], 300)]
    heading, _ = Path(inputs[1]).read_text().splitlines()
    Path(inputs[1]).write_text(f"{heading}\n")
    one = Job("qlik-table", "qlik-message", tuple(inputs), f"{tmp_path / 'out'}/", state=tmp_path / "state")

    rounds = iter([True, False])

    def wait(seconds: float) -> bool:
        written(tmp_path, "in", [grp], 300)
        return next(rounds)

    with pytest.raises(FallingSequence, match=f"{grp.seq} .*--settle"):
        convert(one, Report(lambda refused: None), CLOCK, run_length=RunLength(True, wait))
    convert(one, Report(lambda refused: None), CLOCK)
    parts = [places_in(messages_of(name)) for name in sorted((tmp_path / "out").glob("part-*"))]
    assert [[place.seq for place in part] for part in parts] == [[usr.seq], [grp.seq]]


def test_transactions_of_a_database_are_written_by_change_seq(tmp_path: Path) -> None:
    """Sort them, because they come by their ends, the second transaction first."""
    url = f"sqlite:///{tmp_path / 'tables.db'}"
    changes = [insert(n, t, seq(n)) for n, t in enumerate((FIRST, SECOND, SECOND, FIRST), 1)]
    library.write(changes, tmp_path / "c.jsonl", "changes", tables=TABLES)
    stored = Job("changes", "qlik-table", (str(tmp_path / "c.jsonl"),), url=url, tables=TABLES)
    assert convert_job(stored) == []
    for target in ("changes", "qlik-message"):
        output = str(tmp_path / f"{target}.jsonl")
        assert convert_job(Job("qlik-table", target, ("usr",), output, url=url, tables=TABLES)) == []
    positions = [line["position"] for line in messages_of(tmp_path / "changes.jsonl")]
    assert [int(position[16:]) for position in positions] == [2, 3, 1, 4]
    places = places_in(messages_of(tmp_path / "qlik-message.jsonl"))
    assert short(places) == [(1, 1, False), (2, 1, False), (3, 2, True), (4, 2, True)]


# --- a law


class Drawn(NamedTuple):
    """A change of a drawn input."""

    transaction: str | None
    second: int
    fits: bool


IDS = st.sampled_from(["A", "B", "C", "D", None])
drawn_changes = st.lists(st.builds(Drawn, IDS, st.integers(0, 2), st.integers(0, 4).map(bool)), max_size=24)


def counted(keys: Sequence[Any]) -> list[tuple[int | None, bool | None]]:
    """Return the place of each item among those of its key, as a plain count has it; none without a key."""
    return [
        (None, None) if key is None else (keys[: at + 1].count(key), key not in keys[at + 1 :])
        for at, key in enumerate(keys)
    ]


@settings(max_examples=drawn(150))
@given(drawn_changes, st.randoms(use_true_random=False), st.sampled_from([500, 5_000, 1 << 20]))
def test_any_interleaving_is_counted_as_a_plain_count_has_it(
    script: list[Drawn], chance: random.Random, memory: int
) -> None:
    """Count in memory or on disk, with refused changes among the others."""
    rising = sorted(script, key=lambda one: one.second)
    changes = [
        insert(n, one.transaction, seq(n, f"202503231057{one.second:02}00"), fits=one.fits)
        for n, one in enumerate(rising, 1)
    ]
    shuffled = chance.sample(changes, len(changes))
    written_items = write_messages(shuffled, TABLES, open_sorter=in_little(memory))
    places = places_in([item for item in written_items if not isinstance(item, Refused)])
    fitting = [one for one in rising if one.fits]
    keys = [None if one.transaction is None else (one.transaction, one.second) for one in fitting]
    assert [(place.counter, place.last) for place in places] == counted(keys)
    assert [place.seq for place in places] == sorted(place.seq for place in places)


@settings(max_examples=drawn(150))
@given(drawn_changes, st.sampled_from([500, 1 << 20]))
def test_any_interleaving_without_a_change_seq_is_read_back_whole(script: list[Drawn], memory: int) -> None:
    """Write messages whose id and time identify a transaction, with change_seqs that rise."""
    changes = [
        insert(n, one.transaction, None, fits=one.fits)._replace(time=f"2025-03-23T10:57:{one.second:02}Z")
        for n, one in enumerate(script, 1)
    ]
    written_items = write_messages(changes, TABLES, open_sorter=in_little(memory))
    places = places_in([item for item in written_items if not isinstance(item, Refused)])
    ids = [place.transaction or None for place in places]
    assert [(place.counter, place.last) for place in places] == counted(ids)
    assert counted([(p.transaction, p.seq[:16]) if p.transaction else None for p in places]) == counted(ids)
    assert [place.seq for place in places] == sorted({place.seq for place in places})


def in_little(memory: int) -> Callable[..., SortedItems[Any]]:
    """Return what makes sorters that hold so many bytes in memory."""
    return lambda key, size, _: SortedItems(key, size, memory)


def test_open_transactions_are_counted_in_bounded_memory() -> None:
    """Sort them on disk, because no transaction of the input ends before its second half."""
    count = 350

    def changes() -> Iterator[Change]:
        for number in range(2 * count):
            note = Field("note", ABSENT, f"{number:12000}")
            yield insert(number, f"{number % count}", None)._replace(table="note", fields=(note,))

    tracemalloc.start()
    try:
        little = MessageSettings(open_sorter=in_little(500_000))
        items: Iterator[Any] = messages.write(changes(), TABLES, little)
        headers = (item["message"]["headers"] for item in items if item["type"] == "DT")
        counts = Counter((h["transactionEventCounter"], h["transactionLastEvent"]) for h in headers)
        assert tracemalloc.get_traced_memory()[1] < 5_000_000  # of 8 400 000 bytes of texts
    finally:
        tracemalloc.stop()
    assert counts == {(1, False): count, (2, True): count}
