#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The pages of `hcasim trace report` in headless Chromium, driven by chromedriver (W3C WebDriver over HTTP):

  page_browser_test.py HCASIM_TRACE TRACE_SAMPLE [--keep DIR]

What is drawn, zooming by key, wheel and drag, clicks, narrow and dark screens, no message on the console, no script of a hostile name
run; and how long a trace of a million records takes to open, beside one of a fifth of it. --keep leaves pages and pictures there. Status 77:
there is no browser here."""
import argparse
import base64
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

# In the page: how many pixels of the time line have the colour of some stage.
COLOURED = """
const c = document.querySelector(".frame canvas"), probe = document.createElement("canvas").getContext("2d");
const stages = new Set();
for (let i = 0; i < 16; i++) {
  probe.fillStyle = getComputedStyle(document.documentElement).getPropertyValue("--s" + i).trim();
  probe.fillRect(0, 0, 1, 1);
  stages.add([...probe.getImageData(0, 0, 1, 1).data.slice(0, 3)].join());
}
const pixels = c.getContext("2d").getImageData(0, 0, c.width, c.height).data, seen = new Set();
let n = 0;
for (let i = 0; i < pixels.length; i += 4) {
  const colour = pixels[i] + "," + pixels[i + 1] + "," + pixels[i + 2];
  if (stages.has(colour)) { n++; seen.add(colour); }
}
return [n, seen.size];
"""
STATE = "return Object.assign({}, document.querySelector('.frame canvas').dataset)"


class Browser:
    def __init__(self, folder):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            self.port = s.getsockname()[1]
        self.log = open(f"{folder}/chromedriver.log", "w", encoding="utf-8")
        self.driver = subprocess.Popen(["chromedriver", f"--port={self.port}"], stdout=self.log, stderr=self.log)
        self.session = ""
        for attempt in range(100):
            try:
                if self.call("GET", "/status")["ready"]: break
            except OSError:
                time.sleep(0.1)
        options = {"args": ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
                            f"--user-data-dir={folder}/profile", "--window-size=1280,1000"]}
        made = self.call("POST", "/session", {"capabilities": {"alwaysMatch": {
            "goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}, "timeouts": {"pageLoad": 60000, "script": 60000}}}})
        self.session = f"/session/{made['sessionId']}"

    def call(self, method, path, body=None):
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{self.session}{path}", method=method,
                                         data=None if body is None else json.dumps(body).encode(), headers={"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=120) as answer: return json.load(answer)["value"]
        except urllib.error.HTTPError as e:
            raise AssertionError(f"{method} {path}: {e.read().decode()[:600]}") from e

    def run(self, script, *arguments):
        return self.call("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def open(self, path):
        """Seconds until the page has drawn itself."""
        begin = time.monotonic()
        self.call("POST", "/url", {"url": "file://" + urllib.request.pathname2url(path)})
        # Twice: a frame is asked for, and has been drawn.
        self.call("POST", "/execute/async", {"script": "const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(() => done(1)))", "args": []})
        spent = time.monotonic() - begin
        assert self.run("return document.getElementById('page').dataset.ready") == "yes", "the page did not draw itself"
        return spent

    def settle(self):
        self.call("POST", "/execute/async", {"script": "const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(() => done(1)))", "args": []})

    def complaints(self):
        return [e for e in self.call("POST", "/se/log", {"type": "browser"}) if "willReadFrequently" not in e["message"]]  # that one is of this test's own doing

    def keys(self, text):
        actions = [a for key in text for a in ({"type": "keyDown", "value": key}, {"type": "keyUp", "value": key})]
        self.call("POST", "/actions", {"actions": [{"type": "key", "id": "keyboard", "actions": actions}]})
        self.settle()

    def pointer(self, *steps):
        self.call("POST", "/actions", {"actions": [{"type": "pointer", "id": "mouse", "parameters": {"pointerType": "mouse"}, "actions": list(steps)}]})
        self.settle()

    def click(self, x, y):
        self.pointer({"type": "pointerMove", "duration": 0, "x": int(x), "y": int(y)}, {"type": "pointerDown", "button": 0}, {"type": "pointerUp", "button": 0})

    def drag(self, x, y, dx):
        self.pointer({"type": "pointerMove", "duration": 0, "x": int(x), "y": int(y)}, {"type": "pointerDown", "button": 0},
                     {"type": "pointerMove", "duration": 50, "x": int(x + dx), "y": int(y)}, {"type": "pointerUp", "button": 0})

    def wheel(self, x, y, by):
        self.call("POST", "/actions", {"actions": [{"type": "wheel", "id": "wheel", "actions": [
            {"type": "scroll", "x": int(x), "y": int(y), "deltaX": 0, "deltaY": by, "duration": 0, "origin": "viewport"}]}]})
        self.settle()

    def look(self, width, height, dark):
        """The screen's size and colours."""
        for name, parameters in (("Emulation.setDeviceMetricsOverride", {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}),
                                 ("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]})):
            self.call("POST", "/goog/cdp/execute", {"cmd": name, "params": parameters})
        self.settle()

    def picture(self, path):
        size = self.run("return [innerWidth, Math.min(12000, document.documentElement.scrollHeight)]")
        shot = self.call("POST", "/goog/cdp/execute", {"cmd": "Page.captureScreenshot", "params": {
            "captureBeyondViewport": True, "clip": {"x": 0, "y": 0, "width": size[0], "height": size[1], "scale": 1}}})
        with open(path, "wb") as file: file.write(base64.b64decode(shot["data"]))

    def end(self):
        try:
            if self.session: self.call("DELETE", "")
        finally:
            self.driver.terminate()
            self.driver.wait(20)
            self.log.close()


def expect(what, condition, detail=""):
    if not condition: raise AssertionError(f"{what}: {detail}")


def view(state): return float(state["from"]), float(state["to"])


def check_timeline(b):
    n, colours = b.run(COLOURED)
    expect("bars are drawn in their stages' colours", n > 500 and colours >= 2, f"{n} pixels of {colours} colours")
    state = b.run(STATE)
    expect("bars", int(state["bars"]) == 4000 and int(state["lanes"]) == 5, str(state))
    all_of_it = view(state)
    b.run("document.querySelector('.frame canvas').focus()")
    b.keys("+++")
    near = view(b.run(STATE))
    expect("+ zooms in", near[1] - near[0] < 0.5 * (all_of_it[1] - all_of_it[0]), f"{all_of_it} became {near}")
    b.keys("\ue014")
    moved = view(b.run(STATE))
    expect("the right arrow moves", moved[0] > near[0] and abs((moved[1] - moved[0]) - (near[1] - near[0])) < 2, f"{near} became {moved}")
    b.keys("-")
    expect("- zooms out", view(b.run(STATE))[1] - view(b.run(STATE))[0] > near[1] - near[0])
    b.keys("0")
    expect("0 shows all", view(b.run(STATE)) == all_of_it, str(b.run(STATE)))
    b.keys("f")
    failed = b.run(STATE)
    expect("f goes to a WQE that failed", failed["selected"].startswith("0:0x4") and "RETRY_EXC" in b.run("return document.querySelector('.detail').textContent"), str(failed))
    expect("its why", "The ACK timer ran out" in b.run("return document.querySelector('.detail').textContent"))
    b.keys("\ue007")
    near = view(b.run(STATE))
    expect("Enter zooms to it", near[1] - near[0] < 0.1 * (all_of_it[1] - all_of_it[0]), str(near))
    expect("zoomed in, more than one stage is to be seen", b.run(COLOURED)[1] >= 5, str(b.run(COLOURED)))
    b.keys("n")
    expect("n goes to the next", b.run(STATE)["selected"] not in ("", failed["selected"]), str(b.run(STATE)))
    # Escape forgets; a click where a bar has its colour chooses it again.
    chosen = b.run(STATE)["selected"]
    b.keys("\ue00c")
    expect("Escape forgets", b.run(STATE)["selected"] == "")
    b.keys("f\ue00c")
    box = b.run("const r = document.querySelector('.frame canvas').getBoundingClientRect(); return [r.left, r.top, r.width, r.height]")
    x, y = box[0] + 132 + (box[2] - 132) / 2, box[1]
    at = b.run("""const c = document.querySelector('.frame canvas'), x = arguments[0], scale = devicePixelRatio;
        const column = c.getContext('2d').getImageData(x * scale, 0, 1, c.height).data;
        const stages = [...Array(16).keys()].map((i) => { const p = document.createElement('canvas').getContext('2d');
          p.fillStyle = getComputedStyle(document.documentElement).getPropertyValue('--s' + i).trim(); p.fillRect(0, 0, 1, 1);
          return [...p.getImageData(0, 0, 1, 1).data.slice(0, 3)].join(); });
        for (let i = 0; i < column.length; i += 4) if (stages.includes(column[i] + ',' + column[i + 1] + ',' + column[i + 2])) return i / 4 / scale + 3;
        return -1""", x - box[0])
    expect("a bar in the middle", at > 0)
    b.click(x, y + at)
    expect("a click chooses", b.run(STATE)["selected"] != "", f"at {x}, {y + at}, {chosen}")
    expect("its stages", b.run("return document.querySelectorAll('.detail tbody tr').length") >= 8)
    before = view(b.run(STATE))
    b.drag(x, y + at, 120)
    expect("a drag moves", view(b.run(STATE))[0] < before[0], f"{before} became {b.run(STATE)}")
    before = view(b.run(STATE))
    b.wheel(x, y + at, -240)
    expect("the wheel zooms", view(b.run(STATE))[1] - view(b.run(STATE))[0] < before[1] - before[0], f"{before} became {b.run(STATE)}")
    b.keys("0")
    b.run("const box = document.querySelector('.tools input[type=checkbox]'); box.click()")
    b.settle()
    expect("only failed", int(b.run(STATE)["bars"]) == 4, str(b.run(STATE)))
    b.run("document.querySelector('.tools input[type=checkbox]').click()")
    b.settle()


def check_parts(b):
    for part in ("summary", "timeline", "failed", "slow", "latency", "rates", "errors", "rules", "commands", "faults", "coverage"):
        expect(f"part {part}", b.run("const e = document.getElementById(arguments[0]); return e !== null && e.getBoundingClientRect().height > 40", part))
    b.run("document.querySelector('#slow details').open = true")
    expect("why of a slow one", "The median of the" in b.run("return document.querySelector('#slow details').textContent"))
    b.run("document.querySelector('#slow details button').click()")
    b.settle()
    name = b.run("return document.querySelector('#slow details .mono').textContent")
    expect("shown in the time line", b.run(STATE)["selected"] == name, f"{name}: {b.run(STATE)}")
    expect("histograms", b.run("return document.querySelectorAll('#latency svg rect').length") > 20)
    expect("rates", b.run("return document.querySelectorAll('#rates svg rect').length") > 50)


def fits(b, width):
    wide = b.run("return document.documentElement.scrollWidth")
    expect(f"the page fits {width} pixels", wide <= width, f"it is {wide} wide")


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("tool")
    arguments.add_argument("sample")
    arguments.add_argument("--keep")
    given = arguments.parse_args()
    for program, package in (("chromium", "chromium"), ("chromedriver", "chromium-driver")):
        if shutil.which(program) is None:
            print(f"skipped: there is no {program} here (Debian's package {package})")
            return 77
    folder = tempfile.mkdtemp(prefix="hcasim-page-")
    browser = None
    try:
        # A name that would be a script, were it not text.
        hostile = f"{folder}/<img src=x onerror=document.title='run'><script>document.title='run'<%2Fscript>.trace"
        subprocess.run([given.sample, hostile, "4000", "varied", "5"], check=True)
        with open(f"{folder}/cov.info", "w", encoding="utf-8") as file:
            for name in ("core/main.c", "core/cmd.c", "ib/qp.c", "ib/<b>bold<script>document.title='run'<"):
                file.write(f"SF:/build/drivers/{name}\nFN:1,a\nFN:9,b\nFNDA:3,a\nFNDA:0,b\n" + "".join(f"DA:{i},{i % 3}\n" for i in range(1, 40)) + "end_of_record\n")
        subprocess.run([given.sample, f"{folder}/big.trace", "68000", "varied", "24"], check=True)
        subprocess.run([given.sample, f"{folder}/middle.trace", "13000", "varied", "24"], check=True)
        subprocess.run([given.sample, f"{folder}/anything.trace", "60000", "anything"], check=True)
        subprocess.run([given.sample, f"{folder}/none.trace", "0"], check=True, stdout=subprocess.DEVNULL)
        for trace, page, more in ((hostile, "page", ["--coverage", f"{folder}/cov.info"]), (f"{folder}/big.trace", "big", []), (f"{folder}/middle.trace", "middle", []), (f"{folder}/none.trace", "none", []),
                                  (f"{folder}/anything.trace", "anything", [])):
            subprocess.run([given.tool, "report", trace, "-o", f"{folder}/{page}.html", *more], check=True, stdout=subprocess.DEVNULL)
        browser = Browser(folder)
        browser.look(1280, 1000, False)
        browser.open(f"{folder}/page.html")
        check_timeline(browser)
        check_parts(browser)
        title = browser.run("return [document.title, document.querySelectorAll('img, b b, script').length]")
        expect("no script of a name was run", title[0] != "run" and "onerror" in title[0] and title[1] == 2, str(title))
        for width, dark in ((1280, False), (1280, True), (420, False), (420, True)):
            browser.look(width, 1000, dark)
            browser.open(f"{folder}/page.html")
            fits(browser, width)
            n, colours = browser.run(COLOURED)
            expect(f"bars at {width} pixels", n > 100, f"{n} pixels of {colours} colours")
            if given.keep: browser.picture(f"{given.keep}/page-{width}{'-dark' if dark else ''}.png")
        browser.look(1280, 1000, False)
        browser.open(f"{folder}/anything.html")
        browser.run("document.querySelector('.frame canvas').focus()")
        browser.keys("+++n\ue007nnpf0")
        expect("records in which nothing fits are drawn, too", int(browser.run(STATE)["bars"]) > 10, str(browser.run(STATE)))
        if given.keep: browser.picture(f"{given.keep}/anything.png")
        browser.open(f"{folder}/none.html")  # warm
        empty = min(browser.open(f"{folder}/none.html") for _ in range(3))
        big = min(browser.open(f"{folder}/big.html") for _ in range(3))
        bars = int(browser.run(STATE)["bars"])
        size = os.path.getsize(f"{folder}/big.html") // 1024
        # No limit in seconds, as machines differ: a page is as large as it may be from some 12,000 WQEs on, whatever the trace is.
        middle = min(browser.open(f"{folder}/middle.html") for _ in range(3))
        print(f"to open: the page of 1 M records ({size} KiB, {bars} bars in view) {big:.2f} s, of 200,000 records {middle:.2f} s, of an empty trace {empty:.2f} s")
        expect("a page of a million records opens as soon as one of 200,000", big < 2 * middle + empty, f"{big:.2f} s against {middle:.2f} s")
        expect("many bars of it are drawn", bars > 1000, str(bars))
        if given.keep:
            browser.open(f"{folder}/big.html")
            browser.picture(f"{given.keep}/big.png")
        complaints = browser.complaints()
        expect("no message on the console", not complaints, json.dumps(complaints)[:800])
        print("ok")
        return 0
    finally:
        if browser: browser.end()
        if given.keep:
            for page in ("page", "big", "none"):
                if os.path.exists(f"{folder}/{page}.html"): shutil.copy(f"{folder}/{page}.html", given.keep)
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
