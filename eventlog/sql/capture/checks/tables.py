"""A tracked table: whether its triggers are what they should be, and what writes past them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from eventlog.core.errors import EventlogError
from eventlog.sql.capture import track
from eventlog.sql.capture.checks.finding import Checked, Finding, Watched
from eventlog.sql.capture.refusals import refuse
from eventlog.sql.capture.subject import installed_of, read_subject
from eventlog.sql.relation import Installed, qualified
from eventlog.sql.triggers import Subject, triggers_of


def _drift(checked: Checked, watched: Watched) -> Iterator[Finding]:
    relation, choice = watched.relation, watched.choice
    table = relation.table
    remedy = checked.track(table, choice)
    try:
        subject = read_subject(checked.catalogue, checked.record, checked.log, relation, choice)
        refuse(subject)
    except EventlogError as fault:
        yield Finding(str(table), f"its triggers no longer fit: {fault}", f"{remedy}, with another choice")
        return
    plan = track.plan_for(checked.catalogue, checked.record, subject)
    hidden = _hidden(checked, subject, watched)
    if hidden:
        yield Finding(
            str(table),
            f"its triggers cannot be compared: this user may not see those of {', '.join(hidden)}",
            "run check as the log's owner",
            fault=False,
            shown=True,
        )
    elif plan.statements:
        yield Finding(str(table), "; ".join(_differences(checked, subject, watched)), remedy)


def _hidden(checked: Checked, subject: Subject, watched: Watched) -> list[str]:
    """Return the tables whose triggers we do not see, though there may be some."""
    children = [child.relation.place for child in subject.children]
    installed = installed_of(checked.catalogue, checked.record, checked.log, watched.relation, children)
    shown = {(trigger.schema, trigger.table) for trigger in installed}
    places = [place for place in (watched.relation.place, *children) if place not in shown]
    return [".".join(place) for place in places if not checked.catalogue.shows_triggers(place)]


def _differences(checked: Checked, subject: Subject, watched: Watched) -> Iterator[str]:
    triggers = {(t.schema, t.table, t.name): t for t in triggers_of(subject)}
    expected = {place: trigger.body for place, trigger in triggers.items()}
    children = [entry.place for entry in checked.record.children(watched.relation.place)]
    installed = list(installed_of(checked.catalogue, checked.record, checked.log, watched.relation, children))
    standing = {(t.schema, t.table, t.name): t.body for t in installed}
    for place in sorted(expected.keys() - standing.keys(), key=str):
        yield f"trigger {place[2]} is missing on {place[1]}"
    for place in sorted(standing.keys() - expected.keys(), key=str):
        yield f"trigger {place[2]} on {place[1]} has nothing to do any more"
    for trigger in installed:
        meant = triggers.get((trigger.schema, trigger.table, trigger.name))
        if meant is not None and trigger.firing is not meant.firing:
            which = f"trigger {trigger.name} on {trigger.table}"
            yield f"{which} is disabled, or enabled in another way than by track"
    written = "".join(expected[place] for place in expected.keys() & standing.keys())
    installed_text = "".join(standing[place] for place in expected.keys() & standing.keys())
    if written.split() != installed_text.split():
        yield "its triggers differ from those that track would write for the current table" + "".join(
            f": column {column.name} is not logged as it should be"
            for column in subject.table.columns.values()
            if written.count(checked.log.dialect.quote(column.name))
            != installed_text.count(checked.log.dialect.quote(column.name))
        )


def _before_ours(checked: Checked, watched: Watched) -> Iterator[Finding]:
    if not checked.log.dialect.statement_triggers:
        return
    first = min((t.name for t in watched.ours), default="")
    for trigger in watched.relation.triggers:
        if trigger.row and not trigger.internal and trigger.name < first:
            yield Finding(
                str(watched.relation.table),
                f"trigger {trigger.name} fires before capture: its changes are in the log too early",
                f"rename it so that it sorts after {first}:",
                commands=(_renamed(checked, watched, trigger),),
            )


def _renamed(checked: Checked, watched: Watched, trigger: Installed) -> str:
    """Return the statement after which a trigger fires after ours: a tilde sorts after all letters."""
    quoted, table = checked.log.dialect.quote, watched.relation.table
    quoted_table = qualified(checked.log.dialect, trigger.schema, trigger.table or table.name)
    return f"alter trigger {quoted(trigger.name)} on {quoted_table} rename to {quoted('~' + trigger.name)};"


def _cascades(checked: Checked, watched: Watched) -> Iterator[Finding]:
    if checked.log.dialect.triggers.cascades_fire:
        return
    for foreign in watched.relation.foreign_keys:
        if foreign.cascades:
            yield Finding(
                str(watched.relation.table),
                f"its foreign key to {foreign.target} cascades, which fires no trigger in"
                f" {checked.log.dialect.title}: such changes are not logged",
                f"let the foreign key restrict, and change the rows in a trigger on {foreign.target}",
            )


def _replicated(checked: Checked, watched: Watched) -> Iterator[Finding]:
    if watched.choice.replicated:
        return
    table = watched.relation.table
    for name in checked.catalogue.subscriptions(table.schema, table.name):
        yield Finding(
            str(table),
            f"subscription {name} writes to it as a replica, which fires no trigger of ours",
            checked.track(table, replace(watched.choice, replicated=True)),
        )


def _ways_round(checked: Checked, watched: Watched) -> Iterator[Finding]:
    if watched.choice.replicated:
        return  # the one way round where there is such a choice
    for way, remedy in checked.log.dialect.triggers.ways_round:
        yield Finding(str(watched.relation.table), way, remedy, fault=False)


TABLE_CHECKS: tuple[Callable[[Checked, Watched], Iterator[Finding]], ...] = (
    _drift,
    _before_ours,
    _cascades,
    _replicated,
    _ways_round,
)
