"""A headless Chromium by its own debugging pipe: opens a file, tells what it logged and asked for, measures, and takes pictures.

No driver and no library: commands and answers are JSON texts on two pipes, each ended by a zero byte.
"""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
WAIT = 60.0
"""Seconds for an answer; a first start on a busy machine takes some."""


def chromium() -> str | None:
    """The program: as `ANONLIB_CHROMIUM` names it, or under a usual name; None where there is none."""
    named = os.environ.get("ANONLIB_CHROMIUM")
    return named or next((path for name in NAMES if (path := shutil.which(name))), None)


class Browser:
    """One page of one Chromium with a profile of its own in `home`. `requests` and `complaints` are of all that was opened so far."""

    def __init__(self, program: str, home: Path) -> None:
        read, answers = os.pipe()
        commands, write = os.pipe()
        far = [
            fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (commands, answers)
        ]  # 3 and 4 are taken by the shell below
        for end in (commands, answers):
            os.close(end)
        flags = [
            "--headless=new", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
            "--disable-background-networking", "--no-first-run", "--hide-scrollbars", f"--user-data-dir={home / 'profile'}",
        ]  # fmt: skip
        self._process = subprocess.Popen(
            ["bash", "-c", f'exec "$@" 3<&{far[0]} 4>&{far[1]}', "bash", program, *flags],
            pass_fds=far, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        for end in far:
            os.close(end)
        self._read, self._write, self._rest, self._number = read, write, b"", 0
        self._session = ""
        self.requests: list[str] = []
        self.complaints: list[str] = []
        self._loaded = False
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """The answer to one command. Raises AssertionError for an error, or none in `WAIT` seconds."""
        self._number += 1
        command: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            command["sessionId"] = self._session
        os.write(self._write, json.dumps(command).encode() + b"\0")
        end = time.monotonic() + WAIT
        while True:
            message = self._next(end)
            if message.get("id") == self._number:
                assert "error" not in message, (method, message["error"])
                answer: dict[str, Any] = message["result"]
                return answer

    def open(self, page: Path) -> None:
        """Open a file and wait until it is loaded."""
        self._loaded = False
        self.call("Page.navigate", url=page.as_uri())
        end = time.monotonic() + WAIT
        while not self._loaded:
            self._next(end)

    def show(self, width: int, height: int, dark: bool = False, medium: str = "screen") -> None:
        """The size of the window in CSS pixels, and what the page is shown on."""
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", media=medium, features=[scheme])

    def value(self, expression: str) -> Any:
        """The value of a JavaScript expression in the page; the page's own policy is about its own scripts."""
        return self.call("Runtime.evaluate", expression=expression, returnByValue=True)["result"].get("value")

    def press(self, key: str, code: int) -> None:
        """A key, down and up."""
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code)

    def picture(self, path: Path) -> None:
        """The whole page as a PNG."""
        shot = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=self._whole())
        path.write_bytes(base64.b64decode(shot["data"]))

    def printed(self, path: Path) -> None:
        """The page on paper of its own choice, as a PDF."""
        self.call("Emulation.setEmulatedMedia", media="")
        answer = self.call("Page.printToPDF", preferCSSPageSize=True, printBackground=True)
        path.write_bytes(base64.b64decode(answer["data"]))

    def close(self) -> None:
        """End it."""
        self._process.terminate()
        self._process.wait(timeout=20)
        os.close(self._read)
        os.close(self._write)

    def _whole(self) -> dict[str, float]:
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        return {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}

    def _next(self, end: float) -> dict[str, Any]:
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._read], [], [], max(0.0, end - time.monotonic()))
            assert ready, "the browser does not answer"
            more = os.read(self._read, 1 << 16)
            assert more, "the browser has ended"
            self._rest += more
        text, self._rest = self._rest.split(b"\0", 1)
        message: dict[str, Any] = json.loads(text)
        self._note(message.get("method", ""), message.get("params", {}))
        return message

    def _note(self, method: str, event: dict[str, Any]) -> None:
        if method == "Network.requestWillBeSent":
            self.requests.append(event["request"]["url"])
        elif method == "Log.entryAdded":
            self.complaints.append(f"{event['entry']['level']}: {event['entry']['text']}")
        elif method == "Runtime.consoleAPICalled":
            self.complaints.append(f"console.{event['type']}")
        elif method == "Runtime.exceptionThrown":
            self.complaints.append(str(event["exceptionDetails"]))
        elif method == "Page.loadEventFired":
            self._loaded = True
