"""Install, upgrade and uninstall the event log: with Alembic in a database, or as a script of the same DDL.

A log is either ours, or one that existed before and was attached: that one is neither created nor dropped.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib import resources
from typing import TYPE_CHECKING

from sqlalchemy import inspect, text
from sqlalchemy.engine import Connection, Engine

from eventlog.core.errors import EventlogError, Misuse
from eventlog.sql.common import templates
from eventlog.sql.common.expression import literal
from eventlog.sql.connect import execute_plain
from eventlog.sql.log.log_admin import LogAdmin
from eventlog.sql.log.slot_state import SlotState
from eventlog.sql.log.store import Store
from eventlog.sql.names import Log
from eventlog.sql.queries import Queries
from eventlog.sql.trigger_rows import printed_routines

if TYPE_CHECKING:
    from alembic.config import Config
    from alembic.script import ScriptDirectory

_REVISION = re.compile(r"\d{4}_\w+\.py")
_GRANTS = {"compare": "grants_comparing", "slot": "grants_slot"}


class LogWritten(EventlogError):
    """triggers on {0} still write to {1}, and every change there would fail without it: untrack them first"""


class NewerLog(EventlogError):
    """{0} has revision {1} of the schema, from a newer eventlog; this one knows {2}: use the version that \
upgraded it, or a later one"""


class OlderLog(EventlogError):
    """{0} has revision {1} of the schema, and this eventlog needs {2}: stop its publishers, then \
`eventlog install` upgrades it"""


class UnknownRevision(Misuse):
    """--from {0}: the revisions of the schema are {1}"""


class LogLed(EventlogError):
    """{0} {1} while a publisher runs ({2}): stop it, and give the command again"""


def install(engine: Engine, log: Log, *, future_events: bool = False) -> str:
    """Bring the log to the newest revision, and return what was done; no publisher leads meanwhile."""
    with engine.connect() as connection, ExitStack() as stack:
        before = revision(connection, log)
        demand_revision(connection, log, older=True)
        is_ours = _is_ours(connection, log)
        connection.rollback()  # Alembic begins a transaction of its own
        if before is not None and before != head():
            refused = f"has revision {before} of the schema and is not upgraded"
            stack.enter_context(_leading(engine, log, refused))
        _upgrade(connection, log, is_ours)
        was_missing = not _exists(connection, log, log.companion_name("known"))
        if was_missing:  # somebody dropped it
            _execute(connection, _statements(log, "create_known", is_ours))
        if future_events:
            _execute(connection, _statements(log, "future", is_ours))
        connection.commit()
        if before not in (None, head()):
            return f"upgraded from revision {before} to {head()}"
        return "installed" if was_missing or before is None else ""


def uninstall(engine: Engine, log: Log, *, discard: bool = False) -> bool:
    """Drop the log and its companion tables; of an attached log only these. Return whether there were any.

    No publisher leads meanwhile.
    """
    with engine.connect() as connection, ExitStack() as stack:
        has_state = has_companion(connection, log, "state")
        if revision(connection, log) is None and not has_state:
            return False
        demand_revision(connection, log, older=True)
        connection.rollback()  # so that its snapshot is of now, when no publisher leads
        if has_state:
            stack.enter_context(_leading(engine, log, "is not uninstalled"))
        is_ours = _is_ours(connection, log)
        slot = SlotState(connection, Queries(log)) if log.dialect.sessions.has_slots else None
        facts = None if slot is None else slot.facts()
        _refuse_tracked(connection, log, recorded=facts is None)
        if is_ours and not discard and exists(connection, log):
            LogAdmin(connection, Queries(log)).demand_published()
        if slot is not None and facts is not None:
            slot.drop()
            connection.commit()
        connection.rollback()
        _execute(connection, iter(_uninstalling(log, is_ours)))
        connection.commit()
    return True


def revision(connection: Connection, log: Log) -> str | None:
    """Return the revision that the log is at, None where it is not installed."""
    if not _exists(connection, log, log.companion_name("version")):
        return None
    return connection.execute(text(f"select version_num from {log.names()['version']}")).scalar()  # noqa: S608


def demand_revision(connection: Connection, log: Log, *, older: bool = False) -> None:
    """Raise NewerLog or OlderLog if an installed log has another revision than this program; an older one may
    be allowed.
    """
    there = revision(connection, log)
    if there is not None and there not in revisions():
        raise NewerLog(log.full_name, there, head())
    if there not in (None, head()) and not older:
        raise OlderLog(log.full_name, there, head())


def demand_newest(store: Store) -> None:
    """Raise NewerLog or OlderLog if an open log has another revision than this program by now."""
    with store.engine.connect() as connection:
        demand_revision(connection, store.log)


def install_script(
    log: Log, *, attached: bool = False, future_events: bool = False, after: str | None = None
) -> str:
    """Return the DDL of a fresh install for the database's own client, routines included; an attached log is
    not created. With `after` it is that of an upgrade from this revision.
    """
    if after is not None and after not in revisions():
        raise UnknownRevision(after, ", ".join(revisions()))
    is_ours = not attached
    return log.dialect.script(
        [
            *_offline(log, is_ours, "upgrade", after),
            *templates.statements(log.dialect, "version", _holes(log, is_ours) | {"revision": f"'{head()}'"}),
            *(_statements(log, "future", is_ours) if future_events else ()),
            *templates.statements(log.dialect, "session", {}),
            *printed_routines(log),
        ]
    )


def uninstall_script(log: Log, *, attached: bool = False) -> str:
    """Return the DDL that takes a log away again."""
    statements = _uninstalling(log, not attached)
    if log.dialect.sessions.has_slots:
        body = templates.statement(log.dialect, "drop_recorded_slot", state=log.names()["state"])
        statements.insert(0, f"do {literal(body)}")
    return log.dialect.script([*printed_routines(log, "drop_routines"), *statements])


def grants_script(log: Log, role: str, mode: str | None = None) -> str:
    """Return the grants of a publisher with this mode that does not own the log, as a script for a DBA."""
    names = log.names() | {"role": log.dialect.quote(log.dialect.fold(role))}
    statements = [*templates.statements(log.dialect, "grants", names)]
    if mode in _GRANTS:
        statements += templates.statements(log.dialect, _GRANTS[mode], names)
    if log.dialect.schema.sequence_hidden:
        texts = {"log_name": names["log"], "record_id": log.column("record_id"), "role": names["role"]}
        holes = {f"{name}_text": literal(text) for name, text in texts.items()}
        body = templates.statement(log.dialect, "grant_ids", **holes)
        statements.append(f"do {literal(body)}")
    if log.place and log.dialect.schema.needs_usage:
        statements.insert(0, f"grant usage on schema {log.dialect.quote(log.place)} to {names['role']}")
    return log.dialect.script(statements)


def is_attached(connection: Connection, log: Log) -> bool:
    """Return whether an installed log was made by somebody else."""
    return not _is_ours(connection, log)


def exists(connection: Connection, log: Log) -> bool:
    """Return whether the log's table exists."""
    return _exists(connection, log, log.dialect.fold(log.table))


def has_companion(connection: Connection, log: Log, name: str) -> bool:
    """Return whether one of the log's companion tables exists."""
    return _exists(connection, log, log.companion_name(name))


def head() -> str:
    """Return the newest revision."""
    return revisions()[-1]


@functools.cache
def revisions() -> tuple[str, ...]:
    """Return the revisions, oldest first, by the names of their files: to load Alembic takes a while."""
    files = resources.files("eventlog.sql.schema.migrations").joinpath("versions").iterdir()
    return tuple(sorted(file.name.partition("_")[0] for file in files if _REVISION.fullmatch(file.name)))


def _config() -> Config:
    from alembic.config import Config  # takes a while to load, and most commands only ask what exists

    config = Config()
    config.set_main_option("script_location", "eventlog.sql.schema:migrations")
    return config


def _scripts() -> ScriptDirectory:
    from alembic.script import ScriptDirectory

    return ScriptDirectory.from_config(_config())


@contextmanager
def _leading(engine: Engine, log: Log, refused: str) -> Iterator[None]:
    """Keep every publisher from leading while the block runs; raise LogLed if one leads."""
    store = Store(engine, log)
    leader = store.lead("eventlog install")
    if leader is None:
        raise LogLed(log.full_name, refused, store.holder() or "by whom is not ours to see")
    with leader:
        yield


def _upgrade(connection: Connection, log: Log, is_ours: bool) -> None:
    from alembic import command

    def run(name: str, *, own_log: bool = False) -> None:
        if is_ours or not own_log:
            _execute(connection, _statements(log, name, is_ours))

    config = _config()
    version = {
        "version_table": log.reflected(log.companion_name("version")),
        "version_table_schema": log.place,
    }
    config.attributes.update(run=run, configured={"connection": connection, **version})
    command.upgrade(config, "heads")


def _uninstalling(log: Log, is_ours: bool) -> list[str]:
    """Return the statements that take a log away, as far as there is one."""
    return [*_offline(log, is_ours, "downgrade"), *_statements(log, "drop_version", is_ours)]


def _offline(log: Log, is_ours: bool, direction: str, after: str | None = None) -> list[str]:
    """Return the statements of all revisions, or of those after one: those of upgrade, or of downgrade."""
    collected: list[str] = []

    def run(name: str, *, own_log: bool = False) -> None:
        if is_ours or not own_log:
            collected.extend(_statements(log, name, is_ours))

    scripts = list(_scripts().walk_revisions())  # newest first
    for script in reversed(scripts) if direction == "upgrade" else scripts:
        if after is None or script.revision > after:
            getattr(script.module, direction)(run)
    return collected


def _statements(log: Log, name: str, is_ours: bool) -> Iterator[str]:
    return templates.statements(log.dialect, name, _holes(log, is_ours))


def _holes(log: Log, is_ours: bool) -> dict[str, str]:
    """Return the values of the holes in the statements: names, and what the state table records at first."""
    return log.names() | {
        "attached": "0" if is_ours else "1",
        "association": "canonical" if is_ours else "as-logged",
    }


def _execute(connection: Connection, statements: Iterator[str]) -> None:
    for statement in statements:
        execute_plain(connection, statement)


def _is_ours(connection: Connection, log: Log) -> bool:
    """Return whether the log is ours to create and drop: as recorded, else whether there is none yet."""
    if _exists(connection, log, log.companion_name("state")):
        attached = connection.execute(text(f"select attached from {log.names()['state']}")).scalar()  # noqa: S608
        if attached is not None:
            return not attached
    return not exists(connection, log)


def _exists(connection: Connection, log: Log, table: str) -> bool:
    return inspect(connection).has_table(log.reflected(table), schema=log.place)


def _refuse_tracked(connection: Connection, log: Log, *, recorded: bool) -> None:
    from eventlog.sql.capture.track import tracked  # `status` loads this module, and no trigger

    written = tracked(connection, log, recorded=recorded)
    if written:
        raise LogWritten(", ".join(written), log.full_name)
