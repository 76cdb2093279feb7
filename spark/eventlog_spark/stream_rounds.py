"""The rounds of a stream: its batches, in the table of rounds that `apply` keeps for a lake.

A batch is noted after its commit, in one commit: begun, with what it had, and done, with the version of its
table. A batch that comes again is noted if it was not. A stream has one table, so a round is one moment.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import unquote

from pyspark.sql import functions as f
from pyspark.sql.pandas.types import from_arrow_schema

from eventlog.core.errors import Misuse
from eventlog.core.tables import Table
from eventlog.transfer.targets.lake.lake_tables import KEY, ROUNDS, SOURCE
from eventlog.transfer.targets.lake.rounds import MIN_ROUNDS, ROUNDS_FORM

_TIDIED: Final = 100  # rounds after which old ones are taken out


@dataclass(frozen=True)
class StreamRounds:
    """The rounds of a stream that merges into one table of a lake."""

    spark: Any
    name: str
    stream: str
    table: str  # its name in the lake
    last: Any  # facts of the last round

    @classmethod
    def prepare(cls, spark: Any, name: str, provider: str, stream: str, into: str) -> StreamRounds:
        """Return the rounds of a stream in the table of this name, which is made if it is missing.

        Raise Misuse if it is not next to the table, or if the stream merges into another one.
        """
        columns = ", ".join(f"{field.name} {field.dataType.simpleString()}" for field in _form().fields)
        spark.sql(f"create table if not exists {name} ({columns}) using {provider}")
        place, table = _place_of(spark, into, provider)
        if _place_of(spark, name, provider) != (place, ROUNDS):
            raise _another_table(name, into)
        last = (
            spark.table(name)
            .where(f.col("source") == stream)
            .selectExpr(
                "max(round) as round",
                "max(entry) as entry",
                "max_by(ends_at, entry) filter (where ends_at is not null) as position",
                "collect_set(table_name) as tables",
            )
            .first()
        )
        if former_tables := set(last.tables) - {table}:
            raise Misuse(
                f"stream: {stream} has rounds of {min(former_tables)}; name another stream for {table}"
            )
        return cls(spark, name, stream, table, last)

    def note(self, number: int, version: int, facts: Mapping[str, str]) -> None:
        """Note that a batch is a round that is done, unless it is noted."""
        if self.last.round is not None and self.last.round >= number:
            return
        entry, before = self.last.entry or 0, self.last.position
        every = {"source": self.stream, "round": number, "table_name": self.table}
        every["written_at"] = datetime.now(UTC)
        begun = {"starts_at": before, "ends_at": facts.get("eventlog.position", before)}
        begun |= {"changes": int(facts.get("eventlog.changes", 0)), "entry": entry + 1, "state": "begun"}
        done = {"version": version, "entry": entry + 2, "state": "done"}
        rows = [tuple((every | state).get(name) for name in ROUNDS_FORM.names) for state in (begun, done)]
        insert_rows(self.spark, self.name, self.spark.createDataFrame(rows, _form()))
        if not number % _TIDIED:
            is_old = f"source = '{self.stream}' and round <= {number - MIN_ROUNDS}"
            self.spark.sql(f"delete from {self.name} where {is_old}")  # noqa: S608


def refuse_other_name(name: str, into: str) -> None:
    """Raise Misuse, before a table is made, for a name that no table of rounds has."""
    if name.rstrip("`").replace("`", ".").replace("/", ".").rpartition(".")[2].lower() != ROUNDS:
        raise _another_table(name, into)


def _another_table(name: str, into: str) -> Misuse:
    return Misuse(f"rounds: {name} is not the table {ROUNDS} next to {into}: name that one")


def describe(spark: Any, into: str, table: Table) -> None:
    """Note in the properties of a table of a lake which table of the source it is, and its key."""
    facts = {KEY: json.dumps(table.key), SOURCE: str(table)}
    present = {row.key for row in spark.sql(f"show tblproperties {into}").collect()}
    missing_facts = [f"'{name}' = {quoted(fact)}" for name, fact in facts.items() if name not in present]
    if missing_facts:
        spark.sql(f"alter table {into} set tblproperties ({', '.join(missing_facts)})")


def insert_rows(spark: Any, name: str, rows: Any) -> None:
    """Add rows to a table of a lake, by SQL."""
    view = f"eventlog_{uuid.uuid4().hex}"
    rows.createOrReplaceTempView(view)
    try:
        spark.sql(f"insert into {name} select * from {view}")  # noqa: S608
    finally:
        spark.catalog.dropTempView(view)


def quoted(text: str) -> str:
    """Return a text as a literal of SQL, for statements that bind no parameters."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _form() -> Any:
    return from_arrow_schema(ROUNDS_FORM)


def _place_of(spark: Any, name: str, provider: str) -> tuple[str, str]:
    """Return the place of a table as `eventlog rounds` finds it, and its name there."""
    if provider == "delta":
        place, _, table = unquote(spark.sql(f"describe detail {name}").first().location).rpartition("/")
    else:
        place, _, table = name.replace("`", "").rpartition(".")
    return place, table
