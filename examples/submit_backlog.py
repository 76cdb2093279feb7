"""The job for spark-submit: the same words as `eventlog backlog`, the same exit codes."""

from __future__ import annotations

import sys

from eventlog.cli import main

if __name__ == "__main__":
    sys.argv.insert(1, "backlog")
    main()
