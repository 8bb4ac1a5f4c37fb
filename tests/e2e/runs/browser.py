# SPDX-License-Identifier: Apache-2.0
"""Headless Chromium (Debian's), told what to do by the DevTools protocol over a pipe: one page, as a reader has it in front of him."""
import base64
import json
import os
import pathlib
import select
import shutil
import subprocess
import tempfile
import time

SECONDS = 60


def chromium():
    """Its path, or None."""
    return shutil.which("chromium")


class Browser:
    def __init__(self):
        self.home = tempfile.mkdtemp(prefix="welkin-browser-")
        their_input, our_output = os.pipe()
        our_input, their_output = os.pipe()
        # The browser wants them as 3 and 4, which may be ours right now: the shell moves them.
        words = [chromium(), "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--window-size=1400,1000",
                 f"--user-data-dir={self.home}", "--remote-debugging-pipe", "about:blank"]
        self.process = subprocess.Popen(["bash", "-c", f'exec 3<&{their_input} 4>&{their_output} "$0" "$@"', *words], pass_fds=(their_input, their_output),
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(their_input)
        os.close(their_output)
        self.pipes = (our_input, our_output)
        self.bytes, self.number, self.session = b"", 0, None
        self.troubles, self.requests = [], []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def close(self):
        self.process.kill()
        self.process.wait()
        for pipe in self.pipes:
            os.close(pipe)
        shutil.rmtree(self.home, ignore_errors=True)

    def read(self):
        until = time.monotonic() + SECONDS
        while b"\0" not in self.bytes:
            if not select.select([self.pipes[0]], [], [], max(until - time.monotonic(), 0))[0]:
                raise TimeoutError("the browser does not answer")
            piece = os.read(self.pipes[0], 1 << 20)
            if not piece:
                raise ConnectionError("the browser has ended")
            self.bytes += piece
        message, self.bytes = self.bytes.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, **params):
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.pipes[1], json.dumps(message).encode() + b"\0")
        while True:
            answer = self.read()
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self.take(answer)

    def take(self, event):
        if event.get("method") in ("Runtime.exceptionThrown", "Log.entryAdded"):
            self.troubles.append(json.dumps(event["params"])[:1000])
        if event.get("method") == "Network.requestWillBeSent":
            self.requests.append(event["params"]["request"]["url"][:200])

    def evaluate(self, expression):
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(json.dumps(answer["exceptionDetails"])[:1000])
        return answer["result"].get("value")

    def wait_for(self, expression):
        """Until it is true; then its value."""
        until = time.monotonic() + SECONDS
        while time.monotonic() < until:
            if value := self.evaluate(expression):
                return value
            time.sleep(0.05)
        raise TimeoutError(f"never true: {expression}")

    def open(self, path):
        self.call("Page.navigate", url=pathlib.Path(path).resolve().as_uri())
        self.wait_for("document.readyState === 'complete'")

    def scheme(self, name):
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": name}])

    def key(self, name):
        self.call("Input.dispatchKeyEvent", type="keyDown", key=name, text=name if len(name) == 1 else "")
        self.call("Input.dispatchKeyEvent", type="keyUp", key=name)

    def drag(self, begin, end):
        self.call("Input.dispatchMouseEvent", type="mousePressed", x=begin[0], y=begin[1], button="left", clickCount=1)
        for share in (0.3, 0.6, 1.0):
            self.call("Input.dispatchMouseEvent", type="mouseMoved", x=begin[0] + share * (end[0] - begin[0]), y=begin[1] + share * (end[1] - begin[1]), button="left")
        self.call("Input.dispatchMouseEvent", type="mouseReleased", x=end[0], y=end[1], button="left", clickCount=1)

    def picture(self, path):
        pathlib.Path(path).write_bytes(base64.b64decode(self.call("Page.captureScreenshot")["data"]))
