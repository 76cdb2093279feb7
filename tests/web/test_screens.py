"""The pages on screens of three widths, in light and in dark: nothing overflows, and all is in its frame.

With EVENTLOG_PICTURES, a folder, each screen is kept there as a picture. With EVENTLOG_AXE, the file of
axe-core, it examines each screen, too.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from eventlog.sql.log.log_record import Notice, NoticeKind
from eventlog.web.monitor.page_data import Sample
from tests.web.browser import Browser, chromium
from tests.web.conftest import Watched
from tests.web.receiver.conftest import ADD, DELETE, MODIFY, Client

pytestmark = pytest.mark.long  # a browser shows each page six times

SCREENS = [(width, scheme) for width in (390, 800, 1280) for scheme in ("light", "dark")]
OUT_OF_FRAME = """
    return [...document.querySelectorAll('svg')].flatMap((drawing) => {
      const frame = drawing.getBoundingClientRect();
      return [...drawing.querySelectorAll('text')].filter((tick) => {
        const box = tick.getBoundingClientRect();
        const isBeside = box.left < frame.left || box.right > frame.right;
        return isBeside || box.top < frame.top || box.bottom > frame.bottom;
      }).map((tick) => tick.textContent);
    })"""
BROKEN_WORDS = """
    return [...document.querySelectorAll('td.text > div')].flatMap((cell) => {
      const texts = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT), broken = [];
      while (texts.nextNode()) {
        for (const word of texts.currentNode.data.matchAll(/[^\\s-]+-?/g)) {  // a line may end after a hyphen
          if (word[0].length > 14) continue;
          const range = document.createRange();
          range.setStart(texts.currentNode, word.index);
          range.setEnd(texts.currentNode, word.index + word[0].length);
          const lines = new Set([...range.getClientRects()].map((box) => Math.round(box.top)));
          if (lines.size > 1) broken.push(word[0]);
        }
      }
      return broken;
    })"""


TALL_RECORDS = """
    return [...document.querySelectorAll('tbody tr')].map((row) => row.getBoundingClientRect().height)
      .filter((height) => height > 70)"""

CUT_CHANGES = """
    return [...document.querySelectorAll('td[data-label="Change"] > div > div')].filter((change) => {
      const cell = change.parentElement.getBoundingClientRect();
      return change.getBoundingClientRect().right > cell.right + 1;
    }).map((change) => change.textContent)"""

SHOWN_ON_PAPER = """
    return ['nav', 'form', 'footer', 'h1', 'table']
      .filter((name) => document.querySelector(name).getClientRects().length > 0)"""

LONG_KEY = "jack@example.com"

SMALL_TARGETS = """
    return [...document.querySelectorAll('a[href], button, input, select')].filter((target) => {
      const box = target.getBoundingClientRect();
      const isInSentence = target.tagName === 'A' && target.closest('p, dd, caption') !== null;
      return box.width > 0 && box.left >= 0 && box.height < 24 && !isInSentence;
    }).map((target) => `${target.outerHTML.slice(0, 80)} ${target.getBoundingClientRect().height}`)"""

SAME_LANDMARKS = """
    const names = [...document.querySelectorAll('header, main, footer, nav, [role=search]')]
      .map((part) => `${part.getAttribute('role') ?? part.tagName} ${part.getAttribute('aria-label')}`);
    return names.filter((name, place) => names.indexOf(name) !== place)"""

EXAMINED = """
    const rules = {runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']};
    return axe.run(document, rules).then((result) => result.violations.flatMap((violation) =>
      violation.nodes.map((node) => `${violation.id}: ${node.html.slice(0, 120)}`)))"""

# Keys that are cut next to a time that is whole.
CUT_KEYS = """
    const isCut = (part) => [part, ...part.querySelectorAll('*')].some((each) =>
      each.scrollWidth > each.clientWidth + 1 && getComputedStyle(each).display !== 'inline');
    return [...document.querySelectorAll('tbody tr')].filter((row) => {
      const [key, time] = ['.key', '.time'].map((kind) => row.querySelector(kind));
      return key && time && isCut(key) && !isCut(time);
    }).map((row) => row.innerText)"""

WIDTHS_OF_ANSWERS = """
    return [...document.querySelectorAll('td[data-label="Answer, and who"]')]
      .map((cell) => cell.getBoundingClientRect().width)"""


def look(browser: Browser, client: Client, site: str, paths: dict[str, str]) -> None:
    """Look at each page on each screen."""
    folder, axe_file = (os.environ.get(name) for name in ("EVENTLOG_PICTURES", "EVENTLOG_AXE"))
    axe = Path(axe_file).read_text("utf-8") if axe_file else None
    for width, scheme in SCREENS:
        with browser.looking(width=width, scheme=scheme):
            for name, path in paths.items():
                browser.open(f"http://127.0.0.1:{client.port}{path}")
                if folder:
                    Path(folder, f"{site}-{name}-{width}-{scheme}.png").write_bytes(browser.picture())
                assert browser.run("return document.documentElement.scrollWidth") <= width, (path, width)
                assert browser.run(OUT_OF_FRAME) == [], (path, width)
                assert browser.run(BROKEN_WORDS) == [], (path, width)
                assert browser.run(SMALL_TARGETS) == [], (path, width)
                assert browser.run(SAME_LANDMARKS) == [], (path, width)
                if axe is not None:
                    browser.run(axe)
                    assert browser.run(EXAMINED) == [], (path, width, scheme)
                if width < 400:  # a record takes two lines
                    assert browser.run(TALL_RECORDS) == [], (path, width)
                    assert browser.run(CUT_KEYS) == [], (path, width)
    assert browser.complaints() == []


def test_the_pages_of_a_publisher_fit_every_screen(watched: Watched, tmp_path: Path) -> None:
    watched.sink.refuses = True
    watched.run(
        "insert into usr select n, 'Jack ' || n from generate_series(1, 40) n",
        "insert into eventlog (event_type, table_name, table_key) values (9, 'usr', 'idu=1')",
        f"insert into usr values (50, '{'J' * 64}')",
        f"insert into eventlog (event_type, table_name, table_key) values (9, 'usr', 'email={LONG_KEY}')",
    )
    watched.publisher.cycle()
    watched.run(
        "update eventlog_failed set reason = 'attribute fname: the value ' || record_id || ' is not allowed"
        " for this class, because the directory expects a telephone number' where record_id % 3 > 0"
    )
    watched.sink.refuses, watched.sink.is_busy = False, True
    watched.run("insert into usr values (60, 'Jane')")
    watched.publisher.cycle()
    watched.run("insert into usr values (62, 'Joe')")
    watched.publisher.cycle()
    watched.sink.is_busy = False
    watched.run("update eventlog_retry set next_at = now() at time zone 'UTC' where object_key = 'idu=62'")
    watched.publisher.cycle()
    watched.run("update usr set fname = 'John' where idu in (1, 60)", "insert into usr values (61, 'Ann')")
    with watched.store.admin() as admin:
        admin.note(Notice(NoticeKind.START, who="db1, pid 4711", words="epoch 7"))
        facts = json.dumps({"command": "1", "condition": "--because 'no such department'"})
        ids = tuple(range(1, 1001))
        admin.note(Notice(NoticeKind.REDRIVE, "usr", None, 1, 1000, 1000, ids, who="ada", words=facts))
    samples = [Sample(5.0 * n, 120_000_000 * n, 90.0 * n, 3_000_000 * n * n) for n in range(720)]
    watched.board.samples.extend(samples)
    paths = {
        "status": "/",
        "errors": "/errors",
        "reason": "/errors?reason=directory",
        "confirm": "/errors?reason=directory&act=skip",
        "row": "/row/2",
        "waiting": "/waiting",
        "next": "/next",
        "recent": "/recent",
        "object": "/object?table=usr&key=idu%3D1",
        "tries": "/object?table=usr&key=idu%3D62",
        "history": "/history",
        "settings": "/settings",
    }
    with chromium(tmp_path) as browser:
        look(browser, watched.client, "publisher", paths)
        with browser.looking(width=390, scheme="light"):  # an answer has a line of its own
            browser.open(f"http://127.0.0.1:{watched.client.port}{paths['tries']}")
            widths = browser.run(WIDTHS_OF_ANSWERS)
            browser.open(f"http://127.0.0.1:{watched.client.port}{paths['object']}")
            assert "fname: ∅ → Jack 1" in browser.text()
            assert browser.run(CUT_CHANGES) == []
        with browser.printing():
            assert browser.run(SHOWN_ON_PAPER) == ["h1", "table"]
    assert len(widths) > 2
    assert min(widths) > 300


def test_the_pages_of_a_receiver_fit_every_screen(client: Client, tmp_path: Path) -> None:
    client.post(ADD.replace("Jack", "J" * 300))
    for event in (ADD, MODIFY, DELETE):
        client.post(event)
    client.ask("POST", "/", b"nonsense")
    association = "idu%3D1%2Ctable%3Dusr%2Cschema%3Dindirect"
    paths = {
        "documents": "/",
        "document": "/document/3",
        "invalid": "/document/5",
        "object": f"/object?association={association}",
    }
    with chromium(tmp_path) as browser:
        look(browser, client, "receiver", paths)
