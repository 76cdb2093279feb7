"""eventlog rounds: which versions of a lake's tables belong together."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import click

from eventlog.cli.options import SettingsCommand, settings_options
from eventlog.cli.terminal import print_sentence, show
from eventlog.core import settings
from eventlog.core.errors import Misuse
from eventlog.transfer.targets.lake.lake_settings import LakeAccess

if TYPE_CHECKING:
    from eventlog.transfer.targets.lake.lake_place import LakePlace
    from eventlog.transfer.targets.lake.rounds import Round


@click.command(cls=SettingsCommand)
@click.argument("lake", metavar="LAKE")
@click.option(
    "--source",
    required=True,
    help="the source, by the name that apply gave it, or the stream of eventlog_spark.merge",
)
@click.option("--round", "number", type=click.IntRange(0), help="one round  [default: the last that is done]")
@click.option(
    "--against",
    metavar="WHERE",
    help="compare each table with its source: a database, as a SQLAlchemy URL, or another lake",
)
@click.option("--record", is_flag=True, help="leave the receipt of each table in its properties")
@click.option("--json", "as_json", is_flag=True, help="as one JSON object")
@settings_options([("a lake", LakeAccess)])
def rounds(
    lake: str,
    source: str,
    number: int | None,
    against: str | None,
    record: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Show a round that apply has done in LAKE, or a batch that eventlog_spark.merge has noted, and the
    version of each table after it. LAKE is delta:PLACE, or iceberg:CATALOGUE/NAMESPACE.

    These versions together are the tables after whole transactions of the source. With --against each table
    gets a receipt: the number of its rows, a digest of them, and the keys of those that differ from the
    source. The source must not change meanwhile. The exit code is 1 if rows differ, or without such a round.
    """
    from eventlog.transfer.targets.lake.lakes import lake_at
    from eventlog.transfer.targets.lake.rounds import done_rounds

    if record and against is None:
        raise Misuse("--record leaves the receipts that --against makes")
    with lake_at(lake, settings.build(LakeAccess, options).store_options, "a lake") as tables:
        done = {each.number: each for each in done_rounds(tables, source)}
        this = done.get(max(done, default=-1) if number is None else number)
        if this is None:
            named = "round" if number is None else f"round {number}"
            print_sentence(f"{lake} has no {named} of the source {source!r} that is done")
            sys.exit(1)
        if against is not None:
            _show_receipts(tables, this, against, record=record, as_json=as_json)
        elif as_json:
            facts = {"round": this.number, "position": this.end, "changes": this.changes}
            show(json.dumps({**facts, "tables": dict(this.versions)}))
        else:
            show(f"round {this.number}")
            for table, version in sorted(this.versions.items()):
                show(f"  {table}  version {version}")


def _show_receipts(tables: LakePlace, this: Round, against: str, *, record: bool, as_json: bool) -> None:
    from eventlog.cli.lake_receipt import receipts

    all_receipts = list(receipts(tables, this.versions, against))
    if as_json:
        show(json.dumps({"round": this.number, "receipts": [each._asdict() for each in all_receipts]}))
    else:
        show(f"round {this.number}", *(f"  {each}" for each in all_receipts))
    for each in all_receipts if record else ():
        if (snapshot := tables.open(each.name)) is not None:
            snapshot.note("eventlog.receipt", json.dumps({"round": this.number, **each._asdict()}))
    if any(each.differing for each in all_receipts):
        sys.exit(1)
