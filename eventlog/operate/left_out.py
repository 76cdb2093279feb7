"""Why pending rows are not in the next cycle: a sentence for each fate."""

from __future__ import annotations

from eventlog.core.plurals import quantity
from eventlog.opening.config import Config
from eventlog.opening.publisher_settings import PublisherSettings
from eventlog.operate.account import waiting_events
from eventlog.operate.tries import moment
from eventlog.publisher.preparation import publishing_rules
from eventlog.sql.log.pending import PickUpFilter
from eventlog.sql.log.store import Store


def why_left_out(config: Config, store: Store) -> dict[str, str]:
    """Return a sentence for each fate for which pending rows are not in the next cycle."""
    rules, choice = publishing_rules(config, store), config.build(PublisherSettings).choice(None)
    with store.snapshot() as snapshot:
        fates = snapshot.fates(PickUpFilter(choice.limit, rules.loopback_user, rules.handle_future_events))
    sentences = dict[str, str]()
    if "held" in fates:
        first = min(waiting_events(store).values(), key=lambda event: event.next_at, default=None)
        rows = _rows_are(fates["held"].rows)
        until = first and f": the first until {first.event_id} is sent again at {moment(first.next_at)}"
        sentences["held"] = f"{rows} held{until or ''}"
    if "loopback" in fates:
        rows = _rows_are(fates["loopback"].rows, f" of {rules.driver_user}")
        sentences["loopback"] = f"{rows} loopback: finished without being sent"
    if "future" in fates:
        number, first_time = fates["future"]
        sentences["future"] = f"{_rows_are(number)} future: the first is due at {first_time}"
    if "free" in fates and (excess := fates["free"].rows - choice.limit) > 0:
        rows = quantity(excess, "row is", "rows or fewer are")
        sentences["free"] = f"{rows} beyond the next cycle: query-limit is {choice.limit}"
    return sentences


def _rows_are(number: int, whose: str = "") -> str:
    return quantity(number, f"row{whose} is", f"rows{whose} are")
