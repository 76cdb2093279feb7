"""Run a command with a PostgreSQL of its own for the log, for tables that may only be read.

    python examples/own_log.py FOLDER COMMAND…

The server comes from the extra `embedded` and is in FOLDER, which is made if it is missing. It runs
for as long as the command does, and is reached by a socket in FOLDER alone. The command finds it in
EVENTLOG_URL. The content of the log stays in FOLDER. The exit code is the command's,
or 128 and the number of the signal that ended it.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys

from eventlog.core.errors import EventlogError
from eventlog.embedded import embedded_postgres


def main(words: list[str]) -> int:
    """Run the command to its end."""
    if len(words) < 2:
        print("own_log.py FOLDER COMMAND…", file=sys.stderr)
        return 2
    folder, *command = words
    with embedded_postgres(folder) as server:
        process = subprocess.Popen(command, env=os.environ | {"EVENTLOG_URL": server.url})
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal signals the command, too
        signal.signal(signal.SIGTERM, lambda number, frame: process.terminate())
        code = process.wait()
        return code if code >= 0 else 128 - code


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except (EventlogError, OSError) as fault:
        sys.exit(f"own_log.py: {fault}")
