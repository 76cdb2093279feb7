"""Messages read by column equal those read row by row: lines, refusals, warnings and counts."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventlog.change_batches.neutral_lines import NeutralLines
from eventlog.core.formats import Object
from eventlog.formats.qlik.message_reader import MessageReader
from eventlog.formats.qlik.message_settings import MessageSettings
from eventlog.transfer.change_files.messages import LineMaker, MessageFile, MessageLines
from eventlog.transfer.convert import convert
from eventlog.transfer.job import Job
from eventlog.transfer.report import Report
from eventlog.transfer.ways import Way, way_of
from tests.kit.tiers import drawn
from tests.transfer.both_ways import CLOCK, run
from tests.transfer.random_change_tables import TABLES
from tests.transfer.random_messages import Topic

pytestmark = pytest.mark.quick

FEW = 24  # messages of a file that `convert` reads row by row


def job_of(folder: Path, names: tuple[str, ...], target: str = "changes", **options: Any) -> Job:
    container = None if target == "xds" else "jsonl"
    output = str(folder / "out")
    return Job("qlik-message", target, names, output, None, container, TABLES, options=options)


def written(folder: Path, *topics: bytes) -> tuple[str, ...]:
    names = tuple(str(folder / f"{number}.jsonl") for number in range(len(topics)))
    for name, data in zip(names, topics, strict=True):
        Path(name).write_bytes(data)
    return names


def check_alike(
    folder: Path, seed: int, rate: float, order: str, target: str, at_once: int, memory: int
) -> None:
    random = Random(seed)
    topics = [Topic(random, rate, FEW).data() for _ in range(random.choice((1, 1, 2)))]
    job = job_of(folder, written(folder, *topics), target, order=order)
    assert run(job, at_once, memory) == run(job)


@settings(max_examples=drawn(60))
@given(
    st.integers(0, 1 << 32),
    st.sampled_from((0, 0.02, 0.1)),
    st.sampled_from(("sequence", "as-is")),
    st.sampled_from(("changes", "xds")),
    st.sampled_from((1, 3, 8, 63)),
    st.sampled_from((1, 3_000, 1 << 26)),
)
def test_both_ways_write_the_same(
    tmp_path_factory: pytest.TempPathFactory,
    seed: int,
    rate: float,
    order: str,
    target: str,
    at_once: int,
    memory: int,
) -> None:
    check_alike(tmp_path_factory.mktemp("topics"), seed, rate, order, target, at_once, memory)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.family
def test_these_messages_become_the_same_changes(tmp_path: Path, seed: int) -> None:
    compare_seed(tmp_path, seed, "changes")


@pytest.mark.parametrize("seed", range(12))
def test_these_messages_become_the_same_documents(tmp_path: Path, seed: int) -> None:
    compare_seed(tmp_path, seed, "xds")


def compare_seed(tmp_path: Path, seed: int, target: str) -> None:
    """Compare messages that are the same in each run, which the planted faults are looked for in."""
    order, at_once, memory = ("sequence", "as-is")[seed % 2], (63, 8)[seed // 2 % 2], (1 << 26, 1)[seed % 2]
    check_alike(tmp_path, seed, (0, 0.02, 0.1)[seed % 3], order, target, at_once, memory)


# --- what random messages rarely have

COLUMNS = ("place", "no", "title")


def metadata(
    schema_id: str = "a", columns: tuple[str, ...] = COLUMNS, table: str = "org", **types: str
) -> dict[str, Any]:
    described = {
        name: {
            "ordinal": ordinal,
            "type": types.get(name, "INT4" if name == "no" else "STRING"),
            "primaryKeyPosition": {"place": 1, "no": 2}.get(name, 0),
        }
        for ordinal, name in enumerate(columns, 1)
    }
    lineage = dict.fromkeys(("server", "task", "schema", "timestamp"), "")
    payload = {
        "schemaId": schema_id,
        "lineage": {**lineage, "table": table, "tableVersion": 1},
        "tableStructure": {"tableColumns": described},
        "dataSchema": "{}",
    }
    named = {"headers": None, "messageSchemaId": schema_id, "messageSchema": None}
    return {"magic": "atMSG", "type": "MD", **named, "message": payload}


def org(
    seq: int | str,
    operation: str = "INSERT",
    no: Any = 1,
    title: Any = "a",
    before: dict[str, Any] | None = None,
    schema_id: str | None = "a",
    **headers: Any,
) -> dict[str, Any]:
    message = {
        "table": "org",
        "data": {"place": "x", "no": no, "title": title},
        "beforeData": before,
        "headers": {
            "operation": operation,
            "changeSequence": f"2024031810472600{seq:019}" if isinstance(seq, int) else seq,
            "timestamp": "2024-03-18T10:47:26.000",
            "streamPosition": "",
            "transactionId": "",
            "changeMask": "04" if operation == "UPDATE" else "07",
            "columnMask": "07",
            **headers,
        },
    }
    named = {"headers": None, "messageSchemaId": schema_id, "messageSchema": None}
    return {"magic": "atMSG", "type": "DT", **named, "message": message}


def update(seq: int, before: Any, after: Any, **headers: Any) -> dict[str, Any]:
    image = {"place": "x", "no": 1, "title": before}
    return org(seq, "UPDATE", 1, after, image, **headers)


def lines(*messages: Any) -> bytes:
    """Return messages as lines; bytes are what they are."""
    dumps = json.JSONEncoder(separators=(",", ":")).encode
    return b"".join(m if isinstance(m, bytes) else f"{dumps(m)}\n".encode() for m in messages)


def wide(seq: int, operation: str, change_mask: str, column_mask: str | None) -> dict[str, Any]:
    message = org(seq, operation, changeMask=change_mask, columnMask=column_mask)
    message["message"] |= {
        "table": "wide",
        "data": dict.fromkeys(("place", *(f"c{at}" for at in range(2, 10))), "x"),
    }
    return message


INSERTS = [org(at) for at in range(10, 20)]
CASES: dict[str, tuple[bytes, str]] = {
    "metadata that change in the middle": (
        lines(
            metadata(),
            *(update(at, "a", "b") for at in range(1, 9)),
            metadata(columns=("title", "no", "place")),
            *(update(at, "a", "b", changeMask="01") for at in range(11, 19)),
        ),
        '"before":"a","after":"b"',
    ),
    "a type that changes in the middle": (
        lines(
            metadata(),
            *(org(at, title="5") for at in range(9)),
            metadata(title="UINT8"),
            *(org(at, title="5") for at in range(20, 29)),
        ),
        '{"column":"title","after":5}',
    ),
    "metadata after their messages": (
        lines(*INSERTS, metadata(), *(org(at) for at in range(9))),
        '"after":"a"',
    ),
    "ids of no metadata": (
        lines(*(org(at, schema_id="gone", columnMask=("07", "03")[at % 4 == 2]) for at in range(12))),
        '"after":"a"',
    ),
    "a notice among others": (
        lines(
            *(org(at, schema_id=None) for at in range(9)),
            *(update(at, "a", "b", schema_id=None) for at in range(9, 19)),
        ),
        '"before":"a","after":"b"',
    ),
    "a key that moves between two blocks": (
        lines(
            metadata(),
            *INSERTS[1:],
            org(20, "DELETE"),
            org(20, "INSERT", 2),
            *(org(at) for at in range(21, 29)),
        ),
        '"event_part":2',
    ),
    "a key that moves around one that is refused": (
        lines(
            metadata(),
            *INSERTS,
            org(20, "DELETE"),
            b"7\n",
            org(20, "INSERT", 2),
            *(org(at) for at in range(21, 29)),
        ),
        '"event_part":2',
    ),
    "repeats, and a contradiction": (
        lines(
            metadata(), *INSERTS, *INSERTS[:5], org(18, title="other"), org(7, "DELETE"), org(7, "INSERT", 2)
        ),
        '"event_part":2',
    ),
    "lines of an array": (
        lines(
            metadata(),
            *INSERTS,
            b"[\n",
            INSERTS[0],
            b",\n",
            *INSERTS[:1],
            b"]\n",
            *(org(at) for at in range(30, 40)),
        ),
        '"after":"a"',
    ),
    "a value over several lines": (
        lines(metadata(), *INSERTS, b'{"a":\n\n1}\n', *(org(at) for at in range(30, 40))),
        '"after":"a"',
    ),
    "masks that contradict the row before": (
        lines(metadata(), *(update(at, "a", "ab"[at % 5 == 2]) for at in range(20))),
        '"before":"a","after":"b"',
    ),
    "changes without a change_seq": (
        lines(
            metadata(), *INSERTS, org("", title="b"), *(org(at, "REFRESH") for at in ("", "")), *INSERTS[5:]
        ),
        '"op":"snapshot"',
    ),
    "updates of nothing": (
        lines(
            metadata(),
            *INSERTS,
            update(21, "a", "a", changeMask="00"),
            update(22, None, None),
            org(23, "UPDATE", changeMask=None),
            *INSERTS[:4],
        ),
        "update",
    ),
    "characters, and halves of them": (
        lines(
            metadata(),
            *INSERTS[:5],
            lines(org(29)).replace(b'"a"}', b'"\xff"}'),
            *INSERTS[5:],
            *(org(at, title=text) for at, text in enumerate(("😀", "\ud83d", "a\0b", "☃"), 30)),
        ),
        '"after":"😀"',
    ),
    "integers of any size": (
        lines(
            metadata(no="INT8"), *INSERTS, *(org(at + 20, no=10**at) for at in range(14, 22)), *INSERTS[:2]
        ),
        '"after":1000000000000000000',
    ),
    "a header of no text": (
        lines(metadata(), *INSERTS, org(21, transactionId=7), org(22, timestamp=1.5), *INSERTS[:4]),
        '"transaction":"7"',
    ),
    "a mask that proves no byte order": (
        lines(
            metadata(columns=("place", *(f"c{at}" for at in range(2, 10))), table="wide"),
            *(wide(at, "INSERT", "01FF", "01FF") for at in range(10)),
            wide(20, "UPDATE", "0100", None),
        ),
        "10 before it prove big, none little: set mask-order to big",
    ),
    "counters, and ids of the source": (
        lines(
            metadata(),
            *(
                org(
                    at,
                    transactionEventCounter=at,
                    transactionLastEvent=at == 3,
                    externalSchemaId="a",
                    streamPosition="p",
                )
                for at in range(8)
            ),
        ),
        '"extra":{"stream_position":"p","event_counter":3,"last_event":true,"external_schema_id":"a"}',
    ),
}


@pytest.mark.parametrize("order", ["sequence", "as-is"])
@pytest.mark.parametrize("case", CASES)
@pytest.mark.family
def test_what_differs_among_messages_becomes_the_same_changes(tmp_path: Path, case: str, order: str) -> None:
    compare_case(tmp_path, case, order, "changes")


@pytest.mark.parametrize("order", ["sequence", "as-is"])
@pytest.mark.parametrize("case", CASES)
@pytest.mark.family
def test_what_differs_among_messages_becomes_the_same_documents(
    tmp_path: Path, case: str, order: str
) -> None:
    compare_case(tmp_path, case, order, "xds")


def compare_case(tmp_path: Path, case: str, order: str, target: str) -> None:
    data, expected = CASES[case]
    job = job_of(tmp_path, written(tmp_path, data, lines(*INSERTS)), target, order=order)
    by_row = run(job)
    assert expected in by_row.lines.decode() + by_row.error or target == "xds"
    assert run(job, 5, 1) == run(job, 63) == by_row


@pytest.mark.parametrize("order", ["sequence", "as-is"])
def test_long_messages_and_lines_that_end_no_block_are_written_alike(tmp_path: Path, order: str) -> None:
    texts = [org(at, title="ab"[at % 2] * (3 << 20 if at in (5, 6) else 900)) for at in range(2_500)]
    job = job_of(tmp_path, written(tmp_path, lines(metadata(), *texts).rstrip()), order=order)
    assert run(job, 16_384, 1 << 20) == run(replace(job, options={**job.options, "until": LAST}))


# --- which messages go by column


def by_column_of(folder: Path, *messages: Any, few: int = 1) -> int:
    """Return how many messages of a file go by column if those of their layout are not few."""
    job = job_of(folder, written(folder, lines(*messages)))
    maker = LineMaker(MessageReader(TABLES, MessageSettings()), NeutralLines, few, waits=False)
    file = MessageFile(job.source.names[0], job.source.limits, maker, 100)
    count = 0
    for item in file.items(lambda block: block.layouts < 0, lambda size: None):
        if isinstance(item, MessageLines):
            count += len(item.texts)
        elif isinstance(item, Object):
            maker.reader.read_record(file.source, item)
    return count


@pytest.mark.parametrize(
    "message",
    [
        org(1),
        org(1, "DELETE"),
        org(1, title=None, columnMask="03"),
        org(1, title='q"\\/\b\n☃', streamPosition=None),
        update(1, None, "b"),
        org(1, "UPDATE", before={"place": "x"}),
        org(1, "DELETE", before={"place": "x", "no": 1, "title": "b"}) | {"type": "DT"},
        org("", "REFRESH", changeMask=None, columnMask=None, timestamp=""),
        org(1, transactionEventCounter=1, transactionLastEvent=True, externalSchemaId="a"),
    ],
)
def test_a_message_that_is_certain_goes_by_column(tmp_path: Path, message: dict[str, Any]) -> None:
    assert by_column_of(tmp_path, metadata(), message) == 1


def test_a_line_is_read_whatever_blanks_are_in_it(tmp_path: Path) -> None:
    spaced = json.dumps(org(1)).encode() + b"\r\n"
    assert by_column_of(tmp_path, metadata(), spaced, org(2)) == 2
    assert by_column_of(tmp_path, metadata(), spaced.replace(b", ", b",\t")) == 0


def test_few_messages_of_a_layout_go_row_by_row(tmp_path: Path) -> None:
    assert by_column_of(tmp_path, metadata(), *INSERTS, few=10) == 10
    assert by_column_of(tmp_path, metadata(), *INSERTS, few=11) == 0


# --- which way a job goes

BLANK = b"\n" * (64 << 10)  # lines that are no messages, and make a file large
LAST = f"99991231235959{'9' * 21}"  # an end that asks for rows and leaves none out


def test_a_large_file_of_messages_goes_by_column_and_ends_alike(tmp_path: Path) -> None:
    data = lines(metadata(), *INSERTS)
    small = run(job_of(tmp_path, written(tmp_path, data)))
    job = job_of(tmp_path, written(tmp_path, data + BLANK))
    assert way_of(job, reads_on=False) is Way.CHANGES
    assert way_of(job, reads_on=True) is Way.BY_ROW
    report = Report(lambda refused: None)
    convert(job, report, CLOCK)
    assert Path(job.output).read_bytes() == small.lines
    assert report.changes == len(INSERTS)


@pytest.mark.parametrize(
    ("options", "target"),
    [
        ({"since": "2" * 35}, "changes"),
        ({"until": LAST}, "changes"),
        ({"whole_transactions": True}, "changes"),
        ({"batch_size": 2}, "xds"),
        ({}, "qlik-message"),
    ],
)
def test_a_job_that_asks_for_rows_goes_row_by_row(
    tmp_path: Path, options: dict[str, Any], target: str
) -> None:
    job = job_of(tmp_path, written(tmp_path, lines(*INSERTS) + BLANK), target, **options)
    assert way_of(job, reads_on=False) is Way.BY_ROW


def test_messages_of_another_container_go_row_by_row(tmp_path: Path) -> None:
    job = job_of(tmp_path, written(tmp_path, lines(*INSERTS) + BLANK))
    assert way_of(replace(job, container="messages"), reads_on=False) is Way.BY_ROW
