"""The `xds` format."""

from __future__ import annotations

from eventlog.core.formats import Format, Shape
from eventlog.xds.documents import write
from eventlog.xds.read import read
from eventlog.xds.settings import XdsFileSettings

FORMAT: Format = Format(
    "xds", "nds documents: add, modify, delete", Shape.BYTES, XdsFileSettings, read, write
)
