#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`welkin bench --collectives` times every collective over every axis in real processes and writes a calibration; `bench --scaling`
measures one number of ranks after the other, or merges the files of separate jobs, predicts larger machines and draws four plots."""
import json
import pathlib
import subprocess
import sys
import unittest
import xml.dom.minidom

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from ranks_case import BINARY, DATA, DONE, UNET, USAGE, RanksCase, clean_environment  # noqa: E402

PLOTS = ("throughput", "efficiency", "communication", "step_time")
COLLECTIVES = ["all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast", "send_receive"]


class BenchLinks(RanksCase):
    def bench(self, *arguments, code=DONE):
        process = subprocess.Popen([BINARY, "--bind", "off", "bench", *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   text=True, env=clean_environment(), cwd=self.folder)
        return self.finish(process, code)

    def measured(self, ranks, batch, **rates):
        path = self.folder / f"weak_scale_{ranks}.json"
        path.write_text(json.dumps({"mode": "all", "ranks": ranks, "global_batch_size": batch, "exchanged_bytes_per_step": 1 << 22,
                                    **{f"{name}_samples_per_s": rate for name, rate in rates.items()}}))
        return path

    def test_every_collective_over_every_axis(self):
        path = self.folder / "links.json"
        text = self.bench("--collectives", "-n", 4, "--tp", 2, "--sizes", "1024,65536", "--seconds", 0.002, "--json", path)
        self.assertIn("dp of 2, all_reduce: latency", text)
        report = json.loads(path.read_text())
        self.assertIn(f"tensors on: {report['device']}\n", text)
        rows = {(row["axis"], row["collective"], row["bytes"]) for row in report["collectives"]}
        self.assertEqual(rows, {(axis, name, size) for axis in ("dp", "tp") for name in COLLECTIVES for size in (1024, 65536)})
        self.assertEqual([row["collective"] for row in report["calibration"] if row["axis"] == "tp"], COLLECTIVES)
        self.assertEqual({row["ranks"] for row in report["calibration"]}, {2})
        for row in report["collectives"]:
            self.assertGreater(row["seconds"], 0)
        for row in report["calibration"]:
            self.assertTrue(row["latency_s"] > 0 or row["bandwidth_bytes_per_s"] > 0, row)

    def test_a_table_of_separate_jobs_with_predicted_rows(self):
        one = self.measured(1, 8, io=500, synthetic=100, full=90, nocomm=100)
        four = self.measured(4, 32, io=900, synthetic=160, full=150, nocomm=200)
        links = self.folder / "links.json"
        links.write_text(json.dumps({"calibration": [{"axis": "dp", "collective": "all_reduce", "ranks": 4, "latency_s": 1e-4,
                                                      "bandwidth_bytes_per_s": 1e8}]}))
        out = self.folder / "out"
        text = self.bench("--scaling", "weak", "--from", four, one, "--predict", "16,64", "--calibration", links, "--out", out)
        self.assertEqual(text.count("predicted"), 2)
        self.assertIn("40.0", text)  # % efficiency of four ranks
        table = json.loads((out / "weak_scaling.json").read_text())
        self.assertEqual([(row["ranks"], row["predicted"]) for row in table["rows"]], [(1, False), (4, False), (16, True), (64, True)])
        self.assertLess(table["rows"][3]["efficiency"], table["rows"][2]["efficiency"])
        for name in PLOTS:
            xml.dom.minidom.parse(str(out / f"weak_{name}.svg"))

    def test_runs_of_one_number_of_ranks_after_the_other(self):
        flags = ["--yaml_config", self.write(UNET), "--config", "run", "--windows", 2, "--window_seconds", 0.02, "--warmup_seconds", 0,
                 "--device", "cpu", "--comm_timeout_s", 60, "--num_data_workers", 0]
        text = self.bench("--scaling", "weak", "-n", "1,2", "--predict", 16, "--out", "out", *flags, "--local_batch_size", 4)
        self.assertIn("predicted", text)
        table = json.loads((self.folder / "out/weak_scaling.json").read_text())
        self.assertEqual([row["global_batch_size"] for row in table["rows"]], [4, 8, 64])
        for row in table["rows"][:2]:
            self.assertGreater(row["full_samples_per_s"], 0)
        self.assertGreater(table["rows"][1]["exchanged_bytes_per_step"], 0)
        self.assertIsNone(table["rows"][2]["full_samples_per_s"])
        for name in ("weak_calibration.json", "weak_scale_2.json", *(f"weak_{name}.svg" for name in PLOTS)):
            self.assertTrue((self.folder / "out" / name).exists(), name)
        merged = self.bench("--scaling", "weak", "--from", "out/weak_scale_1.json", "out/weak_scale_2.json", "--out", "merged")
        self.assertNotIn("predicted", merged)

    def test_figures_of_the_exchange(self):
        overlap = json.loads(self.bench("--parallel_figure", "overlap", "--width", 32, "--depth", 1, "--samples", 1, "--bucket_cap_mb", 1))
        self.assertEqual(overlap["ranks"], 2)
        self.assertTrue(0 <= overlap["hidden_fraction"] <= 1, overlap)
        self.assertGreater(overlap["link_s"], 4.9 * overlap["gloo_s"])
        self.assertEqual(overlap["added_fraction"], overlap["added_s"] / overlap["link_s"])
        for flags in ((), ("--sequence_parallel",)):
            sections = json.loads(self.bench("--parallel_figure", "sections", "--width", 32, "--depth", 1, "--samples", 1, *flags))
            self.assertEqual(sections["sequence_parallel"], bool(flags))
            self.assertEqual(sections["added_fraction"], sections["added_s"] / sections["link_s"])
            self.assertGreater(sections["step_s"], sections["link_s"] / 2, "calls of the forward pass have nothing to hide behind")
            self.assertGreaterEqual(sections["bytes_per_step"], 4 * 288 * 32 * 4, "two sections, forward and backward, of all tokens")
        halos = json.loads(self.bench("--parallel_figure", "halos", "--edge", 16, "--unet_width", 4, "--scales", 2, "--link_share", 0.5))
        self.assertEqual(halos["added_fraction"], halos["added_s"] / halos["link_s"])
        # Planes of 16^2 and 8^2 cells, of 4 channels each (inputs of the two halvings), one to the neighbour, forward alone.
        self.assertGreaterEqual(halos["bytes_per_step"], (16**2 + 8**2) * 4 * 4)
        self.bench("--parallel_figure", "adapter", "--sizes", 4096, "--json", "adapter.json")
        self.assertGreater(json.loads((self.folder / "adapter.json").read_text())["over_c10d"]["4096"], 0.5)

    def test_what_is_no_measurement_is_refused(self):
        (self.folder / "bad.json").write_text("{}")
        self.assertIn("this is no measurement of a number of ranks", self.bench("--scaling", "weak", "--from", "bad.json", code=DATA))
        one = self.measured(1, 8, synthetic=100)
        self.assertIn("larger machines are predicted from measured links", self.bench("--scaling", "weak", "--from", one, "--predict", 8, code=USAGE))
        self.assertIn("nothing is measured with --from", self.bench("--scaling", "weak", "--from", one, "--out", "x", "--config", "run", code=USAGE))
        self.assertIn("the study sets this itself: --mode", self.bench("--scaling", "weak", "--mode", "io", code=USAGE))
        self.assertIn("a study has a command line of its own: --scaling", self.bench("--scal", "weak", code=USAGE))
        self.assertIn("tp times cp does not divide the number of ranks", self.bench("--collectives", "-n", 3, "--tp", 2, code=USAGE))
        self.assertIn('--device: "gpu" is none of auto, cpu, cuda', self.bench("--collectives", "--device", "gpu", code=USAGE))


if __name__ == "__main__":
    unittest.main()
