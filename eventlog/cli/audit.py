"""eventlog audit: whether a receiver has what a log has on record as sent, byte for byte."""

from __future__ import annotations

import json
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import Any

import click

from eventlog.audit.audit_report import AuditReport, Law
from eventlog.audit.delivered import Delivered, DeliveredDocument, receiver_at
from eventlog.audit.event_text import names_of
from eventlog.cli.log_options import INPUT, READING, by_option, live_options
from eventlog.cli.options import FILE_NAME, SettingsCommand, refuse_flags
from eventlog.cli.progress import counter
from eventlog.cli.terminal import Listing, print_sentence, show
from eventlog.core.entry import MAX_RECORD_ID, OBJECT
from eventlog.core.errors import Misuse
from eventlog.core.identity import object_of
from eventlog.core.plurals import quantity
from eventlog.core.settings import declared
from eventlog.core.tables import Tables
from eventlog.core.text_digest import digest
from eventlog.files.durable import write_whole
from eventlog.files.limits import Limits
from eventlog.fold import Rules
from eventlog.opening.comparing_settings import ComparingSettings
from eventlog.opening.config import Config
from eventlog.opening.publisher_settings import PublisherSettings, SourceSettings
from eventlog.sinks.kafka import KafkaSinkSettings
from eventlog.xds.xds_settings import XdsSettings

_USED = ("driver_user", "allow_loopback", "log_name", "insert_query_back", "time_syntax", "delete_from_log")
_OF_FILES = ("csv_delimiter", "csv_null", "csv_quote", "layout")
# What decides which documents are sent, and how, is on record.
UNUSED = {"kafka_topic", *_OF_FILES} | frozenset(
    field.name
    for settings in (SourceSettings, Rules, XdsSettings, PublisherSettings)
    for field in declared(settings)
    if field.name not in _USED
)


@click.command(cls=SettingsCommand)
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
@click.option(
    "--state",
    is_flag=True,
    help="also compare what the documents make with the present rows of the tables",
)
@click.option("-o", "--output", type=click.Path(path_type=Path), help="also write the report as an HTML page")
@click.option("--record", is_flag=True, help="leave the result in the log, for status and metrics")
@by_option
@click.option("--json", "as_json", is_flag=True, help="as one JSON object")
@live_options((*READING, ("a topic", KafkaSinkSettings), *INPUT), without=UNUSED)
def audit(
    delivered: tuple[str, ...],
    of_object: tuple[str, str] | None,
    state: bool,
    output: Path | None,
    record: bool,
    who: str | None,
    as_json: bool,
    config: Config,
) -> None:
    """Compare what the configured log has on record as sent with the documents that a receiver has.

    Exit code 0: the receiver has all of it, byte for byte, and nothing else. Exit code 1: a law does not
    hold; the first place is printed for each, with a remedy. So it is if events on record are not judged.
    Exit code 2: nothing was judged, because an input is wrong or a batch on record is damaged. The digest is
    the same for the same rows, letters, record, documents and answers.
    """
    limits, kafka = config.build(Limits), config.build(KafkaSinkSettings)
    receivers = [receiver_at(name, kafka, limits.max_record) for name in delivered]
    if not config.values.get("url"):
        raise Misuse("which log? Give --url, EVENTLOG_URL, or url in eventlog.toml")
    for receiver in receivers:
        receiver.mark()
    if of_object is not None:
        refuse_flags(
            ("as_json", "state", "record", "output"),
            "is for a whole log, and --object prints one object for people",
        )
        _print_receipt(config, of_object, receivers)
        return
    report = _judged(config, receivers, has_state=state)
    if record:
        _record(config, report, who)
    if output is not None:
        write_whole(output, _page(report, delivered))
    show(json.dumps(_as_json(report))) if as_json else _print_report(report)
    if report.outcome != "holds":
        sys.exit(1)


def _judged(config: Config, receivers: Sequence[Delivered], *, has_state: bool) -> AuditReport:
    """Return the report of the configured log and of what receivers have."""
    from eventlog.audit.laws import Arrivals, judge  # Arrow takes a while to load
    from eventlog.audit.on_record import read_log
    from eventlog.audit.state import StateComparison, rows_in
    from eventlog.opening.publisher_tables import readable_of, source_of
    from eventlog.opening.recorded_settings import opened_as_published
    from eventlog.opening.table_source import SourceView
    from eventlog.operate.state_remedies import remedy_of_state
    from eventlog.publisher.preparation import make_reader, read_rules

    with (
        opened_as_published(config, to_look=True) as (config, store),
        counter() as count,
        ExitStack() as stack,
    ):
        rules, tables = read_rules(config, store), make_reader(config, store).tables
        comparison: StateComparison | None = None
        with store.snapshot() as snapshot:
            log = read_log(snapshot)
            if has_state:
                readable = readable_of(config, store.engine, store.log, tables)
                xds, driver = config.build(XdsSettings), rules.loopback_user
                comparison = stack.enter_context(StateComparison(tables, xds, driver))
                unsure = log.open_rows.union(log.facts.reasons, log.facts.skipped)
                if (source := source_of(config)) is None:
                    comparison.read(snapshot, rows_in(snapshot, readable), unsure)
                else:
                    one_moment = config.build(ComparingSettings).snapshot == "one"
                    view = SourceView(source, stack.enter_context(source.view(one_moment=one_moment)))
                    comparison.read(snapshot, lambda table: view.rows(readable[table]), unsure)
        arrivals = Arrivals(log, comparison)
        documents = chain.from_iterable(receiver.documents() for receiver in receivers)
        for events in arrivals.add(documents):
            count(f"{events:,} events are read", 0)
        deletes = config.build(PublisherSettings).delete_from_log
        report = AuditReport(
            is_purged=log.facts.is_purged or deletes,
            is_whole=all(receiver.is_whole() for receiver in receivers),
        )
        if deletes:
            without_record = (Law.DELIVERED, Law.EXPLAINED, Law.IN_ORDER)
            report.open_laws |= dict.fromkeys(without_record, "delete-from-log keeps no record of what left")
        elif not report.is_whole:
            report.open_laws[Law.DELIVERED] = "the receiver has dropped old documents"
        if not has_state:
            report.open_laws[Law.SAME_STATE] = "--state compares them"
        elif comparison is not None and comparison.has_other_kinds:
            report.open_laws[Law.SAME_STATE] = "only documents of XDS are compared with tables"
        elif log.facts.holes_are_purged:
            words = "rows that failed or were skipped are purged, so their objects are not known"
            report.open_laws[Law.SAME_STATE] = words
        elif report.is_purged and rules.loopback_user is not None:
            words = "rows of the driver itself may be among the deleted ones, so what it wrote is not known"
            report.open_laws[Law.SAME_STATE] = f"{words}; with allow-loopback all of them are published"

        def objects_of(ids: Collection[int]) -> Mapping[int, str]:
            with store.snapshot() as now:
                rows = {int(cells[0] or 0): cells[OBJECT] for cells in now.rows(ids)}
            return {row: " ".join(object_of(tables, *map(str, name))) for row, name in rows.items()}

        judge(log, arrivals, report, rules.log_name, objects_of)
        if comparison is not None:
            report.not_compared += comparison.not_compared
            if Law.SAME_STATE not in report.open_laws:
                report.add(comparison.breaches(is_purged=report.is_purged or not report.is_whole))
        report.name_objects(objects_of)
        if (odd := report.first_breaches.get(Law.SAME_STATE)) is not None:
            report.state_remedy = remedy_of_state(store, config, tables, odd.object, is_gone=odd.is_gone)
    return report


def _record(config: Config, report: AuditReport, who: str | None) -> None:
    """Leave the result of an audit in the log."""
    from eventlog.opening.open_log import opened
    from eventlog.sql.log.log_record import Notice, NoticeKind

    breaches = report.breach_counts.total() + len(report.faults)
    result = {"breaches": breaches, "digest": report.digest}
    with opened(config) as store, store.admin() as admin:
        admin.note(Notice(NoticeKind.AUDIT, row_count=report.rows, who=who, words=json.dumps(result)))


def _as_json(report: AuditReport) -> dict[str, Any]:
    laws = []
    for law in Law:
        first, name = report.first_breaches.get(law), law.name.lower()
        facts: dict[str, Any] = {"law": name, "promise": str(law), "breaches": 0}
        facts["judged"] = law not in report.open_laws
        if first is not None:
            facts |= {"breaches": report.breach_counts[law], "remedy": report.remedy_of(law)}
            facts["first"] = {"object": first.object, "record_id": first.record_id, "reason": first.words}
        laws.append(facts)
    return {
        "rows": report.rows,
        "letters": dict(sorted(report.letters.items())),
        "events": report.events,
        "late_events": report.late,
        "not_judged": report.not_judged,
        "without_record": report.without_record,
        "spelled_anew": report.spelled_anew,
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
        outcome=report.outcome,
        summary=_summary(report),
        limits=[*_limits_of(report)],
        verdicts=[*_verdicts(report)],
        facts=facts | {"Digest": report.digest},
    )


def _summary(report: AuditReport) -> str:
    letters = ", ".join(f"{letter} {rows}" for letter, rows in sorted(report.letters.items()))
    rows = quantity(report.rows, "row") + (f" ({letters})" if letters else "")
    return f"{rows}, {quantity(report.events, 'delivered event')}"


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
            of_object = f" of {first.object}" if first.object else ""
            place = f"{law}: {times} at row {first.record_id}{of_object}"
            yield "broken", (place, first.words, report.remedy_of(law))
    for word, reasons in (("open", report.not_compared), ("unread", report.faults)):
        yield from ((word, (reason,)) for reason in reasons[:_SHOWN])
        if len(reasons) > _SHOWN:
            yield word, (f"{len(reasons) - _SHOWN} more",)


def _limits_of(report: AuditReport) -> Iterator[str]:
    """Yield what was not judged."""
    if report.not_judged:
        words = "a version before digests recorded them, or the sum of their backlog is not on record"
        yield f"{quantity(report.not_judged, 'event')} not judged: {words}"
    if report.late:
        yield f"{quantity(report.late, 'event')} may have come after the log was read"
    if report.spelled_anew:
        yield f"{quantity(report.spelled_anew, 'event')} came in another spelling of the same XML"
    if report.is_purged:
        words = "handled rows were deleted: what has no row or no record any more is not judged"
        count = f", {quantity(report.without_record, 'delivered event')} among it"
        yield words + (count if report.without_record else "")
    if not report.is_whole:
        yield "the receiver has dropped old documents: what it lacks is not judged"


def _print_receipt(config: Config, name: tuple[str, str], receivers: Sequence[Delivered]) -> None:
    """Print the history of one object: its rows, what happened, its documents, and its present row."""
    from eventlog.opening.recorded_settings import opened_as_published
    from eventlog.operate.account import read_object
    from eventlog.publisher.preparation import make_reader

    with opened_as_published(config, to_look=True) as (config, store):
        tables = make_reader(config, store).tables
        account = read_object(config, store, *name, MAX_RECORD_ID)
    own_name = object_of(tables, *name)
    documents = chain.from_iterable(receiver.documents() for receiver in receivers)
    arrivals = [*_arrivals_of(own_name, account.digests, tables, documents)]
    if not account.rows and not arrivals:
        print_sentence(f"neither the log nor the receiver has {' '.join(name)}")
        sys.exit(1)
    rows = []
    for row_account in account.rows:
        row = row_account.entry
        event = ", ".join(f"in {event_id}" for event_id in row_account.event_ids)
        kind = f"type {row.event_type}"
        rows.append((f"row {row.record_id}", row.event_time, kind, row.column_name, row.status, event))
    happened = [(line.what, line.at, line.words) for line in account.lines]
    show(" ".join(own_name))
    for cells in (*rows, *happened, *arrivals, ("now", account.present)):
        show("  " + "  ".join(cell for cell in cells if cell))


def _arrivals_of(
    name: tuple[str, str], digests: Collection[bytes], tables: Tables, documents: Iterable[DeliveredDocument]
) -> Iterator[Sequence[str]]:
    """Yield where an object's events are at a receiver: those on record, and those that name it."""
    for document in documents:
        for at, text in enumerate(document.texts):
            names = names_of(text)
            table = names.table if names.schema is None else f"{names.schema}.{names.table}"
            if digest(text) in digests or object_of(tables, table, names.table_key) == name:
                level = "success" if document.levels is None else document.levels[at]
                answer = f"answered {level}" if level else "not answered"
                yield document.where, document.at, names.operation, names.event_id, answer
