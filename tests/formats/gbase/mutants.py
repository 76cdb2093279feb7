"""Sound streams, broken; and what must hold of any bytes at all. Shared by the suite and the fuzzer."""

from __future__ import annotations

from eventlog.core.change import Change
from eventlog.core.errors import Refused
from eventlog.core.tables import Tables
from eventlog.formats.gbase.changes import StreamReader
from eventlog.formats.gbase.gbase_settings import GbaseSettings
from eventlog.formats.gbase.records import COMMON, LAYOUTS, BeginTx, CommTx, Number, RbTx
from tests.formats.gbase.helpers import StreamBuilder

LIMITS = GbaseSettings(max_record=1 << 16, max_open=1 << 20)
SIZES = (0, 1, 2, 3, 15, 16, 36, 66, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF)
WORDS = (*SIZES, *Number)  # what a mutation writes over a word


def sound_stream() -> bytes:
    """Return a stream with something of everything."""
    built = StreamBuilder().table(
        1,
        "id integer, d decimal(9,2), t datetime year to second, ok boolean, v varchar(30,0), l lvarchar(99)",
    )
    built.table(2, "c1 integer, c2 varchar(20,0)")
    row = (5, "12.50", "2025-03-23T10:57:19", True, "name", "memo")
    built.begin(10, 1).row(Number.INSERT, 11, 1, 1, row).begin(12, 2).row(Number.INSERT, 13, 2, 2, (1, "x"))
    built.row(Number.UPDBEF, 14, 1, 2, (1, "x")).row(Number.UPDAFT, 15, 1, 2, (2, None)).say(RbTx(16, 2))
    built.row(Number.DELETE, 17, 1, 1, (None, None, None, None, None, None)).commit(18, 1)
    return built.begin(19, 2).row(Number.INSERT, 20, 2, 2, (3, "")).commit(21, 2).begin(22, 3).data


ENDS = (Number.BEGINTX, Number.COMMTX, Number.RBTX)


def committed(data: bytes) -> set[str]:
    """Return the transactions that end well in these bytes, found with nothing of the reader but
    its layouts.
    """
    opened: dict[int, int] = {}
    committed_ids: set[str] = set()
    at = 0
    while len(data) - at >= 16:
        header, payload, scheme, number = COMMON.unpack_from(data, at)
        size = header + payload
        if header < 16 or payload < 0 or size > LIMITS.max_record or size > len(data) - at:
            break
        layout = LAYOUTS.get(number)
        if layout is not None and number in ENDS and scheme == 66 and header >= layout.size and not payload:
            head = layout.make(layout.packing.unpack_from(data, at + 16))
            if isinstance(head, BeginTx):
                opened[head.transaction] = head.sequence
            elif isinstance(head, CommTx | RbTx):
                began = opened.pop(head.transaction, None)
                if isinstance(head, CommTx) and began is not None:
                    committed_ids.add(f"{head.transaction}@{began}")
        at += size
    return committed_ids


def check_any_bytes(data: bytes, size: int = 97) -> None:
    """Reads any bytes: nothing is raised, nothing uncommitted comes out, every answer has a place."""
    reader = StreamReader(Tables(), LIMITS)
    allowed = committed(data)
    answers = 0
    for at in range(0, len(data), size):
        for answer in reader.feed(data[at : at + size]):
            answers += 1
            if isinstance(answer, Change):
                assert answer.transaction in allowed, answer
            else:
                assert isinstance(answer, Refused)
                assert int(answer.where) <= len(data)
                assert answer.reason
    answers += sum(1 for _ in reader.close())
    assert answers <= len(data) // 8 + 2  # a record is at least 16 bytes and has at most two answers
    assert 0 <= reader.position.restart < 1 << 64
