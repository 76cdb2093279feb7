"""eventlog query: what the engine's <query> asks, answered on standard output."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, BinaryIO

import click

from eventlog.cli.log_options import READING, live_options, read_live
from eventlog.cli.options import SettingsCommand
from eventlog.core.errors import InvalidDocument, Misuse
from eventlog.core.settings import declared
from eventlog.core.xmlparser import parse
from eventlog.fold import Rules
from eventlog.publisher.answering import QueryAnswers
from eventlog.publisher.open_log import opened
from eventlog.publisher.session import read_known
from eventlog.publisher.settings import PublisherSettings
from eventlog.xds.answers import MOST_QUERIES, Level, read
from eventlog.xds.documents import indent
from eventlog.xds.queries import SCOPES, Query, Value, read_queries
from eventlog.xds.settings import XdsSettings

# What only rows of the log have, and documents that are published.
NOT_ASKING = (
    *(field.name for field in declared(Rules) if field.name != "max_value"),
    *(field.name for field in declared(PublisherSettings)),
    "batch_size",
    "validate",
)


@click.command(cls=SettingsCommand, short_help="Ask for objects as the engine does")
@click.argument("file", type=click.File("rb"), required=False)
@click.option("--class", "classes", multiple=True, metavar="NAME", help="of these tables or views only")
@click.option("--object", "association", metavar="TEXT", help="the one object of this association")
@click.option(
    "--search", multiple=True, metavar="NAME=VALUE", help="with this value; several must all be there"
)
@click.option("--read", "wanted", multiple=True, metavar="NAME", help="return this attribute  [default: all]")
@click.option("--no-attributes", is_flag=True, help="return no attribute, only which objects exist")
@click.option("--scope", type=click.Choice(SCOPES), default="subtree", show_default=True, help="as in XDS")
@live_options(READING, without=NOT_ASKING)
def query(
    file: BinaryIO | None,
    classes: tuple[str, ...],
    association: str | None,
    search: tuple[str, ...],
    wanted: tuple[str, ...],
    no_attributes: bool,
    scope: str,
    config_file: Path | None,
    verbose: bool,
    log_format: str,
    **flags: Any,
) -> None:
    """Answer the queries of FILE, an nds document, or the one query that the options make.

    What may be asked is what a receiver may ask: attributes that may leave, of tables that are published.
    The exit code is 1 where a query is answered with an error.
    """
    config = read_live(flags, config_file, verbose, log_format)
    asked = Query(
        None, classes, association, tuple(map(_pair, search)), _wanted(wanted, no_attributes), scope
    )
    if file is not None and asked != Query():
        raise Misuse("give the queries in the file or in options, not in both")
    queries = [asked] if file is None else _queries(file)
    with opened(config) as store:
        answers = QueryAnswers(store, lambda: read_known(config, store), rounds=1)
        with answers.conversation() as answer:
            text = answer(queries)
    click.echo(indent(text) if config.build(XdsSettings).pretty else text)
    if any(status.level is Level.ERROR for status in read(text.encode(), limit=1 << 30)):
        sys.exit(1)


def _queries(file: BinaryIO) -> list[Query]:
    """Return the queries of an nds document; InvalidDocument where there is none."""
    try:
        root = parse(file.read())
    except InvalidDocument as fault:
        raise InvalidDocument(f"{file.name}: {fault}") from None
    queries = read_queries(root) if root.tag == "nds" else []
    if not queries:
        raise InvalidDocument(f"{file.name}: this is no nds document with a query")
    if len(queries) > MOST_QUERIES:
        raise InvalidDocument(f"{file.name}: more than {MOST_QUERIES} queries are not answered at a time")
    return queries


def _pair(text: str) -> tuple[str, Value]:
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise Misuse(f"--search {text}: expected NAME=VALUE, as in lname=Frost")
    return name, Value(value)


def _wanted(names: tuple[str, ...], none: bool) -> tuple[str, ...] | None:
    if none and names:
        raise Misuse("--read names attributes, and --no-attributes wants none")
    return () if none else names or None
