"""A Spark that is started ahead of its command: `python -m eventlog_spark.ahead COMMAND…` starts one on this
machine and runs `eventlog COMMAND…` on it once a line comes on standard input. What that says goes to
standard output, Java's own words to standard error."""

from __future__ import annotations

import sys

from eventlog.cli import main
from eventlog_spark.cluster.session import start


def run() -> None:
    """Start, wait, run; without a line, end."""
    sys.stderr = sys.stdout
    spark = start("local[*]", {})
    try:
        if sys.stdin.readline():
            main()
    finally:
        spark.stop()


if __name__ == "__main__":
    run()
