"""The same fold and formats on a backlog of any size: Spark carries rows, `eventlog` gives them meaning.

library       DataFrames in, DataFrames out: what `import eventlog_spark` offers
backlog       a folder of documents or changes, made of a log or of other inputs
sequence      change tables and messages, whose records depend on each other
io            files and DataFrames, in and out, and how rows travel between
cluster       Spark itself
"""

import os
import sys
from importlib import import_module

from eventlog.core.extras import extra

_OFFERS = {
    "eventlog_spark.library": ("changes", "current", "documents", "log"),
}
_HOME_OF = {name: home for home, names in _OFFERS.items() for name in names}

# Workers of a session that is made from here on have our packages. spark-submit knows the interpreter itself.
if "PYSPARK_GATEWAY_PORT" not in os.environ:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)


def __getattr__(name: str) -> object:
    """Return a name of the package, loaded when it is first used, because jobs need different parts."""
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    with extra("spark", "eventlog_spark"):
        return getattr(import_module(_HOME_OF[name]), name)


def __dir__() -> list[str]:
    return list(_HOME_OF)
