"""The settings that change what rows mean."""

from __future__ import annotations

from dataclasses import dataclass

from eventlog.core.errors import InvalidValue
from eventlog.core.settings import setting
from eventlog.core.values import check_xml

MEBIBYTE = 1 << 20


def _need_letter(text: str) -> None:
    if len(text) != 1:
        raise InvalidValue(text, "one letter")


@dataclass(frozen=True, slots=True)
class Rules:
    log_name: str = setting("eventlog", "the log's name in event-ids", metavar="NAME", check=check_xml)
    insert_query_back: str = setting("modify", "what event types 5 and 7 become", choices=("modify", "add"))
    max_changes: int = setting(
        1000, "values removed or added in one event; a longer one is cut", metavar="N", within=(1, 2**31 - 1)
    )
    unknown_tables: str = setting(
        "error",
        "rows of undescribed tables: refused, or published as strings (types 1-4)",
        choices=("error", "string"),
    )
    unknown_columns: str = setting(
        "send",
        "rows of columns that their table lacks: types 1-3 sent as strings, 7 and 8 without a value; or all"
        " refused",
        choices=("send", "refuse"),
    )
    association: str = setting(
        "as-logged",
        "the association: of the catalogue's names, or with the table_key of the event's first row",
        choices=("canonical", "as-logged"),
    )
    status: str = setting("N", "the letter of the rows that take part", metavar="LETTER", check=_need_letter)
    driver_user: str | None = setting(None, "rows of this user are loopback", metavar="USER")
    allow_loopback: bool = setting(False, "publish loopback rows too")
    handle_future_events: bool = setting(
        False, "order by event_time, and let rows wait whose time has not come"
    )
    max_value: int = setting(
        64 * MEBIBYTE,
        "bytes of one value; a row with more is refused",
        metavar="BYTES",
        within=(1, 2**31 - 1),
    )
