"""One account of a row, in `explain`, its JSON, the page of a row and that of an object."""

from __future__ import annotations

import json
import re
from html import unescape
from typing import Any
from urllib.parse import urlencode

import pytest

from eventlog.opening.config import Config
from tests.kit.commands import Shell
from tests.web.conftest import TOKEN, Watched

pytestmark = pytest.mark.quick

OBJECT = "/object?table=usr&key=idu%3D1"
SINCE = "2026-11-27 10:57:19"


def settings(watched: Watched) -> dict[str, str]:
    return {"EVENTLOG_URL": str(watched.board.config.values["url"]), "EVENTLOG_ALLOW_LOOPBACK": "true"}


def views(watched: Watched, shell: Shell, row: int = 1) -> tuple[dict[str, Any], list[str]]:
    """Return the account of a row as JSON, and as texts: of the command, of its page and of its object's."""
    facts = json.loads(shell.run("explain", "--json", str(row), **settings(watched)).stdout)
    printed = shell.run("explain", str(row), **settings(watched)).stdout
    pages = (watched.client.get(path) for path in (f"/row/{row}", OBJECT))
    return facts, [printed, *(unescape(re.sub("<[^>]*>", "", page)) for page in pages)]


def test_every_view_has_what_changed_who_did_it_and_what_became_of_it(watched: Watched, shell: Shell) -> None:
    watched.run("insert into usr values (1, 'Jack')")
    watched.publisher.cycle()
    facts, texts = views(watched, shell)
    user = watched.engine.url.username or facts["perpetrator"]
    assert (facts["column_name"], facts["old_value"], facts["new_value"]) == ("fname", None, "Jack")
    assert (facts["state"], facts["outcome"], facts["obstacle"]) == ("handled", "sent", "")
    assert facts["perpetrator"] == user
    assert facts["documents"][0]["event_id"] == "eventlog:1"
    assert facts["documents"][0]["answered_at"] is not None
    for text in texts:
        assert "fname: ∅ → Jack" in text
        assert f"by {user}" in text
        assert "document 1-1, answered at 20" in text
        assert "None" not in text
    when = facts["event_time"][:19].replace("T", " ")
    assert f"changed by {user} at {when}Z: fname: ∅ → Jack\n" in texts[0]


def test_a_pending_row_has_what_stops_it(watched: Watched, shell: Shell) -> None:
    watched.run("insert into usr values (1, 'Jack')")
    facts, texts = views(watched, shell)
    assert (facts["state"], facts["outcome"], facts["obstacle"]) == ("pending", "pending", "")
    with watched.store.as_leader(1) as work:
        down = {"down": "connection refused", "down_since": SINCE}
        work.record_cycle(json.dumps(down))
    facts, texts = views(watched, shell)
    stopped = f"the receiver is down since {SINCE} UTC (connection refused)"
    assert (facts["state"], facts["obstacle"]) == ("pending", stopped)
    assert f"it does not go now: {stopped}" in texts[0]
    assert stopped in texts[1]
    everything = shell.run("explain", **settings(watched))
    assert f"nothing goes at present: {stopped}" in everything.stderr
    assert f"Nothing goes at present: {stopped}." in watched.client.get("/next")
    with watched.store.admin() as admin:
        admin.pause("ada", "the engine moves")
    facts, texts = views(watched, shell)
    assert facts["obstacle"].startswith("the publisher is paused by ada: the engine moves, since ")
    assert facts["obstacle"] in texts[1]


def test_a_table_that_is_not_published_stops_its_rows(watched: Watched, shell: Shell) -> None:
    watched.run("insert into usr values (1, 'Jack')")
    with watched.store.as_leader(1) as work:
        work.record_cycle(json.dumps({"unread": {"public.usr": "9 of 9 objects would be deleted"}}))
    facts, texts = views(watched, shell)
    stopped = "public.usr is not published: 9 of 9 objects would be deleted"
    assert facts["obstacle"] == stopped
    assert all(stopped in text for text in texts[:2])


def test_a_later_row_of_an_object_that_waits_is_held_by_the_row_of_its_event(
    watched: Watched, shell: Shell
) -> None:
    watched.sink.is_busy, watched.sink.words = True, "busy"
    watched.run("insert into usr values (1, 'Jack')")
    watched.publisher.cycle()
    watched.run("update usr set fname = 'John'")
    facts, texts = views(watched, shell, 2)
    assert (facts["state"], facts["outcome"], facts["by"]) == ("waiting", "held", 1)
    assert re.match(r"eventlog:1 goes again at 20.*Z: busy", facts["obstacle"])
    assert "held, by row 1: eventlog:1 goes again at" in texts[0]
    assert '<a href="/row/1">1</a></dd>' in watched.client.get("/row/2")
    facts, _ = views(watched, shell, 1)
    assert (facts["state"], facts["by"], facts["tries"][0]["answer"]) == ("waiting", None, "retry")


def test_every_view_has_who_did_what(watched: Watched, shell: Shell) -> None:
    watched.sink.refuses = True
    watched.run("insert into usr values (1, 'Jack')")
    watched.publisher.cycle()
    body = urlencode({"token": TOKEN, "act": "skip", "reason": "a test"}).encode()
    watched.client.ask("POST", "/row/1", body)
    facts, texts = views(watched, shell)
    (deed,) = facts["deeds"]
    assert (deed["who"], deed["what"], deed["words"]) == ("status page", "skip", "a test")
    assert facts["state"] == "skipped"
    for text in texts:
        assert re.search(r"skipped\S* ?:? by status page at 20.*Z: a test", text)


def test_a_row_that_failed_without_a_record_has_no_none(watched: Watched, shell: Shell) -> None:
    watched.run(
        "insert into eventlog (status, event_type, table_name, table_key) values ('E', 6, 'usr', 'idu=1')"
    )
    facts, texts = views(watched, shell)
    assert (facts["state"], facts["reason"]) == ("failed", "no reason is kept")
    assert not [text for text in texts if "None" in text]


def test_no_view_shows_a_withheld_value(watched: Watched, shell: Shell) -> None:
    watched.run("insert into usr values (1, 's3cret')", "insert into usr values (2, 'Jane')")
    values = {**watched.board.config.values}
    watched.board.config = Config(values, tables={"usr": {"withhold": ["fname"]}})
    with watched.store.as_leader(1) as work:
        work.record_settings(
            json.dumps({"values": {}, "tables": {"usr": {"withhold": ["fname"]}}, "has_source": False})
        )
    facts, texts = views(watched, shell)
    assert (facts["hides_values"], facts["new_value"]) == (True, None)
    assert "s3cret" not in "".join(texts)
    assert all("fname: its values do not leave" in text for text in texts)
