"""Messages whose order and transactions matter: whole, counted, used again."""

from __future__ import annotations

import copy
from itertools import count
from typing import Any

import pytest

from eventlog.core.change import ABSENT, Change, Field, Op, Raw
from eventlog.core.errors import Refused
from eventlog.core.formats import Object, Source
from eventlog.formats.qlik import messages
from eventlog.formats.qlik.message_settings import MessageSettings
from eventlog.transactions.stream_settings import StreamSettings
from eventlog.transfer.ordered import changes_in_order
from tests.formats.qlik.helpers import (
    NONE,
    change,
    read_messages,
    reason,
    seq,
    whole_transactions,
    write_messages,
)
from tests.formats.qlik.message_samples import METADATA, REFRESH, TABLES, UPDATE, altered

pytestmark = pytest.mark.quick

ONE_TASK = "a run reads the tables of one task, because each task has its own sequence"


def _event(transaction: str, counter: int | None, last: bool | None, number: int) -> dict[str, Any]:
    return altered(
        UPDATE,
        transactionId=transaction,
        transactionEventCounter=counter,
        transactionLastEvent=last,
        changeSequence=seq(number),
    )


def test_without_counters_the_time_of_the_sequence_tells_transactions_apart() -> None:
    later = altered(_event("A", None, None, 3), changeSequence="2024010113000000" + f"{3:019}")
    found = whole_transactions([later, _event("A", None, None, 2), _event("A", None, None, 1)])
    assert [change(item).position for item in found] == [
        seq(1),
        seq(2),
        later["message"]["headers"]["changeSequence"],
    ]


def test_a_transaction_that_lacks_messages_is_refused() -> None:
    for lacking in ([_event("A", 1, False, 1), _event("A", 3, True, 3)], [_event("A", 1, False, 1)]):
        assert all(isinstance(item, Refused) for item in whole_transactions(lacking))


def test_until() -> None:
    events = [_event("A", 1, True, n) for n in (1, 2, 3)]
    assert len(read_messages(events, until=seq(2))) == 2


def _of_task(task: str, schema_id: str, salary: int) -> list[dict[str, Any]]:
    """Return the metadata message of a task, and a message of its first change in a second."""
    metadata, message = copy.deepcopy(METADATA), altered(REFRESH, operation="INSERT", changeSequence=seq(1))
    metadata["message"]["lineage"]["task"] = task
    metadata["message"]["schemaId"] = metadata["messageSchemaId"] = message["messageSchemaId"] = schema_id
    message["message"]["data"]["salary"] = salary
    return [metadata, message]


def test_one_sequence_of_two_tasks_is_refused_with_the_reason() -> None:
    inputs = [*_of_task("a", "A" * 32, 1), *_of_task("b", "B" * 32, 2)]
    source = Source("t.jsonl", "t", (), list(map(Object, count(1), inputs)))
    found = changes_in_order(messages.FORMAT, NONE, MessageSettings(), StreamSettings(), [source])
    words = f"change_seq {seq(1)} of employees.salaries is there with different values as I rows: {ONE_TASK}"
    assert [reason(item) for item in found] == [f"t.jsonl:2: {words}", f"t.jsonl:4: {words}"]


def test_a_transaction_is_counted_without_what_has_no_message() -> None:
    """Count without it, or readers of the last event, or of all events, would wait for ever."""
    first = Change(Op.INSERT, "app", "usr", (("id", 1),), (Field("id", ABSENT, 1),), seq(1), "tx")
    empty = Change(Op.TRUNCATE, "app", "usr", position=seq(2), transaction="tx")
    raw = Change(Op.INSERT, "app", "usr", position=seq(3), transaction="tx", raw=Raw(None, b"x"))
    written = write_messages([empty, first, raw, first._replace(position=seq(4)), empty], TABLES)
    headers = [one["message"]["headers"] for one in written if isinstance(one, dict) and one["type"] == "DT"]
    assert [(h["transactionEventCounter"], h["transactionLastEvent"]) for h in headers] == [
        (1, False),
        (2, True),
    ]
    assert sum(isinstance(one, Refused) for one in written) == 3


def _with_misfits(*, reported: bool, **settings: Any) -> list[Any]:
    """Make messages of a transaction of five changes; the first, the third and the last have no id."""
    ids: list[Any] = ["one", 2, "three", 4, "five"]
    changes = [
        Change(
            *(Op.INSERT, "app", "usr", (("id", value),), (Field("id", ABSENT, value),), seq(number), "tx"),
            extra=(("event_counter", number), ("last_event", number == len(ids))) if reported else (),
        )
        for number, value in enumerate(ids, 1)
    ]
    return write_messages(changes, TABLES, **settings)


@pytest.mark.parametrize("reported", [True, False], ids=["reported", "counted"])
def test_a_transaction_is_counted_without_values_that_do_not_fit(reported: bool) -> None:
    written = _with_misfits(reported=reported)
    messages = [one for one in written if isinstance(one, dict)]
    assert [one["type"] for one in messages] == ["MD", "DT", "DT"]
    headers = [one["message"]["headers"] for one in messages[1:]]
    assert [(h["transactionEventCounter"], h["transactionLastEvent"]) for h in headers] == [
        (1, False),
        (2, True),
    ]
    assert [h["changeSequence"] for h in headers] == [seq(2), seq(4)]
    assert sum(isinstance(one, Refused) for one in written) == 3
    whole = whole_transactions(messages, TABLES)
    assert [change(one).key for one in whole] == [(("id", 2),), (("id", 4),)]
