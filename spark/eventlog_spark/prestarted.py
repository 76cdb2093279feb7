"""Start Spark before its command: `python -m eventlog_spark.prestarted COMMAND…`.

It runs `eventlog COMMAND…` as soon as a line comes on standard input. The output of the command goes to
standard output, that of Java to standard error.
"""

from __future__ import annotations

import sys

from eventlog.cli import main
from eventlog_spark.session import start


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
