#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""welkin bench whose windows another program asks for, and one that is interrupted."""
import json
import pathlib
import re
import signal
import subprocess
import time
import unittest

from bench_case import BINARY, BenchCase, UNET


def catches_interruptions(pid):
    caught = re.search(r"SigCgt:\s*(\w+)", pathlib.Path(f"/proc/{pid}/status").read_text()).group(1)
    return bool(int(caught, 16) & 1 << (signal.SIGINT - 1))


class BenchServe(BenchCase):
    def wait_until_it_listens(self, process, ranks=0):
        """A start takes as long as the machine needs; before its end SIGINT ends a process at once."""
        self.addCleanup(process.kill)
        deadline = time.monotonic() + 120
        while process.poll() is None and time.monotonic() < deadline:
            pids = [str(process.pid)] if ranks == 0 else pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
            if len(pids) == max(ranks, 1) and all(map(catches_interruptions, pids)):
                return time.sleep(1)  # it measures by then on most machines, and must end in order wherever it is
            time.sleep(0.05)
        process.kill()
        self.fail(process.communicate()[1])

    def test_an_interruption_ends_in_order(self):
        long = ["--windows", "1000", "--threads", "1", "--device", "cpu", "--warmup_seconds", "0"]
        command = [BINARY, "bench", "--yaml_config", self.write(UNET), "--config", "run", *long]
        for flags, text in ((["--mode", "synthetic"], "[bench] interrupted before all was measured: no file was written"),
                            (["--mode", "io", "--synthetic"], "[bench] interrupted before all was measured: no file was written")):
            process = subprocess.Popen([*map(str, command), *flags, "--json", "out.json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                       cwd=self.folder)
            self.wait_until_it_listens(process)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=60)
            self.assertEqual(process.returncode, 130, err)
            self.assertIn(text, err)
            self.assertEqual(out, "")
        self.assertEqual([path.name for path in self.folder.iterdir()], ["run.yaml"])

    def test_an_interruption_ends_several_ranks_in_order(self):
        bench = ["bench", "--yaml_config", self.write(UNET), "--config", "run", "--windows", "1000", "--window_seconds", "0.1", "--threads", "1",
                 "--device", "cpu", "--warmup_seconds", "0", "--json", "out.json"]
        for flags in (["--mode", "synthetic"], ["--mode", "io", "--synthetic"], ["--mode", "nocomm"], ["--sweep", "bucket_cap_mb=1,25"]):
            process = subprocess.Popen([*map(str, [BINARY, "launch", "-n", "2", *bench]), *flags], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                       text=True, cwd=self.folder)
            self.wait_until_it_listens(process, ranks=2)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=60)
            self.assertEqual(process.returncode, 130, err)
            self.assertEqual(err.count("[bench] interrupted"), 1, err)
            self.assertNotIn("rank 1 stopped", err)
        self.assertEqual([path.name for path in self.folder.iterdir()], ["run.yaml"])

    def serve(self, *flags):
        command = [BINARY, "bench", "--yaml_config", self.write(UNET), "--config", "run", "--warmup_seconds", "0", "--threads", "1", "--device", "cpu", "--serve"]
        process = subprocess.Popen([*map(str, command), *flags], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=self.folder)
        self.addCleanup(process.kill)
        return process

    def test_windows_in_turns_with_another_program(self):
        for mode in ("io", "synthetic", "full"):
            process = self.serve("--mode", mode, "--synthetic", "--json", "-")
            self.assertEqual(json.loads(process.stdout.readline()), {"ready": True})
            rates = []
            for _ in range(3):
                process.stdin.write("0.02\n")
                process.stdin.flush()
                answer = json.loads(process.stdout.readline())
                self.assertEqual(list(answer), [f"{mode}_samples_per_s"])
                rates += answer.values()
            out, err = process.communicate("0.02", timeout=60)  # an unfinished line at the end counts, too
            self.assertEqual(process.returncode, 0, err)
            last, _, closing = out.partition("\n")
            rates += json.loads(last).values()
            self.assertEqual(json.loads(closing)[f"{mode}_samples_per_s_windows"], rates)

    def test_windows_that_nobody_can_measure(self):
        for text in ("", "fast\n", "-1\n", "0\n", "nan\n", "inf\n", "1e9\n", "1 2\n", "\n", "9" * 100_000):
            process = self.serve("--mode", "synthetic")
            out, err = process.communicate(text, timeout=60)
            self.assertEqual(process.returncode, 2, text[:20] + err)
            self.assertIn("[bench] --serve was asked for a window of no usable length: " if text else "[bench] no window was asked for", err)
            self.assertLess(len(err), 1000)
            self.assertEqual(out, '{"ready":true}\n')
        for flags, text in (([], "windows that are asked for are of one kind: --serve beside all"), (["--layers"], "--serve beside layers"),
                            (["--mode", "io", "--windows", "2"], "with --serve every line on standard input is a window: --windows")):
            out, err = self.serve(*flags).communicate(timeout=60)
            self.assertIn(text, err)
            self.assertEqual(out, "")

    def test_an_interruption_between_windows_ends_in_order(self):
        process = self.serve("--mode", "synthetic", "--json", "out.json")
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(timeout=20), 130)
        self.assertIn("[bench] interrupted before all was measured", process.stderr.read())
        self.assertFalse((self.folder / "out.json").exists())


if __name__ == "__main__":
    unittest.main()
