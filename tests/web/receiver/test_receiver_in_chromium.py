"""The receiver's page as a person uses it: list, filter, document, history; by mouse and by keyboard."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.web.browser import Browser, chromium
from tests.web.receiver.conftest import ADD, DELETE, HOSTILE, MODIFY, Client

pytestmark = pytest.mark.quick


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with chromium(tmp_path_factory.mktemp("chromium")) as new_browser:
        yield new_browser


def rows(browser: Browser) -> int:
    return int(browser.run("return document.querySelectorAll('tbody tr').length"))


@pytest.mark.long
def test_a_person_clicks_through_list_filter_document_and_history(browser: Browser, client: Client) -> None:
    for event in (ADD, MODIFY, DELETE):
        client.post(event)
    home = f"http://127.0.0.1:{client.port}/"
    browser.open(home)
    assert rows(browser) == 3
    browser.run("const s = document.querySelector('[name=operation]'); s.value = 'modify';"
                "s.dispatchEvent(new Event('change', {bubbles: true}))")  # fmt: skip
    browser.wait_for("return location.search.includes('operation=modify')")
    browser.wait_for("return document.querySelectorAll('tbody tr').length === 1")
    browser.click("tbody a")
    browser.wait_for("return location.pathname === '/document/2'")
    assert "John" in browser.text()
    browser.click("h2 a")
    browser.wait_for("return location.pathname === '/object'")
    assert "What these events leave" in browser.text()
    assert browser.complaints() == []


@pytest.mark.long
def test_what_arrives_appears_by_itself(browser: Browser, client: Client) -> None:
    browser.open(f"http://127.0.0.1:{client.port}/")
    assert rows(browser) == 0
    client.post(ADD)
    browser.wait_for("return document.querySelectorAll('tbody tr').length === 1")


def test_keys_walk_the_list(browser: Browser, client: Client) -> None:
    client.post(ADD)
    client.post(MODIFY)
    browser.open(f"http://127.0.0.1:{client.port}/")
    browser.type("jj")
    assert browser.run("return document.activeElement.getAttribute('href')") == "/document/1"
    browser.type("k\ue007")
    browser.wait_for("return location.pathname === '/document/2'")
    browser.open(f"http://127.0.0.1:{client.port}/")
    browser.type("/")
    assert browser.run("return document.activeElement.name") == "key"


def test_hostile_values_run_nothing(browser: Browser, client: Client, tmp_path: Path) -> None:
    escaped = HOSTILE.replace("&", "&amp;").replace("<", "&lt;").replace('"', "&quot;")
    client.post(ADD.replace("Jack", escaped).replace("usr,schema", escaped + ",schema"))
    for path in ("", "document/1"):
        browser.open(f"http://127.0.0.1:{client.port}/{path}")
        assert browser.run("return document.scripts.length") == 1
    assert HOSTILE.removesuffix("\u202e") in browser.text()
    assert browser.complaints() == []


@pytest.mark.parametrize("width", [390, 1920])
def test_the_fields_of_the_filter_stand_on_lines(browser: Browser, client: Client, width: int) -> None:
    script = """return [...document.querySelectorAll('form.filter :is(input, select, button)')]
        .map(field => field.getBoundingClientRect()).map(box => [box.top, box.height])"""
    with browser.looking(width=width, scheme="light"):
        browser.open(f"http://127.0.0.1:{client.port}/")
        places = [(round(top), round(height)) for top, height in browser.run(script)]
    assert len({height for _, height in places}) == 1
    assert len({top for top, _ in places}) == (3 if width == 390 else 1)


def test_a_phone_needs_no_sideways_scrolling(browser: Browser, client: Client) -> None:
    client.post(ADD.replace("Jack", "J" * 3000), DELETE)
    with browser.looking(width=360, scheme="dark"):
        for path in ("", "document/1", "object?association=idg%3D7%2Ctable%3Dgrp"):
            browser.open(f"http://127.0.0.1:{client.port}/{path}")
            assert browser.run("return document.documentElement.scrollWidth") <= 360
            assert browser.run("return getComputedStyle(document.body).backgroundColor") == "rgb(20, 23, 29)"
