"""The same fold and formats on a backlog of any size: Spark carries rows, `eventlog` gives them meaning.

library       DataFrames in, DataFrames out: what `import eventlog_spark` offers
backlog       the command: inputs are read, folded by the library, and written by Spark
live_log      a log in a database: copied in one snapshot, folded as a backlog, finished
session       a Spark that starts by itself
"""

from importlib import import_module

from eventlog.core.extras import extra

_HOME = "eventlog_spark.library"
_NAMES = ("changes", "current", "documents", "log", "merge", "net_changes", "table_key")


def __getattr__(name: str) -> object:
    """Return a name of the library, loaded when it is first used, because commands need PySpark later."""
    if name not in _NAMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    with extra("spark", "eventlog_spark"):
        return getattr(import_module(_HOME), name)


def __dir__() -> list[str]:
    return list(_NAMES)
