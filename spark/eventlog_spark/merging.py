"""The net effect of a batch of changes as one commit of a table of Delta Lake or Iceberg, each batch once.

Both formats are reached by SQL alone. The commit has the name of the stream, the number of the batch and the
position of the source. Spark takes them from settings of a session, and the session of a frame in
`foreachBatch` is a clone.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, NamedTuple, Protocol

from pyspark.sql import functions as f

from eventlog.core.errors import EventlogError, Misuse
from eventlog.library import Description, tables_of
from eventlog_spark.net_rows import DELETE, TRUNCATE, WRITE, NetForm, net_of, place
from eventlog_spark.stream_rounds import StreamRounds, describe, refuse_other_name
from eventlog_spark.unfinished import UnfinishedTable

_STREAM: Final = re.compile(r"[A-Za-z0-9_.-]{1,100}")
_NO_SNAPSHOT: Final = 0  # the version of a table of Iceberg that has none
_COMMITS: Final = 100  # of Delta's history that are looked at; its own guard has them all


class NotInCommit(EventlogError):
    """the newest commit of {0} lacks number {1} of {2}: the session does not hand its settings to commits; \
look at the table before you merge again"""


class ChangesRefused(EventlogError):
    """{0} of the changes of batch {1} are refused, the first because {2}; nothing was committed: give \
refused=, a function that takes them"""


class Merged(NamedTuple):
    """The outcome of a batch: it was committed now, or the table had its number already."""

    number: int
    is_new: bool
    position: str | None


class MergeCommit(NamedTuple):
    """The facts that a commit has besides rows."""

    stream: str
    number: int
    position: str | None
    changes: int

    @property
    def facts(self) -> dict[str, str]:
        """Return its properties."""
        facts = {**_named(self.stream, self.number), "eventlog.changes": str(self.changes)}
        return facts if self.position is None else facts | {"eventlog.position": self.position}


def _named(stream: str, number: int) -> dict[str, str]:
    return {"eventlog.stream": stream, "eventlog.number": str(number)}


class PastCommit(NamedTuple):
    """The version that a commit made of a table, and the facts that it has."""

    version: int
    facts: Mapping[str, str]


def merge(
    changes: Any,
    into: str,
    tables: Description,
    name: str,
    *,
    number: int,
    stream: str = "eventlog",
    unfinished: str | None = None,
    rounds: str | None = None,
    missing_rows: str = "refuse",
    refused: Callable[[Any], object] | None = None,
    partitions: int | None = None,
) -> Merged:
    """Merge the changes of one table into a table of Delta Lake or Iceberg, in one commit.

    `number` is that of the batch; they ascend, and a number that the table has is not merged again.
    `unfinished` names another table, which is made if it is missing. It keeps the changes of a transaction
    that the batch does not end, for the batch that does. `rounds` names the table `eventlog_rounds` next
    to `into`, which is made if it is missing. It has each batch as a round, for the command `rounds`.
    `refused` gets the refused changes as a DataFrame before the commit, if there are any. Without it they are
    an error.
    """
    if not _STREAM.fullmatch(stream):
        raise Misuse(f"stream: {stream!r} has other characters than letters, digits, _, . and -")
    if rounds is not None:
        refuse_other_name(rounds, into)
    form = NetForm(tables_of(tables), name, missing_rows)
    spark = changes.sparkSession
    provider = _provider_of(spark, into)
    table, left_over, noted = _FORMATS[provider](spark, into), None, None
    if unfinished is not None:
        left_over = UnfinishedTable.prepare(spark, unfinished, provider, stream, into)
    if rounds is not None:
        noted = StreamRounds.prepare(spark, rounds, provider, stream, into)
        describe(spark, into, form.table)
    if (left_over is not None and left_over.is_done(number)) or table.last_number(stream) >= number:
        merged = Merged(number, False, None)
    else:
        if left_over is not None:
            changes = left_over.whole_transactions(changes, number)
        current = spark.table(into)
        form.rows_of(current)  # demands its types
        placed = place(changes, form)
        net = net_of(placed, form, current, partitions).localCheckpoint()
        _settle_refused(net.where("refused is not null").select("refused", "record"), number, refused)
        commit = _commit_of(placed, stream, number)
        merged = Merged(number, table.commit(commit, merge_statement(into, form, net)), commit.position)
    if left_over is not None:
        left_over.settle(number)
    if noted is not None:
        noted.note(number, *table.commit_of(stream, number))
    return merged


def _commit_of(placed: Any, stream: str, number: int) -> MergeCommit:
    """Return the commit of a batch, by its steps."""
    facts = "max_by(get_json_object(line, '$.position'), order) as last", "count(distinct order) as changes"
    position, changes = placed.selectExpr(*facts).first()
    return MergeCommit(stream, number, position, changes)


def _settle_refused(rows: Any, number: int, refused: Callable[[Any], object] | None) -> None:
    first = rows.first()
    if first is None:
        return
    if refused is None:
        raise ChangesRefused(rows.count(), number, first.refused)
    refused(rows)


class Statement(NamedTuple):
    """A statement of MERGE, and the rows of the view that it names."""

    text: str
    view: str
    rows: Any


def merge_statement(into: str, form: NetForm, net: Any) -> Statement:
    """Return the statement that merges net changes."""
    view = f"eventlog_{uuid.uuid4().hex}"
    quoted = ["`" + name.replace("`", "``") + "`" for name in form.types]
    rows = net.where("row is not null").select(
        "action",
        *(f.col("row")[name].alias(f"c{n}") for n, name in enumerate(form.types)),
        *(f.array_contains("supplied", name).alias(f"s{n}") for n, name in enumerate(form.types)),
    )
    places = range(len(quoted))
    keyed = [n for n, name in enumerate(form.types) if name in form.table.key]
    updates = [
        f"t.{quoted[n]} = case when s.s{n} then s.c{n} else t.{quoted[n]} end"
        for n in places
        if n not in keyed
    ]
    clauses = [
        f"merge into {into} t using {view} s",
        "on " + " and ".join(f"t.{quoted[n]} = s.c{n}" for n in keyed),
        f"when matched and s.action = '{DELETE}' then delete",
        f"when matched then update set {', '.join(updates)}" if updates else "",
        f"when not matched and s.action = '{WRITE}' then insert ({', '.join(quoted)})",
        f"values ({', '.join(f's.c{n}' for n in places)})",
    ]
    if net.where(f.col("action") == TRUNCATE).first() is not None:
        clauses.append("when not matched by source then delete")
    return Statement(" ".join(clauses), view, rows)


@contextmanager
def configured(spark: Any, conf: Mapping[str, str]) -> Iterator[None]:
    """Set settings of a session, and leave them as they were."""
    before = {name: spark.conf.get(name, None) for name in conf}
    try:
        for name, value in conf.items():
            spark.conf.set(name, value)
        yield
    finally:
        for name, former in before.items():
            if former is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, former)


def _run(spark: Any, statement: Statement, conf: Mapping[str, str]) -> list[Any]:
    """Run a statement with these settings, and return its rows."""
    statement.rows.createOrReplaceTempView(statement.view)
    try:
        with configured(spark, conf):
            return list(spark.sql(statement.text).collect())
    finally:
        spark.catalog.dropTempView(statement.view)


# --- the two formats


class LakeFormat(Protocol):
    """A table in a format of lakes."""

    def __init__(self, spark: Any, into: str) -> None: ...

    def last_number(self, stream: str) -> int:
        """Return the number of the last batch of a stream that the table has; -1 if it has none."""

    def commit_of(self, stream: str, number: int) -> PastCommit:
        """Return the commit of a batch; the newest version without facts if the table has no such commit."""

    def commit(self, commit: MergeCommit, statement: Statement) -> bool:
        """Commit, and return whether the table lacked it."""


def _provider_of(spark: Any, into: str) -> str:
    """Return the format of a table; raise Misuse for one that is no format of lakes."""
    described = spark.sql(f"describe table extended {into}").where("lower(col_name) = 'provider'").first()
    provider = "view" if described is None else str(described.data_type).lower()
    if provider not in _FORMATS:
        raise Misuse(f"{into} is a table of {provider}; merge writes those of Delta Lake and Iceberg")
    return provider


class DeltaLake:
    """A table of Delta Lake, which remembers the last number of each application itself."""

    def __init__(self, spark: Any, into: str) -> None:
        self._spark = spark
        self._into = into

    def last_number(self, stream: str) -> int:
        facts = (commit.facts for commit in self._commits())
        return max(
            (int(of["eventlog.number"]) for of in facts if of.get("eventlog.stream") == stream), default=-1
        )

    def commit_of(self, stream: str, number: int) -> PastCommit:
        commits, named = self._commits(), _named(stream, number)
        of_number = (commit for commit in commits if named.items() <= commit.facts.items())
        return next(of_number, commits[0]._replace(facts={}))

    def _commits(self) -> list[PastCommit]:
        """Return the last commits, the newest first."""
        rows = self._spark.sql(f"describe history {self._into} limit {_COMMITS}")
        return [
            PastCommit(row.version, _facts(row.userMetadata))
            for row in rows.select("version", "userMetadata").collect()
        ]

    def commit(self, commit: MergeCommit, statement: Statement) -> bool:
        conf = {
            "spark.databricks.delta.write.txnAppId": f"eventlog:{commit.stream}",
            "spark.databricks.delta.write.txnVersion": str(commit.number),
            "spark.databricks.delta.commitInfo.userMetadata": json.dumps(commit.facts),
        }
        if not _run(self._spark, statement, conf):  # its guard has that number
            return False
        if self.last_number(commit.stream) < commit.number:
            raise NotInCommit(self._into, commit.number, commit.stream)
        return True


def _facts(metadata: str | None) -> dict[str, Any]:
    """Return our facts in the metadata of a commit, which may be a user's."""
    try:
        facts = json.loads(metadata or "{}")
    except ValueError:
        return {}
    return facts if isinstance(facts, dict) else {}


class Iceberg:
    """A table of Iceberg. Its snapshots have the facts; they expire, so the number is a property, too."""

    def __init__(self, spark: Any, into: str) -> None:
        self._spark = spark
        self._into = into

    def last_number(self, stream: str) -> int:
        properties = self._spark.sql(f"show tblproperties {self._into}").where(
            f.col("key") == _property(stream)
        )
        numbers = properties.selectExpr("cast(value as bigint) as number").unionByName(
            self._snapshots()
            .where(f.col("summary")["eventlog.stream"] == stream)
            .selectExpr("cast(summary['eventlog.number'] as bigint) as number")
        )
        last = numbers.agg(f.max("number")).first()[0]
        return -1 if last is None else int(last)

    def commit_of(self, stream: str, number: int) -> PastCommit:
        of_number = self._snapshots()
        for name, fact in _named(stream, number).items():
            of_number = of_number.where(f.col("summary")[name] == fact)
        snapshot = of_number.select("snapshot_id", "summary").first()
        if snapshot is None:
            return PastCommit(self._newest() or _NO_SNAPSHOT, {})
        return PastCommit(snapshot.snapshot_id, snapshot.summary)

    def commit(self, commit: MergeCommit, statement: Statement) -> bool:
        prefix, before = "spark.sql.iceberg.snapshot-property.", self._newest()
        _run(self._spark, statement, {f"{prefix}{name}": value for name, value in commit.facts.items()})
        if self._newest() != before and self.last_number(commit.stream) < commit.number:
            raise NotInCommit(self._into, commit.number, commit.stream)
        name = _property(commit.stream)
        self._spark.sql(f"alter table {self._into} set tblproperties ('{name}' = '{commit.number}')")
        return True

    def _snapshots(self) -> Any:
        return self._spark.table(f"{self._into}.snapshots")

    def _newest(self) -> Any:
        return self._snapshots().selectExpr("max_by(snapshot_id, committed_at)").first()[0]


def _property(stream: str) -> str:
    return f"eventlog.number.{stream}"


_FORMATS: Final[Mapping[str, type[LakeFormat]]] = {"delta": DeltaLake, "iceberg": Iceberg}
