"""Spans of a publisher, as a collector and a receiver get them, and a publisher without any."""

from __future__ import annotations

import json
import logging
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy.exc import SQLAlchemyError

from eventlog.core.errors import Misuse
from eventlog.publisher import tracing as tracing_module
from eventlog.publisher.cycle import ReceiverFatal
from eventlog.publisher.delivery import CycleHooks
from eventlog.publisher.tracing import MAX_IDS, MAX_SPANNED, SPANNED_EVERY, SpanTracing, Tracing, tracing
from eventlog.sinks import open_sink
from eventlog.sinks.sink import ACCEPTED, OutgoingDocument, Reply, unanswered, unreachable
from eventlog.xds.answers import Level, Status
from tests.kit.brokers import own_name
from tests.kit.logs import Receiver, answering, key
from tests.kit.receivers import say, serving
from tests.kit.support import patient, until
from tests.world.world import ROOT, World

pytest.importorskip("opentelemetry.exporter.otlp.proto.http", reason="the extra otel is not installed")
pytestmark = pytest.mark.quick

OUTPUT = b'<nds><output><status level="success"/></output></nds>'
PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
COMMAND = """
import json, sys
from eventlog.cli import main
try:
    main()
finally:
    print(json.dumps(sorted(sys.modules)))
"""


class Collector:
    """A collector of spans over OTLP and HTTP; its spans by their names."""

    def __init__(self) -> None:
        self.resources: list[dict[str, Any]] = []
        self.spans: list[Any] = []

    def answer(self, handler: Any) -> None:
        from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

        assert handler.path == "/v1/traces"
        for resource_spans in ExportTraceServiceRequest.FromString(handler.body).resource_spans:
            self.resources.append(facts_of(resource_spans.resource))
            self.spans += [span for scope in resource_spans.scope_spans for span in scope.spans]
        handler.reply(b"")

    def named(self, name: str) -> list[Any]:
        return [span for span in self.spans if span.name == name]


def facts_of(span: Any) -> dict[str, Any]:
    """Return the attributes of a span or resource of a request."""

    def value(variant: Any) -> Any:
        kind = variant.WhichOneof("value")
        return (
            [value(each) for each in variant.array_value.values]
            if kind == "array_value"
            else getattr(variant, kind)
        )

    return {pair.key: value(pair.value) for pair in span.attributes}


def run(
    world: World, *words: str, code: str = COMMAND, **variables: str
) -> tuple[subprocess.CompletedProcess[str], set[str]]:
    """Run one cycle in a process. Return how it ended, and the modules that it imported."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("OTEL_", "TRACE"))}
    environment = clean | {"EVENTLOG_URL": world.url, "PYTHONPATH": str(ROOT)} | variables
    command = [sys.executable, "-B", "-c", code, "run", "--once", "--sync-tables", "usr", *words]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=patient(120))
    return done, set(json.loads(done.stdout.splitlines()[-1]))


@pytest.mark.slow("a process loads the SDK")
def test_a_collector_gets_the_cycle_its_documents_and_their_answers(world: World) -> None:
    collector, headers = Collector(), list[tuple[str, str]]()

    def receive(handler: Any) -> None:
        headers.append((handler.headers["traceparent"], handler.headers["tracestate"]))
        say(200, OUTPUT)(handler)

    world.write(key(1, event_type=3, column_name="fname", new_value="Secret1"), key(2, event_type=4))
    with serving(collector.answer) as url, serving(receive) as receiver:
        done, _ = run(
            world,
            *("--sink", "http", "--http-url", f"{receiver}/in"),
            OTEL_EXPORTER_OTLP_ENDPOINT=url,
            OTEL_RESOURCE_ATTRIBUTES="deployment.environment.name=test",
            TRACEPARENT=PARENT,
            TRACESTATE="rojo=1",
        )
    assert done.returncode == 0, done.stderr
    (cycle,) = collector.named("cycle")
    documents, answers = collector.named("document"), collector.named("answer")
    assert f"00-{cycle.trace_id.hex()}-{cycle.parent_span_id.hex()}-01" == PARENT
    assert {span.trace_id for span in collector.spans} == {cycle.trace_id}
    assert [span.parent_span_id for span in documents] == [cycle.span_id] * 2
    assert [span.parent_span_id for span in answers] == [span.span_id for span in documents]
    assert headers == [(f"00-{s.trace_id.hex()}-{s.span_id.hex()}-01", "rojo=1") for s in documents]
    for inner, outer in [*zip(answers, documents, strict=True), *((span, cycle) for span in documents)]:
        assert outer.start_time_unix_nano <= inner.start_time_unix_nano
        assert inner.end_time_unix_nano <= outer.end_time_unix_nano
    assert [span.kind for span in (cycle, *documents, *answers)] == [1, 3, 3, 1, 1]  # internal, client
    same = {"eventlog.log": "eventlog", "eventlog.sink": "http"}
    counts = {"eventlog.rows": 2, "eventlog.documents": 2, "eventlog.events": 2, "eventlog.refused": 0}
    assert facts_of(cycle) == same | counts | {"eventlog.answers.success": 2}
    assert facts_of(documents[1]) == same | {
        "eventlog.document": "2-2",
        "eventlog.events": 1,
        "eventlog.event_ids": ["eventlog:2"],
        "eventlog.outcome": "success",
    }
    assert facts_of(answers[0]) == {"eventlog.outcome": "success"}
    assert {span.status.code for span in collector.spans} == {0}
    named = {name: collector.resources[0][name] for name in ("service.name", "deployment.environment.name")}
    assert named == {"service.name": "eventlog", "deployment.environment.name": "test"}
    assert "Secret1" not in str(collector.spans)


def test_nothing_is_imported_while_nobody_asks_for_spans(world: World) -> None:
    world.write(key(1, event_type=4))
    done, modules = run(world, "--sink", "stdout", OTEL_SERVICE_NAME="eventlog")
    assert (done.returncode, world.letters()) == (0, {1: "S"}), done.stderr
    assert {name for name in modules if re.match("opentelemetry|google|requests", name)} == set()


@pytest.mark.parametrize(
    "variables",
    [
        {"OTEL_SDK_DISABLED": "TRUE"},
        {"OTEL_TRACES_EXPORTER": "none"},
        {"OTEL_EXPORTER_OTLP_ENDPOINT": ""},
    ],
    ids=["disabled", "no exporter", "empty"],
)
def test_variables_turn_spans_off(monkeypatch: pytest.MonkeyPatch, variables: dict[str, str]) -> None:
    for name, value in ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://localhost:1"} | variables).items():
        monkeypatch.setenv(name, value)
    with tracing("eventlog", "http") as traced:
        assert type(traced) is Tracing


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"OTEL_TRACES_EXPORTER": "console"}, "OTEL_TRACES_EXPORTER is 'console'; expected otlp or none"),
        (
            {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4317", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"},
            "OTEL_EXPORTER_OTLP_PROTOCOL is 'grpc'; expected http/protobuf, usually at port 4318",
        ),
        (
            {"OTEL_TRACES_EXPORTER": "otlp", "OTEL_BSP_MAX_QUEUE_SIZE": "-1"},
            "OpenTelemetry's variables: max_queue_size must be a positive integer.",
        ),
    ],
    ids=["console", "grpc", "queue"],
)
def test_variables_that_cannot_be_followed_are_refused(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], message: str
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(Misuse, match=f"^{re.escape(message)}$"), tracing("eventlog", "http"):
        pass


def test_a_missing_package_is_named_before_anything_is_published(world: World) -> None:
    world.write(key(1, event_type=4))
    code = f"import sys\nsys.modules['opentelemetry'] = None\n{COMMAND}"
    done, _ = run(world, "--sink", "stdout", code=code, OTEL_TRACES_EXPORTER="otlp")
    assert re.fullmatch(
        r"eventlog: tracing \(OTEL_SDK_DISABLED=true turns it off\) needs a package that is not installed: "
        r"pip install '.*\[otel\]'.*\n",
        done.stderr,
    )
    assert (done.returncode, world.letters()) == (2, {1: "N"})


@contextmanager
def silent_collector() -> Iterator[str]:
    """Accept connections and never answer."""
    with socket.create_server(("127.0.0.1", 0), backlog=128) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


def test_a_collector_that_never_answers_delays_no_document(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(tracing_module, "FLUSH", 0.2)
    monkeypatch.setattr(tracing_module, "MAX_SPANNED", 10_000)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")
    for name, value in (("SCHEDULE_DELAY", "1"), ("MAX_QUEUE_SIZE", "8"), ("MAX_EXPORT_BATCH_SIZE", "4")):
        monkeypatch.setenv(f"OTEL_BSP_{name}", value)
    world.write(*(key(number, event_type=4) for number in range(200)))
    receiver, control = Receiver(), CycleHooks()
    with silent_collector() as url:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", url)
        with tracing("eventlog", "http") as control.tracing:
            world.cycle(receiver, control=control)
            assert len(receiver.documents) == 200
            for number in range(3):
                logging.getLogger("opentelemetry.sdk").error("no export %d", number)
            begun = time.monotonic()
        assert time.monotonic() - begun < patient(5)
    assert "the last spans did not reach the collector within 0 s" in caplog.text
    assert caplog.text.count("tracing: ") == 1  # of many reports


@pytest.mark.slow("spans have 5 s at the end")
def test_a_collector_that_is_down_fails_nothing(world: World) -> None:
    world.write(key(1, event_type=4))
    begun = time.monotonic()
    done, _ = run(
        world, "--sink", "stdout", OTEL_EXPORTER_OTLP_ENDPOINT="http://token:secret@127.0.0.1:1/?key=secret"
    )
    assert (done.returncode, world.letters()) == (0, {1: "S"})
    assert time.monotonic() - begun < patient(30)
    lines = [line for line in done.stderr.splitlines() if "WARNING" in line]
    assert len(lines) in (1, 2)
    assert "tracing: " in lines[0]
    assert "secret" not in done.stderr
    assert "Traceback" not in done.stderr


class Spans:
    """Makes spans in memory."""

    def __init__(self, sink: str = "http", sampler: Any = None) -> None:
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import SimpleSpanProcessor
        from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

        self._memory = InMemorySpanExporter()
        provider = TracerProvider(sampler, shutdown_on_exit=False)
        provider.add_span_processor(SimpleSpanProcessor(self._memory))
        self.control = CycleHooks()
        self.control.tracing = SpanTracing(provider, "eventlog", sink)

    def finished(self, *names: str) -> list[Any]:
        """Return the spans with these names, in the order of their ends."""
        return [span for span in self._memory.get_finished_spans() if span.name in (names or (span.name,))]

    def statuses(self) -> list[tuple[str, str | None, str | None]]:
        """Return the names of all spans, why each failed, and its outcome."""
        return [
            (span.name, span.status.description, span.attributes.get("eventlog.outcome"))
            for span in self.finished()
        ]


def no_answer(document: OutgoingDocument) -> Reply:
    return unanswered("Secret1")


@pytest.mark.parametrize(
    ("reply", "outcomes", "cycle"),
    [
        (
            answering(Level.WARNING, "Secret1"),
            [("answer", None, "warning"), ("document", None, "warning")],
            None,
        ),
        (
            answering(Level.ERROR, "Secret1"),
            [("answer", "error", "error"), ("document", "error", "error")],
            None,
        ),
        (
            answering(Level.RETRY, "Secret1"),
            [("answer", "retry", "retry"), ("document", "retry", "retry")],
            None,
        ),
        (no_answer, [("document", "no answer", "no answer")], None),
        (
            lambda document: unreachable("Secret1"),
            [("document", "not delivered", "not delivered")],
            "the receiver is down",
        ),
    ],
    ids=["warning", "error", "retry", "no answer", "not delivered"],
)
def test_a_failure_is_the_status_of_its_spans_without_words_of_the_receiver(
    world: World, reply: Any, outcomes: list[Any], cycle: str | None
) -> None:
    world.write(key(1, event_type=4))
    spans = Spans()
    world.cycle(Receiver(reply), control=spans.control)
    assert spans.statuses() == [*outcomes, ("cycle", cycle, None)]
    assert "Secret1" not in "".join(span.to_json() for span in spans.finished())


def test_a_fatal_answer_is_the_status_of_the_cycle(world: World) -> None:
    world.write(key(1, event_type=4))
    spans = Spans()
    with pytest.raises(ReceiverFatal):
        world.cycle(Receiver(answering(Level.FATAL)), control=spans.control)
    assert spans.statuses()[-1] == ("cycle", "ReceiverFatal", None)
    assert spans.finished("cycle")[0].attributes["eventlog.answers.fatal"] == 1


def test_a_fault_of_the_database_is_the_status_of_a_cycle_without_rows(world: World) -> None:
    spans = Spans()
    with world.publisher(Receiver(), control=spans.control) as publisher:
        publisher.cycle()
        assert spans.statuses() == []  # a cycle without rows has nothing to show
        world.change("alter table eventlog rename to elsewhere")
        try:
            with pytest.raises((Exception, SQLAlchemyError)) as raised:
                publisher.cycle()
        finally:
            world.change("alter table elsewhere rename to eventlog")
    assert spans.statuses() == [("cycle", type(raised.value).__name__, None)]


def test_documents_that_a_stop_or_a_crash_leaves_have_ended_spans(world: World) -> None:
    class Batching(Receiver):
        """A sink that begins all documents, and replies to the first."""

        def deliver(self, documents: Any) -> Iterator[Reply]:
            for document in documents:
                document.begin()
            yield ACCEPTED

    world.write(key(1, event_type=4), key(2, event_type=4))
    spans = Spans()
    world.cycle(Batching(), control=spans.control)
    assert spans.statuses()[:3] == [
        ("answer", None, "success"),
        ("document", None, "success"),
        ("document", "no reply", "no reply"),
    ]


def test_documents_beyond_the_room_for_spans_have_the_trace_of_their_cycle(world: World) -> None:
    contexts: list[str] = []

    def take(document: OutgoingDocument) -> Reply:
        contexts.append(document.begin()["traceparent"])
        return ACCEPTED

    world.write(*(key(number, event_type=4) for number in range(3 * MAX_SPANNED)))
    spans = Spans()
    begun = time.monotonic()
    world.cycle(Receiver(take), control=spans.control)
    room = MAX_SPANNED * (1 + (time.monotonic() - begun) / SPANNED_EVERY)
    (cycle,), documents = spans.finished("cycle"), spans.finished("document")
    assert MAX_SPANNED - 1 <= len(documents) <= room
    own = {f"{span.context.span_id:016x}" for span in documents}
    carried = [text.split("-")[2] for text in contexts]
    assert len(set(carried) & own) == len(documents)
    assert {name for name in carried if name not in own} <= {f"{cycle.context.span_id:016x}"}
    assert {text.split("-")[1] for text in contexts} == {f"{cycle.context.trace_id:032x}"}


def test_cycles_beyond_the_room_have_no_spans(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracing_module, "MAX_SPANNED", 0)
    monkeypatch.setenv("TRACEPARENT", PARENT)
    contexts: list[dict[str, str]] = []
    world.write(key(1, event_type=4))
    spans = Spans()

    def take(document: OutgoingDocument) -> Reply:
        contexts.append(document.begin())
        return ACCEPTED

    world.cycle(Receiver(take), control=spans.control)
    assert (spans.finished(), contexts) == ([], [{"traceparent": PARENT}])


def test_documents_of_a_trace_that_is_not_sampled_tell_their_receiver_so(world: World) -> None:
    from opentelemetry.sdk.trace.sampling import ALWAYS_OFF

    contexts: list[str] = []
    world.write(key(1, event_type=4), key(2, event_type=4))
    spans = Spans(sampler=ALWAYS_OFF)

    def take(document: OutgoingDocument) -> Reply:
        contexts.append(document.begin()["traceparent"])
        return ACCEPTED

    world.cycle(Receiver(take), control=spans.control)
    assert (spans.finished(), len(contexts), len(set(contexts))) == ([], 2, 1)
    assert not int(contexts[0][-2:], 16) & 1  # the flag `sampled`


@pytest.mark.parametrize("events", [MAX_IDS, MAX_IDS + 1])
def test_a_document_names_few_events_and_the_range_of_many_rows(world: World, events: int) -> None:
    world.write(*(key(number, event_type=4) for number in range(events)))
    spans = Spans("files")
    world.cycle(Receiver(), control=spans.control, batch_size=100)
    (document,) = spans.finished("document")
    assert document.attributes["eventlog.document"] == f"1-{events}"
    names = tuple(f"eventlog:{number}" for number in range(1, events + 1))
    assert document.attributes.get("eventlog.event_ids") == (names if events == MAX_IDS else None)
    assert document.kind.name == "INTERNAL"


@pytest.mark.slow("a consumer waits for its group")
def test_a_message_of_kafka_has_the_trace_of_its_document(world: World, brokers: str) -> None:
    import confluent_kafka

    world.write(key(1, event_type=4), key(2, event_type=4))
    topic, spans = own_name("spans"), Spans("kafka")
    sink = open_sink("kafka", {"kafka_brokers": brokers, "kafka_topic": topic, "kafka_timeout": patient(10)})
    world.cycle(sink, control=spans.control)
    sink.close()
    documents = spans.finished("document")
    assert [span.kind.name for span in documents] == ["PRODUCER", "PRODUCER"]
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": brokers, "group.id": topic, "auto.offset.reset": "earliest"}
    )
    consumer.subscribe([topic])
    messages: list[Any] = []

    def has_both() -> bool:
        messages.extend(consumer.consume(2, 0.5))
        return len(messages) == 2

    until(has_both)
    consumer.close()
    traces = {str(span.attributes["eventlog.event_ids"][0]): span.context for span in documents}
    for message in messages:
        headers = {name: value.decode() for name, value in message.headers()}
        context = traces[headers["event-id"]]
        assert (
            headers["traceparent"]
            == f"00-{context.trace_id:032x}-{context.span_id:016x}-{context.trace_flags:02x}"
        )


def test_a_divided_document_has_no_answer(world: World) -> None:
    def take(document: OutgoingDocument) -> Reply:
        return Reply(divide=True) if len(document.items) > 1 else ACCEPTED

    world.write(key(1, event_type=4), key(2, event_type=4))
    spans = Spans()
    world.cycle(Receiver(take), control=spans.control, batch_size=2)
    assert [name for name, _, _ in spans.statuses()] == ["document", *["answer", "document"] * 2, "cycle"]
    assert spans.statuses()[0] == ("document", None, "divided")


def test_an_answer_has_the_worst_level_of_its_statuses(world: World) -> None:
    def take(document: OutgoingDocument) -> Reply:
        good, bad = document.items
        return Reply([Status(Level.ERROR, bad.event_id), Status(Level.SUCCESS, good.event_id)])

    world.write(key(1, event_type=4), key(2, event_type=4))
    spans = Spans()
    world.cycle(Receiver(take), control=spans.control, batch_size=2)
    assert spans.statuses()[0] == ("answer", "error", "error")
    facts = spans.finished("cycle")[0].attributes
    assert (facts["eventlog.answers.error"], facts["eventlog.answers.success"]) == (1, 1)
