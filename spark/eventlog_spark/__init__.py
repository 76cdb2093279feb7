"""The same fold and formats on a backlog of any size: Spark carries rows, `eventlog` gives them meaning.

library       DataFrames in, DataFrames out: what `import eventlog_spark` offers
backlog       a folder of documents or changes, made of a log or of other inputs
sequence      change tables and messages, whose records depend on each other
io            files and DataFrames, in and out, and how rows travel between
cluster       Spark itself
"""

from importlib import import_module

from eventlog.core.extras import extra

_HOME = "eventlog_spark.library"
_NAMES = ("changes", "current", "documents", "log")


def __getattr__(name: str) -> object:
    """Return a name of the library, loaded when it is first used, because commands need PySpark later."""
    if name not in _NAMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    with extra("spark", "eventlog_spark"):
        return getattr(import_module(_HOME), name)


def __dir__() -> list[str]:
    return list(_NAMES)
