"""Open transactions in memory and in a spool: each leaves whole, in its order, without what was voided."""

from __future__ import annotations

from collections import defaultdict
from contextlib import closing
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventlog.files.stores import SpoolFile
from eventlog.transactions.open_transactions import Bounds, OpenTransactions, TooMuchOpen, TooMuchStored
from tests.kit.tiers import drawn

pytestmark = pytest.mark.quick


class Item(NamedTuple):
    position: int
    arrival: int


def by_position(item: Item) -> int:
    return item.position


STEPS = st.lists(
    st.tuples(st.integers(0, 3), st.sampled_from("aaaaaadec"), st.integers(0, 9), st.integers(0, 80)),
    max_size=60,
)


@settings(max_examples=drawn(300))
@given(STEPS, st.booleans(), st.sampled_from((0, 200, 1 << 20)))
def test_transactions_follow_a_plain_model(
    steps: list[tuple[int, str, int, int]], is_sorted: bool, memory: int
) -> None:
    plain: dict[int, list[Item]] = {}
    sizes: dict[int, int] = defaultdict(int)
    transactions = OpenTransactions[int, str, Item](
        SpoolFile(), Bounds(memory), order=by_position if is_sorted else None, position=by_position
    )
    with closing(transactions):
        for arrival, (key, step, position, size) in enumerate(steps):
            transaction = transactions.open.get(key) or transactions.begin(key, f"of {key}")
            items = plain.setdefault(key, [])
            if step == "a":
                transactions.add(transaction, Item(position, arrival), size)
                items.append(Item(position, arrival))
                sizes[key] += size
            elif step == "d" and not is_sorted:
                transactions.discard(transaction, position)
                plain[key] = [item for item in items if item.position < position]
            elif step == "e":
                ended = transactions.end(key)
                assert ended is not None
                expected = sorted(items, key=by_position) if is_sorted else items
                assert (ended.facts, list(ended), list(ended)) == (f"of {key}", expected, expected)
                ended.close()
                del plain[key]
                sizes.pop(key, None)
            elif step == "c":
                transactions.abort(key)
                del plain[key]
                sizes.pop(key, None)
            assert list(transactions.open) == list(plain)
            assert transactions.size == sum(sizes.values())


def fill(transactions: OpenTransactions[str, None, bytes], key: str, item_count: int) -> None:
    transaction = transactions.open.get(key) or transactions.begin(key, None)
    for _ in range(item_count):
        transactions.add(transaction, bytes(100), 100)


def test_the_largest_make_room_until_the_disk_is_full() -> None:
    with closing(OpenTransactions[str, None, bytes](SpoolFile(), Bounds(1000, 3000, 10))) as transactions:
        fill(transactions, "small", 1)
        fill(transactions, "large", 20)
        counts = [(t.count, t.runs > 0) for t in transactions.open.values()]
        assert (counts, transactions.size) == ([(1, False), (20, True)], 2120)
        with pytest.raises(TooMuchStored, match="3000 bytes on disk: raise the setting open-bytes"):
            fill(transactions, "large", 40)


def test_what_no_spool_can_take_is_too_much() -> None:
    def begin(transactions: OpenTransactions[str, None, bytes], count: int) -> None:
        for number in range(count):
            transactions.begin(str(number), None)

    with closing(OpenTransactions[str, None, bytes](SpoolFile(), Bounds(1000, cost=10))) as transactions:
        begin(transactions, 70)
        with pytest.raises(TooMuchOpen, match="1000 bytes of memory: raise the setting max-open"):
            begin(transactions, 70)
    with pytest.raises(TooMuchOpen):
        fill(OpenTransactions[str, None, bytes](None, Bounds(1000)), "large", 20)
