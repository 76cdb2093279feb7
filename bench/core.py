"""The core on one thread: the XDS writer compared with an element tree and plain joining, and fold with
write.

Judge ratios within one run, because machines differ, and so do minutes on one machine.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable

import numpy as np
import pyarrow as pa
from lxml import etree

from eventlog.columnar import Engine, Rows
from eventlog.columnar.packing import documents
from eventlog.core import tablesfile
from eventlog.core.change import ABSENT, Change, Field, Op
from eventlog.core.entry import Entry
from eventlog.fold import Rules, plan
from eventlog.xds.documents import HEAD, TAIL, document
from eventlog.xds.settings import XdsSettings
from eventlog.xds.write import EventWriter

DOCUMENTS = 20_000
EVENTS = 120_000
ROUNDS = 5
TABLES = tablesfile.read(
    '[tables.usr]\nschema = "indirect"\nkey = ["idu"]\n'
    'columns = { idu = "integer", fname = "varchar(64)", lname = "varchar(64)", mail = "varchar(64)" }\n'
)


def changes() -> list[Change]:
    """Return updates of three attributes; one needs escaping."""
    return [
        Change(
            Op.UPDATE,
            "indirect",
            "usr",
            (("idu", n),),
            (
                Field("fname", ABSENT, f"John{n}"),
                Field("lname", ABSENT, "Doe & Sons"),
                Field("mail", ABSENT, f"john{n}@example.com"),
            ),
            str(n),
            extra=(("event_id", f"eventlog:{n}"), ("record_ids", (n,)), ("table_key", f"idu={n}")),
        )
        for n in range(1, DOCUMENTS + 1)
    ]


def entries() -> list[Entry]:
    """Return three rows of type 2 for each object, as a trigger logs them."""
    time_text = "2025-03-23T10:57:19"
    rows = []
    for n in range(EVENTS // 3):
        for at, (column, old, new) in enumerate(
            (
                ("fname", "Jack", f"John{n}"),
                ("lname", "Frost", "Doe & Sons"),
                ("mail", None, f"j{n}@example.com"),
            )
        ):
            rows.append(Entry(n * 3 + at + 1, "N", 2, time_text, None, "usr", f"idu={n}", column, old, new))
    return rows


def write_ours(found: list[Change]) -> int:
    writer = EventWriter(TABLES, XdsSettings())
    return sum(len(document((writer.write(change, str(change.extra[0][1])),))) for change in found)


def write_tree(found: list[Change]) -> int:
    """Return the same documents by way of an element tree."""
    size = 0
    for change in found:
        root = etree.Element("nds", dtdversion="4.0")
        source = etree.SubElement(root, "source")
        etree.SubElement(source, "product", version="0.1.0").text = "eventlog"
        etree.SubElement(source, "contact").text = "eventlog"
        event = etree.SubElement(etree.SubElement(root, "input"), "modify")
        event.set("class-name", change.table)
        event.set("event-id", str(change.extra[0][1]))
        key = change.extra[2][1]
        etree.SubElement(event, "association").text = f"{key!s},table={change.table},schema={change.schema}"
        for field in change.fields:
            attr = etree.SubElement(event, "modify-attr")
            attr.set("attr-name", field.column)
            etree.SubElement(attr, "remove-all-values")
            value = etree.SubElement(etree.SubElement(attr, "add-value"), "value", type="string")
            value.text = str(field.after)
        size += len(etree.tostring(root, encoding="unicode"))
    return size


def write_bare(found: list[Change]) -> int:
    """Return the same documents joined from strings, nothing checked, nothing escaped."""
    size = 0
    for change in found:
        attrs = "".join(
            [
                f'<modify-attr attr-name="{column}"><remove-all-values/><add-value>'
                f'<value type="string">{after!s}</value></add-value></modify-attr>'
                for column, _, after in change.fields
            ]
        )
        event_id, _, key = change.extra
        size += len(
            f'{HEAD}<modify class-name="{change.table}" event-id="{event_id[1]}"><association>{key[1]},'
            f"table={change.table},schema={change.schema}</association>{attrs}</modify>{TAIL}"
        )
    return size


def fold_and_write_columns(rows: Rows) -> int:
    """Return the same by column."""
    engine = Engine(TABLES, Rules(), XdsSettings())
    size = 0
    for at in range(0, EVENTS, 9_999):
        events = engine.events(Rows(*(column[at : at + 9_999] for column in tuple(rows))))
        size += len(documents(events.texts, events.objects, 1).data)
    return size


def by_column(rows: list[Entry]) -> Rows:
    """Return the rows as a pick-up has them by column."""
    columns = list(zip(*rows, strict=True))
    texts = (pa.array(column, pa.string()) for column in columns[5:])
    return Rows(np.array(columns[0], np.int64), np.array(columns[2], np.int64), *texts)


def fold_and_write(rows: list[Entry]) -> int:
    writer = EventWriter(TABLES, XdsSettings())
    size = 0
    for at in range(0, len(rows), 9_999):  # pick-ups of about ten thousand rows, whole objects
        for event in plan(rows[at : at + 9_999], TABLES, Rules()).events():
            size += len(document((writer.write(event.change, event.event_id),)))
    return size


def rate(work: Callable[[], object], count: int) -> float:
    gc.collect()
    started = time.perf_counter()
    work()
    return count / (time.perf_counter() - started)


def main() -> None:
    found, rows = changes(), entries()
    columns = by_column(rows)
    rates: dict[str, list[float]] = {"ours": [], "tree": [], "bare": [], "fold": [], "columns": []}
    for _ in range(ROUNDS):
        rates["ours"].append(rate(lambda: write_ours(found), DOCUMENTS))
        rates["tree"].append(rate(lambda: write_tree(found), DOCUMENTS))
        rates["bare"].append(rate(lambda: write_bare(found), DOCUMENTS))
        rates["fold"].append(rate(lambda: fold_and_write(rows), EVENTS))
        rates["columns"].append(rate(lambda: fold_and_write_columns(columns), EVENTS))
    print(f"medians of {ROUNDS} rounds, in turn")
    ours, tree, bare, fold, by = (statistics.median(rates[name]) for name in rates)
    print(f"XDS writer          {ours:>12,.0f} documents/s   (three attributes, one escaped)")
    print(f"  element tree      {tree:>12,.0f} documents/s   writer / tree = {ours / tree:.1f}   (aim 10)")
    print(f"  bare joining      {bare:>12,.0f} documents/s   writer / bare = {ours / bare:.2f}  (aim 0.60)")
    print(f"fold + write        {fold:>12,.0f} rows/s        (rows in memory, three an object)")
    print(f"  by column         {by:>12,.0f} rows/s        {by / fold:.1f} x  (aim 800,000)")


if __name__ == "__main__":
    main()
