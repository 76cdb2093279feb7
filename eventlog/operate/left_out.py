"""Why pending rows are not in the next cycle: a sentence for each fate."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from eventlog.core.plurals import quantity
from eventlog.fold import Rules
from eventlog.opening.config import Config
from eventlog.opening.settings import PublisherSettings
from eventlog.operate.account import moment, waiting_events
from eventlog.publisher.session import publishing_rules
from eventlog.sql.log.pending import PickUpFilter
from eventlog.sql.log.snapshot import Fates
from eventlog.sql.log.store import Store
from eventlog.sql.log.work import WaitingEvent


def why_left_out(config: Config, store: Store, limit: int | None = None) -> dict[str, str]:
    """Return a sentence for each fate for which pending rows are not in the next cycle."""
    rules = publishing_rules(config, store)
    choice = config.build(PublisherSettings).choice(limit)
    with store.snapshot() as snapshot:
        fates = snapshot.fates(PickUpFilter(choice.limit, rules.loopback_user, rules.handle_future_events))
    waiting = waiting_events(store).values()
    sentences: Mapping[str, Callable[[Fates], str]] = {
        "held": lambda of: _held_sentence(of, waiting),
        "loopback": lambda of: _loopback_sentence(of, rules),
        "future": lambda of: f"{_rows_are(of.rows)} future: the first is due at {of.first}",
    }
    sentence_of = {fate: sentence(fates[fate]) for fate, sentence in sentences.items() if fate in fates}
    if "free" in fates and (excess := fates["free"].rows - choice.limit) > 0:
        rows = quantity(excess, "row is", "rows or fewer are")
        sentence_of["free"] = f"{rows} beyond the next cycle: query-limit is {choice.limit}"
    return sentence_of


def _held_sentence(fates: Fates, waiting: Iterable[WaitingEvent]) -> str:
    first = min(waiting, key=lambda event: event.next_at, default=None)
    until = (
        ""
        if first is None
        else f": the first until {first.event_id} is sent again at {moment(first.next_at)}"
    )
    return f"{_rows_are(fates.rows)} held{until}"


def _loopback_sentence(fates: Fates, rules: Rules) -> str:
    return f"{_rows_are(fates.rows, f' of {rules.driver_user}')} loopback: finished without being sent"


def _rows_are(number: int, whose: str = "") -> str:
    return quantity(number, f"row{whose} is", f"rows{whose} are")
