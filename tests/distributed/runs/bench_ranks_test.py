#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""welkin bench under `welkin launch`: the rates of two ranks together, NOCOMM on data- and tensor-parallel layouts; benchy on two ranks."""
import json
import pathlib
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from ranks_case import BINARY, UNET, USAGE, VIT, RanksCase, clean_environment  # noqa: E402

SHORT = ["--windows", "2", "--window_seconds", "0.02", "--warmup_seconds", "0", "--device", "cpu", "--comm_timeout_s", "60"]


class BenchRanks(RanksCase):
    def start(self, ranks, *arguments, **environment):
        command = [BINARY, "launch", "-n", str(ranks), "--bind", "off", "--", *map(str, arguments)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=self.folder,
                                env=clean_environment(**environment))

    def bench(self, text, *flags):
        process = self.start(2, "bench", "--yaml_config", self.write(text), "--config", "run", "--json", "out.json", *SHORT, *flags)
        self.finish(process)
        return json.loads((self.folder / "out.json").read_text())

    def test_all_modes_on_two_ranks(self):
        result = self.bench(UNET, "--num_data_workers", "1")
        self.assertEqual(result["ranks"], 2)
        self.assertEqual(result["batch_samples"], 4)
        self.assertGreater(result["exchanged_bytes_per_step"], 0)
        for name in ("io", "synthetic", "full", "nocomm"):
            self.assertGreater(result[f"{name}_samples_per_s"], 0, name)
            self.assertGreaterEqual(result[f"{name}_samples_per_s_spread"], 0, name)

        communication = result["communication"]
        self.assertGreater(communication["alone_s"], 0)
        self.assertTrue(0 <= communication["hidden_fraction"] <= 1, communication)
        exchange = next(row for row in communication["calls"] if row["collective"] == "gradient exchange")
        self.assertEqual(exchange["bytes_per_step"], result["exchanged_bytes_per_step"])
        self.assertGreater(exchange["bytes_per_s"], 0)

    def held(self, ranks, *flags):
        self.finish(self.start(ranks, "bench", "--yaml_config", self.write(VIT), "--config", "run", "--json", "held.json", "--device", "cpu",
                               "--comm_timeout_s", "60", "--memory", *flags))
        return json.loads((self.folder / "held.json").read_text())

    def test_memory_of_every_rank_and_of_what_is_split(self):
        whole = self.held(1)
        held = whole["held"][0]
        self.assertEqual([row["placement"] for row in whole["placements"]], ["whole, on one rank"])
        self.assertEqual(held["weights_bytes"], 4 * whole["placements"][0]["parameters"])
        self.assertEqual(held["optimizer_bytes"], 2 * held["weights_bytes"])
        self.assertEqual(held["exchange_bytes"], 0)
        split = self.held(4, "--set", "tensor_parallel=2", "--set", "sequence_parallel=true")
        self.assertEqual([row["place"] for row in split["held"]], ["dp 0, tp 0", "dp 0, tp 1", "dp 1, tp 0", "dp 1, tp 1"])
        rows = {row["placement"]: row for row in split["placements"]}
        alike, cut = rows["alike on dp tp"], rows["split over tp, alike on dp"]
        self.assertEqual(alike["weights_bytes"], 4 * alike["parameters"])
        self.assertEqual(cut["weights_bytes"], 2 * cut["parameters"])
        self.assertEqual(alike["parameters"] + cut["parameters"], whole["placements"][0]["parameters"])
        for row in split["held"]:
            self.assertEqual(row["weights_bytes"], alike["weights_bytes"] + cut["weights_bytes"])
            self.assertEqual(row["exchange_bytes"], 0)  # gradients of one pass go into the buckets
            # Half of the samples over dp, and less than all of each over tp.
            self.assertLess(row["activations_bytes"] * 2.5, held["activations_bytes"])

    def test_gradients_of_several_micro_batches_have_buckets_beside_them(self):
        several = ("--set", "micro_batch_size=1")
        for row in self.held(2, *several)["held"]:
            self.assertEqual(row["exchange_bytes"], row["gradients_bytes"])
        for row in self.held(2, *several, "--set", "disable_broadcast_buffers=true")["held"]:
            self.assertEqual(row["exchange_bytes"], 0)

    def test_nocomm_runs_layouts_that_exchange_activations(self):
        result = self.bench(VIT, "--mode", "nocomm", "--set", "tensor_parallel=2", "--set", "sequence_parallel=true")
        self.assertGreater(result["nocomm_samples_per_s"], 0)
        self.assertEqual(result["batch_samples"], 8)  # both ranks work on the same samples
        self.assertEqual(result["exchanged_bytes_per_step"], 0)

    def test_layers_of_split_models_are_refused(self):
        process = self.start(2, "bench", "--yaml_config", self.write(VIT), "--config", "run", *SHORT, "--layers", "--set", "tensor_parallel=2")
        self.assertIn("the costs of layers are those of whole layers", self.finish(process, USAGE))

    def test_benchy_on_two_ranks_speaks_once(self):
        (self.folder / "benchy.yaml").write_text("".join(
            f"{name}: {{run_benchmark: True, nbatches: 2, ntrials: 1, nwarmup: 0}}\n" for name in ("IO", "synthetic", "full")))
        process = self.start(2, *self.train_arguments(self.write(UNET), self.folder / "logs", "--enable_benchy"), BENCHY_CONFIG_FILE="benchy.yaml")
        text = self.finish(process)
        self.assertEqual(text.count("BENCHY::SUMMARY::FULL average trial throughput: "), 1, text)
        result = json.loads((self.folder / "benchy_result.json").read_text())
        self.assertEqual(result["nranks"], 2)
        self.assertEqual(len(result["SYNTHETIC"]["rates"][0]), 2)


if __name__ == "__main__":
    unittest.main()
