"""The process from which Spark's Python workers of our own sessions are forked.

It has loaded what tasks need, so that no worker loads it again. PySpark's workers look for garbage after each
task; they do not look through what was loaded before.
"""

from __future__ import annotations

import gc

from pyspark.daemon import manager

from eventlog_spark import fold, streams

NEEDED = fold, streams

if __name__ == "__main__":
    gc.collect()
    gc.freeze()
    manager()
