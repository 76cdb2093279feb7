"""`eventlog` for whom few rows are many, and read as large backlogs are, by column."""

from __future__ import annotations

from eventlog.cli import main
from eventlog.sql.log import pending

if __name__ == "__main__":
    pending.BY_COLUMN_FROM = 0
    main()
