"""A real browser: Chromium without a window, told what to do through a pipe (the DevTools protocol)."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any, Self

PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
_SECONDS = 60
_KEYS = {"Tab": 9, "Enter": 13, "ArrowDown": 40, "ArrowUp": 38, "ArrowRight": 39, "ArrowLeft": 37, " ": 32}


def program() -> str | None:
    """Return the browser there is: that of POLYLEAF_BROWSER, or the first of the usual names."""
    return os.environ.get("POLYLEAF_BROWSER") or next(filter(None, map(shutil.which, PROGRAMS)), None)


class Browser:
    """A page in a browser, and all that it asked for or complained of.

    Attributes
    ----------
    requests : list of str
        Addresses of all requests.
    complaints : list of str
        Errors and warnings of the console, exceptions, and violations of the page's policy.
    """

    def __init__(self, path: str, folder: Path) -> None:
        self.requests: list[str] = []
        self.complaints: list[str] = []
        self._number = 0
        self._loaded = False
        self._unread = b""
        to_browser, from_browser = os.pipe(), os.pipe()
        os.set_inheritable(to_browser[0], True)
        os.set_inheritable(from_browser[1], True)
        options = [
            "--headless",
            "--no-sandbox",  # a file of our own; sandboxes need rights that containers often lack
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--no-first-run",
            "--disable-extensions",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-quic",
            "--disable-sync",
            "--hide-scrollbars",
            "--remote-debugging-pipe",
            f"--user-data-dir={folder}",
            "about:blank",
        ]
        # The browser reads what it is told from file 3, and answers to file 4.
        shell = f'exec 3<&{to_browser[0]} 4>&{from_browser[1]}; exec "$0" "$@"'
        self._process = subprocess.Popen(
            ["/bin/bash", "-c", shell, path, *options],
            pass_fds=(to_browser[0], from_browser[1]),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_browser[0])
        os.close(from_browser[1])
        self._write, self._read = to_browser[1], from_browser[0]
        self._session: str | None = None
        target = self.tell("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.tell("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.tell(f"{domain}.enable")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._write)
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._read)

    def tell(self, method: str, **params: Any) -> dict[str, Any]:
        """Call a method of the protocol and return what it returns."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": params}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            heard = self._hear()
            if heard.get("id") == self._number:
                if "error" in heard:
                    raise RuntimeError(f"{method}: {heard['error']}")
                found: dict[str, Any] = heard["result"]
                return found

    def open(self, page: Path | str) -> None:
        """Open a file or an address, and wait until it is loaded."""
        self.requests.clear()
        self.complaints.clear()
        self._loaded = False
        self.tell("Page.navigate", url=page if isinstance(page, str) else page.as_uri())
        while not self._loaded:
            self._hear()

    def look(self, width: int, height: int = 900, *, dark: bool = False) -> None:
        """Set the size of the window, and the theme that the system prefers."""
        self.tell(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.tell("Emulation.setEmulatedMedia", features=[scheme])

    def ask(self, expression: str) -> Any:
        """Return what an expression of JavaScript is in the page."""
        found = self.tell("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in found:
            raise RuntimeError(str(found["exceptionDetails"]))
        return found["result"].get("value")

    def press(self, key: str) -> None:
        """Press a key, as a person does."""
        code = {"key": key, "code": "Space" if key == " " else key, "windowsVirtualKeyCode": _KEYS[key]}
        text = {"Enter": {"text": "\r"}, " ": {"text": " "}}.get(key, {})
        self.tell("Input.dispatchKeyEvent", type="keyDown", **code, **text)
        self.tell("Input.dispatchKeyEvent", type="keyUp", **code)
        self.settle()

    def type(self, text: str) -> None:
        """Type text into what has the focus."""
        self.tell("Input.insertText", text=text)
        self.settle()

    def settle(self) -> None:
        """Wait until two frames are drawn."""
        self.ask("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))")

    def picture(self, path: Path, *, whole: bool = True) -> None:
        """Save what the page looks like."""
        self.settle()
        data = self.tell("Page.captureScreenshot", captureBeyondViewport=whole)["data"]
        path.write_bytes(base64.b64decode(data))

    def _hear(self) -> dict[str, Any]:
        end = time.monotonic() + _SECONDS
        while b"\0" not in self._unread:
            if not select.select([self._read], [], [], max(0.0, end - time.monotonic()))[0]:
                raise TimeoutError("the browser does not answer")
            more = os.read(self._read, 1 << 20)
            if not more:
                raise RuntimeError("the browser has ended")
            self._unread += more
        message, self._unread = self._unread.split(b"\0", 1)
        heard: dict[str, Any] = json.loads(message)
        self._note(heard.get("method", ""), heard.get("params", {}))
        return heard

    def _note(self, method: str, params: dict[str, Any]) -> None:
        if method == "Page.loadEventFired":
            self._loaded = True
        elif method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
        elif method == "Runtime.exceptionThrown":
            self.complaints.append(str(params["exceptionDetails"]))
        elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
            self.complaints.append(str(params["args"]))
        elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.complaints.append(str(params["entry"]))
