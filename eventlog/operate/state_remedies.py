"""The remedy of an object that is not at the receiver what it is in its table: it depends on what is kept.

A comparison with a kept state finds what changed since. Without one, only the table itself can be sent.
"""

from __future__ import annotations

from eventlog.core.errors import EventlogError
from eventlog.core.remedies import Remedy
from eventlog.core.tables import Table, Tables
from eventlog.opening.config import Config
from eventlog.operate.unexplained import KeptState, demand_comparable, read_kept_state
from eventlog.sql.log.store import Store

_COMPARE = "`{}` logs what differs from its kept state"
_RESYNC = "`{}` logs all that the table has"
_RUN = "`{}` compares the table and sends what differs"
_DELETE = "this deletes it at the receiver: `{}`"


def remedy_of_state(store: Store, config: Config, tables: Tables, name: str, *, is_gone: bool) -> str:
    """Return what sends the present state of an object, which has its table and its key in its name.

    An object that the table does not have is deleted at the receiver.
    """
    table = next((each for each in tables if name.startswith(f"{tables.name_of(each)} ")), None)
    if table is None:
        return _RESYNC.format(Remedy.RESYNC)
    key = name.removeprefix(f"{tables.name_of(table)} ")
    state = _kept_state(store, config, table, key)
    command = {"TABLE": tables.name_of(table)}
    if state.is_of_publisher:
        compare = _RUN.format(Remedy.RUN_ONCE.command(MODE="compare"))
    else:
        compare = _COMPARE.format(Remedy.RESYNC_COMPARE.command(**command)) if state.is_baseline else ""
    if is_gone:
        is_found = compare and state.has_object
        return compare if is_found else _DELETE.format(_delete_statement(store, table, key))
    if config.values.get("source_url") is not None:
        return _RUN.format(Remedy.RUN_RESYNC)
    resync = _RESYNC.format(Remedy.RESYNC.command(**command))
    return f"{compare}; if the object is not among it, {resync}" if compare else resync


def _kept_state(store: Store, config: Config, table: Table, key: str) -> KeptState:
    """Return the kept state of a table; nothing is a baseline if it or a setting allows no comparison."""
    try:
        state = read_kept_state(store, table, key)
        if state.is_baseline:
            demand_comparable(store, config, [table])
    except EventlogError:
        return KeptState(is_baseline=False, is_of_publisher=False, has_object=False)
    return state


def _delete_statement(store: Store, table: Table, key: str) -> str:
    """Return the statement that logs the delete of an object, by no user."""
    names = store.log.names()
    columns = ", ".join(names[name] for name in ("event_type", "perpetrator", "table_name", "table_key"))
    name, table_key = map(store.log.dialect.values.expressions.constant, (table.log_name, key))
    values = f"4, null, {name}, {table_key}"
    return f"insert into {names['log']} ({columns}) values ({values});"  # noqa: S608 - for people
