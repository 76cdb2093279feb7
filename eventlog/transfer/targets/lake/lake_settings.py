"""The choices about tables of a lake."""

from __future__ import annotations

from dataclasses import dataclass

from eventlog.clients.kafka_settings import read_options
from eventlog.core.errors import Misuse
from eventlog.core.settings import setting

_KINDS = ("delta", "iceberg")
DELETED = "eventlog_deleted"  # the column of a table that keeps its deleted rows
SUPPLIED = "eventlog_supplied"  # the column of a history with the names of what a change supplied
BEFORE = "eventlog_before_"  # and then the name of a key column: its value before the key changed


@dataclass(frozen=True, slots=True)
class LakeAccess:
    """The settings by which the store of a lake is reached."""

    lake_options: str = setting(
        "",
        "options of the store, by the names of object_store, such as aws_region=eu-west-1, or of the"
        " catalogue, by those of pyiceberg; secrets are better in environment variables",
        metavar="N=V,…",
        check=read_options,
    )

    @property
    def store_options(self) -> dict[str, str]:
        """Return the options of the store by name."""
        return read_options(self.lake_options)


@dataclass(frozen=True, slots=True)
class LakeSettings(LakeAccess):
    """The settings of tables of a lake that take changes."""

    round_time: float = setting(
        60.0,
        "seconds for which changes are gathered before they become one commit of each table",
        metavar="SECONDS",
        within=(0.1, 86_400),
    )
    soft_deletes: bool = setting(
        False, f"keep the rows that are deleted, and mark them in the column {DELETED} of each table"
    )
    keep: str = setting(
        "current",
        "what is kept of a table: its current rows, a history in TABLE_history with one row for each change,"
        " or both",
        choices=("current", "history", "both"),
    )

    def __post_init__(self) -> None:
        if self.soft_deletes and self.keep == "history":
            raise Misuse("--soft-deletes marks current rows, and --keep history has none: leave one out")


def is_lake(address: str) -> bool:
    """Return whether an address is that of a lake."""
    return address.partition(":")[0] in _KINDS


def read_place(address: str) -> tuple[str, str]:
    """Return the format of a lake and its place; raise Misuse for another kind of address."""
    kind, _, place = address.partition(":")
    catalogue, slash, namespace = place.partition("/")
    is_whole = bool(place) if kind == "delta" else bool(catalogue and slash and all(namespace.split(".")))
    if kind not in _KINDS or not is_whole:
        raise Misuse(
            "a lake is delta:PLACE, where PLACE is a folder, or an address such as s3://…, or"
            " iceberg:CATALOGUE/NAMESPACE"
        )
    return kind, place
