"""The publisher's status page: its content, and the one thing that it may change."""

from __future__ import annotations

import json
import re
import shlex
import time
from datetime import datetime, timedelta
from html import unescape
from pathlib import Path
from urllib.parse import urlencode

import pytest

from eventlog.opening.config import Config, InvalidSettings, read_config
from eventlog.publisher import delivery
from eventlog.publisher.readiness import Readiness
from eventlog.sql.connect import ConnectionLost
from eventlog.sql.log.log_record import Notice, NoticeKind
from eventlog.status.backlog_trend import TrendPoint, dump_trend
from eventlog.status.log_status import read_log_status
from eventlog.status.log_watch import Outage
from eventlog.web.monitor import MonitorSettings
from eventlog.web.monitor.page_data import PageData, Sample
from eventlog.web.monitor.pages import pages_app
from eventlog.web.server import serve
from tests.kit.commands import Shell
from tests.kit.support import patient
from tests.web.browser import chromium
from tests.web.conftest import TOKEN, Process, Watched
from tests.web.receiver.conftest import HOST, HOSTILE

pytestmark = pytest.mark.quick

ESCAPED = "&lt;script&gt;alert(1)&lt;/script&gt;&#34;&#39;&amp;⟨U+202E⟩"


def fail_one(watched: Watched) -> None:
    watched.sink.refuses = True
    watched.run("insert into usr values (1, '<b>Jack</b>')")
    watched.publisher.cycle()
    watched.sink.refuses = False


def redrive(watched: Watched, token: str) -> tuple[int, str]:
    body = urlencode({"token": token}).encode()
    status, page, _ = watched.client.ask("POST", "/row/1", body)
    return status, page


def test_it_says_how_the_log_stands(watched: Watched) -> None:
    watched.run("insert into usr values (1, 'Jack')")
    watched.publisher.cycle()
    watched.run("insert into usr values (2, 'Jane'), (3, 'Ann')")
    watched.board.sample(0.0)
    page = watched.client.get()
    assert '<dt>Pending</dt><dd><a href="/next">2</a></dd>' in page
    assert re.search("<dt>Publisher</dt><dd>test, since [^,]+ UTC, epoch 1</dd>", page)
    assert "Pending rows: now 2, at most 2" in page
    assert '<a href="/next?table=usr">2</a>' in page
    assert '<td data-label="Success" class="number"><div>1</div></td>' in page


def test_the_last_audit_that_was_recorded_is_shown_with_its_age(watched: Watched) -> None:
    assert "<dt>Last audit</dt><dd>none recorded</dd>" in watched.client.get()
    with watched.store.admin() as admin:
        result = '{"breaches": 1, "digest": "0123456789abcdef"}'
        admin.note(Notice(NoticeKind.AUDIT, row_count=8, who="ada", words=result))
    assert re.search(r"<dt>Last audit</dt><dd>[\d.]+ s ago: 8 rows, 1 breach</dd>", watched.client.get())
    assert "8 rows: 1 breach, digest 0123456789ab" in watched.client.get("/history")


def test_the_figures_of_pending_rows_agree(watched: Watched) -> None:
    watched.board.sample(0.0)
    watched.run("insert into usr values (1, 'Jack')")
    page = watched.client.get()
    assert '<dt>Pending</dt><dd><a href="/next">1</a></dd>' in page
    assert "Pending rows: now 1, at most 1" in page


@pytest.mark.parametrize(
    ("facts", "reported"),
    [
        ({"down": "refused"}, "Receiver down</strong> · now (refused); 2 rows are pending"),
        ({"events": 5}, "Publishing</strong> · 2 rows are pending"),
        (
            {"down": "refused", "down_since": "2026-11-27 10:57:19.5"},
            "since 2026-11-27 10:57:19 UTC (refused);",
        ),
    ],
)
def test_the_whole_stands_in_a_word_at_the_top(
    watched: Watched, facts: dict[str, object], reported: str
) -> None:
    watched.run("insert into usr values (1, 'Jack'), (2, 'Jane')")
    with watched.store.as_leader(1) as work:
        work.record_cycle(json.dumps(facts))
    assert reported in watched.client.get()


def test_a_table_that_is_not_published_is_named_and_no_banner_is_green(watched: Watched) -> None:
    assert 'class="state success"' in watched.client.get()
    with watched.store.as_leader(1) as work:
        work.record_cycle(json.dumps({"unread": {"hr.usr": "9 of 9 objects would be deleted"}}))
    page = watched.client.get()
    assert 'class="state error"' in page
    assert "1 table is not published</strong> · hr.usr: 9 of 9 objects would be deleted" in page
    assert "<dt>Not published</dt><dd>hr.usr: 9 of 9 objects would be deleted</dd>" in page


def test_who_is_paused_or_stands_by_says_so(watched: Watched) -> None:
    assert "Idle</strong> · every row that may go is published" in watched.client.get()
    watched.process.leads = False
    assert "This process is on standby</strong> · test leads" in watched.client.get()
    with watched.store.admin() as admin:
        admin.pause("Ann", "the engine moves")
    ends = r"Pausing after this batch</strong> · by Ann: the engine moves, since [:\d]+ UTC"
    assert re.search(ends, watched.client.get())
    with watched.store.as_leader(1) as work:
        work.record_rest()
    assert "Paused</strong> · by Ann: the engine moves, since " in watched.client.get()
    with watched.store.admin() as admin:
        admin.pause("Ann", "the engine moves")
    assert re.search(ends, watched.client.get())


def test_page_and_commands_name_the_same_states(watched: Watched, shell: Shell) -> None:
    url = str(watched.board.config.values["url"])
    fail_one(watched)
    watched.sink.is_busy = True
    watched.run("insert into usr values (2, 'Jane')")
    watched.publisher.cycle()
    with watched.store.admin() as admin:
        admin.pause("ada", "the engine moves")
    report = json.loads(shell.run("status", "--json", EVENTLOG_URL=url).stdout)
    assert [state["state"] for state in report["states"]] == ["paused", "failed", "waiting"]
    page = re.sub("<[^>]*>", "", watched.client.get()).replace("`", "")
    printed = shell.run("status", EVENTLOG_URL=url).stdout
    for state in report["states"]:
        first_facts = state["facts"].partition(",")[0]
        assert f"{state['word']} · {first_facts}" in page
        assert state["sentence"].partition(",")[0] in printed


def test_a_page_that_others_reach_says_who_may_read_it(watched: Watched) -> None:
    assert "may read" not in watched.client.get()
    open_to_all = {"monitor_host": "0.0.0.0", "monitor_port": 9780}
    watched.board.config = Config({**watched.board.config.values, **open_to_all})
    page = watched.client.get()
    assert "Anyone who reaches 0.0.0.0, port 9780 may read the status page, without a token." in page


def test_numbers_lead_on_and_tables_come_by_their_load(watched: Watched) -> None:
    watched.run(
        "insert into eventlog (status, event_type, table_name, table_key)"
        " select case when n % 20 = 3 then 'E' else 'S' end, 6, 't' || n % 20, 'k=1'"
        " from generate_series(1, 60) n",
        "insert into usr values (1, 'Jack'), (2, 'Jane')",
        "update eventlog set event_time = event_time - interval '2 minutes' where table_name = 't3'",
    )
    page = watched.client.get()
    names = re.findall(r'data-label="Table" class="text"><div>(\w+)<', page)
    assert (names[:2], len(names)) == (["t3", "usr"], 12)
    assert '<a href="/?all=1">and 9 more tables</a>' in page
    assert watched.client.get("/?all=1").count('data-label="Table"') == 21
    assert '<a href="/errors?table=t3">3</a>' in page
    assert '<dt>Errors</dt><dd><a href="/errors" class="error">3</a></dd>' in page
    arrivals = re.findall(r'data-label="Last minute" class="number"><div>(\d+)<', page)
    assert arrivals[:3] == ["0", "2", "3"]
    assert page.index("Last cycle with work") < page.index("Tables of the log")
    following = watched.client.get("/next?table=usr")
    assert following.count('data-label="Row"') == 2
    assert watched.client.get("/next?table=t4").count('data-label="Row"') == 0


def test_rates_are_reported_from_sample_to_sample(watched: Watched) -> None:
    watched.board.samples.extend([Sample(0, 0, 0, 0), Sample(2, 0, 0, 100), Sample(4, 0, 0, 0)])
    assert watched.board.rates() == [50, 0]


def test_what_failed_is_shown_with_reason_and_document(watched: Watched) -> None:
    fail_one(watched)
    for path in ("/errors", "/row/1"):
        page = watched.client.get(path)
        assert ESCAPED in page
        assert "<script>alert" not in page
    assert "<b>Jack" not in page
    assert "&amp;lt;b&amp;gt;Jack&amp;lt;/b&amp;gt;" in page


def test_the_banner_is_never_green_while_rows_have_failed(watched: Watched) -> None:
    assert 'class="state success"' in watched.client.get()
    fail_one(watched)
    page = watched.client.get()
    assert 'class="state error"' in page
    assert '<strong><a href="/errors">1 row failed</a></strong> ·' in page
    assert '<dt>Errors</dt><dd><a href="/errors" class="error">1</a></dd>' in page


def test_rows_that_failed_without_a_reason_count_too(watched: Watched) -> None:
    watched.run(
        "insert into eventlog (status, event_type, table_name, table_key) values ('F', 6, 'usr', 'a=1')"
    )
    assert "1 row failed" in watched.client.get()


def test_the_figures_come_first_and_who_holds_the_lock_last(watched: Watched) -> None:
    page = watched.client.get()
    names = ["Pending", "Oldest", "Errors", "Receiver", "Publisher", "Holds the lock"]
    places = [page.index(f"<dt>{name}</dt>") for name in names]
    assert places == sorted(places)
    assert places[3] < page.index("<svg") < places[4]


def test_the_page_of_a_row_shows_its_values_its_type_and_what_to_do(watched: Watched) -> None:
    fail_one(watched)
    page = watched.client.get("/row/1")
    assert "insert field" in page
    assert "<div>fname: ∅ → &lt;b&gt;Jack&lt;/b&gt;</div>" in page
    assert "The receiver refused this event" in page
    assert (page.count('type="password"'), page.count('<button name="act"')) == (1, 2)
    watched.run("insert into eventlog (event_type, table_name, table_key) values (9, 'usr', 'idu=1')")
    watched.publisher.cycle()
    assert "the receiver never saw it" in watched.client.get("/row/2")
    columns = "event_type, table_name, table_key, perpetrator"
    watched.run(f"insert into eventlog ({columns}) values (5, 'usr', 'idu=1', 'hr')")
    who = 'query-back</span> <span class="quiet">by hr</span>'
    assert who in watched.client.get("/row/3")


def test_a_failed_row_is_redriven_by_who_knows_the_token(watched: Watched) -> None:
    fail_one(watched)
    assert redrive(watched, "guess")[0] == 403
    assert watched.letters() == "E"
    status, page = redrive(watched, TOKEN)
    assert (status, "new again" in page) == (200, True)
    watched.publisher.cycle()
    assert watched.letters() == "S"


def test_an_event_is_shown_and_redriven_whole_and_then_what_became_of_it(watched: Watched) -> None:
    watched.sink.refuses = True
    insert = "insert into eventlog (event_type, table_name, table_key, column_name, new_value) values"
    watched.run(f"{insert} (1, 'usr', 'idu=7', 'fname', 'Jack'), (1, 'usr', 'idu=7', 'lname', 'Frost')")
    watched.publisher.cycle()
    watched.sink.refuses = False
    page = watched.client.get("/row/2")
    assert ("<h1>Row 2</h1>" in page, page.count('<a href="/row/')) == (True, 2)
    assert "lname" in page
    body = urlencode({"token": TOKEN, "act": "redrive"}).encode()
    assert watched.client.ask("POST", "/row/2", body)[0] == 200
    assert watched.letters() == "NN"
    assert "its object is gone" in watched.client.get("/row/1")
    watched.publisher.cycle()
    page = watched.client.get("/row/2")
    assert "says nothing: table public.usr has no column" in page
    assert "finished without being sent at 20" in page


def test_an_event_is_skipped_by_who_knows_the_token(watched: Watched) -> None:
    fail_one(watched)
    for token, status, letter in (("guess", 403, "E"), (TOKEN, 200, "W")):
        body = urlencode({"token": token, "act": "skip", "reason": "test data"}).encode()
        assert watched.client.ask("POST", "/row/1", body)[0] == status
        assert watched.letters() == letter
    for path in ("/row/1", "/object?table=usr&key=idu%3D1"):
        page = watched.client.get(path)
        assert '<span class="level skipped">skipped</span>: by status page at 20' in page
        assert "Z: test data" in page


def test_a_skip_without_a_reason_changes_nothing(watched: Watched) -> None:
    fail_one(watched)
    body = urlencode({"token": TOKEN, "act": "skip", "reason": " "}).encode()
    status, page, _ = watched.client.ask("POST", "/row/1", body)
    assert (status, "Nothing is skipped: why?" in page) == (200, True)
    assert watched.letters() == "E"


def test_without_a_token_nothing_can_be_changed(watched: Watched) -> None:
    fail_one(watched)
    watched.board.config = Config({**watched.board.config.values, "monitor_token": None})
    page = watched.client.get("/row/1")
    assert (
        'method="post"' in page,
        "Set monitor-token or monitor-tokens-file to have buttons here" in page,
    ) == (False, True)
    assert redrive(watched, "")[0] == 403
    assert watched.letters() == "E"


def test_another_sites_page_may_not_redrive(watched: Watched) -> None:
    fail_one(watched)
    body = urlencode({"token": TOKEN}).encode()
    assert watched.client.ask("POST", "/row/1", body, {"Sec-Fetch-Site": "cross-site"})[0] == 403
    assert watched.letters() == "E"


def test_a_form_of_too_many_fields_is_a_bad_request_and_no_fault(
    watched: Watched, caplog: pytest.LogCaptureFixture
) -> None:
    fail_one(watched)
    body = urlencode({f"n{number}": "x" for number in range(11)}).encode()
    assert watched.client.ask("POST", "/row/1", body)[0] == 400
    assert watched.client.ask("POST", "/row/1", b"token=%00")[0] == 400
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []


def test_a_long_name_is_cut_in_logs_and_pages(watched: Watched, caplog: pytest.LogCaptureFixture) -> None:
    name = "x" * 3000
    watched.run(f"insert into eventlog (event_type, table_name, table_key) values (6, '{name}', 'idu=1')")
    watched.publisher.cycle()
    assert watched.letters() == "E"
    paths = ("/", "/errors", "/row/1", f"/object?table={name}&key=idu%3D1")
    texts = [re.sub('href="[^"]*"', "", watched.client.get(path)) for path in paths]
    assert [text for text in (*texts, *caplog.messages) if "x" * 201 in text] == []


def test_settings_are_shown_without_secrets(watched: Watched) -> None:
    page = watched.client.get("/settings")
    secrets = (TOKEN, "hush", watched.engine.url.password or "no password")
    assert [secret for secret in secrets if secret in page] == []
    assert "set, not shown" in page
    assert "allow-loopback" in page


def test_pending_rows_and_objects_are_explained(watched: Watched) -> None:
    watched.run("insert into usr values (1, 'Jack')", "update usr set fname = 'John'")
    assert watched.client.get("/next").count("<div>pending</div>") == 2
    page = watched.client.get("/object?table=usr&key=idu%3D1")
    assert page.count("<tr>") == 3
    watched.publisher.cycle()
    assert watched.client.get("/object?table=usr&key=idu%3D1").count(", answered at 20") == 2


@pytest.mark.parametrize("path", ["/row/1", "/row/x", "/nothing", "/row/99999999999999999999"])
def test_what_is_not_there_is_said_so(watched: Watched, path: str) -> None:
    status, page, _ = watched.client.ask("GET", path)
    assert (status, '<a href="/errors">Errors</a>' in page) == (404, True)
    assert "<strong>Not found</strong>" in page


def test_a_log_that_is_not_well_leads_to_the_page_of_states(watched: Watched) -> None:
    """The icon has the colour of the worst state, also where a milder one is first."""
    assert "docs/run/night.md" not in watched.client.get()
    fail_one(watched)
    with watched.store.admin() as admin:
        admin.pause("ada", "a test")
    page = watched.client.get()
    assert ("<title>● Pausing" in page, "/icon/error.svg" in page) == (True, True)
    assert "docs/run/night.md" in page
    watched.process.store = None
    watched.process.outage = Outage(datetime(2026, 11, 27), ConnectionLost("refused"), 0.0)
    assert "docs/run/night.md" in watched.client.ask("GET", "/")[1]


def test_the_title_and_the_header_name_the_log_and_its_state(watched: Watched) -> None:
    url = watched.engine.url
    place = f"{url.database}/eventlog on {url.query['host']}:5432"
    fail_one(watched)
    page = watched.client.get()
    assert f"<title>● 1 row failed · {place}</title>" in page
    assert f'class="place">{place}</a> <span class="quiet publisher">published by test</span>' in page
    assert '<link rel="icon" href="/icon/error.svg">' in page
    assert "#b3261e" in watched.client.get("/icon/error.svg")
    assert f"<title>● 1 row failed · Errors · {place}</title>" in watched.client.get("/errors")
    watched.process.store = None
    watched.process.outage = Outage(datetime(2026, 11, 27), ConnectionLost("refused"), 0.0)
    assert "<title>● Database away · " in watched.client.ask("GET", "/errors")[1]


def test_without_a_database_it_says_so(watched: Watched) -> None:
    away = PageData(Process(None))
    away.sample(0.0)
    assert list(away.samples) == []
    watched.process.store = None
    status, page, _ = watched.client.ask("GET", "/")
    assert (status, "<h1>Starting</h1>" in page) == (503, True)


def fail_for_two_reasons(watched: Watched) -> None:
    watched.run(
        "insert into eventlog (status, event_type, table_name, table_key)"
        " select 'E', 6, 'usr', 'idu=' || n from generate_series(1, 30) n",
        "insert into eventlog_failed (record_id, event_id, reason, tries, failed_at)"
        " select record_id, 'log:' || record_id, case when record_id % 3 = 0 then '<i>odd</i> 100%'"
        " else 'the receiver is old' end, 1, now() from eventlog",
    )


def test_errors_are_grouped_by_reason_and_filtered(watched: Watched) -> None:
    fail_for_two_reasons(watched)
    page = watched.client.get("/errors")
    assert page.index(">20</div>") < page.index(">10</div>")
    assert 'href="/errors?whole=%3Ci%3Eodd%3C%2Fi%3E+100%25"' in page
    assert "&lt;i&gt;odd" in page
    odd = watched.client.get("/errors?reason=100%25")
    assert (odd.count(">error</span>"), "the receiver is old" in odd) == (10, False)
    assert watched.client.get("/errors?table=none").count(">error</span>") == 0
    assert watched.client.ask("GET", "/errors?reason=%00")[0] == 400


def test_one_reason_has_its_total_and_ways_out_for_all_of_it(watched: Watched) -> None:
    fail_one(watched)
    page = watched.client.get("/errors")
    assert "<caption>1 row by reason, most rows first; # is a number</caption>" in page
    (way,) = re.findall(r'href="(/errors[^"]*act=skip)"', page)
    assert "<h1>Skip 1 row?</h1>" in watched.client.get(unescape(way))
    watched.board.config = Config({**watched.board.config.values, "monitor_token": None})
    assert "act=skip" not in watched.client.get("/errors")


def test_rows_without_a_reason_are_a_group_with_ways_out(watched: Watched) -> None:
    fail_for_two_reasons(watched)
    watched.run("delete from eventlog_failed where record_id <= 3")
    page = watched.client.get("/errors")
    assert "<caption>30 rows by reason" in page
    (way,) = re.findall(r'href="(/errors\?whole=no\+reason[^"]*act=redrive)"', page)
    assert "<h1>Redrive 3 rows?</h1>" in watched.client.get(unescape(way))


def test_reasons_that_differ_by_numbers_are_one_and_rows_come_newest_first(watched: Watched) -> None:
    watched.run(
        "insert into eventlog (status, event_type, table_name, table_key)"
        " select 'E', 6, 'usr', 'idu=' || n from generate_series(1, 60) n",
        "insert into eventlog_failed (record_id, event_id, reason, tries, failed_at)"
        " select record_id, 'log:' || record_id, 'user ' || record_id || ' is there', 1, now() from eventlog"
        " where record_id > 1",
    )
    page = watched.client.get("/errors")
    assert 'class="number"><div>59</div></td>' in page
    assert '<a href="/errors?whole=user+%23+is+there">user # is there</a>' in page
    assert page.index('href="/row/60"') < page.index('href="/row/11"')
    assert "/row/10" not in page
    assert 'href="/errors?upto=10"' in page
    older = watched.client.get("/errors?upto=10")
    assert older.index('href="/row/10"') < older.index('href="/row/1"')


@pytest.mark.parametrize(("act", "letters"), [("redrive", "N"), ("skip", "W")])
def test_a_group_is_redriven_or_skipped_by_who_knows_the_token(
    watched: Watched, act: str, letters: str
) -> None:
    fail_for_two_reasons(watched)
    assert f">{act.title()} 10 rows …</a>" in watched.client.get("/errors?reason=odd")
    page = watched.client.get(f"/errors?reason=odd&act={act}")
    assert f"<h1>{act.title()} 10 rows?</h1>" in page
    assert ('name="reason"' in page) == (act == "skip")
    for token, rows, status in (("guess", 10, 403), (TOKEN, 9, 200), (TOKEN, 10, 200)):
        body = urlencode({"token": token, "act": act, "reason": "a test", "rows": rows}).encode()
        answered, page, _ = watched.client.ask("POST", "/errors?reason=odd", body)
        assert answered == status
        changed = rows == 10 and status == 200
        assert (f"{act.title()} 10 rows?" in page, "10 rows are" in page) == (not changed, changed)
        assert watched.letters().count(letters) == (10 if changed else 0)
    assert watched.letters().count("E") == 20


def test_a_page_that_is_asked_for_changes_nothing(watched: Watched) -> None:
    fail_one(watched)
    body = urlencode({"token": TOKEN, "act": "redrive", "rows": 1}).encode()
    for path in ("/errors?table=usr&act=redrive", "/row/1"):
        assert watched.client.ask("GET", path, body)[0] == 200
        assert watched.letters() == "E"
    assert watched.client.ask("POST", "/errors?table=usr", body)[0] == 200
    assert watched.letters() == "N"


def test_buttons_of_a_reason_mean_the_whole_reason(watched: Watched) -> None:
    """A reason that contains another one is none of it, and numbers do not count."""
    watched.run(
        "insert into eventlog (status, event_type, table_name, table_key)"
        " select 'E', 6, 'usr', 'idu=' || n from generate_series(1, 9) n",
        "insert into eventlog_failed (record_id, event_id, reason, tries, failed_at)"
        " select record_id, 'log:' || record_id, case when record_id > 6 then 'no user ' else 'user ' end"
        " || record_id || ' is there', 1, now() from eventlog",
    )
    page = watched.client.get("/errors?whole=user+%23+is+there")
    assert ("/row/6" in page, "/row/7" in page, "Skip 6 rows …" in page) == (True, False, True)
    body = urlencode({"token": TOKEN, "act": "skip", "reason": "a test", "rows": 6}).encode()
    assert "6 rows are skipped" in watched.client.ask("POST", "/errors?whole=user+%23+is+there", body)[1]
    assert watched.letters() == "WWWWWWEEE"


def test_what_waits_is_listed_with_its_reason_and_when_it_goes_again(watched: Watched) -> None:
    assert "No event waits." in watched.client.get("/waiting")
    watched.sink.is_busy = True
    watched.run("insert into usr values (1, 'Jack')")
    watched.publisher.cycle()
    watched.run("update usr set fname = 'John'")
    page = watched.client.get("/waiting")
    assert ESCAPED in page
    assert '<a href="/object?table=usr&amp;key=idu%3D1">usr idu=1</a>' in page
    assert re.search(r'data-label="Tries" class="number"><div>1</div>', page)
    assert re.search(r'data-label="Goes again" class="short time"><div>(in \d+ s|due now)</div>', page)
    coming = watched.client.get("/next")
    assert ("2 rows are held" in coming, "No row is pending" in coming) == (True, False)


def test_what_was_sent_last_is_listed_with_its_answer(watched: Watched) -> None:
    assert "Nothing was sent yet" in watched.client.get("/recent")
    fail_one(watched)
    watched.run("insert into usr values (2, 'Jane')", "insert into usr values (3, 'Ann')")
    watched.publisher.cycle()
    page = watched.client.get("/recent")
    assert page.index(">eventlog:2</a>") < page.index(">eventlog:1</a>")
    assert [page.count(f'<span class="level {level}">') for level in ("success", "error")] == [2, 1]
    assert f'<a href="/row/1">{ESCAPED}</a>' in page
    watched.run("delete from eventlog where status = 'S'")
    assert '<span class="level finished">finished</span>' in watched.client.get("/recent")
    redrive(watched, TOKEN)
    watched.publisher.cycle()
    page = watched.client.get("/recent")
    assert [answer for _, answer in recent(page)] == ["success", "finished", "finished", "error"]
    assert f'<a href="/row/1">{ESCAPED}</a>' in page


def test_a_document_of_a_slow_batch_is_listed_once(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery, "PATIENCE", 0.0)  # what was answered is finished after each document
    numbers = range(1, 31)
    watched.run(*(f"insert into usr values ({number}, 'Jack')" for number in numbers))
    watched.publisher.cycle()
    listed = [document for document, _ in recent(watched.client.get("/recent"))]
    assert listed == [f"{number}-{number}" for number in reversed(numbers)]


def recent(page: str) -> list[tuple[str, str]]:
    """Return the documents of the recent page, each with the answer to its first event."""
    answers = re.findall(r'data-label="Answer" class="short"><div><span class="level (\w+)">', page)
    documents = re.findall(r'data-label="Document" class="short second"><div>([^<]*)<', page)
    return list(zip(documents, answers, strict=True))


def test_what_was_held_back_or_refused_is_listed_too_with_its_object(watched: Watched) -> None:
    watched.sink.is_busy, watched.sink.busy_with = True, "Jack"
    watched.run("insert into usr values (1, 'Jack'), (2, 'Jane')")
    watched.publisher.cycle()
    watched.sink.is_busy = False
    watched.run(
        "update eventlog_retry set next_at = now() at time zone 'UTC'",
        "insert into eventlog (event_type, table_name, table_key) values (9, 'usr', 'idu=3')",
    )
    watched.publisher.cycle()
    watched.publisher.cycle()
    page = watched.client.get("/recent")
    assert sorted(recent(page)) == [("", "refused"), ("", "retry"), ("1-1", "success"), ("2-2", "success")]
    assert recent(page)[-2:] == [("", "retry"), ("2-2", "success")]
    assert page.count('<a href="/object?table=usr&amp;key=idu%3D1">usr idu=1</a>') == 2
    assert '<a href="/row/3">row 3</a>' in page
    assert '<a href="/row/3">event_type is 9, not 1 to 8</a>' in page
    assert f'<a href="/row/1">{ESCAPED}</a>' in page


def test_a_refused_row_that_was_skipped_is_called_skipped(watched: Watched) -> None:
    wrong = "insert into eventlog (event_type, table_name, table_key) values (9, 'usr', 'idu={}')"
    watched.run(wrong.format(1), wrong.format(2))
    watched.publisher.cycle()
    assert recent(watched.client.get("/recent")) == [("", "refused")]
    body = urlencode({"token": TOKEN, "act": "skip", "reason": "test data"}).encode()
    for skipped, levels in ((2, ["refused", "skipped"]), (1, ["skipped"])):
        watched.client.ask("POST", f"/row/{skipped}", body)
        answers = watched.client.get("/recent").partition('data-label="Answer"')[2].partition("</td>")[0]
        assert sorted(re.findall(r'<span class="level (\w+)">', answers)) == levels


def test_older_ones_come_by_pages_each_once(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    """Look page by page at a batch with a document that was held back, and at documents of slow batches."""
    watched.sink.is_busy, watched.sink.busy_with = True, "Jane"
    watched.run("insert into usr values (1, 'Jack'), (2, 'Jane')")
    watched.publisher.cycle()
    monkeypatch.setattr(delivery, "PATIENCE", 0.0)
    watched.run(*(f"insert into usr values ({number}, 'Jack')" for number in range(3, 24)))
    watched.publisher.cycle()
    whole = recent(watched.client.get("/recent"))
    assert sorted(whole) == sorted(
        [("", "retry"), *((f"{number}-{number}", "success") for number in range(1, 24) if number != 2)]
    )
    for size in (1, 2, 5, 22):
        monkeypatch.setattr("eventlog.web.monitor.pages.PAGE", size)
        listed, path = list[tuple[str, str]](), "/recent"
        while path:
            page = watched.client.get(path)
            listed += recent(page)
            assert len(recent(page)) <= size
            older = re.search(r'<a href="(/recent\?before=[0-9.]+)">Older</a>', page)
            path = older[1] if older else ""
        assert listed == whole


@pytest.mark.parametrize("before", ["x", "1.x", "99999999999999999999", "-1.0", "0.0", "1.9", "."])
@pytest.mark.long
def test_a_place_that_is_none_breaks_no_page(watched: Watched, before: str) -> None:
    watched.run("insert into usr values (1, 'Jack')")
    watched.publisher.cycle()
    assert watched.client.ask("GET", f"/recent?before={before}")[0] == 200


def test_each_try_of_an_event_is_shown_also_when_it_was_sent_in_the_end(watched: Watched) -> None:
    watched.sink.is_busy = True
    watched.run("insert into usr values (1, 'Jack')", "insert into usr values (2, 'Jane')")
    watched.publisher.cycle()
    assert "Each try and its answer" in watched.client.get("/row/1")
    watched.sink.is_busy = False
    watched.run("update eventlog_retry set next_at = now() at time zone 'UTC'")
    watched.publisher.cycle()
    watched.run("insert into usr values (3, 'Ann')")
    watched.publisher.cycle()
    page = watched.client.get("/row/1")
    assert re.findall(r'data-label="Try" class="number"><div>(\d+)<', page) == ["1", "2"]
    answers = re.findall(r'data-label="Answer" class="short"><div><span class="level (\w+)">', page)
    assert (answers, ESCAPED in page) == (["retry", "success"], True)
    assert "Each try" not in watched.client.get("/row/3")
    page = watched.client.get("/object?table=usr&key=idu%3D1")
    assert re.findall(r"try \d: \w+", page) == ["try 1: retry", "try 2: success"]
    assert "try 1" not in watched.client.get("/object?table=usr&key=idu%3D3")


def test_a_redriven_row_keeps_the_answers_from_before(watched: Watched) -> None:
    fail_one(watched)
    redrive(watched, TOKEN)
    watched.sink.refuses = True
    watched.publisher.cycle()
    redrive(watched, TOKEN)
    watched.sink.refuses = False
    watched.publisher.cycle()
    page = watched.client.get("/row/1").partition("Each try and its answer")[2].partition("</table>")[0]
    assert re.findall(r'data-label="Try" class="number"><div>(\d*)<', page) == ["1", "", "2", "", "3"]
    said = re.findall(r'data-label="Answer" class="short"><div>(?:<span class="level \w+">)?(\w+)<', page)
    assert said == ["error", "redrive", "error", "redrive", "success"]
    assert (page.count(ESCAPED), page.count("by status page")) == (2, 2)
    assert len(re.findall(r'data-label="When" class="short"><div>20', page)) == 5
    assert [answer for _, answer in recent(watched.client.get("/recent"))] == ["success", "error", "error"]
    page = watched.client.get("/object?table=usr&key=idu%3D1")
    assert re.findall(r"try \d: \w+", page) == ["try 1: error", "try 2: error", "try 3: success"]


def test_an_object_shows_its_rows_with_values_and_outcomes(watched: Watched) -> None:
    fail_one(watched)
    watched.run("update usr set fname = 'John'")
    page = watched.client.get("/object?table=usr&key=idu%3D1")
    assert '<a href="/row/1">1</a>' in page
    assert "<div>fname: ∅ → &lt;b&gt;Jack&lt;/b&gt;</div>" in page
    assert "<div>fname: &lt;b&gt;Jack&lt;/b&gt; → John</div>" in page
    assert ESCAPED in page
    assert re.search(
        r'data-label="event_time" class="short second"><div>20\d\d-\d\d-\d\d \d\d:\d\d:\d\d</div>', page
    )


def test_an_object_has_a_receipt(watched: Watched) -> None:
    fail_one(watched)
    body = urlencode({"token": TOKEN, "act": "skip", "reason": "test data"}).encode()
    watched.run("update usr set fname = 'John'")
    page = watched.client.get("/object?table=usr&key=idu%3D1")
    cells = re.findall(r'data-label="(?:What|Answer, and who)"[^>]*><div>(.*?)</div>', page)
    assert cells[:2] == ["event eventlog:1", "row 1, document 1-1, answered"]
    assert cells[2] == "event eventlog:1"
    assert cells[3].startswith("try 1: error: ")
    assert ESCAPED in cells[3]
    assert len(cells) == 4
    assert '<p class="quiet">Now: fname John</p>' in page
    watched.client.ask("POST", "/row/1", body)
    page = watched.client.get("/object?table=usr&key=idu%3D1")
    assert re.search("<div>by status page: .*row 1: test data</div>", page)


def test_a_receipt_has_each_try_with_its_answer(watched: Watched) -> None:
    watched.sink.is_busy = True
    watched.run("insert into usr values (1, 'Jack')")
    watched.publisher.cycle()
    page = watched.client.get("/object?table=usr&key=idu%3D1")
    assert re.search(r"<div>event eventlog:1</div></td>\s*<td[^>]*><div>try 1: retry: ", page)


def test_after_a_wrong_token_the_form_is_there_with_what_was_typed(watched: Watched) -> None:
    fail_one(watched)
    body = urlencode({"token": "guess", "act": "skip", "reason": "test <data>"}).encode()
    for path in ("/row/1", "/errors?reason=script"):
        status, page, _ = watched.client.ask("POST", path, body + b"&rows=1")
        assert status == 403
        assert "No one has this token, so nothing was changed." in page
        assert 'value="test &lt;data&gt;"' in page
        assert 'value="guess"' not in page
    watched.board.config = Config({**watched.board.config.values, "monitor_token": None})
    assert "Neither monitor-token nor monitor-tokens-file is set" in redrive(watched, "guess")[1]


def test_ten_thousand_failures_do_not_slow_it(watched: Watched) -> None:
    watched.run(
        "insert into eventlog (status, event_type, table_name, table_key)"
        " select 'E', 6, 'usr', 'idu=' || n from generate_series(1, 10000) n",
        "insert into eventlog_failed (record_id, event_id, reason, tries, failed_at)"
        " select record_id, 'x', 'because', 1, now() from eventlog",
    )
    for path in ("/", "/errors", "/errors?upto=1000"):
        began = time.perf_counter()
        watched.client.get(path)
        assert time.perf_counter() - began < patient(1), path


def test_a_person_redrives_a_row_in_chromium(watched: Watched, tmp_path: Path) -> None:
    fail_one(watched)
    with chromium(tmp_path) as browser:
        browser.open(f"http://127.0.0.1:{watched.client.port}/")
        browser.click("nav a[href='/errors']")
        browser.wait_for("return location.pathname === '/errors'")
        assert HOSTILE.removesuffix("\u202e") in browser.text()
        browser.click("[data-label='Row'] a")
        browser.wait_for("return location.pathname === '/row/1'")
        browser.run("document.querySelector('[name=token]').focus()")
        browser.type(f"{TOKEN}\ue007")
        browser.wait_for("return document.body.innerText.includes('new again')")
        assert watched.letters() == "N"
        with browser.looking(width=360, scheme="dark"):
            for path in ("", "errors", "next", "settings"):
                browser.open(f"http://127.0.0.1:{watched.client.port}/{path}")
                assert browser.run("return document.documentElement.scrollWidth") <= 360, path
        assert browser.complaints() == []


@pytest.mark.long  # a browser notices a lost publisher
def test_a_page_whose_publisher_is_gone_says_so(watched: Watched, tmp_path: Path) -> None:
    app = pages_app(watched.board, HOST)
    with chromium(tmp_path) as browser:
        with serve(app, HOST, 0) as address:
            browser.open(address.url)
            browser.wait_for("return document.body.innerText.includes('Idle')")
        browser.wait_for("return document.body.innerText.includes('No answer since')")
        with serve(app, HOST, address.port):
            browser.wait_for("return !document.body.innerText.includes('No answer since')")


def test_what_has_no_value_yet_has_no_line(watched: Watched) -> None:
    before = watched.client.get()
    assert "<dt>It ended</dt>" not in before
    assert "<dt>Rows a second</dt><dd>unknown</dd>" in before
    assert "Pending rows: now 0" in before
    assert "Rows done a second: nothing measured yet" in before
    assert "<dd></dd>" not in before
    with watched.store.as_leader(1) as work:
        work.record_cycle(json.dumps({"worked": {"at": "2026-11-27 10:57:19.5", "rows": 3, "seconds": 2}}))
    page = watched.client.get()
    assert "<dt>Last cycle with work</dt><dd>3 rows, 0 events, 0 refused in 2 s</dd>" in page
    assert "<dt>It ended</dt><dd>2026-11-27 10:57:19Z</dd>" in page


def test_rates_and_the_end_of_the_backlog_are_on_the_first_page(watched: Watched) -> None:
    watched.run("insert into usr select n, 'Jack' from generate_series(1, 30) n")
    now = read_log_status(watched.store, counted=False).now
    course = [TrendPoint(now - timedelta(seconds=60), 60, 0), TrendPoint(now, 30, 30)]
    with watched.store.as_leader(1) as work:
        work.record_cycle(json.dumps({"finished_by_leader": 30, "course": dump_trend(course)}))
    page = watched.client.get()
    assert '<dt>Rows a second</dt><dd>0.5<span class="under quiet">went, 0 came in the last minute<' in page
    assert '<dt>Pending</dt><dd><a href="/next">30</a><span class="under quiet">done in about' in page


def test_what_waits_has_an_age_apart_from_what_moves(watched: Watched) -> None:
    watched.sink.is_busy = True
    watched.run("insert into usr values (1, 'Jack')")
    watched.publisher.cycle()
    watched.run("update usr set fname = 'John'")
    assert re.search(
        r"<dt>Oldest</dt><dd>none<span [^>]*>of <a [^>]*>2 rows</a> that wait: [\d.]+ s<",
        watched.client.get(),
    )
    watched.run("insert into usr values (2, 'Jane')")
    page = watched.client.get()
    assert re.search(r"<dt>Oldest</dt><dd>[\d.]+ s<span [^>]*>of <a [^>]*>2 rows</a> that wait:", page)


def test_a_running_cycle_is_shown_apart_from_the_last_with_work(watched: Watched) -> None:
    facts = {"running": True, "rows": 10_000, "finished": 4_000, "events": 400, "seconds": 12.0}
    worked = {"at": "2026-11-27 10:57:19", "rows": 7, "events": 6, "refused": 1, "seconds": 0.5}
    with watched.store.as_leader(1) as work:
        work.record_cycle(json.dumps(facts | {"worked": worked}))
    page = watched.client.get()
    under_way = "4 000 of 10 000 rows finished, 400 events sent, for 12 s"
    assert f"<dt>Cycle under way</dt><dd>{under_way}</dd>" in page
    assert "<dt>Last cycle with work</dt><dd>7 rows, 6 events, 1 refused in 0.5 s</dd>" in page


@pytest.mark.parametrize(
    ("words", "place"),
    [
        ("1", "/row/1"),
        (" idu=1 ", "/object?key=idu%3D1"),
        ("usr idu=1", "/object?table=usr&key=idu%3D1"),
        ("fname=a b", "/object?key=fname%3Da+b"),
        ("", "/next"),
    ],
)
def test_one_box_finds_rows_and_objects(watched: Watched, words: str, place: str) -> None:
    watched.run("insert into usr values (1, 'Jack')")
    for path in ("/", "/errors", "/waiting", "/next", "/recent", "/history", "/settings", "/row/1"):
        assert '<form action="/find" role="search"' in watched.client.get(path), path
    status, _, headers = watched.client.ask("GET", f"/find?{urlencode({'q': words})}")
    assert (status, headers["Location"]) == (303, place)
    assert "idu=1" in watched.client.get(place) or "fname" in place


def test_a_row_of_any_letter_has_a_page(watched: Watched) -> None:
    watched.run("insert into usr values (1, 'Jack')")
    watched.publisher.cycle()
    fail_one_more(watched)
    watched.sink.is_busy = True
    watched.run("insert into usr values (3, 'Ann')")
    watched.publisher.cycle()
    watched.sink.is_busy = False
    watched.run("insert into usr values (4, 'Joe')")
    states = ("Handled", "Failed", "Waiting", "Pending")
    for number, state in enumerate(states, 1):
        page = watched.client.get(f"/row/{number}")
        assert f"<strong>{state}</strong>" in page
        assert ('<button name="act" value="skip">' in page) == (state != "Handled")
        assert ("Try now" in page, "Redrive this event" in page) == (state == "Waiting", state == "Failed")


def test_the_commands_of_a_page_run_as_they_are_printed(watched: Watched, shell: Shell) -> None:
    """Read the pages of a row that was handled, that failed, that is held, and that is pending."""
    url = str(watched.board.config.values["url"])
    watched.board.config = Config({"url": url, "allow_loopback": True})
    watched.run("insert into usr values (1, 'Jack')")
    watched.publisher.cycle()
    fail_one_more(watched)
    fail_one_more(watched, 3)
    watched.sink.is_busy = True
    watched.run("insert into usr values (4, 'Ann')")
    watched.publisher.cycle()
    watched.run("insert into usr values (5, 'Joe')")
    printed = {number: commands_on(watched, f"/row/{number}") for number in (1, 2, 4, 5)}
    assert printed == {
        1: [],
        2: ["eventlog redrive 2", "eventlog skip 2 --because WHY"],
        4: ["eventlog retry 4", "eventlog skip 4 --because WHY"],
        5: ["eventlog skip 5 --because WHY"],
    }
    of_errors = commands_on(watched, "/errors?table=usr")
    assert of_errors == ["eventlog redrive 3 2", "eventlog skip 3 2 --because WHY"]
    (retry_all,) = commands_on(watched, "/waiting")
    for command, letters in (
        (printed[4][0], "SEENN"),
        (retry_all, "SEENN"),
        (printed[4][1], "SEEWN"),
        (printed[5][0], "SEEWW"),
        (of_errors[0], "SNNWW"),
        (of_errors[1], "SWWWW"),
    ):
        done = shell.run(*shlex.split(command)[1:], EVENTLOG_URL=url)
        assert (done.code, watched.letters()) == (0, letters), (command, done.stderr)


def test_the_command_for_an_object_with_many_rows_shows_all(watched: Watched, shell: Shell) -> None:
    row = "insert into eventlog (event_type, table_name, table_key) select 6, 'usr', 'idu=\"a b\"'"
    watched.run(f"{row} from generate_series(1, 201)")
    path = "/object?" + urlencode({"table": "usr", "key": 'idu="a b"'})
    (command,) = re.findall("`(eventlog [^`]*)` shows all", unescape(watched.client.get(path)))
    done = shell.run(*shlex.split(command)[1:], EVENTLOG_URL=str(watched.board.config.values["url"]))
    rows = re.findall(r"^ *([0-9]+)  6  usr ", done.stdout, re.MULTILINE)
    assert (done.code, len({*rows})) == (0, 201)


def commands_on(watched: Watched, path: str) -> list[str]:
    return list(map(unescape, re.findall("<code>(eventlog [^<]*)</code>", watched.client.get(path))))


def fail_one_more(watched: Watched, number: int = 2) -> None:
    watched.sink.refuses = True
    watched.run(f"insert into usr values ({number}, 'Jane')")
    watched.publisher.cycle()
    watched.sink.refuses = False


def test_a_waiting_event_is_tried_now(watched: Watched) -> None:
    watched.sink.is_busy = True
    watched.run("insert into usr values (1, 'Jack')")
    watched.publisher.cycle()
    watched.sink.is_busy = False
    watched.publisher.cycle()
    assert watched.letters() == "N"
    body = urlencode({"token": TOKEN, "act": "retry"}).encode()
    assert "It is sent again now." in watched.client.ask("POST", "/row/1", body)[1]
    watched.publisher.cycle()
    assert watched.letters() == "S"
    page = watched.client.get("/history")
    assert '<td data-label="What" class="short"><div>retry</div>' in page
    assert "usr idu=1: row 1" in page


def test_all_waiting_events_are_sent_from_the_first_page(watched: Watched) -> None:
    button = '<button name="act" value="retry">Send waiting events now</button>'
    assert button not in watched.client.get()
    watched.sink.is_busy = True
    watched.run("insert into usr values (1, 'Jack'), (2, 'Jane')")
    watched.publisher.cycle()
    watched.sink.is_busy = False
    page = watched.client.get()
    assert page.index("2 events wait") < page.index(button) < page.index("<dt>Pending</dt>")
    for token, status, words in (("guess", 403, "No one has this token"), (TOKEN, 200, "2 rows are sent")):
        body = urlencode({"token": token, "act": "retry"}).encode()
        reply, page, _ = watched.client.ask("POST", "/", body)
        assert (reply, words in page) == (status, True)
    watched.publisher.cycle()
    assert watched.letters() == "SS"
    assert "rows 1, 2" in watched.client.get("/history")


def test_who_acts_on_a_page_is_on_record_by_the_name_of_the_token(watched: Watched, tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    tokens.write_text("ada t-one\nbob t-two\n")
    tokens.chmod(0o600)
    watched.board.config = Config({**watched.board.config.values, "monitor_tokens_file": str(tokens)})
    for number, (token, who) in enumerate((("t-one", "ada"), ("t-two", "bob"), (TOKEN, "status page")), 1):
        watched.sink.refuses = True
        watched.run(f"insert into usr values ({number}, 'Jack')")
        watched.publisher.cycle()
        watched.sink.refuses = False
        body = urlencode({"token": token, "act": "skip", "reason": "a test"}).encode()
        assert watched.client.ask("POST", f"/row/{number}", body)[0] == 200
        assert f"skipped</span>: by {who} at 20" in watched.client.get(f"/row/{number}")
    listed = re.findall(r'data-label="Who" class="text"><div>([^<]*)<', watched.client.get("/history"))
    assert listed == ["status page", "bob", "ada"]
    tokens.write_text("ada t-one\n")
    assert watched.client.ask("POST", "/row/1", urlencode({"token": "t-two"}).encode())[0] == 403


@pytest.mark.parametrize(
    ("text", "mode", "words"),
    [
        ("ada t-one", 0o604, "other users may read the tokens in it"),
        ("ada t-one", 0o620, "other users may change the tokens in it"),
        ("ada t-one\nt-two", 0o600, "line 2: expected a name, a blank and a token"),
        (None, 0, "No such file"),
    ],
)
def test_a_file_of_tokens_is_refused_at_the_start(
    tmp_path: Path, text: str | None, mode: int, words: str
) -> None:
    path = tmp_path / "tokens"
    if text is not None:
        path.write_text(text)
        path.chmod(mode)
    with pytest.raises(InvalidSettings, match=words) as fault:
        read_config([MonitorSettings], {"monitor_tokens_file": str(path)}, {})
    assert "t-" not in str(fault.value).replace(str(path), "")


def test_the_page_resumes_a_pause(watched: Watched) -> None:
    with watched.store.admin() as admin:
        admin.pause("Ann", "the engine moves")
    assert '<button name="act" value="resume">Resume</button>' in watched.client.get()
    for token, status, is_paused in (("guess", 403, True), (TOKEN, 200, False)):
        reply, page, _ = watched.client.ask("POST", "/", urlencode({"token": token}).encode())
        assert (reply, "Ann: the engine moves" in page) == (status, is_paused)
    assert "resume" in watched.client.get("/history")


def test_while_the_database_is_away_the_frame_shows_what_was_known(watched: Watched) -> None:
    watched.run("insert into usr values (1, 'Jack')")
    watched.client.get()
    watched.process.store = None
    watched.process.outage = Outage(
        datetime(2026, 11, 27, 10, 57, 19), ConnectionLost("connection refused"), time.monotonic() + 3.6
    )
    status, page, _ = watched.client.ask("GET", "/errors")
    assert status == 503
    reason = r"since [-\d]+ 10:57:19 UTC \(no connection to the database: connection refused\)"
    assert re.search(rf"Database away</strong> · {reason}; how many rows .*; next try in \d", page)
    assert "<dt>Pending</dt><dd>1</dd>" in page
    assert '<a href="/settings">Settings</a>' in page


def test_a_standby_says_what_it_checked(watched: Watched) -> None:
    watched.process.leads = False
    checked = datetime(2026, 11, 27, 10, 57, 19), ("the tables", "the sink files")
    watched.process.readiness = Readiness(*checked)
    page = watched.client.get()
    assert "on standby; checked at 2026-11-27 10:57:19Z: the tables, the sink files: it could lead" in page
    watched.process.readiness = Readiness(*checked, "the folder is not there")
    page = watched.client.get()
    assert "test leads; it could not take over: the folder is not there" in page
    assert 'class="state error further"' in page


def test_a_skipped_row_is_called_skipped(watched: Watched) -> None:
    fail_one(watched)
    body = urlencode({"token": TOKEN, "act": "skip", "reason": "test data"}).encode()
    page = watched.client.ask("POST", "/row/1", body)[1]
    assert "<strong>Skipped</strong>" in page
    assert 'class="level warning"' not in page
    watched.board.watch.__dict__["_counted_at"] = 0.0
    assert 'data-label="Warning or skipped" class="number"><div><a href="/history">1<' in watched.client.get()
    assert '<span class="level skipped">skipped</span>' in watched.client.get("/recent")
    assert 'class="level warning"' not in watched.client.get("/recent")
