"""Cases for a policy simulator: each event alone, and what the directory has of its object before it.

That is what earlier events of the run made, and the values before that the event itself has. What the
directory has of other objects is not known.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import NamedTuple

from eventlog.core.change import ABSENT, Change, Field, Op, Scalar, Side, one_or_many, scalars
from eventlog.core.errors import EventlogError, Refused
from eventlog.core.tables import Tables
from eventlog.formats.neutral import refuse
from eventlog.xds.documents import document, events_with_ids, indent
from eventlog.xds.text import attribute
from eventlog.xds.write import EventWriter
from eventlog.xds.xds_settings import XdsSettings

_State = Mapping[str, tuple[Scalar, ...]]  # the values of each attribute


class PolicyCase(NamedTuple):
    """One event, and the directory before it, as documents."""

    input: str
    directory: str


def write_cases(
    changes: Iterable[Change], tables: Tables, settings: XdsSettings
) -> Iterator[PolicyCase | Refused]:
    """Yield a case for each event; an event that changes nothing has none."""
    events = EventWriter(tables, settings)
    states: dict[Hashable, _State] = {}
    for number, change in enumerate(changes, 1):
        try:
            for event, event_id in events_with_ids(change, number):
                text = events.write(event, event_id)
                named = events.object(event)
                state = states.get(named)
                if event.op is not Op.INSERT:
                    state = _with_values_before(state or {}, event)
                if text:
                    directory = "" if state is None else _instance(events, event, event_id, state)
                    yield PolicyCase(indent(document([text])), indent(document([directory])))
                if event.op is Op.DELETE:
                    states.pop(named, None)
                else:
                    states[named] = _after(state or {}, event)
        except EventlogError as fault:
            yield refuse(change, fault)


def _with_values_before(state: _State, event: Change) -> _State:
    missing = {column: scalars(side) for column, side in event.before.items() if column not in state}
    return {**state, **missing}


def _after(state: _State, event: Change) -> _State:
    values = dict(state)
    for column, before, after in event.fields:
        if after is ABSENT:
            continue
        removed = values.get(column, ()) if before is ABSENT else scalars(before)
        remaining = tuple(value for value in values.get(column, ()) if value not in removed)
        values[column] = remaining + tuple(value for value in scalars(after) if value not in remaining)
    return values


def _instance(events: EventWriter, event: Change, event_id: str, state: _State) -> str:
    sides: Iterable[tuple[str, Side]] = ((column, one_or_many(values)) for column, values in state.items())
    fields = tuple(Field(column, after=side) for column, side in sides)
    body = events.body("add", event._replace(op=Op.INSERT, fields=fields))
    attrs = body.replace("<add-attr ", "<attr ").replace("</add-attr>", "</attr>")  # no value has a <
    element = events.around("instance", event, event_id, attrs)
    return element.replace(f' event-id="{attribute(event_id)}"', "", 1)
