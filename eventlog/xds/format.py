"""The `xds` format."""

from __future__ import annotations

from eventlog.codec import Format, Shape
from eventlog.xds.documents import write
from eventlog.xds.read import read
from eventlog.xds.settings import XdsSettings

FORMAT = Format("xds", "nds documents: add, modify, delete", Shape.BYTES, XdsSettings, read, write)
