#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Faults on purpose, with the shipped program: what it says about each, what programs can read about it, and that a resumed run has the weights
of one that nothing happened to. Then a short form of tools/survive.sh."""
import fcntl
import json
import os
import pathlib
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest

from tolerance import rounds_to

BINARY = os.environ["WELKIN_BINARY"]
ROOT = pathlib.Path(os.environ["WELKIN_SOURCE_DIR"])
DONE, OTHER, USAGE, CHECKPOINT = 0, 1, 2, 5
YAML = """
run: {model: vit, embed_dim: 16, depth: 2, num_heads: 2, patch_size: 4, img_size: [16, 32], n_in_channels: 3, n_out_channels: 3, dropout: 0.1,
  data_loader_config: synthetic, limit_nsamples: 40, limit_nsamples_val: 4, global_batch_size: 4, num_iters: 16, lr: 1E-3, num_data_workers: 1,
  expdir: /logs}
"""


class Faults(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.yaml = self.folder / "run.yaml"
        self.yaml.write_text(YAML)

    def command(self, root, *flags):
        return [BINARY, "train", "--yaml_config", str(self.yaml), "--config", "run", "--log_root", str(root), "--device", "cpu", "--threads", "1",
                "--checkpoint_interval", "4", "--keep_checkpoints", "9", *flags]

    def train(self, root, *flags, code=DONE):
        done = subprocess.run(self.command(root, *flags), capture_output=True, text=True, timeout=120, check=False)
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stderr

    def test_an_error_beside_a_write_ends_the_run_once(self):
        """The checkpoint of step 4 is still being written, and a fault in it told of, when the run is over. Freed memory is filled."""
        faults = "slow:step=4,phase=sync,seconds=1;slow:step=4,phase=rename,seconds=0.1;exception:step=5"
        done = subprocess.run(self.command(self.folder / "root", "--inject", faults), capture_output=True, text=True, timeout=120, check=False,
                              env={**os.environ, "MALLOC_PERTURB_": "85"})
        self.assertEqual(done.returncode, OTHER, done.stderr)
        self.assertIn("an exception was asked for: step=5", done.stderr)

    @staticmethod
    def run_folder(root):
        return root / "run" / "1GPU" / "00"

    def weights(self, root, step=16):
        return {path.name: path.read_bytes() for path in (self.run_folder(root) / "checkpoints" / f"step_{step}").glob("*.safetensors")}

    def events(self, root):
        return [json.loads(line) for line in (self.run_folder(root) / "events.jsonl").read_text().splitlines()]

    def test_a_killed_run_resumes_to_the_same_weights(self):
        whole, cut = self.folder / "whole", self.folder / "cut"
        self.train(whole)
        # Beside training the checkpoint of step 4 may not be whole at step 7 of steps that take a millisecond.
        at_once = "--checkpoint_async=false"
        for phase in ("step=7,phase=backward", "step=8,phase=write,after=3", "step=12,phase=rename"):
            said = self.train(cut, "--resume", at_once, "--inject", f"kill:{phase}", code=-signal.SIGKILL)
            self.assertIn(f"Fault injected: kill:{phase}, at step {phase[5:phase.index(',')]}", said)
        self.train(cut, "--resume")
        self.assertEqual(self.weights(cut), self.weights(whole))
        events = self.events(cut)
        self.assertEqual([event["event"] for event in events if event["event"] not in ("checkpoint", "fault")],
                         ["started", "resumed", "resumed", "resumed", "finished"])
        self.assertEqual([event["step"] for event in events if event["event"] == "resumed"], [4, 4, 10])  # the end of an epoch may be the best so far
        status = json.loads((self.run_folder(cut) / "status.json").read_text())
        self.assertEqual((status["state"], status["step"], status["total_steps"]), ("finished", 16, 16))
        self.assertTrue(status["last_checkpoint"].endswith("step_16"))
        self.assertIn("welkin_step{run=", (self.run_folder(cut) / "metrics.prom").read_text())

    def test_the_best_checkpoint_is_the_best_that_is_there(self):
        flags = ("--checkpoint_async=false", "--num_iters", "60", "--keep_checkpoints", "1", "--set", "lr=3e-2", "--set", "schedule=constant")

        def best(root):
            return json.loads((self.run_folder(root) / "checkpoints" / "best.json").read_text())

        self.train(self.folder / "whole", *flags)
        step = best(self.folder / "whole")["step"]
        self.assertLess(step, 60, "the loss goes up at the end at this rate")
        # Killed between the checkpoint and the line that names it: before best.json is made.
        cut = self.folder / "cut"
        self.train(cut, *flags, "--inject", f"kill:step={step},phase=create,after=4", code=-signal.SIGKILL)
        self.train(cut, *flags, "--resume")
        self.assertEqual(best(cut), best(self.folder / "whole"))
        # It cannot be written: the next that is better than what is there is the best.
        full = self.folder / "full"
        said = self.train(full, *flags, "--inject", f"write_error:step={step},error=ENOSPC")
        self.assertIn("cannot be saved", said)
        losses = [float(found) for found in re.findall(r"Avg val loss=(\S+)", said)]
        self.assertEqual(len(losses), 6)
        there = [(loss, 10 * number) for number, loss in enumerate(losses, 1) if 10 * number != step]
        self.assertEqual(best(full)["step"], min(there)[1])
        self.assertTrue((self.run_folder(full) / "checkpoints" / f"step_{best(full)['step']}").is_dir())

    def test_a_fault_that_nothing_would_show_is_refused(self):
        for fault, sentence in (("wrong_gradient:step=3", "[inject] nothing would show a wrong_gradient: recheck_interval=0. Give --recheck_interval N."),
                                ("drop_connection:step=3", "[inject] a run of one process has no connections that could drop: ranks=1")):
            self.assertIn(sentence, self.train(self.folder / "root", "--inject", fault, code=USAGE))

    def test_a_start_that_fails_is_no_running_one(self):
        root = self.folder / "root"
        self.train(root, "--inject", "kill:step=6", "--checkpoint_async=false", code=-signal.SIGKILL)
        status = self.run_folder(root) / "status.json"
        self.assertEqual(json.loads(status.read_text())["state"], "running")
        for path in self.run_folder(root).glob("checkpoints/step_*/model.safetensors"):
            path.write_bytes(path.read_bytes()[:100])
        self.train(root, "--resume", code=CHECKPOINT)
        found = json.loads(status.read_text())
        self.assertEqual(found["state"], "failed")
        self.assertIn("no checkpoint of the run is whole", found["error"])
        self.assertIn("welkin_up{run=", (self.run_folder(root) / "metrics.prom").read_text())
        self.assertEqual(self.events(root)[-1]["event"], "failed")

    def test_the_last_status_is_of_the_last_step(self):
        root = self.folder / "root"
        self.train(root, "--set", "status_interval_s=1000")
        status = json.loads((self.run_folder(root) / "status.json").read_text())
        self.assertEqual(status["step"], 16)
        self.assertIsNotNone(status["loss"])

    def test_a_run_that_resumes_within_a_row_of_spikes_counts_them_all(self):
        root, spikes = self.folder / "root", "spike:step=12,steps=3"
        flags = ("--checkpoint_interval", "1", "--checkpoint_async=false", "--set", "spike_window=8", "--set", "spike_patience=3", "--on_spike", "rollback")
        self.train(root, *flags, "--inject", f"{spikes};kill:step=14", code=-signal.SIGKILL)
        self.train(root, *flags, "--resume", "--inject", spikes)
        self.assertEqual([event["step"] for event in self.events(root) if event["event"] == "rollback"], [14])

    def test_a_place_is_of_one_run(self):
        place = ("--checkpoint_dirs", f"fast:{self.folder / 'place'}:4:2", "--checkpoint_interval", "8")
        one, other = self.folder / "one", self.folder / "other"
        self.train(one, *place, "--num_iters", "12")
        held = sorted(path.name for path in (self.folder / "place" / "run" / "1GPU" / "00").iterdir())
        for flags in ((), ("--resume",)):
            said = self.train(other, *place, *flags, code=USAGE)
            self.assertIn("a place holds the checkpoints of another run: place=fast", said)
            self.assertIn(f" in {self.run_folder(one)}", said)
        self.assertEqual(sorted(path.name for path in (self.folder / "place" / "run" / "1GPU" / "00").iterdir()), held)
        shutil.rmtree(self.run_folder(one))  # a node's disk is lost: its places still know it
        self.assertIn("Resumed at step 12 from", self.train(one, *place, "--resume"))
        with open(self.folder / "place" / "run" / "1GPU" / ".00.lock", "r+b") as lock:
            fcntl.fcntl(lock, 37, struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 0, 0, 0))  # F_OFD_SETLK
            self.assertIn("another run works in a place of this one: place=fast", self.train(one, *place, "--resume", code=USAGE))
        self.train(one, *place)  # begins anew: its own earlier checkpoints are put aside

    def test_a_damaged_checkpoint_is_named_and_the_one_before_taken(self):
        whole = self.folder / "whole"
        self.train(whole)
        for kind in ("truncate_checkpoint", "flip_checkpoint"):
            root = self.folder / kind
            said = self.train(root, "--checkpoint_async=false", "--inject", f"{kind}:step=9;kill:step=10", code=-signal.SIGKILL)
            self.assertRegex(said, rf"Fault injected: {kind}:step=9, at step 9, path=\S+step_8/\S+safetensors")
            said = self.train(root, "--resume")
            self.assertIn("step_8", said)
            self.assertIn("Resumed at step 4", said)
            self.assertEqual(self.weights(root), self.weights(whole))

    def test_a_stopped_run_goes_on(self):
        root = self.folder / "stopped"
        process = subprocess.Popen(self.command(root, "--inject", "stop:step=5"), stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.kill)
        deadline = time.monotonic() + 60
        while "State:\tT" not in pathlib.Path(f"/proc/{process.pid}/status").read_text() and time.monotonic() < deadline:
            time.sleep(0.01)
        process.send_signal(signal.SIGCONT)
        said = process.communicate(timeout=60)[1]
        self.assertEqual(process.returncode, DONE, said)
        self.assertIn("Fault injected: stop:step=5, at step 5", said)

    def test_a_fault_that_does_not_exist_is_refused_before_anything_runs(self):
        said = self.train(self.folder / "none", "--inject", "kil:step=5", code=USAGE)
        self.assertIn("[inject] there is no such fault, and no such file: fault=kil:step=5. Take one of kill, stop,", said)
        said = self.train(self.folder / "none", "--inject", "spike:step=5", "--set", "cuda_graph=true", code=USAGE)
        self.assertIn("[inject] a recorded step makes no losses that a fault could change", said)
        self.assertFalse((self.folder / "none" / "run").exists())

    def told_by(self, number, fault, flags, ranks, code):
        """What a run with that fault says, and the next start where a checkpoint was damaged."""
        command = self.command(self.folder / f"fault{number}", *flags)
        launcher = ["launch", "-n", str(ranks), "--bind", "off", "--grace", "2", "--"] if ranks > 1 else []
        command[1:1] = launcher
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        done = subprocess.run([*command, "--inject", fault], capture_output=True, text=True, timeout=120, env=environment)
        self.assertEqual(done.returncode, code, done.stderr)
        if "_checkpoint:" not in fault:
            return done.stderr
        return subprocess.run([*command, "--resume"], capture_output=True, text=True, timeout=120, env=environment).stderr

    def test_each_fault_has_the_sentence_that_the_page_promises(self):
        page = (ROOT / "docs/results/reliability.md").read_text().partition("## What a user reads")[2]
        rows = [[cell.strip(" `") for cell in line.strip("|").split("|")] for line in page.splitlines() if line.startswith("| `")]
        refused = self.train(self.folder / "none", "--inject", "nothing", code=USAGE)
        kinds = re.search(r"Take one of ([a-z_, ]+)", refused).group(1).split(", ")
        self.assertEqual(sorted(fault.partition(":")[0] for fault, *_ in rows), sorted(kinds))
        for number, (fault, flags, ranks, code, sentence) in enumerate(rows):
            with self.subTest(fault):
                said = self.told_by(number, fault, flags.split(), int(ranks), int(code))
                self.assertRegex(said, ".*".join(re.escape(part.strip()) for part in sentence.split("...")))

    def test_goodput_is_measured_beside_the_formula(self):
        """tools/goodput.py: its arithmetic, and that its formula is the program's. How much was kept depends on the machine."""
        found = self.folder / "goodput.json"
        begun = time.monotonic()
        self.train(self.folder / "start", "--num_iters", "1")
        start = time.monotonic() - begun
        mtbf = max(4, 8 * start)  # of lives of 0.27, 0.79 and 0.46 times it, the longest must hold a start beside two other runs, and a checkpoint
        done = subprocess.run([sys.executable, str(ROOT / "tools/goodput.py"), "--binary", BINARY, "--mtbf", str(mtbf), "--failures", "3", "--intervals",
                               "10,auto", "--measure_s", str(max(5, 4 * start)), "--seed", "3", "--parallel", "2", "--json", str(found)],
                              capture_output=True, text=True, timeout=600)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("| 10 steps |", done.stdout)
        self.assertRegex(done.stdout, r"\| \d+ steps \(auto\) \|")
        told = json.loads(found.read_text())
        times = told["times"]
        for row in told["rows"]:
            self.assertEqual(row["measured"], row["steps"] / row["possible"])
            self.assertEqual(row["failures"], 3)
            self.assertTrue(0 < row["restart_s"] < row["seconds"], row)
        self.assertEqual(told["rows"][0]["steps"] % 10, 0)
        self.assertGreater(told["rows"][0]["steps"], 0)
        sys.path.insert(0, str(ROOT / "tools"))
        import goodput
        self.assertEqual(goodput.formula_of_failures([10, 4, 25], held=1, written=3, restart=2, interval=5), 4 * 5 / 39)  # 1, 0 and 3 intervals
        plan = subprocess.run([BINARY, "plan", "estimate", "--mtbf", repr(mtbf / 3600), "--save_seconds", repr(times["held_s"]), "--write_seconds",
                               repr(times["written_s"]), "--restart_seconds", "0.5", "--json", "-"], capture_output=True, text=True)
        figures = json.loads(plan.stdout)["failures of 1 node"]
        interval = max(figures["interval by Daly"]["value"], times["written_s"] - times["held_s"])
        ours = goodput.formula(mtbf, times["held_s"], times["written_s"], 0.5, interval)
        rounds_to(100 * ours, figures["goodput"]["value"], 64, number="fp64", scale=100, message="goodput in percent")

    def test_training_survives_fifty_kills(self):
        done = subprocess.run([sys.executable, str(ROOT / "tools" / "survive.py"), "--binary", BINARY, "--kills", "50", "--seed", "1"],
                              capture_output=True, text=True, timeout=600, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("50 kills", done.stdout)
        self.assertIn("no checkpoint was lost or damaged", done.stdout)


if __name__ == "__main__":
    unittest.main()
