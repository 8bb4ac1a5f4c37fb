#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`--offload` in the shipped program: a run that a memory limit ends trains with it, to the same losses and checkpoints; what it cannot do is refused."""
import os
import pathlib
import re
import resource
import signal
import subprocess
import tempfile
import time
import unittest

BINARY = os.environ["WELKIN_BINARY"]
DONE, OTHER, USAGE, DATA = 0, 1, 2, 3
# 3.2 million weights: 12 MiB of them, as much of gradients, twice as much of Adam's states and 12 MiB of an average.
VIT = """
run: {model: vit, embed_dim: 256, depth: 4, num_heads: 4, patch_size: 4, img_size: [16, 32], n_in_channels: 2, n_out_channels: 2, dropout: 0.1,
  data_loader_config: synthetic, limit_nsamples: 20, limit_nsamples_val: 4, global_batch_size: 4, num_iters: 4, lr: 1E-3, ema_decay: 0.9,
  optimizer: AdamW, prefetch_depth: 1, expdir: /logs}
"""
LIMIT_GIB = "0.05"
BUFFERS = ("--offload_buffer_mib", "1")


class Offload(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.yaml = self.folder / "run.yaml"
        self.yaml.write_text(VIT)
        self.disk = self.folder / "disk"

    def command(self, root, *flags):
        return [BINARY, "train", "--yaml_config", str(self.yaml), "--config", "run", "--log_root", str(self.folder / root), "--device", "cpu", "--threads", "1", *map(str, flags)]

    def train(self, root, *flags, code=DONE, **options):
        done = subprocess.run(self.command(root, *flags), capture_output=True, text=True, timeout=120, **options)
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stderr + done.stdout

    def run_folder(self, root):
        return next((self.folder / root / "run").iterdir()) / "00"

    def losses(self, root):
        found = re.findall(r"Avg (?:train|val) loss=(\S+)", (self.run_folder(root) / "out.log").read_text())
        self.assertGreater(len(found), 1)
        return found

    def checkpoint(self, root, step):
        return {path.name: path.read_bytes() for path in (self.run_folder(root) / "checkpoints" / f"step_{step}").glob("*.safetensors")}

    def offload(self, what="optimizer"):
        return ("--offload", what, "--offload_path", self.disk, *BUFFERS)

    def test_a_run_that_does_not_fit_trains(self):
        error = self.train("short", "--memory_limit_gib", LIMIT_GIB, code=OTHER)
        self.assertIn("tensors would take more memory than the limit allows", error)
        self.train("whole")
        for what in ("optimizer", "optimizer,activations", "optimizer,parameters"):
            with self.subTest(what=what):
                self.train(what, "--memory_limit_gib", LIMIT_GIB, *self.offload(what))
                log = (self.run_folder(what) / "out.log").read_text()
                self.assertRegex(log, rf"Offload: the optimizer states are in a file in {self.disk}, (by direct I/O|through the page cache.*): 2[0-9.]+ MiB, [36].0 MiB of host memory")
                self.assertIn("Offload: the moving averages of weights are in a file", log)
                self.assertEqual("Offload: the activations of 4 parts" in log, "activations" in what)
                self.assertEqual("Offload: the weights are in a file" in log, "parameters" in what)
                self.assertEqual(self.losses(what), self.losses("whole"))
                self.assertEqual(self.checkpoint(what, 4), self.checkpoint("whole", 4))
                self.assertEqual(list(self.disk.iterdir()), [], "nothing is left of the file")

    def test_weights_leave_the_memory_too(self):
        """A limit in which the run fits without its weights alone."""
        limit = ("--memory_limit_gib", "0.035")
        self.assertIn("weights=12.1 MiB", self.train("without", *limit, *self.offload("optimizer,activations"), code=OTHER))
        self.train("with", *limit, *self.offload("optimizer,activations,parameters"))
        self.train("whole")
        self.assertEqual(self.losses("with"), self.losses("whole"))
        self.assertEqual(self.checkpoint("with", 4), self.checkpoint("whole", 4))

    def test_a_run_goes_on_with_and_without(self):
        self.train("whole")
        for until, flags in ((2, self.offload()), (3, self.offload("parameters")), (4, self.offload("activations,optimizer,parameters"))):
            self.train("parts", "--num_iters", until, "--resume", *flags, "--set", "lr_schedule=constant")
        self.train("plain", "--set", "lr_schedule=constant")
        self.assertEqual(self.checkpoint("parts", 4), self.checkpoint("plain", 4))

    def test_a_killed_run_leaves_nothing_on_the_disk(self):
        process = subprocess.Popen(self.command("killed", "--num_iters", 10_000, *self.offload()), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        deadline = time.monotonic() + 60
        while not self.disk.exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        time.sleep(0.5)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        self.assertEqual(list(self.disk.iterdir()), [])

    def test_a_disk_without_room_is_known_before_the_first_step(self):
        limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (8 << 20, 8 << 20))  # noqa: E731
        error = self.train("full", *self.offload(), code=DATA, preexec_fn=limit)
        self.assertRegex(error, r"\[offload\] there is no room for the optimizer states: offload_path=.*, needed=.*File too large\. Raise the limit on file sizes")

    def test_what_cannot_be_done_is_refused(self):
        for flags, text in ((("--offload", "optimizer"), "a run on a CPU needs a folder for what it offloads: offload=[optimizer] (--offload). Name one"),
                            ((*self.offload("parameters"), "--shard", "optimizer"), "weights that every rank gathers whole stay in memory, shard is optimizer or gradients"),
                            (("--offload", "parameters"), "a run on a CPU needs a folder for what it offloads"),
                            (self.offload("everything"), "is none of optimizer, activations, parameters"),
                            (("--offload_path", self.disk), "nothing is offloaded")):
            self.assertIn(text, self.train("refused", *flags, code=USAGE))
        self.assertIn("cannot make a file for the", self.train("refused", "--offload", "optimizer", "--offload_path", "/proc/self/task", code=DATA))

    def test_a_plan_knows_it(self):
        plain = self.train("plan", "--dry_run")
        self.assertNotIn("offload: ", plain.replace("offload: []", ""))
        self.assertRegex(self.train("plan", "--dry_run", *self.offload()), r"\noffload: 3[0-9.]+ MiB of a rank leave the memory of its device, 7[0-9.]+ MiB to and from the disk in a step")
        command = [BINARY, "plan", "estimate", "--yaml_config", self.yaml, "--config", "run", "--device", "cpu", *self.offload("optimizer,activations")]
        sheet = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=60, check=True).stdout
        for line in (r"optimizer +0\.0000", r"buffers of the offload", r"offloaded .*in a file", r"to and from the disk .*MB per step and rank"):
            self.assertRegex(sheet, line)


if __name__ == "__main__":
    unittest.main()
