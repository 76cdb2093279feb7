"""The same fold and formats on a backlog of any size: Spark carries rows, `eventlog` gives them meaning.

library   DataFrames in, DataFrames out: what `import eventlog_spark` offers
comparing what changed between two states
sources   data sources: spark.read.format("eventlog")
single    sources that one task reads
pipeline  the plan of a log, on one screen; job is the whole of it, from inputs to manifest
input     log rows and current rows as DataFrames, and how they travel
fold      what tasks make of the sorted rows of their objects
output    what tasks write and tell; the output folder appears whole, once, or not at all
live      logs and topics that go on meanwhile: frozen, delivered, finished
stream    streams of messages: open transactions in the state, and tables
pickups   a live log as a stream: pick-ups that are frozen, handed out, finished
cluster   Spark itself
"""

import os
import sys
from importlib import import_module

from eventlog.core.extras import extra

_OFFERS = {
    "eventlog_spark.comparing.library": ("compare",),
    "eventlog_spark.library": ("changes", "current", "documents", "log"),
    "eventlog_spark.sources": ("register",),
    "eventlog_spark.stream.running": ("into_tables",),
}
_HOME_OF = {name: home for home, names in _OFFERS.items() for name in names}

# Workers of a session that is made from here on have our packages. spark-submit knows the interpreter itself.
if "PYSPARK_GATEWAY_PORT" not in os.environ:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)


def __getattr__(name: str) -> object:
    """What the package offers, loaded when it is first asked for: a job needs other parts of it."""
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    with extra("spark", "eventlog_spark"):
        return getattr(import_module(_HOME_OF[name]), name)


def __dir__() -> list[str]:
    return list(_HOME_OF)
