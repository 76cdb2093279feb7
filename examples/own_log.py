"""Run a command beside a PostgreSQL of its own, which holds the log: for tables that may only be read.

    python examples/own_log.py FOLDER COMMAND…

The server comes from the extra `embedded` and stands in FOLDER, which is made where it is missing. It runs
for as long as the command does, is reached by a socket in FOLDER alone, and is named to the command by
EVENTLOG_URL. What the log holds stays in FOLDER. The exit code is the command's,
or 128 and the number of the signal that ended it.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys

from eventlog.core.errors import EventlogError
from eventlog.demo.embedded import embedded_postgres


def main(words: list[str]) -> int:
    """Run the command to its end."""
    if len(words) < 2:
        print("own_log.py FOLDER COMMAND…", file=sys.stderr)
        return 2
    folder, *command = words
    with embedded_postgres(folder) as server:
        process = subprocess.Popen(command, env=os.environ | {"EVENTLOG_URL": server.url})
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal tells the command, too
        signal.signal(signal.SIGTERM, lambda number, frame: process.terminate())
        code = process.wait()
        return code if code >= 0 else 128 - code


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except (EventlogError, OSError) as fault:
        sys.exit(f"own_log.py: {fault}")
