"""Which lake an address names."""

from __future__ import annotations

from collections.abc import Mapping

from eventlog.core.extras import extra
from eventlog.transfer.targets.lake.lake_place import LakePlace
from eventlog.transfer.targets.lake.lake_settings import read_place


def lake_at(address: str, options: Mapping[str, str], what: str) -> LakePlace:
    """Return the place of a lake, which something needs; raise MissingExtra without its library."""
    kind, place = read_place(address)
    if kind == "delta":
        with extra("lake", what):
            from eventlog.transfer.targets.lake.delta_table import DeltaPlace
        return DeltaPlace(place, options)
    with extra("iceberg", what):
        from eventlog.transfer.targets.lake.iceberg_table import IcebergPlace
    return IcebergPlace(place, options)
