"""Every instrument of a process shows one state of now: the page, titles, /readyz and the metrics."""

from __future__ import annotations

import re
import threading
from html import unescape

import pytest

from eventlog.opening.config import Config
from eventlog.opening.log_address import LogAddress, address_of_log
from eventlog.publisher.monitor import Monitor
from eventlog.publisher.readiness import Readiness
from eventlog.sql.connect import ConnectionLost, connect
from eventlog.sql.log.store import Store
from eventlog.status.log_watch import now
from eventlog.web.monitor.page_data import PageData
from eventlog.web.monitor.pages import monitor_app
from tests.kit.logs import metrics_text
from tests.kit.support import until
from tests.web.conftest import TOKEN, Watched
from tests.web.receiver.conftest import HOST, ask
from tests.web.test_status_page import fail_one

pytestmark = pytest.mark.quick

PATHS = ("/", "/errors", "/waiting", "/settings", "/nowhere")
LOG_FIGURES = ("paused", "unread_tables", "pending_rows", "oldest_pending", "held_objects", "errors_kept")


class Instruments:
    """The instruments of a process that has not connected yet."""

    def __init__(self, watched: Watched) -> None:
        self.monitor = Monitor()
        self.page_data = PageData(self.monitor, watched.board.config)
        self.app = monitor_app(self.monitor, self.page_data, HOST)

    def connect(self, store: Store | None) -> None:
        """Connect it as a standby that was checked, or end its connection."""
        self.monitor.connected(store)
        self.monitor.readiness = Readiness(now(), ("the tables",))

    def get(self, path: str) -> tuple[int, str]:
        status, text = ask(self.app, "GET", path)
        return status, unescape(text)

    def show(self, state: str, word: str, *, is_ready: bool) -> None:
        """Check that all show a state."""
        titles = {re.findall("<title>● ([^·]*) ·", self.get(path)[1])[0] for path in PATHS}
        status, text = self.get("/readyz")
        assert titles == {word}
        assert f"<strong>{word}</strong>" in re.sub("</?a[^>]*>", "", self.get("/")[1])
        assert (status, text.startswith("ready\n")) == ((200, True) if is_ready else (503, False))
        assert text.splitlines()[1].startswith(word)
        assert re.fullmatch(r"read \d\.\d s ago", text.splitlines()[2])
        shown = re.findall(r'^eventlog_state{state="(.*)"} 1.0$', metrics_text(self.monitor), re.MULTILINE)
        assert shown[0] == state
        figures = {name: f"\neventlog_{name}" in metrics_text(self.monitor) for name in LOG_FIGURES}
        assert figures == dict.fromkeys(LOG_FIGURES, is_ready)


def test_metrics_name_the_log_and_who_publishes_it(watched: Watched) -> None:
    address = LogAddress("eventlog", "people", "db.example", "6432")
    monitor = Monitor(address)
    labels = 'database="people",host="db.example",log="eventlog",port="6432",publisher="{}"'
    assert f"\neventlog_log_info{{{labels.format('')}}} 1.0" in metrics_text(monitor)
    monitor.connected(watched.store)
    assert f"\neventlog_log_info{{{labels.format('test')}}} 1.0" in metrics_text(monitor)


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("postgresql://ada:hush@db.example/people", "people/hr.log on db.example:5432"),
        ("mysql://db.example:3307/people", "people/hr.log on db.example:3307"),
        ("postgresql:///people?host=/run/db", "people/hr.log on /run/db:5432"),
        ("postgresql:///people?host=a:1&host=b:2", "people/hr.log on a:1,b:2:5432"),
        ("postgresql:///people", "people/hr.log"),
        (None, "hr.log"),
    ],
)
def test_a_log_is_named_with_its_server_and_without_secrets(url: str | None, words: str) -> None:
    assert str(address_of_log(Config({"url": url, "log_table": "hr.log"}))) == words


def test_a_process_that_has_not_tried_yet_is_starting(watched: Watched) -> None:
    Instruments(watched).show("starting", "Starting", is_ready=False)


def test_while_the_database_is_away_nothing_of_before_is_shown(watched: Watched) -> None:
    fail_one(watched)
    instruments = Instruments(watched)
    instruments.connect(watched.store)
    instruments.show("failed", "1 row failed", is_ready=True)
    instruments.connect(None)
    instruments.monitor.fault(ConnectionLost("refused"), 30.0)
    instruments.show("database-away", "Database away", is_ready=False)
    assert "; next try in 30 s; start the database" in instruments.get("/readyz")[1]
    assert "\neventlog_database_up 0.0" in metrics_text(instruments.monitor)
    instruments.connect(watched.store)
    instruments.monitor.reached()
    instruments.show("failed", "1 row failed", is_ready=True)


def test_a_database_that_goes_before_the_publisher_sees_it_is_away(watched: Watched) -> None:
    """Look at a server where none listens, by a store that was connected."""
    instruments = Instruments(watched)
    instruments.connect(Store(connect("postgresql://127.0.0.1:1/gone"), watched.store.log))
    instruments.show("database-away", "Database away", is_ready=False)
    assert instruments.get("/healthz") == (200, "alive\n")


def test_health_never_asks_the_database(watched: Watched) -> None:
    instruments = Instruments(watched)
    instruments.connect(watched.store)
    with instruments.monitor.watch.__dict__["_lock"]:  # no look can be made
        assert instruments.get("/healthz") == (200, "alive\n")


def test_rows_that_are_redriven_are_failed_nowhere(watched: Watched) -> None:
    """Look after a form of the page, and after a change on another machine."""
    instruments = Instruments(watched)
    instruments.connect(watched.store)
    fail_one(watched)
    failed_row = "('E', 6, 'usr', 'idu=9')"  # without a reason
    watched.run(f"insert into eventlog (status, event_type, table_name, table_key) values {failed_row}")
    instruments.show("failed", "2 rows failed", is_ready=True)
    body = f"token={TOKEN}".encode()
    assert ask(instruments.app, "POST", "/row/1", body)[0] == 200
    assert "1 row failed" in instruments.get("/readyz")[1]  # at once
    with watched.store.admin() as admin:
        admin.redrive({2: 0})

    def is_failed() -> bool:
        instruments.page_data.sample(0.0)
        return "failed" in instruments.get("/readyz")[1]

    until(lambda: not is_failed())
    instruments.show("publishing", "Publishing", is_ready=True)


def test_however_many_look_one_of_them_reads(watched: Watched) -> None:
    instruments = Instruments(watched)
    instruments.connect(watched.store)
    instruments.get("/readyz")
    looks = instruments.monitor.watch
    first = looks.look()
    threads = [threading.Thread(target=instruments.get, args=("/readyz",)) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert looks.look() is first or first.age >= 2.0
    until(lambda: looks.look() is not first)
    assert first.age >= 2.0
