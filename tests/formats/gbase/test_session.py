"""The nine steps, against a server of ours; see docs/formats/gbase.md for what that can and cannot show."""

from __future__ import annotations

import pickle
from itertools import islice

import pytest

from eventlog.core.change import Change
from eventlog.core.tables import Tables
from eventlog.formats.gbase.changes import StreamReader
from eventlog.formats.gbase.columns import Text
from eventlog.formats.gbase.records import BeginTx, CommTx, Number, RowHead
from eventlog.formats.gbase.schema import read_schema
from eventlog.formats.gbase.session import CaptureError, Session
from eventlog.formats.gbase.transactions import Position
from eventlog.formats.gbase.writer import write_head, write_row
from tests.formats.gbase.helpers import T1, changes_of
from tests.formats.gbase.server import Server

pytestmark = pytest.mark.quick

NAME = "shop:gbasedbt.t1"
TABLE = (NAME, ("c1", "c2"), 111)


def server() -> Server:
    return Server({NAME: T1})


def session(fake: Server, **options: object) -> Session:
    return Session(fake, fake.read, "gbaseserver", **options)  # type: ignore[arg-type]


def insert(fake: Server, transaction: int, sequence: int, value: int, *, commit: int | None = None) -> None:
    """A transaction of one insert, which commits at once, later or never."""
    image = read_schema(T1, Text()).write((value, "abc"))
    fake.happen(sequence, write_head(BeginTx(sequence, transaction, 5, 6)))
    head = RowHead(sequence + 1, transaction, 111, 0)
    fake.happen(sequence + 1, write_row(Number.INSERT, head, image))
    if commit is not None:
        fake.happen(commit, write_head(CommTx(commit, transaction, 7)))


def take(capturing: Session, reader: StreamReader, reads: int = 40) -> list[int]:
    """Return the values of the inserts that some reads bring."""
    values = []
    for chunk in islice(capturing.chunks(), reads):
        values += [change.after["c1"] for change in reader.feed(chunk) if isinstance(change, Change)]
    return values  # type: ignore[return-value]


def test_the_steps_come_in_their_order_and_are_taken_back() -> None:
    fake = server()
    with session(fake, keep_logging=False) as capturing:
        capturing.capture(*TABLE)
        capturing.activate()
        assert fake.full_rows == {NAME}
        insert(fake, 1, 10, 15, commit=12)
        assert take(capturing, StreamReader(Tables())) == [15]
    assert fake.calls == [
        "cdc_opensess",
        "cdc_set_fullrowlogging",
        "cdc_startcapture",
        "cdc_activatesess",
        "cdc_endcapture",
        "cdc_set_fullrowlogging",
        "cdc_closesess",
    ]
    assert (fake.session, fake.full_rows, fake.captured) == (None, set(), {})


def test_a_restart_loses_nothing_and_repeats_nothing() -> None:
    fake = server()
    first = StreamReader(Tables())
    with session(fake) as capturing:
        capturing.capture(*TABLE)
        capturing.activate()
        insert(fake, 1, 10, 1)  # stays open across the stop
        insert(fake, 2, 20, 2, commit=22)
        assert take(capturing, first) == [2]
    assert fake.full_rows == {NAME}
    assert first.position == Position(restart=10, delivered=22)
    insert(fake, 3, 30, 3, commit=32)  # while no one listens
    fake.happen(40, write_head(CommTx(40, 1, 7)))
    second = StreamReader(Tables(), since=first.position)
    with session(fake) as capturing:
        capturing.capture(*TABLE)
        capturing.activate(first.position.restart)
        assert take(capturing, second) == [3, 1]


def test_a_failure_inside_still_takes_everything_back() -> None:
    fake = server()

    def fail() -> None:
        with session(fake, keep_logging=False) as capturing:
            capturing.capture(*TABLE)
            raise KeyError("of the caller")

    with pytest.raises(KeyError):
        fail()
    assert (fake.session, fake.full_rows) == (None, set())


def test_a_broken_session_is_closed_and_says_so() -> None:
    fake = server()

    def run() -> None:
        with session(fake) as capturing:
            capturing.capture(*TABLE)
            fake.break_session()

    with pytest.raises(CaptureError, match="-83792 CDC_E_MUSTCLOSE"):
        run()
    assert fake.session is None


@pytest.mark.parametrize(
    ("table", "name"),
    [
        (("shop:gbasedbt.t2", ("c1",), 1), "CDC_E_NOTAB"),
        ((NAME, ("c1", "c9"), 1), "CDC_E_NOCOL"),
    ],
)
def test_error_numbers_become_named_errors(table: tuple[str, tuple[str, ...], int], name: str) -> None:
    fake = server()
    with session(fake, keep_logging=False) as capturing, pytest.raises(CaptureError, match=name) as caught:
        capturing.capture(*table)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
    assert fake.full_rows == set()


def test_what_was_sent_is_decoded_whatever_the_read_size() -> None:
    fake = server()
    with session(fake) as capturing:
        capturing.capture(*TABLE)
        capturing.activate()
        for number in range(20):
            insert(fake, number, 10 * number + 10, number, commit=10 * number + 12)
        reader = StreamReader(Tables())
        answers = [a for chunk in islice(capturing.chunks(7), 900) for a in reader.feed(chunk)]
    assert [change.after["c1"] for change in changes_of(answers)] == list(range(20))
