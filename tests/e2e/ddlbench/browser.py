# SPDX-License-Identifier: Apache-2.0
"""A headless Chromium that a test looks at pages with, by the DevTools protocol over two pipes; no package is needed.

usage: browser.py screenshot PAGE WIDTH HEIGHT FILE.png      for pictures in the documentation
"""

import base64
import json
import os
import pathlib
import select
import shutil
import struct
import subprocess
import sys
import tempfile
import time
import zlib

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")


def find():
    """The path of a browser; None if there is none."""
    return next((path for path in map(shutil.which, NAMES) if path), None)


class Browser:
    """One page in one browser, which ends with the `with` block."""

    def __init__(self, path, seconds=600):
        self.deadline = time.monotonic() + seconds
        self.profile = tempfile.mkdtemp(prefix="browser.")
        to_browser, self.write_end = os.pipe()
        self.read_end, from_browser = os.pipe()
        options = ["--headless=new", "--remote-debugging-pipe", "--disable-gpu", "--hide-scrollbars", "--no-first-run",
                   "--disable-background-networking", "--disable-dev-shm-usage", f"--user-data-dir={self.profile}"]
        if os.geteuid() == 0:
            options.append("--no-sandbox")  # which root cannot have
        self.log = open(os.path.join(self.profile, "log"), "w+", encoding="utf-8", errors="replace")
        # It reads descriptor 3 and writes 4.
        command = ["bash", "-c", f'exec "$@" 3<&{to_browser} 4>&{from_browser}', "bash", path, *options, "about:blank"]
        self.process = subprocess.Popen(command, pass_fds=(to_browser, from_browser), stdin=subprocess.DEVNULL,
                                        stdout=self.log, stderr=self.log,
                                        env={**os.environ, "HOME": self.profile, "LC_ALL": "C.UTF-8"})
        os.close(to_browser)
        os.close(from_browser)
        self.unread = b""
        self.number = 0
        self.events = []
        self.session = None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.log.close()
        shutil.rmtree(self.profile, ignore_errors=True)

    def message(self):
        while b"\0" not in self.unread:
            left = self.deadline - time.monotonic()
            ready, _, _ = select.select([self.read_end], [], [], max(0, left))
            part = os.read(self.read_end, 1 << 20) if ready else b""
            if not part:
                self.log.seek(0)
                raise RuntimeError("the browser " + ("has ended" if ready else "takes too long") + ": " + self.log.read()[-2000:])
            self.unread += part
        text, self.unread = self.unread.split(b"\0", 1)
        return json.loads(text)

    def call(self, method, **parameters):
        """Its result; events that come before it are kept."""
        self.number += 1
        request = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            request["sessionId"] = self.session
        data = json.dumps(request).encode() + b"\0"
        while data:
            data = data[os.write(self.write_end, data):]
        while True:
            message = self.message()
            if message.get("id") == self.number:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']}")
                return message["result"]
            self.events.append(message)

    def resize(self, width, height, scale=1, mobile=False):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=scale, mobile=mobile)

    def media(self, media="", scheme="light"):
        self.call("Emulation.setEmulatedMedia", media=media,
                  features=[{"name": "prefers-color-scheme", "value": scheme}])

    def open(self, page):
        self.call("Page.navigate", url=pathlib.Path(page).resolve().as_uri())
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            self.events.append(self.message())

    def evaluate(self, expression):
        """The value of a JavaScript expression."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(str(answer["exceptionDetails"]))
        return answer["result"].get("value")

    def screenshot(self, whole=False):
        """PNG of what is seen, or of the whole page."""
        return base64.b64decode(self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole,
                                          **({"clip": self.whole_page()} if whole else {}))["data"])

    def whole_page(self):
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        return {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}

    def pdf(self):
        return base64.b64decode(self.call("Page.printToPDF", printBackground=False, preferCSSPageSize=True)["data"])


class Picture:
    """The pixels of a PNG as Chromium writes them: 8 bits, RGB or RGBA, not interlaced."""

    def __init__(self, png):
        assert png[:8] == b"\x89PNG\r\n\x1a\n"
        data, at = b"", 8
        while at < len(png):
            length, kind = struct.unpack(">I4s", png[at:at + 8])
            body = png[at + 8:at + 8 + length]
            if kind == b"IHDR":
                self.width, self.height, depth, color, *_, interlace = struct.unpack(">IIBBBBB", body)
                assert depth == 8 and color in (2, 6) and interlace == 0
                self.channels = 3 if color == 2 else 4
            if kind == b"IDAT":
                data += body
            at += length + 12
        self.rows = self._unfilter(zlib.decompress(data))

    def _unfilter(self, data):
        stride, step = self.width * self.channels, self.channels
        rows, above = [], bytes(self.width * self.channels)
        for y in range(self.height):
            start = y * (stride + 1)
            kind, row = data[start], bytearray(data[start + 1:start + 1 + stride])
            if kind == 2:
                row = bytearray((a + b) & 255 for a, b in zip(row, above))
            elif kind:
                for i in range(stride):
                    left = row[i - step] if i >= step else 0
                    corner = above[i - step] if i >= step else 0
                    row[i] = (row[i] + self._predicted(kind, left, above[i], corner)) & 255
            rows.append(row)
            above = row
        return rows

    @staticmethod
    def _predicted(kind, left, up, corner):
        if kind == 1:
            return left
        if kind == 3:
            return (left + up) // 2
        estimate = left + up - corner
        return min((abs(estimate - left), 0, left), (abs(estimate - up), 1, up), (abs(estimate - corner), 2, corner))[2]

    def pixel(self, x, y):
        start = x * self.channels
        return tuple(self.rows[y][start:start + 3])


def main(arguments):
    if len(arguments) != 5 or arguments[0] != "screenshot":
        sys.exit(__doc__)
    _, page, width, height, file = arguments
    path = find()
    if path is None:
        sys.exit("browser.py: there is no " + " or ".join(NAMES))
    with Browser(path) as browser:
        browser.resize(int(width), int(height))
        browser.media()
        browser.open(page)
        pathlib.Path(file).write_bytes(browser.screenshot())


if __name__ == "__main__":
    main(sys.argv[1:])
