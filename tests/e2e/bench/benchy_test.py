#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""welkin train --enable_benchy: benchy's tests, its lines and its JSON."""
import json
import os
import signal
import subprocess
import unittest

from bench_case import BINARY, BenchCase, UNET

BENCHY = """
global: {report_freq: 2, exit_after_tests: True, profiler_mode: none, output_filename: benchy_output.json, output_dir: './', use_distributed_barrier: False}
IO: {run_benchmark: True, nbatches: 4, ntrials: 2, nwarmup: 1}
synthetic: {run_benchmark: True, nbatches: 3, ntrials: 2, nwarmup: 1}
full: {run_benchmark: True, nbatches: 3, ntrials: 2, nwarmup: 1}
"""


class Benchy(BenchCase):
    def test_benchy(self):
        (self.folder / "benchy.yaml").write_text(BENCHY)
        done = self.welkin("train", UNET, "--enable_benchy", "--set", "data_loader_config=synthetic", "--log_root", "logs", "--device", "cpu",
                           "--threads", "1", BENCHY_CONFIG_FILE="benchy.yaml")
        lines = [line for line in done.stdout.splitlines() if line.startswith("BENCHY::")]
        self.assertEqual(lines[0], "BENCHY::INFO::Message: Using configuration file benchy.yaml.")
        self.assertEqual(lines[1], "BENCHY::INFO::Message: Profiling mode: none.")
        labels = [line.split("::")[1] for line in lines if "::Trial Throughput: " in line]
        self.assertEqual(labels, [f"{kind}_{which}" for kind in ("IO", "SYNTHETIC", "FULL") for which in ("WARMUP_0", "0", "1")])
        self.assertEqual(sum("::IO_0::Iteration Throughput: " in line for line in lines), 2)
        self.assertRegex(lines[-5], r"^BENCHY::SUMMARY::IO average trial throughput: \d+\.\d{3} \+/- \d+\.\d{3}$")
        self.assertRegex(lines[-4], r"^BENCHY::SUMMARY:: SYNTHETIC average trial throughput: ")
        self.assertRegex(lines[-3], r"^BENCHY::SUMMARY::FULL average trial throughput: ")
        self.assertEqual(lines[-2], "BENCHY::INFO::Message: Writing JSON output to ./benchy_output.json.")
        self.assertEqual(lines[-1], "BENCHY::INFO::Message: Tests completed.... exiting.")
        result = json.loads((self.folder / "benchy_output.json").read_text())
        self.assertEqual(list(result), ["nranks", "IO", "SYNTHETIC", "FULL"])
        self.assertEqual([len(result[kind]["rates"]) for kind in ("IO", "SYNTHETIC", "FULL")], [2, 2, 2])
        self.assertEqual([len(rates) for rates in result["FULL"]["rates"]], [3, 3])
        log = next((self.folder / "logs").rglob("out.log")).read_text()
        self.assertNotIn("Avg val loss", log)
        self.assertEqual(list((self.folder / "logs").rglob("step_*")), [])

    def test_benchy_with_too_few_epochs_has_no_summary(self):
        (self.folder / "benchy.yaml").write_text(BENCHY)
        done = self.welkin("train", UNET.replace("num_epochs: 8", "num_epochs: 6"), "--enable_benchy", "--set", "data_loader_config=synthetic",
                           "--log_root", "logs", "--device", "cpu", "--threads", "1", BENCHY_CONFIG_FILE="benchy.yaml")
        self.assertIn("benchy needs 7 epochs for its tests, and this run has 6", done.stdout + done.stderr)
        self.assertNotIn("SUMMARY", done.stdout)
        self.assertFalse((self.folder / "benchy_output.json").exists())

    def test_benchy_is_refused_before_anything_is_written(self):
        flags = ["--enable_benchy", "--set", "data_loader_config=synthetic", "--log_root", "logs", "--device", "cpu"]
        (self.folder / "benchy.yaml").write_text("full: {nbatches: 3}\n")
        done = self.welkin("train", UNET, *flags, code=2, BENCHY_CONFIG_FILE="benchy.yaml")
        self.assertIn("this one leaves out run_benchmark", done.stderr)
        for text, found in (("", "nothing"), ("# sections\n", "nothing"), ("[full]\n", "a list")):
            (self.folder / "benchy.yaml").write_text(text)
            done = self.welkin("train", UNET, *flags, code=2, BENCHY_CONFIG_FILE="benchy.yaml")
            self.assertIn(f"[benchy] this file holds no sections: BENCHY_CONFIG_FILE=benchy.yaml, found={found}. Give at least one of global, IO", done.stderr)
        done = self.welkin("train", UNET, *flags, "--enable_manual_profiling", code=2)
        self.assertIn("exclude each other", done.stderr)
        for name, value, text in (("output_dir", "'./'", "because there is no folder"), ("output_filename", "benchy_output.json", "because it is a folder")):
            bad = "'no/'" if name == "output_dir" else "''"
            (self.folder / "benchy.yaml").write_text(BENCHY.replace(f"{name}: {value}", f"{name}: {bad}"))
            done = self.welkin("train", UNET, *flags, code=2, BENCHY_CONFIG_FILE="benchy.yaml")
            self.assertIn("[benchy] this file cannot be written: output_dir/output_filename=", done.stderr)
            self.assertIn(text, done.stderr)
        self.assertFalse((self.folder / "logs").exists())

    def test_an_interrupted_benchy_says_that_there_is_no_result(self):
        (self.folder / "benchy.yaml").write_text(BENCHY.replace("nbatches: 3", "nbatches: 1000000"))
        command = [BINARY, "train", "--yaml_config", self.write(UNET), "--config", "run", "--enable_benchy", "--set", "data_loader_config=synthetic",
                   "--log_root", "logs", "--device", "cpu", "--threads", "1"]
        process = subprocess.Popen([*map(str, command)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=self.folder,
                                   env={**os.environ, "BENCHY_CONFIG_FILE": "benchy.yaml"})
        while not process.stdout.readline().startswith("BENCHY::SYNTHETIC_WARMUP_0::Iteration"):
            self.assertIsNone(process.poll())
        process.send_signal(signal.SIGINT)
        err = process.communicate(timeout=60)[1]
        self.assertEqual(process.returncode, 130, err)
        self.assertIn("[benchy] interrupted before its tests were done: there is no summary and no JSON. Start the run again", err)
        self.assertFalse((self.folder / "benchy_output.json").exists())


if __name__ == "__main__":
    unittest.main()
