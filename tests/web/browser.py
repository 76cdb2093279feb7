"""Headless Chromium over its driver's HTTP protocol (W3C WebDriver), where both are on the machine."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.kit.support import patient, until

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"  # WebDriver, section 12.2: the web element identifier
PATIENCE = 20.0


class Browser:
    """One window."""

    def __init__(self, driver: str, profile: Path) -> None:
        arguments = ["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
        arguments.append(f"--user-data-dir={profile}")
        capabilities = {"browserName": "chrome", "goog:chromeOptions": {"args": arguments}}
        capabilities["goog:loggingPrefs"] = {"browser": "ALL"}
        session = _call(f"{driver}/session", {"capabilities": {"alwaysMatch": capabilities}})
        self._session = f"{driver}/session/{session['sessionId']}"

    def open(self, url: str) -> None:
        self._post("url", url=url)

    def run(self, script: str, *values: object) -> Any:
        """Return the value of a script's return, or of the promise that it returns."""
        return self._post("execute/sync", script=script, args=values)

    def text(self) -> str:
        return str(self.run("return document.body.innerText"))

    def click(self, selector: str) -> None:
        self._post(f"element/{self._find(selector)}/click")

    def type(self, keys: str) -> None:
        """Send these keys to the element with the focus."""
        steps = [{"type": kind, "value": key} for key in keys for kind in ("keyDown", "keyUp")]
        self._post("actions", actions=[{"type": "key", "id": "keyboard", "actions": steps}])

    def wait_for(self, script: str) -> None:
        """Wait until the script returns something true."""
        until(lambda: self.run(script), PATIENCE, 0.05, lambda: f"never true: {script}\n{self.text()}")

    def complaints(self) -> list[str]:
        """Return what the browser reported: errors of scripts, of the policy, of missing files."""
        return [str(entry["message"]) for entry in self._post("se/log", type="browser")]

    @contextmanager
    def looking(self, width: int, scheme: str, height: int = 800) -> Iterator[None]:
        """Look through a window of this size, in light or in dark."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self._devtools("Emulation.setDeviceMetricsOverride", **size)
        colours = [{"name": "prefers-color-scheme", "value": scheme}]
        self._devtools("Emulation.setEmulatedMedia", features=colours)
        try:
            yield
        finally:
            self._devtools("Emulation.clearDeviceMetricsOverride")
            self._devtools("Emulation.setEmulatedMedia", features=[])

    @contextmanager
    def printing(self) -> Iterator[None]:
        """Look at the page as it is printed."""
        self._devtools("Emulation.setEmulatedMedia", media="print")
        try:
            yield
        finally:
            self._devtools("Emulation.setEmulatedMedia", media="")

    def picture(self) -> bytes:
        """Return a picture of the window, as PNG."""
        encoded_picture = _call(f"{self._session}/screenshot", None, "GET")
        return base64.b64decode(encoded_picture)

    def close(self) -> None:
        _call(self._session, None, "DELETE")

    def _find(self, selector: str) -> str:
        element: dict[str, str] = self._post("element", using="css selector", value=selector)
        return element[ELEMENT]

    def _devtools(self, command: str, **values: Any) -> None:
        self._post("goog/cdp/execute", cmd=command, params=values)

    def _post(self, command: str, **values: Any) -> Any:
        return _call(f"{self._session}/{command}", values)


@contextmanager
def chromium(folder: Path) -> Iterator[Browser]:
    """A browser; the test is skipped where none is on the machine."""
    for program in ("chromium", "chromedriver"):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not on this machine")
    with _driver() as port:
        browser = Browser(f"http://127.0.0.1:{port}", folder / "profile")
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def _driver() -> Iterator[int]:
    """Start chromedriver. It ends if the port that it got on IPv6 is taken on IPv4, so it has three tries."""
    for _ in range(3):
        with subprocess.Popen(["chromedriver", "--port=0"], stdout=subprocess.PIPE, text=True) as driver:
            assert driver.stdout is not None
            started = next((line for line in driver.stdout if "successfully on port" in line), None)
            if started is not None:
                try:
                    yield int(started.rstrip().rstrip(".").split()[-1])
                finally:
                    driver.terminate()
                return
    raise AssertionError("chromedriver did not start in three tries")


def _call(url: str, values: dict[str, Any] | None, method: str = "POST") -> Any:
    body = None if values is None else json.dumps(values).encode()
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"}, method=method)
    try:
        with urllib.request.urlopen(request, timeout=patient(60)) as answer:
            return json.load(answer)["value"]
    except urllib.error.HTTPError as fault:
        with fault:
            raise AssertionError(fault.read().decode()) from None
