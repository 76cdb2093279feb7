"""The commands that findings, messages and pages name as remedies: a closed list.

A test runs each of them as it is printed, and another finds commands in texts that are not in the list.
"""

from __future__ import annotations

import enum
import re
from shlex import quote

_NEED = re.compile(r"\b[A-Z]{2,}\b")


class Remedy(enum.StrEnum):
    """A command; a word in capitals is what it needs, and remains where only the reader knows that."""

    CHECK = "eventlog check"
    ERRORS = "eventlog errors"
    EXPLAIN = "eventlog explain"
    EXPLAIN_KEY = "eventlog explain --key KEY"
    GRANTS = "eventlog install --sql --grants ROLE"
    HISTORY = "eventlog history"
    INSTALL = "eventlog install"
    INSTALL_SLOT = "eventlog install --mode slot"
    INSTALL_TRIGGER = "eventlog install --mode trigger"
    PURGE = "eventlog purge --older-than AGE"
    REDRIVE = "eventlog redrive ROWS"
    REDRIVE_REASON = "eventlog redrive --reason REASON"
    RESUME = "eventlog resume"
    RESUME_TABLE = "eventlog resume --table TABLE"
    RETRY = "eventlog retry ROWS"
    RETRY_ALL = "eventlog retry --all"
    RESYNC = "eventlog resync TABLE"
    RESYNC_COMPARE = "eventlog resync TABLE --compare"
    RUN = "eventlog run"
    RUN_ONCE = "eventlog run --once --mode MODE"
    RUN_RESYNC = "eventlog run --once --startup-option resync"
    SKIP = "eventlog skip ROWS --because WHY"
    SKIP_REASON = "eventlog skip --reason REASON --because WHY"
    STATUS = "eventlog status"
    TRACK = "eventlog track TABLE"
    TRACK_FOR = "eventlog track --for READER --identity COLUMN TABLE"
    UNTRACK = "eventlog untrack TABLE"
    UNTRACK_FOR = "eventlog untrack --for READER TABLE"

    def command(self, **needs: object) -> str:
        """Return the command with what it needs, each as one word of a shell."""
        return self.template(**{need: quote(str(value)) for need, value in needs.items()})

    def template(self, **holes: str) -> str:
        """Return the command with holes, or words of a shell, in place of what it needs."""
        return _NEED.sub(lambda need: holes.get(need[0], need[0]), self)
