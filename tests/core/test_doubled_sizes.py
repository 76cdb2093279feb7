"""Linear time where a loop once looked through a list: the CPU times at doubled sizes are compared."""

from __future__ import annotations

import io
import json
from binascii import b2a_base64
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from datetime import datetime

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from eventlog.audit.audit_report import AuditReport, Law
from eventlog.audit.delivered import DeliveredDocument
from eventlog.audit.laws import Arrivals, judge
from eventlog.audit.on_record import Facts, log_of
from eventlog.compare.digest import digest
from eventlog.compare.events import dump, step_of
from eventlog.compare.polling import PolledChange
from eventlog.core import tablesfile
from eventlog.core.entry import Entry
from eventlog.core.errors import Refused
from eventlog.core.text_digest import digest as text_digest
from eventlog.files import jsonlines, parquet
from eventlog.fold import Rules, plan
from eventlog.fold.by_column import Engine
from eventlog.sql.log.log_record import RecordedBatch
from eventlog.web.receiver.archive import Archive
from eventlog.web.receiver.receiver import Receiver
from eventlog.xds.skeleton import Skeletons
from eventlog.xds.xds_settings import XdsSettings
from tests.fold.by_column.ways import by_column
from tests.kit.growth import MAX_GROWTH, LeaderTransaction, growth
from tests.web.receiver.conftest import HOST, ask, nds

pytestmark = pytest.mark.quick

TABLES = tablesfile.read(
    '[tables.usr]\nkey = ["idu"]\nmultivalued = ["phone"]\ncolumns = { idu = "integer", phone = "text" }\n'
)
USR = TABLES.get("usr")


def repeated_member(size: int) -> LeaderTransaction:
    line = "{" + ",".join(f'"m{n}":1' for n in range(size)) + f',"m{size - 1}":2}}\n'
    return lambda: list(jsonlines.read(io.BytesIO(line.encode()), "f"))


def child_values(size: int) -> LeaderTransaction:
    before = (tuple(f"before {n}" for n in range(size)),)
    after = (tuple(f"after {n}" for n in range(size)),)
    old_hash, new_hash = digest(USR.data, before).hex(), digest(USR.data, after).hex()
    change = PolledChange("idu=1", "hash", new_hash, after, True, old_hash, dump(USR, before), False)
    return lambda: step_of("usr", USR, change, keep=dump)


def entries(size: int) -> list[Entry]:
    return [
        Entry(n, "N", 1, "2025-03-23T10:57:19", None, "usr", "idu=1", "phone", None, f"v{n}")
        for n in range(1, size + 1)
    ]


def rows_of_one_column(size: int) -> LeaderTransaction:
    rows = entries(size)
    return lambda: plan(rows, TABLES, Rules()).events()


def parts_of_one_change(size: int) -> LeaderTransaction:
    rows = entries(size)
    engine = Engine(TABLES, Rules(max_changes=10), Skeletons(TABLES, XdsSettings()))
    return lambda: by_column(engine, rows)


def events_in_reverse(size: int) -> LeaderTransaction:
    """Return an audit of events of one object that came in reverse, and of as many that are on no record."""
    texts = [
        f'<delete class-name="usr" event-id="eventlog:{n}"></delete>'.encode() for n in range(1, 2 * size)
    ]
    digests = b2a_base64(b"".join(map(text_digest, texts[:size])), newline=False).rstrip(b"=").decode()
    events = {"log": "eventlog", "max_changes": 0, "digests": digests, "each": 1, "ranges": [1, size]}
    batch = RecordedBatch(1, 1, datetime(2026, 1, 1), json.dumps([["1-9", [events]]]))
    log = log_of(np.arange(1, size + 1), np.full(size, "S"), [batch], Facts())
    documents = [DeliveredDocument(str(n), "", False, texts=[text]) for n, text in enumerate(reversed(texts))]

    def work() -> AuditReport:
        arrivals, report = Arrivals(log), AuditReport()
        for _ in arrivals.add(documents):
            pass
        judge(log, arrivals, report, "eventlog", lambda ids: dict.fromkeys(ids, "usr idu=1"))
        assert report.breach_counts == {Law.IN_ORDER: size - 1, Law.EXPLAINED: size - 1}
        return report

    return work


def row_groups(size: int) -> LeaderTransaction:
    file = io.BytesIO()
    table = pa.table({f"c{number}": ["x"] for number in range(10)})
    with pq.ParquetWriter(file, table.schema) as writer:
        for _ in range(size):
            writer.write_table(table)
    return lambda: list(parquet.read(file, "f")[1])


@pytest.fixture
def object_page() -> Iterator[Callable[[int], LeaderTransaction]]:
    """Make receivers with an object of that many values, whose page is the work."""
    with ExitStack() as archives:

        def prepare(size: int) -> LeaderTransaction:
            values = "".join(f'<value type="string">v{n}</value>' for n in range(size))
            event = (
                '<modify class-name="usr" event-id="log:1"><association>idu=1,table=usr</association>'
                f'<modify-attr attr-name="phone"><add-value>{values}</add-value></modify-attr></modify>'
            )
            archive = archives.enter_context(closing(Archive(":memory:")))
            receiver = Receiver(archive)
            receiver.receive(nds(event))
            return lambda: ask(receiver.app(HOST), "GET", "/object?association=idu%3D1,table%3Dusr")[1]

        yield prepare


@pytest.mark.parametrize(
    ("prepare", "size"),
    [
        (repeated_member, 4_000),
        (child_values, 4_000),
        (rows_of_one_column, 20_000),
        (parts_of_one_change, 10_000),
        (events_in_reverse, 2_000),
        (row_groups, 250),
    ],
)
def test_twice_the_input_takes_twice_the_time(prepare: Callable[[int], LeaderTransaction], size: int) -> None:
    assert growth(prepare, size) < MAX_GROWTH


def test_an_object_page_of_twice_the_values_takes_twice_the_time(
    object_page: Callable[[int], LeaderTransaction],
) -> None:
    assert growth(object_page, 4_000) < MAX_GROWTH


def test_the_repeated_member_is_named() -> None:
    (refused,) = jsonlines.read(io.BytesIO(b'{"a":1,"b":1,"a":2}'), "f")
    assert isinstance(refused, Refused)
    assert "'a'" in refused.reason


def test_an_object_page_shows_the_first_values_and_counts_the_others(
    object_page: Callable[[int], LeaderTransaction],
) -> None:
    state = str(object_page(250)()).partition("What these events leave")[2]
    assert "v199" in state
    assert "v200" not in state
    assert "… and 50 more." in state
