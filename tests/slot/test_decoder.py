"""Bytes of pgoutput: each message is read whole, and a broken one raises a fault of ours."""

from __future__ import annotations

import struct
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventlog.core.tables import Column
from eventlog.core.values import Kind
from eventlog.slot import decode
from eventlog.slot.decode import NOT_SENT, BrokenOutput, Value, read
from eventlog.slot.transactions import Happening, ObjectChange, SlotReader, reduced
from eventlog.sql.log.slot_state import Feed, Loss, LossKind
from tests.kit.tiers import drawn

pytestmark = [pytest.mark.quick, pytest.mark.cold]
IDU = Column("idu", "integer", Kind.INT, "idu")


def row(*values: Value) -> bytes:
    parts = [struct.pack("!H", len(values))]
    for value in values:
        if isinstance(value, str):
            parts.append(b"t" + struct.pack("!i", len(value.encode())) + value.encode())
        else:
            parts.append(b"n" if value is None else b"u")
    return b"".join(parts)


BEGIN = b"B" + struct.pack("!QqI", 90, 7, 5)
COMMIT = b"C" + struct.pack("!BQQq", 0, 90, 100, 7)
TABLE = (
    b"R" + struct.pack("!I", 1) + b"public\0usr\0d" + struct.pack("!H", 2)
    + b"\1idu\0" + struct.pack("!Ii", 23, -1) + b"\0fname\0" + struct.pack("!Ii", 25, -1)
)  # fmt: skip
NUMBER = struct.pack("!I", 1)
INSERT = b"I" + NUMBER + b"N" + row("1", None)
UPDATE = b"U" + NUMBER + b"K" + row("1", None) + b"N" + row("2", NOT_SENT)
DELETE = b"D" + NUMBER + b"K" + row("2", None)
TRUNCATE = b"T" + struct.pack("!IB", 1, 0) + NUMBER
TEXT = b"M\1" + struct.pack("!Q", 9) + b"eventlog.user\0" + struct.pack("!I", 4) + b"jack"
MESSAGES = (BEGIN, COMMIT, TABLE, INSERT, UPDATE, DELETE, TRUNCATE, TEXT)


def test_messages_are_read() -> None:
    assert list(map(read, MESSAGES)) == [
        decode.BeginRead(7, 5),
        decode.CommitRead(100),
        decode.TableDescribed(1, "public", "usr", ("idu", "fname"), ("idu",)),
        decode.RowChanged(1, b"I", None, ("1", None)),
        decode.RowChanged(1, b"U", ("1", None), ("2", NOT_SENT)),
        decode.RowChanged(1, b"D", ("2", None), None),
        decode.TablesTruncated((1,)),
        decode.MessageRead("eventlog.user", "jack"),
    ]


@pytest.mark.parametrize("message", MESSAGES)
def test_a_message_that_is_cut_is_refused(message: bytes) -> None:
    for end in range(len(message)):
        with pytest.raises(BrokenOutput):
            read(message[:end])


@settings(max_examples=drawn(300), deadline=None)
@given(st.lists(st.one_of(st.sampled_from(MESSAGES), st.binary(max_size=40)), max_size=12))
def test_any_bytes_are_read_or_refused(parts: list[bytes]) -> None:
    feed = Feed("usr", "usr", (("idu", IDU),))
    reader = SlotReader(1 << 20)
    reader.renew({1: [feed]})
    with suppress(BrokenOutput):
        for part in parts:
            if transaction := reader.take(read(part)):
                assert all(change.kind in (4, 5, 6) for change in transaction.logged())
    reader.close()


A, D, U = Happening.ARRIVED, Happening.DEPARTED, Happening.UPDATED


@pytest.mark.parametrize(
    ("happenings", "types"),
    [
        ([U], [6]), ([U, U], [6]), ([A], [5]), ([A, U], [5]), ([D], [4]), ([U, D], [4]),
        ([D, A], [4, 5]), ([A, D], [4, 5]), ([D, A, D], [4]), ([A, D, A], [4, 5]),
    ],
)  # fmt: skip
def test_the_changes_of_an_object_become_these_types(happenings: list[Happening], types: list[int]) -> None:
    changes = [ObjectChange(place, 0, happening, ("1",)) for place, happening in enumerate(happenings)]
    assert [kind for _, kind in reduced(changes)] == types


@pytest.mark.parametrize("size", [-1, 2, 255, 2**31 - 1])
@pytest.mark.parametrize("message", [INSERT, UPDATE, DELETE], ids=["insert", "update", "delete"])
def test_a_size_that_a_message_does_not_have_is_refused(message: bytes, size: int) -> None:
    sized = b"t" + struct.pack("!i", 1)
    place = message.rindex(sized)
    with pytest.raises(BrokenOutput):
        read(message[:place] + b"t" + struct.pack("!i", size) + message[place + len(sized) :])


UNSENT = {"usr": Loss(LossKind.UNSENT)}
IMAGES: dict[str, tuple[bytes, list[tuple[int, Value]], dict[str, Loss]]] = {  # keys with types, and losses
    "insert": (b"I" + NUMBER + b"N" + row("1", "x"), [(5, "1")], {}),
    "insert without its key": (b"I" + NUMBER + b"N" + row(NOT_SENT, "x"), [], UNSENT),
    "update": (b"U" + NUMBER + b"N" + row("1", NOT_SENT), [(6, "1")], {}),
    "update with its key before": (
        b"U" + NUMBER + b"O" + row("1", "x") + b"N" + row(NOT_SENT, "y"),
        [(6, "1")],
        {},
    ),
    "another key": (
        b"U" + NUMBER + b"O" + row("1", "x") + b"N" + row("2", NOT_SENT),
        [(4, "1"), (5, "2")],
        {},
    ),
    "another key than one not sent": (
        b"U" + NUMBER + b"K" + row(NOT_SENT, None) + b"N" + row("2", "x"),
        [],
        UNSENT,
    ),
    "delete": (b"D" + NUMBER + b"K" + row("1", None), [(4, "1")], {}),
    "delete without its key": (b"D" + NUMBER + b"K" + row(NOT_SENT, None), [], UNSENT),
}


@pytest.mark.parametrize(("message", "logged", "losses"), IMAGES.values(), ids=IMAGES)
def test_the_images_of_a_row_name_its_objects_or_are_a_loss(
    message: bytes, logged: list[tuple[int, Value]], losses: dict[str, Loss]
) -> None:
    reader = SlotReader(1 << 20)
    reader.renew({1: [Feed("usr", "usr", (("idu", IDU),))]})
    *_, transaction = [reader.take(read(each)) for each in (TABLE, BEGIN, message, COMMIT)]
    assert transaction is not None
    assert [(change.kind, *change.values) for change in transaction.logged()] == logged
    assert transaction.losses == losses
    reader.close()


IMAGES_OF_CHILDREN: dict[bytes, list[str]] = {  # parents
    b"I" + NUMBER + b"N" + row("1", "x"): ["1"],
    b"I" + NUMBER + b"N" + row(None, "x"): [],
    b"U" + NUMBER + b"O" + row("1", "x") + b"N" + row("1", "y"): ["1"],
    b"U" + NUMBER + b"O" + row("1", "x") + b"N" + row("2", "x"): ["1", "2"],
    b"U" + NUMBER + b"O" + row("1", "x") + b"N" + row(None, "x"): ["1"],
    b"D" + NUMBER + b"O" + row("1", "x"): ["1"],
}


def test_a_child_row_changes_the_parents_that_it_had_and_has() -> None:
    reader = SlotReader(1 << 20)
    reader.renew({1: [Feed("usr", "usr", (("idu", IDU),), is_child=True)]})
    reader.take(read(TABLE))
    for message, parents in IMAGES_OF_CHILDREN.items():
        *_, transaction = [reader.take(read(each)) for each in (BEGIN, message, COMMIT)]
        assert transaction is not None
        assert [(change.kind, *change.values) for change in transaction.logged()] == [(6, k) for k in parents]
    reader.close()


@pytest.mark.parametrize(("unproven", "who"), [(None, "jack"), ("jack", None), ("jill", "jack")])
def test_a_session_that_calls_itself_the_driver_is_believed_only_if_that_is_proven(
    unproven: str | None, who: str | None
) -> None:
    reader = SlotReader(1 << 20, unproven)
    *_, transaction = [reader.take(read(each)) for each in (BEGIN, TEXT, COMMIT)]
    assert transaction is not None
    assert transaction.who == who
    reader.close()


def test_a_key_that_was_not_sent_is_a_gap_and_no_guess() -> None:
    feed = Feed("usr", "usr", (("idu", IDU),))
    reader = SlotReader(1 << 20)
    reader.renew({1: [feed]})
    update = b"U" + NUMBER + b"N" + row(NOT_SENT, "x")
    transactions = [reader.take(read(message)) for message in (TABLE, BEGIN, update, COMMIT)]
    assert transactions[-1] is not None
    assert (transactions[-1].count, transactions[-1].losses) == (0, {"usr": Loss(LossKind.UNSENT)})


@pytest.mark.parametrize("kind", LossKind)
def test_each_kind_of_loss_has_words(kind: LossKind) -> None:
    assert "{" not in str(Loss(kind, ("usr", "own")))


@pytest.mark.parametrize(
    ("messages", "reason"),
    [
        ((INSERT,), "RowChanged is outside a transaction"),
        ((BEGIN, INSERT), "table 1 is not described"),
        ((TABLE, BEGIN, b"I" + NUMBER + b"N" + row()), "a row has 0 values, and 1 are described"),
    ],
)
def test_a_change_that_does_not_fit_what_came_before_is_refused(
    messages: tuple[bytes, ...], reason: str
) -> None:
    reader = SlotReader(1 << 20)
    reader.renew({1: [Feed("usr", "usr", (("idu", IDU),))]})
    *earlier, last = map(read, messages)
    assert not any(map(reader.take, earlier))
    with pytest.raises(BrokenOutput, match=reason):
        reader.take(last)
    reader.close()
