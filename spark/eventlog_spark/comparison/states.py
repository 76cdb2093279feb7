"""States in Parquet on any storage that Spark reads, by the names on the command line."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pyspark import StorageLevel

from eventlog.compare.files import table_of
from eventlog.compare.lines import line
from eventlog.core.errors import Misuse, Refused
from eventlog.core.tables import Table, Tables
from eventlog.files.inputs import stem_of
from eventlog.publisher.references import among
from eventlog_spark.comparison.key_join import PLACE, Pair, differing
from eventlog_spark.comparison.sides import TableState
from eventlog_spark.io.storage import uri


def pairs_of(
    spark: Any, old: str, new: str, tables: Tables, only: str | None = None
) -> tuple[Tables, dict[Table, Pair]]:
    """Return the tables of both states, with the references that they have to each other, and their rows."""
    before, after = (_sides(spark, name, tables, only) for name in (old, new))
    for one, other, name in ((before, after, new), (after, before, old)):
        for table in one.keys() - other.keys():
            raise Misuse(f"{name} has no rows of {table}")
    model = Tables(among(list(after)), tables.dialect)
    return model, {model.get(str(table)): Pair(before[table], after[table]) for table in after}


def lines(tables: Tables, pairs: dict[Table, Pair]) -> Iterator[str | Refused]:
    """Yield the changes that these differences are as lines of `changes`, numbered in the order in which they
    leave, as they come from Spark.
    """
    known, position = list(tables), 0
    found = differing(tables, pairs).persist(StorageLevel.DISK_ONLY)  # sorting looks at it twice
    try:
        for row in found.orderBy(*PLACE).toLocalIterator(prefetchPartitions=True):
            if row["refused"] is not None:
                yield Refused(f"{known[row['table']]} {row['key']}", row["refused"])
                continue
            position += 1
            yield line(row["head"], position)
    finally:
        found.unpersist()


def _sides(spark: Any, name: str, tables: Tables, only: str | None) -> dict[Table, TableState]:
    """Return the rows of each table of a state.

    A state is a file or folder of one table, or a folder with files and folders named after tables.
    """
    named = _named_after(spark, name, tables)
    if only is not None or not named:
        return {table_of(name.rstrip("/"), tables, only): _side(spark, name)}
    return {table: _side(spark, f"{name.rstrip('/')}/{child}") for table, child in named.items()}


def _side(spark: Any, name: str) -> TableState:
    return TableState(name, spark.read.parquet(name if "://" in name else uri(name)))


def _named_after(spark: Any, name: str, tables: Tables) -> dict[Table, str]:
    """Return the files and folders in a folder that are named after tables."""
    found: dict[Table, str] = {}
    for child in _children(spark, name):
        table = tables.find(stem_of(child)) if child.endswith(".parquet") else None
        if table is not None:
            if table in found:
                raise Misuse(f"{name}: {found[table]} and {child} both hold {table}")
            found[table] = child
    return found


def _children(spark: Any, name: str) -> list[str]:
    """Return the content of a folder of any storage; nothing for a file. Raise Misuse if neither exists."""
    jvm = spark.sparkContext._jvm
    path = jvm.org.apache.hadoop.fs.Path(name if "://" in name else f"file://{Path(name).resolve()}")
    storage = path.getFileSystem(spark.sparkContext._jsc.hadoopConfiguration())
    if not storage.exists(path):
        raise Misuse(f"{name}: no such file or folder")
    if not storage.getFileStatus(path).isDirectory():
        return []
    return sorted(one.getPath().getName() for one in storage.listStatus(path))
