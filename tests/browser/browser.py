# SPDX-License-Identifier: Apache-2.0
"""A headless Chromium driven over a pipe (the DevTools protocol), with the standard library alone.

    with Browser() as b:
        page = b.open("file:///.../report.html")
        page.js("document.title")
        page.key("w"); page.move(300, 200); page.screenshot("a.png")
        page.errors, page.requests        # what the console said, what was asked of a network
"""
import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome-headless-shell")


class BrowserError(Exception):
    pass


def find():
    """Path of the browser: NPU_BROWSER, or one of NAMES; None when there is none."""
    return os.environ.get("NPU_BROWSER") or next((p for p in map(shutil.which, NAMES) if p), None)


class Browser:
    def __init__(self, width=1440, height=1000):
        self.program, self.size = find(), (width, height)
        if not self.program:
            raise BrowserError("no browser: none of " + ", ".join(NAMES))

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="npu-browser-", ignore_cleanup_errors=True)
        to_us, to_it = os.pipe(), os.pipe()
        arguments = [self.program, "--headless=new", "--remote-debugging-pipe", "--no-first-run", "--disable-gpu",
                     "--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-default-browser-check",
                     "--hide-scrollbars", f"--window-size={self.size[0]},{self.size[1]}", f"--user-data-dir={self.folder.name}"]
        if os.geteuid() == 0:
            arguments.append("--no-sandbox")  # the sandbox refuses root

        # The browser reads commands from descriptor 3 and answers on 4.
        moved = (os.dup2(to_it[0], 103), os.dup2(to_us[1], 104))
        shell = f'exec 3<&{moved[0]} 4>&{moved[1]} {moved[0]}<&- {moved[1]}>&-; exec "$0" "$@"'
        environment = {k: v for k, v in os.environ.items() if k not in ("LD_PRELOAD", "ASAN_OPTIONS")}
        self.process = subprocess.Popen(["bash", "-c", shell, *arguments, "about:blank"], pass_fds=moved, env=environment,
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for fd in (to_it[0], to_us[1], *moved):
            os.close(fd)
        self.read_fd, self.write_fd = to_us[0], to_it[1]
        self.buffer, self.number, self.pages = b"", 0, {}
        return self

    def __exit__(self, *_):
        try:
            self.call("Browser.close", wait=5)
        except BrowserError:
            pass
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.read_fd)
        os.close(self.write_fd)
        self.folder.cleanup()

    def message(self, until):
        while b"\0" not in self.buffer:
            left = until - time.monotonic()
            if left <= 0 or not select.select([self.read_fd], [], [], left)[0]:
                raise BrowserError("the browser did not answer")
            got = os.read(self.read_fd, 1 << 20)
            if not got:
                raise BrowserError("the browser ended")
            self.buffer += got
        one, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(one)

    def call(self, method, session=None, wait=60, **parameters):
        self.number += 1
        command = {"id": self.number, "method": method, "params": parameters}
        if session:
            command["sessionId"] = session
        data = json.dumps(command).encode() + b"\0"
        while data:
            data = data[os.write(self.write_fd, data):]
        until = time.monotonic() + wait
        while True:
            answer = self.message(until)
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise BrowserError(f"{method}: {answer['error']}")
                return answer["result"]
            page = self.pages.get(answer.get("sessionId"))
            if page:
                page.note(answer.get("method", ""), answer.get("params", {}))

    def open(self, url, before=None, dark=False, wait=60):
        """A page that has loaded and says that it is ready. before: JavaScript that runs first."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = Page(self, session)
        self.pages[session] = page
        for domain in ("Page", "Runtime", "Log", "Network"):
            page.call(domain + ".enable")
        page.call("Emulation.setDeviceMetricsOverride", width=self.size[0], height=self.size[1], deviceScaleFactor=1, mobile=False)
        page.theme(dark)
        if before:
            page.call("Page.addScriptToEvaluateOnNewDocument", source=before)
        page.url = url
        page.call("Performance.setTimeDomain", timeDomain="threadTicks")
        page.call("Performance.enable")
        page.call("Page.navigate", url=url)
        page.until("typeof npusim !== 'undefined' && npusim.ready", wait)
        return page


class Page:
    def __init__(self, browser, session):
        self.browser, self.session, self.errors, self.requests, self.url = browser, session, [], [], ""

    def call(self, method, **parameters):
        return self.browser.call(method, self.session, **parameters)

    def note(self, method, p):
        if method == "Runtime.exceptionThrown":
            d = p["exceptionDetails"]
            self.errors.append(d.get("exception", {}).get("description") or d.get("text"))
        elif method == "Runtime.consoleAPICalled" and p["type"] in ("error", "warning", "assert"):
            self.errors.append(" ".join(str(a.get("value", a.get("description"))) for a in p["args"]))
        elif method == "Log.entryAdded" and p["entry"]["level"] in ("error", "warning"):
            self.errors.append(p["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            url = p["request"]["url"]
            if url.split("#")[0] != self.url and not url.startswith(("data:", "about:", "blob:")):
                self.requests.append(url)

    def js(self, expression):
        """The value of an expression; a promise is waited for."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise BrowserError(f"{expression}: {answer['exceptionDetails'].get('exception', {}).get('description')}")
        return answer["result"].get("value")

    def until(self, expression, wait=30):
        end = time.monotonic() + wait
        while not self.js(expression):
            if time.monotonic() > end:
                raise BrowserError(f"{expression}: still not so after {wait} s; console: {self.errors}")
            time.sleep(0.02)

    def frame(self):
        """Lets what was asked for be drawn; a page behind another one never is."""
        self.call("Page.bringToFront")
        self.js("new Promise(r => requestAnimationFrame(() => requestAnimationFrame(() => r(1))))")

    def key(self, key):
        text = {"text": key} if len(key) == 1 else {"text": "\r"} if key == "Enter" else {}
        code = {"Enter": 13, "Escape": 27, "Tab": 9, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40, "Home": 36}.get(key, 0)
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, windowsVirtualKeyCode=code, **text)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key, windowsVirtualKeyCode=code)
        self.frame()

    def move(self, x, y):
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
        self.frame()

    def click(self, x, y):
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)
        self.frame()

    def cpu_seconds(self):
        """Processor time of the page's main thread so far."""
        metrics = {m["name"]: m["value"] for m in self.call("Performance.getMetrics")["metrics"]}
        return metrics["TaskDuration"]

    def theme(self, dark):
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def screenshot(self, path, whole=False, **clip):
        """A PNG or WebP, by the path's ending, of the window, the whole page, or clip: x, y, width, height in the page."""
        options = {"captureBeyondViewport": bool(whole or clip), "format": path.rsplit(".", 1)[1]}
        if options["format"] == "webp":
            options["quality"] = 88
        if whole:
            size = self.call("Page.getLayoutMetrics")["cssContentSize"]
            clip = {"x": 0, "y": 0, "width": size["width"], "height": size["height"]}
        if clip:
            options["clip"] = {**clip, "scale": 1}
        data = self.call("Page.captureScreenshot", **options)["data"]
        with open(path, "wb") as f:
            f.write(base64.b64decode(data))
