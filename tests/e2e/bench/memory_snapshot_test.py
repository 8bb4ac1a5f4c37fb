# SPDX-License-Identifier: Apache-2.0
"""welkin train --memory_snapshot: PyTorch's own viewer takes the file, and the file tells what the run's tensors did."""
import collections
import os
import pathlib
import pickle
import subprocess
import tempfile
import unittest

from torch.cuda import _memory_viz

BINARY = os.environ["WELKIN_BINARY"]
VIT = """
run: {model: vit, embed_dim: 32, depth: 2, num_heads: 2, patch_size: 8, img_size: [32, 64], n_in_channels: 3, n_out_channels: 3,
  data_loader_config: synthetic, limit_nsamples: 8, limit_nsamples_val: 2, global_batch_size: 4, num_iters: 2, lr: 1E-3, warmup: 0, expdir: /logs}
"""


class MemorySnapshot(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.file = self.folder / "memory.pickle"

    def train(self, *flags, code=0, launch=()):
        (self.folder / "run.yaml").write_text(VIT)
        words = ["train", "--yaml_config", self.folder / "run.yaml", "--config", "run", "--log_root", self.folder / "logs", "--threads", "1", "--device", "cpu",
                 "--memory_snapshot", self.file, *flags]
        done = subprocess.run([BINARY, *map(str, [*launch, *words])], capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stderr

    def snapshot(self):
        return pickle.loads(self.file.read_bytes())

    def test_the_viewer_opens_it(self):
        self.train()
        snapshot = self.snapshot()
        self.assertIn("Active Memory Timeline", _memory_viz.trace_plot(snapshot))
        self.assertIn("Summary of segments", _memory_viz.segsum(snapshot))
        self.assertIn("alloc", _memory_viz.trace(snapshot))

    def test_what_is_taken_is_given_back_or_still_there(self):
        self.train()
        snapshot, live, counts = self.snapshot(), {}, collections.Counter()
        for change in snapshot["device_traces"][0]:
            counts[change["action"]] += 1
            if change["action"] == "alloc":
                self.assertNotIn(change["addr"], live)
                live[change["addr"]] = change["size"]
            elif change["action"] == "free_completed":
                self.assertEqual(live.pop(change["addr"]), change["size"])
        self.assertEqual(live, {segment["address"]: segment["total_size"] for segment in snapshot["segments"]})
        self.assertEqual(counts["alloc"], counts["segment_alloc"])
        self.assertEqual(counts["free_requested"], counts["segment_free"])
        names = {frame["name"] for change in snapshot["device_traces"][0] for frame in change["frames"]}
        self.assertTrue(any("Backward" in name for name in names), sorted(names))
        times = [change["time_us"] for change in snapshot["device_traces"][0]]
        self.assertEqual(times, sorted(times))

    def test_a_run_without_enough_memory_has_one_too(self):
        self.assertIn("[memory] tensors would take more memory than the limit allows", self.train("--memory_limit_gib", "0.002", code=1))
        refused = [change for change in self.snapshot()["device_traces"][0] if change["action"] == "oom"]
        self.assertGreater(len(refused), 0)
        self.assertLess(refused[0]["device_free"], refused[0]["size"])
        self.assertGreaterEqual(refused[0]["device_free"], 0)
        self.assertIn("OutOfMemoryError", _memory_viz.trace(self.snapshot()))

    def test_ranks_without_enough_memory_have_one_too(self):
        """One of them at least: the launcher stops the others."""
        self.train("--memory_limit_gib", "0.001", code=1, launch=("launch", "-n", "2", "--bind", "off", "--"))
        found = [path for path in (self.file, self.folder / "memory.pickle.1") if path.exists()]
        self.assertTrue(found)
        for path in found:
            self.assertTrue(pickle.loads(path.read_bytes())["device_traces"][0])

    def test_a_place_where_it_cannot_be_written(self):
        self.file = self.folder / "nowhere" / "memory.pickle"
        for file in (self.file, self.folder, ""):
            self.file = file
            self.assertIn("[memory] this file cannot be written: memory_snapshot=", self.train(code=2))

    def test_a_disk_that_is_full_costs_the_snapshot_and_not_the_run(self):
        self.file = pathlib.Path("/dev/full")
        self.train(code=3)
        log = next((self.folder / "logs").rglob("out.log")).read_text()
        self.assertRegex(log, r"DONE ---- rank 0\n(.*\n)*.* WARNING .*/dev/full")
        self.assertTrue(list((self.folder / "logs").rglob("step_2/model.safetensors")))


if __name__ == "__main__":
    unittest.main()
