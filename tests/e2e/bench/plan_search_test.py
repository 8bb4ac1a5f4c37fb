# SPDX-License-Identifier: Apache-2.0
"""`welkin plan search`: the layouts that it lists fit and run, keys that are given stay, and what cannot be is refused."""
import json
import pathlib
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from bench_case import BINARY, UNET, VIT, BenchCase  # noqa: E402

USAGE = 2
LINKS = ("--rate", "1", "--node_gbs", "10", "--network_gbs", "1")
LARGE = VIT.replace("global_batch_size: 2", "global_batch_size: 16").replace("depth: 2", "depth: 4")


class PlanSearch(BenchCase):
    def search(self, text, *flags, code=0):
        command = [BINARY, "plan", "search", "--yaml_config", self.write(text), "--config", "run", *map(str, flags)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=self.folder)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def listed(self, text, *flags):
        return json.loads(self.search(text, *LINKS, *flags, "--json", "-").stdout)

    def test_layouts_are_sorted_fit_and_are_those_of_plan_estimate(self):
        rows = self.listed(LARGE, "--devices", "8", "--node_devices", "4", "--memory_gib", "1", "--top", "1000", "--all")
        self.assertEqual([row["step_s"] for row in rows], sorted(row["step_s"] for row in rows))
        texts = [row["layout"] for row in rows]
        self.assertEqual(len(set(texts)), len(texts))
        for wanted in ("dp 8, micro-batch 2", "dp 4, tp 2 with sp, micro-batch 4", "dp 2, tp 2, pp 2 zero_bubble, shard full, micro-batch 2",
                       "dp 4, cp 2, micro-batch 4", "dp 4, blocks 1x2x1, micro-batch 4"):
            self.assertIn(wanted, texts)
        for row in rows[:: len(rows) // 8]:
            flags = [word for key, value in row["keys"].items() for word in ("--set", f"{key}={value}")]
            command = [BINARY, "plan", "estimate", "--yaml_config", self.write(LARGE), "--config", "run", "--devices", "8", "--json", "-", *flags]
            estimate = json.loads(subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=60, check=True).stdout)
            memory = next(section for title, section in estimate.items() if title.startswith("memory of a rank"))["all of it"]["value"]
            self.assertEqual(memory, row["memory_gib"], row["layout"])
        least = min(row["memory_gib"] for row in rows)
        some = self.listed(LARGE, "--devices", "8", "--node_devices", "4", "--memory_gib", 1.5 * least, "--top", "1000", "--all")
        self.assertTrue(0 < len(some) < len(rows), (len(some), len(rows)))
        self.assertLessEqual(max(row["memory_gib"] for row in some), 1.5 * least)
        best = self.listed(LARGE, "--devices", "8", "--node_devices", "4", "--memory_gib", "1", "--top", "1000")
        self.assertEqual(best[0], rows[0])
        meshes = [tuple(row["keys"][key] for key in ("tensor_parallel", "context_parallel", "pipeline_parallel", "spatial", "sequence_parallel")) for row in best]
        self.assertEqual(len(set(meshes)), len(meshes))

    def test_machines_without_one_of_the_links(self):
        alone = ("--rate", "1", "--memory_gib", "1", "--json", "-")
        for flags in (("--devices", "1"), ("--devices", "4", "--node_devices", "1", "--network_gbs", "1"), ("--devices", "4", "--node_gbs", "1")):
            rows = json.loads(self.search(LARGE, *alone, *flags).stdout)
            self.assertTrue(rows)
            for row in rows:
                self.assertGreater(row["step_s"], 0, (flags, row))  # a NaN is null in JSON, which is no number

    def test_what_is_given_stays(self):
        rows = self.listed(LARGE, "--devices", "4", "--memory_gib", "1", "--tensor_parallel", "2", "--set", "shard=gradients", "--set", "micro_batch_size=2")
        for row in rows:
            self.assertEqual([row["keys"][key] for key in ("tensor_parallel", "shard", "micro_batch_size")], ["2", "gradients", "2"], row["layout"])

    def test_the_first_one_runs(self):
        for text, flags in ((LARGE, ("--pipeline_parallel", "2")), (UNET, ("--spatial", "2x1x1"))):
            row = self.listed(text, "--device", "cpu", "--devices", "2", "--memory_gib", "1", *flags)[0]
            words = [word for key, value in row["keys"].items() for word in ("--set", f"{key}={value}")]
            command = [BINARY, "launch", "-n", "2", "--bind", "off", "--", "bench", "synthetic", "--yaml_config", self.write(text), "--config", "run", "--device", "cpu",
                       "--windows", "1", "--window_seconds", "0.01", "--warmup_seconds", "0", *words]
            done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=120, cwd=self.folder)
            self.assertEqual(done.returncode, 0, done.stderr)

    def test_the_table_names_the_flags(self):
        said = self.search(LARGE, *LINKS, "--devices", "4", "--memory_gib", "1", "--tensor_parallel", "2", "--top", "3").stdout
        self.assertRegex(said, r"^\d+ layouts fit, 0 need more memory, \d+ are refused\n\nlayout +step \[s\]")
        self.assertRegex(said, r"\nFlags of the first: --set tensor_parallel=2")
        self.assertEqual(said.count("\ndp "), 3)

    def test_refusals(self):
        for flags, wanted in (((*LINKS, "--devices", "4"), "the memory of a device is not said: --memory_gib"),
                              (("--devices", "4", "--memory_gib", "1"), "the speed of a device is not said: --rate"),
                              (("--devices", "4", "--memory_gib", "1", "--rate", "1"), "the bandwidth within a node is not said: --node_gbs"),
                              (("--devices", "16", "--memory_gib", "1", "--rate", "1", "--node_gbs", "1"), "the bandwidth between nodes is not said: --network_gbs"),
                              ((*LINKS, "--devices", "12", "--memory_gib", "1"), "nodes are not whole: devices=12, node_devices=8"),
                              ((*LINKS, "--devices", "4", "--memory_gib", "1e-6"), "no layout fits into the memory of a device: memory_gib=1e-6, the smallest needs "),
                              ((*LINKS, "--devices", "4", "--memory_gib", "1", "--set", "num_heads=3"), "num_heads"),
                              ((*LINKS, "--devices", "4", "--memory_gib", "1", "--json", "/nowhere/found.json"), "/nowhere"),
                              ((*LINKS, "--devices", "7", "--node_devices", "7", "--memory_gib", "1", "--context_parallel", "1", "--spatial", "1x1x1",
                                "--pipeline_parallel", "1"), "no layout divides this run: ")):
            self.assertIn(wanted, self.search(LARGE, *flags, code=USAGE).stderr)


if __name__ == "__main__":
    unittest.main()
