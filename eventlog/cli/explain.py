"""eventlog explain: what becomes of each row of a log, and why."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from eventlog.cli.options import (
    FILE_NAME,
    SettingsCommand,
    refuse_flags,
    settings_options,
    shared_options,
)
from eventlog.cli.outcome_listing import (
    OUTCOMES,
    NothingMeant,
    names_meant,
    print_any,
)
from eventlog.cli.terminal import print_sentence
from eventlog.core import tablekey
from eventlog.core.entry import MAX_RECORD_ID
from eventlog.core.errors import Misuse
from eventlog.core.settings import declared
from eventlog.files.limits import Limits
from eventlog.fold import Fate, Rules
from eventlog.formats.log import LogSettings
from eventlog.opening.config import Config

if TYPE_CHECKING:
    from eventlog.operate.account import RowAccount  # SQLAlchemy takes a while to load

_LIMITS = tuple(field.name for field in declared(Limits))
_OF_FILES = ("container", "tables_file", "current", "now", "status", *_LIMITS)
_OF_A_LOG = ("current", *(field.name for of in (Rules, LogSettings) for field in declared(of)))
_OF_AN_OBJECT = ("table", "key", "everything")
_OF_A_DATABASE = ("url", "config_file", "log_table", "everything")


@click.command(cls=SettingsCommand)
@click.argument("inputs", nargs=-1, type=FILE_NAME, metavar="[RECORD_ID | INPUT]...")
@click.option(
    "--from",
    "source_format",
    type=click.Choice(["log", "qlik-table", "qlik-message"]),
    default="log",
    help="what the inputs hold",
)
@shared_options("--as", "--tables", "--current")
@click.option(
    "--url", help="the database whose log is explained, where no INPUTS are given  [env: EVENTLOG_URL]"
)
@shared_options("--config")
@click.option(
    "--log-table", help="the log, optionally with its schema  [default: eventlog]  [env: EVENTLOG_LOG_TABLE]"
)
@click.option("--table", help="only rows of this table, however they spell its name")
@click.option("--key", help="only rows of this table_key, however they spell it")
@click.option("--all", "everything", is_flag=True, help="of a live log every pending row, one by one")
@click.option(
    "--order",
    type=click.Choice(["sequence", "as-is"]),
    default="sequence",
    help="of change tables and messages: by their sequence, or as the inputs have them",
)
@click.option("--json", "as_json", is_flag=True, help="one JSON object a row")
@settings_options([("the log", Rules), ("rows", LogSettings), ("the input", Limits)])
def explain(
    inputs: tuple[str, ...],
    source_format: str,
    container: str | None,
    tables_file: Path | None,
    current: tuple[tuple[str, str], ...],
    url: str | None,
    config_file: Path | None,
    log_table: str | None,
    table: str | None,
    key: str | None,
    everything: bool,
    order: str,
    as_json: bool,
    **values: Any,
) -> None:
    """Report the fate of each row of INPUTS (files, or - for standard input), or of the configured log.

    Of the configured log it reports the rows with these RECORD_IDs, handled ones too, or without any the
    rows that are next. Every row has one outcome. It is pending, sent (with its event), superseded (by which
    row), without effect, `says nothing`, loopback, future, held, beyond the pick-up, refused or not new; and
    the reason. Of handled rows it is what the log keeps: the event and when it was answered, why it failed,
    who skipped it and why. Named rows have their whole account: who changed what, the tries of their event,
    what stops them at present, and what people did. A number is a RECORD_ID; a file of such a name is ./17.

    For change tables and messages it reports the change in each record, the place of the row before it,
    and what is repeated or refused.
    """
    if key is not None:
        tablekey.read(key)
    if source_format != "log":
        refuse_flags((*_OF_A_DATABASE, *_OF_A_LOG), f"is of a log, and what is explained is {source_format}")
        from eventlog.cli.explain_files import ChangeFilter, explain_changes, source_of  # a log needs none

        source = source_of(source_format, inputs, tables_file, container, values | {"order": order})
        explain_changes(source, ChangeFilter(table, key), as_json)
        return
    refuse_flags(("order",), "is of change tables and messages, and what is explained is a log")
    ids = tuple(int(name) for name in inputs if _is_record_id(name))
    for name in inputs:
        if not (_is_record_id(name) or name == "-" or (name and Path(name).exists())):
            raise Misuse(f"{name or repr(name)}: no such file, and no record_id, which is a whole number")
    if ids and len(ids) < len(inputs):
        raise Misuse("name record_ids or files: a file whose name is a number is ./17")
    if ids and max(ids) > MAX_RECORD_ID:
        raise Misuse(f"{max(ids)} is no record_id: the highest is {MAX_RECORD_ID}")
    flags = {"url": url, "log_table": log_table} | {n: v for n, v in values.items() if n not in _OF_FILES}
    config = None if inputs and not ids else _read_settings(flags, config_file)
    if config is not None and (ids or config.values.get("url")):
        refuse_flags(_OF_FILES, "is for files: name them, or - for standard input")
        if ids:
            refuse_flags(_OF_AN_OBJECT, "chooses rows, and they are named by their record_ids")
        _explain_log(config, table, key, everything, ids, as_json)
        return
    refuse_flags(_OF_A_DATABASE, "is for the log of a database, and what is explained are files")
    from eventlog.cli.explain_files import explain_files, source_of

    source = source_of(source_format, inputs, tables_file, container, values | {"order": order})
    explain_files(source, current, table, key, as_json)


def _is_record_id(name: str) -> bool:
    return name.isascii() and name.isdigit()


def _read_settings(flags: Mapping[str, Any], config_file: Path | None) -> Config:
    from eventlog.cli.log_options import read_all  # what a publisher needs, which files do not

    return read_all(flags, config_file)


def _explain_log(
    config: Config, table: str | None, key: str | None, everything: bool, ids: Sequence[int], as_json: bool
) -> None:
    """Print what becomes of the rows of the next cycle, then why others wait.

    With a key print every row of that object, with `everything` every pending row, with ids these rows.
    """
    from eventlog.cli.account_listing import account_cells, account_facts  # SQLAlchemy is slow
    from eventlog.opening.recorded_settings import opened_as_published
    from eventlog.operate.account import read_accounts
    from eventlog.operate.left_out import why_left_out
    from eventlog.operate.upkeep import check_table, demand_rows

    absent, obstacles = list[int](), dict[str, None]()

    def noted(accounts: Iterable[RowAccount]) -> Iterator[RowAccount]:
        for account in accounts:
            if account.outcome.fate is Fate.NOT_IN_LOG:
                absent.append(account.record_id)
            obstacles[account.obstacle] = None
            yield account

    with opened_as_published(config, to_look=True) as (config, store):
        accounts = noted(read_accounts(config, store, table, key, ids=ids, everything=everything))
        cells = account_cells(in_detail=bool(ids) or key is not None)
        if not print_any(accounts, account_facts, cells, OUTCOMES, as_json):
            if table is not None:
                check_table(config, store, table)
            if key is not None:
                raise NothingMeant("the log", names_meant(table, key))
            print_sentence(
                f"no row{names_meant(table, key)} is {'pending' if everything else 'in the next cycle'}"
            )
        demand_rows(absent)
        if key is None and not ids:
            for obstacle in filter(None, obstacles):
                print_sentence(f"nothing goes at present: {obstacle}")
        if key is None and not everything and not ids:
            for sentence in why_left_out(config, store).values():
                print_sentence(f"{sentence} (row by row with --all)")
