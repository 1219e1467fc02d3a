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
import subprocess
import sys
import tempfile
import time

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")

# What draws the places side by side: the browser is the quickest reader of a PNG that is at hand.
PIXELS = """async (png, places) => {
  const bytes = Uint8Array.from(atob(png), letter => letter.charCodeAt(0));
  const picture = await createImageBitmap(new Blob([bytes], {type: 'image/png'}));
  const context = new OffscreenCanvas(5 * places.length, 5).getContext('2d');
  places.forEach(([x, y], place) => context.drawImage(picture, x - 2, y - 2, 5, 5, 5 * place, 0, 5, 5));
  return [...context.getImageData(0, 0, 5 * places.length, 5).data];
}"""


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
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(str(answer["exceptionDetails"]))
        return answer["result"].get("value")

    def screenshot(self, whole=False):
        """PNG of what is seen, or of the whole page."""
        return base64.b64decode(self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole,
                                          **({"clip": self.whole_page()} if whole else {}))["data"])

    def pixels(self, png, places):
        """Colours of a PNG around each of the places (x, y): 5 x 5 of them, those outside of the picture left out."""
        flat = self.evaluate(f"({PIXELS})('{base64.b64encode(png).decode()}', {json.dumps(places)})")
        return [[tuple(flat[at:at + 3]) for row in range(5) for column in range(5)
                 for at in [4 * (row * 5 * len(places) + 5 * place + column)] if flat[at + 3]]
                for place in range(len(places))]

    def whole_page(self):
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        return {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}

    def pdf(self):
        return base64.b64decode(self.call("Page.printToPDF", printBackground=False, preferCSSPageSize=True)["data"])


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
