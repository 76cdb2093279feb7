"""Spans for OpenTelemetry: a cycle, its documents, their answers.

OpenTelemetry is imported only where its own variables ask for spans. A span has names, counts and levels, but
no value of a row and no words of a receiver.
https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/
"""

from __future__ import annotations

import logging
import os
import re
import time
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from threading import Thread
from typing import TYPE_CHECKING

from eventlog import __version__
from eventlog.core.errors import Misuse
from eventlog.core.extras import extra
from eventlog.publisher.batches import EventDocument
from eventlog.publisher.tally import AnswerTally, CycleResult
from eventlog.sinks import sink_kind
from eventlog.sinks.sink import Reply, Sink
from eventlog.sinks.trace_context import trace_of_process
from eventlog.xds.answers import Level

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.trace import Span
    from opentelemetry.util.types import AttributeValue

logger = logging.getLogger("eventlog.tracing")

FLUSH = 5.0  # seconds at the end for spans that have not left
MAX_SPANNED = 50  # cycles and documents that have spans at once; each costs 0.1 ms
SPANNED_EVERY = 5.0  # seconds until there is room for so many again
MAX_IDS = 10  # event-ids of a span; the name of a larger document has its first and last record_id
REPORTED_EVERY = 60.0  # seconds between two messages about the collector
_ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
_PROTOCOLS = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
_ADDRESSES = re.compile(r" with url: \S+|\?\S*")  # paths and queries, which may hold a secret
_GOOD = ("success", "warning", "divided")


class Tracing:
    """Makes no spans; documents carry the trace of the process."""

    def cycle(self, tally: AnswerTally) -> AbstractContextManager[None]:
        """Return a block that is one cycle."""
        return nullcontext()

    def deliver(self, sink: Sink, documents: Iterable[EventDocument]) -> Iterator[Reply]:
        """Send documents and yield the replies."""
        return sink.deliver(documents)


@contextmanager
def tracing(log: str, sink: str) -> Iterator[Tracing]:
    """Yield what makes spans, if variables ask for them; at the end spans have some seconds to leave."""
    if not _is_on(os.environ):
        yield Tracing()
        return
    provider = _provider()
    try:
        yield SpanTracing(provider, log, sink)
    finally:
        flush = Thread(target=provider.shutdown, daemon=True)  # its own limit is 30 s
        flush.start()
        flush.join(FLUSH)
        if flush.is_alive():
            logger.warning("the last spans did not reach the collector within %.0f s", FLUSH)


def _is_on(variables: Mapping[str, str]) -> bool:
    """Return whether variables ask for spans; Misuse if they ask for what we cannot send."""
    exporter = variables.get("OTEL_TRACES_EXPORTER", "").strip().lower()
    is_disabled = variables.get("OTEL_SDK_DISABLED", "").strip().lower() == "true"
    if is_disabled or exporter == "none" or not (exporter or any(map(variables.get, _ENDPOINTS))):
        return False
    if exporter not in ("", "otlp"):
        raise Misuse(f"OTEL_TRACES_EXPORTER is {exporter!r}; expected otlp or none")
    protocol = next(filter(None, map(variables.get, _PROTOCOLS)), "http/protobuf")
    if protocol != "http/protobuf":
        raise Misuse(f"{_PROTOCOLS[1]} is {protocol!r}; expected http/protobuf, usually at port 4318")
    return True


def _provider() -> TracerProvider:
    """Return the SDK, set up by its variables, with a queue that drops spans when it is full."""
    with extra("otel", "tracing (OTEL_SDK_DISABLED=true turns it off)"):
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import OTELResourceDetector, Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    reports = logging.getLogger("opentelemetry")
    reports.handlers, reports.propagate = [_Reports(logging.WARNING)], False
    ours = Resource.create({"service.name": "eventlog", "service.version": __version__})
    try:
        provider = TracerProvider(
            resource=ours.merge(OTELResourceDetector().detect()), shutdown_on_exit=False
        )
        provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    except ValueError as fault:
        raise Misuse(f"OpenTelemetry's variables: {fault}") from fault
    return provider


class _Reports(logging.Handler):
    """Writes what OpenTelemetry reports of the collector to our log, at most once a minute."""

    _silent_until = 0.0

    def emit(self, record: logging.LogRecord) -> None:
        if record.created >= self._silent_until:
            self._silent_until = record.created + REPORTED_EVERY
            logger.warning("tracing: %s", _ADDRESSES.sub("", record.getMessage()))


class SpanTracing(Tracing):
    """Makes the spans of a publisher, which works in one thread."""

    def __init__(self, provider: TracerProvider, log: str, sink: str) -> None:
        from opentelemetry import trace
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        self._in = trace.set_span_in_context
        self._start = provider.get_tracer("eventlog", __version__).start_span
        self._propagator = TraceContextTextMapPropagator()
        self._process = self._propagator.extract(trace_of_process())
        self._process_span = trace.get_current_span(self._process)
        self._facts: dict[str, AttributeValue] = {"eventlog.log": log, "eventlog.sink": sink}
        self._kind = trace.SpanKind[sink_kind(sink).span]
        self._begun_at = 0
        self._span: Span | None = None  # of the cycle, once it has something to show
        self._headers: dict[str, str] = {}  # of its documents without a span
        self._room, self._room_at = float(MAX_SPANNED), time.monotonic()

    @contextmanager
    def cycle(self, tally: AnswerTally) -> Iterator[None]:
        """Make the span of a cycle that has rows, documents or a fault."""
        self._begun_at, why = time.time_ns(), None
        try:
            yield
        except Exception as fault:
            why = type(fault).__name__
            raise
        finally:
            cycle = tally.result
            why = why or ("the receiver is down" if cycle.down else None)
            if self._span or cycle.rows or why:
                _end(self._cycle_span(), _facts_of(cycle), why)
            self._span = None

    def deliver(self, sink: Sink, documents: Iterable[EventDocument]) -> Iterator[Reply]:
        """Send documents and yield the replies, each within the span of its answer."""
        spans: dict[str, Span] = {}  # by the names of documents without a reply
        taken: deque[EventDocument] = deque()
        since = time.time_ns()
        try:
            for reply in sink.deliver(self._traced(documents, taken, spans)):
                document = taken.popleft()
                if document.name not in spans:  # the sink sends no headers
                    self._begin(document, spans, since)
                yield from self._answered(spans.pop(document.name), reply)
                since = time.time_ns()
        finally:
            for span in spans.values():
                _end(span, {"eventlog.outcome": "no reply"}, "no reply")

    def _traced(
        self, documents: Iterable[EventDocument], taken: deque[EventDocument], spans: dict[str, Span]
    ) -> Iterator[EventDocument]:
        """Yield documents that begin a span when they are sent; those that left are added to `taken`."""
        for document in documents:
            document.on_begin = partial(self._begin, document, spans)
            taken.append(document)
            yield document

    def _answered(self, span: Span, reply: Reply) -> Iterator[Reply]:
        """Yield the reply to a document; its spans end when the publisher has taken note of it."""
        if not span.is_recording():
            yield reply
            return
        outcome = _outcome(reply)
        facts, why = {"eventlog.outcome": outcome}, None if outcome in _GOOD else outcome
        spans = [span]
        if reply.is_answer:
            spans.insert(0, self._start("answer", self._in(span)))
        try:
            yield reply
        finally:
            for each in spans:
                _end(each, facts, why)

    def _begin(
        self, document: EventDocument, spans: dict[str, Span], since: int | None = None
    ) -> dict[str, str]:
        """Start the span of a document, if there is room for one. Return the headers of its trace."""
        cycle_span = self._cycle_span()
        if not cycle_span.is_recording() or not self._has_room():
            spans[document.name] = self._process_span  # records nothing
            return self._headers
        facts = self._facts | {"eventlog.document": document.name, "eventlog.events": document.size}
        if document.size <= MAX_IDS:
            facts["eventlog.event_ids"] = [event.event_id for event in document.events]
        context = self._in(cycle_span)
        span = self._start("document", context, kind=self._kind, attributes=facts, start_time=since)
        spans[document.name] = span
        return self._headers_of(span)

    def _cycle_span(self) -> Span:
        if self._span is None:
            self._span = self._process_span
            if self._has_room():
                facts, since = self._facts, self._begun_at
                self._span = self._start("cycle", self._process, attributes=facts, start_time=since)
            self._headers = self._headers_of(self._span)
        return self._span

    def _headers_of(self, span: Span) -> dict[str, str]:
        headers: dict[str, str] = {}
        self._propagator.inject(headers, self._in(span))
        return headers

    def _has_room(self) -> bool:
        """Return whether one more cycle or document may have spans now."""
        now = time.monotonic()
        self._room = min(MAX_SPANNED, self._room + (now - self._room_at) * MAX_SPANNED / SPANNED_EVERY)
        self._room_at = now
        has_room = self._room >= 1
        self._room -= has_room
        return has_room


def _outcome(reply: Reply) -> str:
    if reply.divide:
        return "divided"
    if reply.fault is not None:
        return "no answer" if reply.arrived else "not delivered"
    return max((status.level for status in reply.statuses), default=Level.SUCCESS).name.lower()


def _facts_of(cycle: CycleResult) -> dict[str, AttributeValue]:
    counts = Counter({name: getattr(cycle, name) for name in ("rows", "documents", "events", "refused")})
    for (_, level), events in cycle.answers.items():
        counts[f"answers.{level}"] += events
    return {f"eventlog.{name}": count for name, count in counts.items()}


def _end(span: Span, facts: Mapping[str, AttributeValue], why_failed: str | None) -> None:
    from opentelemetry.trace import Status, StatusCode

    span.set_attributes(facts)
    if why_failed:
        span.set_status(Status(StatusCode.ERROR, why_failed))
    span.end()
