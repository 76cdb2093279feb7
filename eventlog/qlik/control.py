"""The control tables that Replicate keeps beside change tables: known by their names, and passed over."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from eventlog.core.errors import Refused
from eventlog.core.formats import Row, Source
from eventlog.qlik import partitions

# "Control Tables", and what each holds
CONTROL: Final = {
    partitions.TABLE: "the change data partitions",
    "attrep_apply_exceptions": "changes that were not applied to the target",
    "attrep_audit_table": "all changes of a task once more, as JSON",
    "attrep_ddl_history": "the changes of the tables' structure",
    "attrep_history": "figures of the task",
    "attrep_status": "the state of the task",
    "attrep_suspended_tables": "the tables that the task has suspended",
}


def control_table(name: str) -> str:
    """The control table of that name, with or without a schema before it; empty if it is none."""
    bare = name.lower().rpartition(".")[2]
    return bare if bare in CONTROL else ""


def check_control(name: str, sources: Iterable[Source[Row]]) -> Iterator[Refused]:
    """What is to be said of a control table: that it is skipped; of partitions, the rows that name none."""
    if name == partitions.TABLE:
        yield from partitions.check(sources)
        return
    for source in sources:
        count = sum(1 for _ in source.records)
        told = f"skipped: a control table with {CONTROL[name]} ({count} rows), no changes of a table"
        yield Refused(source.name, told, fault=False)
