# SPDX-License-Identifier: Apache-2.0
"""The page of `welkin report` as a reader meets it: in headless Chromium, by mouse and keyboard, light and dark, while a run goes on."""
import json
import os
import pathlib
import signal
import socket
import struct
import subprocess
import tempfile
import time
import unittest

from tensorboard.compat.tensorflow_stub.pywrap_tensorflow import masked_crc32c

from browser import Browser, chromium

BINARY = os.environ["WELKIN_BINARY"]
HOSTILE_LABEL = "<b>|<script>document.title(3)<|script>&amp;"
HOSTILE = '<img src=x onerror="document.title=1"></script><script>document.title=2</script>&amp;'
# Of every element with words of its own: the contrast with what is behind it (WCAG 2.1, 1.4.3), where it is too low.
PALE_WORDS = """
(() => {
  const numbers = (color) => color.match(/[0-9.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map((c) => c / 255).map((c) => c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4).reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const color = numbers(getComputedStyle(at).backgroundColor);
      if (color.length === 3 || color[3] === 1) return color;
    }
    return [255, 255, 255];
  };
  const words = [...document.querySelectorAll("body *")].filter((element) => !element.closest("script, style, svg, :disabled") && element.checkVisibility() &&
    [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim()));
  return words.map((element) => {
    const [a, b] = [light(numbers(getComputedStyle(element).color)), light(behind(element))].sort((x, y) => y - x);
    return [(a + 0.05) / (b + 0.05), element.tagName + "." + element.className + ": " + element.textContent.trim().slice(0, 40)];
  }).filter(([contrast]) => contrast < 4.5);
})()
"""


def varint(value):
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def event(step, wall_time, tag, value):
    summary = b"\x0a" + varint(len(tag)) + tag + b"\x15" + struct.pack("<f", value)
    summary = b"\x0a" + varint(len(summary)) + summary
    data = b"\x09" + struct.pack("<d", wall_time) + b"\x10" + varint(step) + b"\x2a" + varint(len(summary)) + summary
    length = struct.pack("<Q", len(data))
    return length + struct.pack("<I", masked_crc32c(length)) + data + struct.pack("<I", masked_crc32c(data))


def write_run(folder, epochs, steps=50, first=0):
    (folder / "logs").mkdir(parents=True, exist_ok=True)
    records = b""
    for epoch in range(first + 1, epochs + 1):
        for tag, value in ((b"Loss/train", 2.0 / epoch), (b"Avg iters per sec", 100.0), (b"Loss/valid", 2.5 / epoch)):
            records += event(steps * epoch, 1000 + epoch + 0.2 * tag.endswith(b"valid"), tag, value)
    with open(folder / "logs" / "events.out.tfevents.1", "ab") as file:
        file.write(records)


class ReportPage(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.root = pathlib.Path(cls.folder.name)
        for i, name in enumerate(("base", "wide")):
            run = cls.root / name / "1GPU" / "00"
            write_run(run, 20 + i)
            (run / "config.yaml").write_text(f"run:\n  model:\n    embed_dim: {64 << i}\n    depth: 2\n")
            (run / "status.json").write_text(json.dumps({"state": "finished", "host": HOSTILE, "ranks": 1}))
            (run / "events.jsonl").write_text(json.dumps({"time": "1970-01-01T00:16:50.000Z", "event": "spike", "step": 400, "rank": 0, "text": HOSTILE}) + "\n")
        (cls.root / "scores.json").write_text(json.dumps({
            "lead_hours": [6, 12], "channels": {"t2m": "K"},
            "scores": [{"forecast": name, "channel": "t2m", "region": "globe", "season": "year", "score": "rmse", "values": [1.5 * i, 2.5 * i]}
                       for i, name in ((1, "forecast"), (2, "persistence"))]}))
        cls.page = cls.root / "report.html"
        done = cls.report("base=" + str(cls.root / "base"), HOSTILE_LABEL + "=" + str(cls.root / "wide"), "--scores", str(cls.root / "scores.json"))
        assert done.returncode == 0, done.stderr
        cls.browser = Browser() if chromium() else None

    @classmethod
    def tearDownClass(cls):
        if cls.browser:
            cls.browser.close()
        cls.folder.cleanup()

    @classmethod
    def report(cls, *words):
        return subprocess.run([BINARY, "report", *words, "--output", str(cls.page)], capture_output=True, text=True, timeout=120, check=False)

    def setUp(self):
        if not self.browser:
            self.skipTest("no headless browser: install Debian's chromium")
        self.browser.scheme("light")
        self.browser.troubles.clear()
        self.browser.requests.clear()

    def opened(self, page=None):
        self.browser.open(page or self.page)
        self.browser.wait_for("document.documentElement.dataset.firstPictureMs && document.querySelector('#environment table') !== null")
        return self.browser

    def words_of(self, selector):
        return self.browser.evaluate(f"document.querySelector({json.dumps(selector)}).textContent")

    def test_all_sections_are_there_and_nothing_is_loaded_or_run(self):
        browser = self.opened()
        self.assertIn("embed_dim", self.words_of("#configuration"))
        self.assertNotIn("depth", self.words_of("#configuration"))
        self.assertIn("spike", self.words_of("#events"))
        self.assertIn(HOSTILE, self.words_of("#events"))
        self.assertIn(HOSTILE, self.words_of("#environment"))
        self.assertIn(HOSTILE_LABEL, self.words_of("#runs"))
        self.assertIn("2.5", self.words_of("#scores"))
        self.assertIn("50 %", self.words_of("#timeline"))
        self.assertEqual(browser.evaluate("document.title"), "Runs")
        self.assertEqual(browser.evaluate("document.querySelectorAll('#curves figure canvas').length >= 4"), True)
        self.assertEqual([url for url in browser.requests if not url.startswith(self.page.as_uri())], [])
        self.assertEqual(browser.troubles, [])

    def test_words_can_be_read_in_both_schemes(self):
        browser = self.opened()
        for scheme in ("light", "dark"):
            browser.scheme(scheme)
            browser.wait_for(f"matchMedia('(prefers-color-scheme: {scheme})').matches")
            self.assertEqual(browser.evaluate(PALE_WORDS), [], scheme)
        self.assertEqual(browser.troubles, [])

    def window(self):
        return self.browser.evaluate("plots.get('Loss/valid').visible_window()")

    def test_the_mouse_zooms_and_a_double_click_shows_all(self):
        browser = self.opened()
        whole = self.window()
        box = browser.evaluate("(() => { const box = plots.get('Loss/valid').canvas.getBoundingClientRect(); return [box.left, box.top, box.width, box.height]; })()")
        across = lambda share: (box[0] + share * box[2], box[1] + box[3] / 2)
        browser.drag(across(0.4), across(0.7))
        browser.wait_for("plots.get('Loss/valid').window")
        low, high = self.window()
        self.assertGreater(low, whole[0] + 100)
        self.assertLess(high, whole[1] - 100)
        for count in (1, 2):
            for kind in ("mousePressed", "mouseReleased"):
                browser.call("Input.dispatchMouseEvent", type=kind, x=across(0.5)[0], y=across(0.5)[1], button="left", clickCount=count)
        browser.wait_for("!plots.get('Loss/valid').window")
        self.assertEqual(self.window(), whole)

    def test_all_can_be_done_with_the_keyboard(self):
        browser = self.opened()
        for _ in range(40):
            browser.key("Tab")
            if browser.evaluate("document.activeElement === plots.get('Loss/valid').canvas"):
                break
            browser.evaluate("document.activeElement === document.body && document.querySelector('nav a').focus()")
        else:
            self.fail("Tab never comes to the first plot")
        self.assertIn("solid", browser.evaluate("getComputedStyle(document.activeElement).outlineStyle"))
        whole = self.window()
        browser.key("ArrowRight")
        browser.key("ArrowRight")
        self.assertRegex(self.words_of(".readout"), r"steps 100: base 1\.25")
        browser.key("ArrowDown")
        self.assertRegex(self.words_of(".readout"), r"steps 100: <b>")
        browser.key("+")
        self.assertLess(self.window()[1] - self.window()[0], 0.8 * (whole[1] - whole[0]))
        browser.key("0")
        self.assertEqual(self.window(), whole)
        self.assertEqual(browser.troubles, [])

    def test_a_page_that_is_open_follows_the_run_and_keeps_its_zoom(self):
        run = self.root / "going" / "1GPU" / "00"
        write_run(run, 5)
        (run / "status.json").write_text('{"state": "running"}')
        page = self.root / "going.html"
        process = subprocess.Popen([BINARY, "report", str(self.root / "going"), "--live", "--interval", "0.5", "--output", str(page)], stdout=subprocess.PIPE, text=True)
        try:
            self.assertIn("written anew every 0.5 s", process.stdout.readline())
            browser = self.opened(page)
            self.assertIn("Runs go on", self.words_of("#live"))
            browser.evaluate("plots.get('Loss/valid').look_at([100, 200])")
            write_run(run, 30, first=5)
            browser.wait_for("Math.max(...data.runs[0].curves['Loss/valid'].step) === 1500")
            self.assertEqual(self.window(), [100, 200])
            (run / "status.json").write_text('{"state": "finished"}')
            browser.wait_for("document.getElementById('live').textContent === 'The runs have ended.'")
            self.assertEqual(process.wait(60), 0)
            self.assertEqual(browser.troubles, [])
        finally:
            if process.poll() is None:
                process.kill()
            process.communicate()

    def test_tags_that_every_object_has_are_curves_like_others(self):
        odd, tags = self.root / "odd" / "1GPU" / "00", [b"constructor", b"toString", b"__proto__", b"hasOwnProperty"]
        write_run(self.root / "plain" / "1GPU" / "00", 5)
        (self.root / "plain" / "1GPU" / "00" / "status.json").write_text('{"state": "finished"}')
        (odd / "logs").mkdir(parents=True)
        (odd / "logs" / "events.out.tfevents.1").write_bytes(b"".join(event(step, 1000 + step, tag, step / 10) for step in (10, 20, 30) for tag in [b"Loss/valid", *tags]))
        (odd / "events.jsonl").write_text(json.dumps({"time": "1970-01-01T00:16:50.000Z", "event": "constructor", "step": 20, "rank": 0}) + "\n")
        (odd / "status.json").write_text(json.dumps({"state": "running", "host": socket.gethostname(), "process": 2 ** 31 - 1}))
        page = self.root / "odd.html"
        done = subprocess.run([BINARY, "report", str(self.root / "odd"), str(self.root / "plain"), "--live", "--output", str(page)], capture_output=True, text=True, timeout=120, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        browser = self.opened(page)
        for tag in tags:
            self.assertEqual(browser.evaluate(f"series_of({json.dumps(tag.decode())}).map((line) => line.y)"), [[1, 2, 3]], tag)
        self.assertEqual(browser.troubles, [])
        browser.evaluate("new Promise((done) => { const script = document.createElement('script'); script.nonce = own_nonce; script.onload = done; script.src = 'odd.live.js'; document.head.append(script); })")
        browser.wait_for("series_of('__proto__').length === 1")
        self.assertEqual(browser.troubles, [])

    def test_a_live_report_ends_where_the_run_was_killed(self):
        run = self.root / "killed" / "1GPU" / "00"
        write_run(run, 5)
        gone = subprocess.Popen(["true"])
        gone.wait()
        (run / "status.json").write_text(json.dumps({"state": "running", "host": socket.gethostname(), "process": gone.pid}))
        page = self.root / "killed.html"
        done = subprocess.run([BINARY, "report", str(self.root / "killed"), "--live", "--output", str(page)], capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.opened(page)
        self.assertIn("The runs have ended. Ended without a word, or write no more: killed/1GPU/00", self.words_of("#live"))
        self.assertIn("killed", self.words_of("#runs .state"))

    def test_a_target_that_is_no_number_is_refused(self):
        done = self.report(str(self.root / "base"), "--target", "nan")
        self.assertEqual(done.returncode, 2)
        self.assertIn("[report] the target is no number that a score could reach: target=nan. Give a finite --target", done.stderr)

    def test_an_interrupt_ends_a_live_report(self):
        run = self.root / "stopped" / "1GPU" / "00"
        write_run(run, 5)
        page = self.root / "stopped.html"
        process = subprocess.Popen([BINARY, "report", str(self.root / "stopped"), "--live", "--output", str(page)], stdout=subprocess.PIPE, text=True)
        self.assertIn("page: ", process.stdout.readline())
        process.send_signal(signal.SIGINT)
        self.assertIn("Score Loss/valid", process.communicate(timeout=60)[0])
        self.assertEqual(process.returncode, 0)
        self.assertIn('"live":false', page.read_text())


if __name__ == "__main__":
    unittest.main()
