"""Transactions of Debezium (`provide.transaction.metadata`): a change's place in one, and where one ends.

A change names its transaction and its number among the changes of its table. A topic of its own has a message
for each end, with the number of changes of each table:

    {"transaction": {"id": "571:53195829", "total_order": 2, "data_collection_order": 1}, "op": "u", …}
    {"status": "END", "id": "571:53195829", "event_count": 2,
     "data_collections": [{"data_collection": "public.person", "event_count": 1}, …]}
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from eventlog.core.errors import WrongRow

_NOT_IN_TOPICS = re.compile("[^A-Za-z0-9._-]")


class TransactionPlace(NamedTuple):
    """The place of a change in its transaction."""

    transaction: str
    number: int  # among all its changes
    table: str
    number_in_table: int


class TransactionEnd(NamedTuple):
    """The end of a transaction, with the number of its changes by table."""

    transaction: str
    counts: Mapping[str, int]


def table_of(name: str) -> str:
    """Return the schema and table in the name of a topic or of a collection, as topics spell them."""
    return ".".join(_NOT_IN_TOPICS.sub("_", name).split(".")[-2:])


def place_in_transaction(payload: Any) -> TransactionPlace | None:
    """Return the place of a change in its transaction; None if its message does not contain it."""
    named = payload.get("transaction") if isinstance(payload, dict) else None
    source = payload.get("source") if named else None
    if not isinstance(named, dict) or not isinstance(source, dict):
        return None
    table = table_of(f"{source.get('schema') or source.get('db')}.{source.get('table')}")
    match named.get("id"), named.get("total_order"), named.get("data_collection_order"):
        case str(transaction), int(number), int(number_in_table) if number_in_table > 0:
            return TransactionPlace(transaction, number, table, number_in_table)
    raise WrongRow("transaction lacks its id, total_order or data_collection_order")


def is_boundary(payload: Any) -> bool:
    """Return whether a message is the begin or the end of a transaction."""
    return isinstance(payload, dict) and "status" in payload and "id" in payload and "op" not in payload


def transaction_end(payload: Mapping[str, Any]) -> TransactionEnd | None:
    """Return the end that a boundary reports of a transaction; None if it is a begin."""
    if payload["status"] != "END":
        return None
    try:
        counts = {
            table_of(counted["data_collection"]): int(counted["event_count"])
            for counted in payload["data_collections"] or ()
        }
    except (KeyError, TypeError, ValueError):
        raise WrongRow("the end of a transaction lacks the number of changes of each table") from None
    return TransactionEnd(str(payload["id"]), counts)
