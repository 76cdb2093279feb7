"""The pictures of the documentation show the present pages, with a few people in the log.

EVENTLOG_PICTURES=docs/pictures pytest tests/web/test_pictures.py makes them anew.
"""

from __future__ import annotations

import base64
import json
import math
import os
import struct
import time
import zlib
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest

from eventlog.opening.config import Config
from eventlog.status.backlog_trend import TrendPoint, dump_trend
from eventlog.status.log_status import read_log_status
from eventlog.web.monitor.page_data import Sample
from tests.web.browser import Browser, chromium
from tests.web.conftest import TOKEN, Watched
from tests.web.receiver.conftest import ADD, DELETE, MODIFY, Client

pytestmark = pytest.mark.quick

DOCS = Path(__file__).parents[2] / "docs"
WIDTH = 960
PUBLISHER = {
    "status": ("/", 780),
    "errors": ("/errors", 610),
    "confirm": ("/errors?reason=fname&act=skip", 360),
    "row": ("/row/42", 660),
    "waiting": ("/waiting", 330),
    "next": ("/next", 440),
    "recent": ("/recent", 450),
    "history": ("/history", 320),
    "object": ("/object?table=usr&key=idu%3D62", 690),
}
CONFIGURATION = {"settings": ("/settings", 410)}
RECEIVER = {
    "documents": ("/", 480),
    "document": ("/document/2", 560),
    "received": ("/object?association=idu%3D1%2Ctable%3Dusr%2Cschema%3Dindirect", 420),
}
SETTINGS = {
    "url": "postgresql://eventlog:hush@db.example/people",
    "sink": "http",
    "http_url": "https://publisher:hush@idm.example:8443/xds",
    "monitor_port": 9464,
    "monitor_token": TOKEN,
}

PIXELS = """
    return fetch('data:image/png;base64,' + arguments[0]).then((reply) => reply.blob())
      .then(createImageBitmap).then((picture) => {
        const canvas = new OffscreenCanvas(picture.width, picture.height).getContext('2d');
        canvas.drawImage(picture, 0, 0);
        const bytes = canvas.getImageData(0, 0, picture.width, picture.height).data;
        return btoa([...bytes].map((byte) => String.fromCharCode(byte)).join(''));
      })"""


def photograph(browser: Browser, client: Client, pages: Mapping[str, tuple[str, int]]) -> None:
    """Keep a picture of each page, if a folder is named for them."""
    folder = os.environ.get("EVENTLOG_PICTURES")
    for name, (path, height) in pages.items():
        with browser.looking(WIDTH, "light", height):
            browser.open(f"http://127.0.0.1:{client.port}{path}")
            assert browser.run("return document.querySelector('h1') !== null"), path
            if folder:
                Path(folder, f"{name}.png").write_bytes(small(browser, browser.picture(), height))
    assert browser.complaints() == []


def small(browser: Browser, picture: bytes, height: int) -> bytes:
    """Return a PNG of 256 colours, those that most pixels have: it takes a third."""
    browser.open("about:blank")
    encoded_pixels = browser.run(PIXELS, base64.b64encode(picture).decode())
    pixels = np.frombuffer(base64.b64decode(encoded_pixels), ">u4")
    colours, places, amounts = np.unique(pixels, return_inverse=True, return_counts=True)
    channels = colours.view(np.uint8).reshape(-1, 4)[:, :3].astype(int)
    palette = channels[np.argsort(-amounts, kind="stable")[:256]]
    nearest = abs(channels[:, None] - palette).sum(axis=2).argmin(axis=1).astype(np.uint8)
    indexes = nearest[places].reshape(height, WIDTH)
    chunks = {
        b"IHDR": struct.pack(">IIBBBBB", WIDTH, height, 8, 3, 0, 0, 0),  # 8 bits a pixel, by a palette
        b"PLTE": palette.astype(np.uint8).tobytes(),
        b"IDAT": zlib.compress(np.insert(indexes, 0, 0, axis=1).tobytes(), 9),  # no line is filtered
        b"IEND": b"",
    }
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
        for kind, body in chunks.items()
    )


@pytest.mark.long  # a browser shows each page once
def test_the_publisher_is_photographed(watched: Watched, tmp_path: Path) -> None:
    sink = watched.sink
    watched.run("insert into usr select n, 'Ann' from generate_series(4, 44) n")
    watched.publisher.cycle()
    sink.refuses, sink.words = True, "the class usr has no attribute fname"
    watched.run(
        "insert into usr values (1, 'Jack'), (2, 'Jane'), (3, 'Joe')",
        "insert into eventlog (event_type, table_name, table_key) values (9, 'usr', 'idu=1')",
    )
    watched.publisher.cycle()
    sink.refuses, sink.is_busy, sink.words = False, True, "the directory is being rebuilt"
    watched.run("insert into usr values (60, 'Mary'), (62, 'Paul')")
    watched.publisher.cycle()
    with watched.store.admin() as admin:
        admin.try_now((47,), "ada")
    sink.is_busy, sink.words = False, ""
    watched.publisher.cycle()
    watched.client.ask("POST", "/row/44", f"token={TOKEN.replace(' ', '+')}&act=skip&reason=a+test".encode())
    watched.run(
        "update usr set fname = 'John' where idu in (1, 60, 62)", "insert into usr values (61, 'Emma')"
    )
    watched.run("update eventlog_retry set next_at = now() at time zone 'UTC' + interval '40 seconds'")
    course(watched)
    watched.board.config = Config({**watched.board.config.values, "url": "postgresql://db1/hr"})
    with chromium(tmp_path) as browser:
        photograph(browser, watched.client, PUBLISHER)
        watched.board.config = Config(SETTINGS)
        photograph(browser, watched.client, CONFIGURATION)


def course(watched: Watched) -> None:
    """Let the last hour have had a load of some minutes."""
    now, done = time.monotonic(), 0.0
    for n in range(720):
        load = max(0.0, math.sin((n - 160) / 90)) if 160 < n < 440 else 0.0
        load *= 0.8 + 0.2 * math.sin(n * n)
        done += 5 * (6 + 60 * load)
        watched.board.samples.append(Sample(now - 5 * (720 - n), round(800 * load), 4.6 * load, int(done)))
    minute_ago = read_log_status(watched.store, counted=False).now - timedelta(minutes=1)
    points = [TrendPoint(minute_ago, 0, 0), TrendPoint(minute_ago + timedelta(minutes=1), 3, 384)]
    worked = {"at": str(minute_ago), "rows": 3, "events": 3, "refused": 0, "seconds": 0.12}
    facts = {"finished_by_leader": 384, "course": dump_trend(points), "worked": worked}
    facts |= {"rows": 0, "documents": 0, "events": 0, "refused": 0, "seconds": 0.002}
    with watched.store.as_leader(1) as work:
        work.record_cycle(json.dumps(facts))


@pytest.mark.long  # a browser shows each page once
def test_the_receiver_is_photographed(client: Client, tmp_path: Path) -> None:
    for event in (ADD, MODIFY, DELETE):
        client.post(event)
    client.ask("POST", "/", b"nonsense")
    with chromium(tmp_path) as browser:
        photograph(browser, client, RECEIVER)


def test_each_picture_is_shown_and_made_here() -> None:
    names = {f"{name}.png" for name in (*PUBLISHER, *CONFIGURATION, *RECEIVER)}
    assert {path.name for path in (DOCS / "pictures").iterdir()} == names
    pages = "".join(path.read_text("utf-8") for path in DOCS.rglob("*.md"))
    assert [name for name in sorted(names) if f"](../pictures/{name})" not in pages] == []
