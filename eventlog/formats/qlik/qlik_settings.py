"""The settings that change tables and messages share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from eventlog.core.settings import setting
from eventlog.core.shared_settings import now_setting
from eventlog.formats.qlik import headers, sequence
from eventlog.formats.qlik.numbering import SequenceMemory
from eventlog.formats.qlik.structure import Structure


@dataclass(frozen=True, slots=True)
class QlikSettings:
    """The settings of changes as Replicate writes them."""

    table: str = setting("", "the table of messages that name none, or of a file whose name does not show it")
    mask_order: str = setting(
        "auto",
        "byte order of change masks; auto reads the one that a mask or the values before an update prove, and"
        " writes little into change tables, big into messages",
        choices=("auto", "little", "big"),
    )
    header_time_format: str = setting(
        headers.ISO,
        "the form of header timestamps: ISO 8601, or a number since 1970 in seconds, milli- or microseconds",
        choices=headers.TIME_FORMATS,
    )
    before_images: bool = setting(True, "write the values before an update: B rows, or beforeData")
    no_op_updates: str = setting(
        "auto",
        "updates that are known to change nothing: written or dropped; auto writes messages, and drops rows"
        " of change tables",
        choices=("auto", "write", "drop"),
    )
    until: str = setting("", "read to this change_seq, and no further", metavar="SEQ")
    last_sequence: str = setting(sequence.START, "the change_seq to continue after", metavar="SEQ")
    now: str | None = now_setting()
    on_structure: Callable[[Structure], None] | None = None  # is called with each structure that is read
    memory: SequenceMemory | None = None  # the state of a writer, which it keeps up to date
