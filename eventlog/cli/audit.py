"""eventlog audit: whether a receiver has what the log promises, row by row."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from eventlog.audit.delivered import Delivered, receiver_at
from eventlog.audit.laws import Law, events_of_rows
from eventlog.cli.format_names import refuse_flags
from eventlog.cli.log_options import INPUT, READING, by_option, live_options
from eventlog.cli.options import FILE_NAME, SettingsCommand, read_tables, shared_options
from eventlog.cli.progress import counter
from eventlog.cli.terminal import Listing, print_sentence, show
from eventlog.core.entry import MAX_RECORD_ID
from eventlog.core.errors import Misuse
from eventlog.core.plurals import quantity
from eventlog.core.remedies import Remedy
from eventlog.core.settings import declared
from eventlog.files.durable import write_whole
from eventlog.files.limits import Limits
from eventlog.fold import Rules
from eventlog.opening.config import Config
from eventlog.opening.settings import PublisherSettings, SourceSettings
from eventlog.sinks.kafka import KafkaSinkSettings
from eventlog.xds.settings import XdsSettings

if TYPE_CHECKING:
    from eventlog.audit.judge import AuditReport, Gathered
    from eventlog.audit.log_side import AuditReader, Facts
    from eventlog.audit.share import AuditedObject
    from eventlog.operate.receipt import Receipt

_RESYNC = f"`{Remedy.RESYNC}` sends the present rows"
REMEDIES = {
    Law.ACCOUNTED: f"look for the document; if it is lost, {_RESYNC}",
    Law.EXPLAINED: "find out who changed the log, or who else sends documents to this receiver",
    Law.CONTENT: f"compare the document with the rows; {_RESYNC}",
    Law.ONE_CONTENT: f"compare both documents; {_RESYNC}",
    Law.IN_ORDER: f"compare the object at the receiver with the table; {_RESYNC}",
    Law.ANSWERED: "find out who changed the status column; only the publisher writes it",
    Law.SAME_STATE: "look for changes without triggers, or at the receiver; "
    f"`{Remedy.RESYNC_COMPARE}` finds them",
}

_USED = ("driver_user", "allow_loopback", "log_name", "insert_query_back", "time_syntax", "delete_from_log")
# What decides which documents are sent, and how, is seen in the documents.
UNUSED = {"kafka_topic"} | frozenset(
    field.name
    for settings in (SourceSettings, Rules, XdsSettings, PublisherSettings)
    for field in declared(settings)
    if field.name not in _USED
)


@click.command(cls=SettingsCommand)
@click.argument("log_files", metavar="[FILES]...", nargs=-1, type=FILE_NAME)
@click.option(
    "--delivered",
    multiple=True,
    type=FILE_NAME,
    required=True,
    metavar="PATH",
    help="what the receiver has: a folder or file of documents, the file of `eventlog receive`,"
    " or kafka:TOPIC",
)
@click.option(
    "--object",
    "of_object",
    nargs=2,
    metavar="TABLE KEY",
    help="print the receipt of one object, as in --object usr idu=1",
)
@click.option("--as", "container", help="the files' container, if their names do not show it")
@click.option(
    "--state",
    is_flag=True,
    help="of a configured log: also compare what the documents make with the present rows of the tables",
)
@click.option(
    "--without-contents",
    is_flag=True,
    help="judge rows, ids, order and answers alone, in a tenth of the time",
)
@click.option(
    "--since",
    is_flag=True,
    help="judge only objects that changed since the last recorded audit without a breach",
)
@click.option("-o", "--output", type=click.Path(path_type=Path), help="also write the report as an HTML page")
@click.option("--record", is_flag=True, help="leave the result in the configured log, for status and metrics")
@by_option
@shared_options("--tables")
@click.option("--json", "as_json", is_flag=True, help="as one JSON object")
@live_options((*READING, ("a topic", KafkaSinkSettings), *INPUT), without=UNUSED)
def audit(
    log_files: tuple[str, ...],
    delivered: tuple[str, ...],
    of_object: tuple[str, str] | None,
    container: str | None,
    state: bool,
    without_contents: bool,
    since: bool,
    output: Path | None,
    record: bool,
    who: str | None,
    tables_file: Path | None,
    as_json: bool,
    config: Config,
) -> None:
    """Compare the rows of FILES, or of the configured log, with the documents that a receiver has.

    Exit code 0: every row is accounted for, and every document follows from rows. Exit code 1: a law does
    not hold; the first place is printed for each, with a remedy. The digest is the same for the same rows,
    letters, documents and answers.
    """
    from eventlog.audit.contents import PublishedThen
    from eventlog.audit.judge import AuditReport, Gathered, judge  # Arrow takes a while to load
    from eventlog.audit.log_side import AuditReader, Facts, rows_of_files
    from eventlog.audit.state import compared_tables

    if of_object is not None:
        refuse_flags(
            ("as_json", "state", "since", "record", "output"),
            "is for a whole log, and --object prints one object for people",
        )
    limits = config.build(Limits)
    kafka = config.build(KafkaSinkSettings)
    receivers = {name: receiver_at(name, kafka, limits.max_record) for name in delivered}
    for receiver in receivers.values():
        receiver.mark()
    with (
        counter() as count,
        Gathered(
            None if of_object is None else of_object[1:],
            has_texts=state or not without_contents or of_object is not None,
            advance=lambda words: count(words, 0),
        ) as gathered,
    ):
        if log_files:
            refuse_flags(("state", "since", "record"), "is for the log of a database")
            rules = config.build(Rules)
            reader = AuditReader(read_tables(tables_file), rules.driver_user)
            published = [PublishedThen(0, reader.tables, None, None)] if tables_file else []
            facts = Facts(log_name=rules.log_name, published=published, now=reader.tables)
            gathered.add_rows(rows_of_files(log_files, container, limits, reader, facts.faults))
        elif config.values.get("url"):
            reader, facts = _gather_log(config, gathered, receivers, has_state=state, is_later=since)
        else:
            raise Misuse("which log? Name its files, or give --url, EVENTLOG_URL, or url in eventlog.toml")
        for receiver in receivers.values():
            gathered.add_events(receiver.events(), reader)
        if of_object is not None:
            receipt = None if log_files else _receipt_of(config, *of_object)
            _print_receipt(gathered, facts, reader, of_object, receipt)
            return
        report = AuditReport(
            since=(facts.since or _NONE_YET) if since else "",
            is_purged=facts.is_purged,
            is_whole=all(receiver.is_whole() for receiver in receivers.values()),
        )
        facts.is_purged |= not report.is_whole
        report.open_laws = dict(_open_laws(facts, has_contents=not without_contents, has_state=state))
        facts.has_contents = Law.CONTENT not in report.open_laws
        if Law.SAME_STATE not in report.open_laws:
            compared = compared_tables(reader.tables)
            facts.compared = {n: t for t in compared for n in (str(t), t.log_name)}
        judge(gathered, facts, report, os.cpu_count() or 1, lambda words: count(words, 0))
        report.faults += gathered.faults + facts.faults
        report.not_compared += gathered.not_compared
    if record:
        _record(config, report, facts, who)
    if output is not None:
        write_whole(output, _page(report, delivered))
    show(json.dumps(_as_json(report))) if as_json else _print_report(report)
    if not report.is_good:
        sys.exit(1)


_NONE_YET = "no audit without a breach is on record, so all objects are judged"


def _record(config: Config, report: AuditReport, facts: Facts, who: str | None) -> None:
    """Leave the result of an audit in the log."""
    from eventlog.opening.open_log import opened
    from eventlog.sql.log.record import Notice, NoticeKind

    breaches = report.breach_counts.total() + len(report.faults)
    result = {"breaches": breaches, "digest": report.digest, "mark": facts.mark}
    with opened(config) as store, store.upkeep() as upkeep:
        upkeep.note(Notice(NoticeKind.AUDIT, row_count=report.rows, who=who, words=json.dumps(result)))


def _open_laws(facts: Facts, *, has_contents: bool, has_state: bool) -> Iterator[tuple[Law, str]]:
    """Yield the laws that are not judged, and why."""
    if not has_contents:
        yield Law.CONTENT, "--without-contents leaves them out"
    elif not facts.published:
        yield Law.CONTENT, "it is not known what was published; for files --tables describes it"
    if not has_state:
        yield Law.SAME_STATE, "--state compares them"
    elif facts.holes_are_purged:
        words = "rows that failed or were skipped are purged, so their objects are not known"
        yield Law.SAME_STATE, words
    elif facts.loopback_is_purged:
        words = "rows of the driver itself may be among the deleted ones, so what it wrote is not known"
        yield Law.SAME_STATE, f"{words}; with allow-loopback all of them are published"


def _gather_log(
    config: Config, gathered: Gathered, receivers: Mapping[str, Delivered], *, has_state: bool, is_later: bool
) -> tuple[AuditReader, Facts]:
    """Read the rows of the configured log, and what it keeps next to them, in one snapshot."""
    from eventlog.audit.log_side import AuditReader, journal_of, read_facts, rows_of_snapshot
    from eventlog.audit.since import keys_since, last_mark, mark_of
    from eventlog.audit.state import present_rows
    from eventlog.opening.recorded_settings import opened_as_published
    from eventlog.opening.tables import readable_of
    from eventlog.publisher.session import make_reader, read_rules

    with opened_as_published(config) as (config, store):
        rules = read_rules(config, store)
        tables = make_reader(config, store).tables
        reader = AuditReader(tables, rules.loopback_user)
        readable = readable_of(config, store.engine, store.log, tables)
        with store.snapshot() as snapshot:
            facts = read_facts(snapshot)
            facts.log_name, facts.now, facts.mark = rules.log_name, tables, mark_of(snapshot, receivers)
            mark = last_mark(snapshot.record()) if is_later else None
            if mark is not None:
                gathered.keys = keys_since(mark, snapshot, reader, receivers)
                facts.since = (
                    f"only objects that changed since {mark.at[:19]} UTC, or were open then, are judged"
                )
            gathered.add_rows(
                rows_of_snapshot(snapshot, reader, has_values=gathered.has_texts, keys=gathered.keys)
            )
            gathered.add_journal(journal_of(snapshot))
            if has_state:
                xds = config.build(XdsSettings)
                gathered.add_present(present_rows(snapshot, tables, readable, xds), reader)
    facts.is_purged |= config.build(PublisherSettings).delete_from_log
    facts.loopback_is_purged = facts.is_purged and rules.loopback_user is not None
    return reader, facts


def _as_json(report: AuditReport) -> dict[str, Any]:
    laws = []
    for law in Law:
        first = report.first_breaches.get(law)
        facts: dict[str, Any] = {"law": law.name.lower(), "promise": str(law), "breaches": 0}
        facts["judged"] = law not in report.open_laws
        if first is not None:
            facts |= {"breaches": report.breach_counts[law], "remedy": REMEDIES[law]}
            facts["first"] = {"object": first.object, "record_id": first.record_id, "reason": first.words}
        laws.append(facts)
    return {
        "since": report.since,
        "rows": report.rows,
        "letters": dict(sorted(report.letters.items())),
        "objects": report.objects,
        "events": report.events,
        "late_events": report.late,
        "not_judged": report.not_judged,
        "unreadable": report.faults[:_SHOWN],
        "not_compared": report.not_compared[:_SHOWN],
        "laws": laws,
        "digest": report.digest,
    }


_SHOWN = 20  # of the rows that could not be judged


def _print_report(report: AuditReport) -> None:
    show(_summary(report), *_limits_of(report))
    Listing(("", ""), "{:<8}  {}", _STYLES, indent=10).show(_verdicts(report))
    show(f"digest {report.digest}")


def _page(report: AuditReport, delivered: Sequence[str]) -> str:
    """Return the report as a page for people."""
    from eventlog.web.rendering import one_file

    facts = {"Receiver": ", ".join(delivered), "Made at (UTC)": f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S}"}
    return one_file(
        "audit.html",
        is_good=report.is_good,
        summary=_summary(report),
        limits=[*_limits_of(report)],
        verdicts=[*_verdicts(report)],
        facts=facts | {"Digest": report.digest},
    )


def _summary(report: AuditReport) -> str:
    letters = ", ".join(f"{letter} {rows}" for letter, rows in sorted(report.letters.items()))
    rows = quantity(report.rows, "row") + (f" ({letters})" if letters else "")
    return f"{rows}, {quantity(report.objects, 'object')}, {quantity(report.events, 'delivered event')}"


_STYLES = {"open": "yellow", "holds": "green", "broken": "red", "unread": "red"}


def _verdicts(report: AuditReport) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield a word on each law, and on what could not be judged, with lines about it."""
    for law in Law:
        first = report.first_breaches.get(law)
        if reason := report.open_laws.get(law):
            yield "open", (f"{law}: {reason}",)
        elif first is None:
            yield "holds", (str(law),)
        else:
            count = report.breach_counts[law]
            times = "once" if count == 1 else f"{count} times, first"
            place = f"{law}: {times} at row {first.record_id} of {first.object}"
            yield "broken", (place, first.words, REMEDIES[law])
    for word, reasons in (("open", report.not_compared), ("unread", report.faults)):
        yield from ((word, (reason,)) for reason in reasons[:_SHOWN])
        if len(reasons) > _SHOWN:
            yield word, (f"{len(reasons) - _SHOWN} more",)


def _limits_of(report: AuditReport) -> Iterator[str]:
    """Yield what was not judged."""
    if report.since:
        yield report.since
    if report.not_judged:
        objects = quantity(report.not_judged, "object")
        yield f"{objects} not judged by contents: the log lacks what was published at that time"
    if report.late:
        yield f"{quantity(report.late, 'event')} may have come after the log was read"
    if report.is_purged:
        yield "handled rows were deleted: documents whose rows are gone, and rows without one, are not judged"
    if not report.is_whole:
        yield "the receiver has dropped old documents: rows without a document are not judged"


def _receipt_of(config: Config, table: str, key: str) -> Receipt:
    """Return what the log has on record of an object, and its present row."""
    from eventlog.opening.recorded_settings import opened_as_published
    from eventlog.operate.receipt import read_receipt

    with opened_as_published(config) as (config, store):
        return read_receipt(config, store, table, key, MAX_RECORD_ID)


def _print_receipt(
    gathered: Gathered, facts: Facts, reader: AuditReader, name: tuple[str, str], receipt: Receipt | None
) -> None:
    """Print the history of one object: its rows, what happened, its documents, and its present row."""
    table = reader.table_of(*name)
    shares = map(gathered.share, gathered.parts())
    objects = chain.from_iterable(share.objects(range(share.size)) for share in shares)
    audited = next((candidate for candidate in objects if candidate.table == table), None)
    if audited is None:
        print_sentence(f"neither the log nor the receiver has {' '.join(name)}")
        sys.exit(1)
    show(audited.name)
    for cells in _lines_of(audited, facts, receipt):
        show("  " + "  ".join(cell for cell in cells if cell))


def _lines_of(
    audited: AuditedObject, facts: Facts, receipt: Receipt | None
) -> Iterator[Sequence[str | None]]:
    events = events_of_rows(audited.rows, audited.deliveries)
    for row in audited.rows:
        reason = facts.reason(row.record_id, row.letter)
        event = ", ".join(f"in {name}" for name in events.get(row.record_id, ()))
        kind = f"type {row.event_type}"
        yield f"row {row.record_id}", row.time, kind, row.column, row.letter, event, reason
    if receipt is not None:
        yield from ((line.what, line.at, line.words) for line in receipt.lines)
    for delivery in audited.deliveries:
        answer = f"answered {delivery.level}" if delivery.level else "not answered"
        yield delivery.where, delivery.at, delivery.operation, delivery.event_id, answer
    if receipt is not None:
        yield "now", receipt.present
