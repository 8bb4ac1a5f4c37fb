#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""welkin bench under `welkin launch`: the rates of two ranks together, NOCOMM on data- and tensor-parallel layouts; benchy on two ranks."""
import json
import pathlib
import re
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from ranks_case import BINARY, UNET, USAGE, VIT, RanksCase, clean_environment  # noqa: E402
from tolerance import within  # noqa: E402

SHORT = ["--windows", "2", "--window_seconds", "0.02", "--warmup_seconds", "0", "--device", "cpu", "--comm_timeout_s", "60"]

# 128 tokens in blocks large enough that activations are more than what else a step makes.
STAGED = """
run: {model: vit, embed_dim: 64, depth: 8, num_heads: 4, patch_size: 4, img_size: [32, 64], n_in_channels: 3, n_out_channels: 3, dropout: 0.0,
  data_loader_config: synthetic, limit_nsamples: 8, limit_nsamples_val: 4, global_batch_size: 8, micro_batch_size: 1, num_iters: 6, lr: 1E-3, expdir: /logs}
"""

# Four channels in, so that the first stage has more parameters than the last.
TIED = """
run: {model: tied, dataset: era5, embed_dim: 16, depth: 4, num_heads: 2, patch_size: 4, img_size: [16, 32], n_in_channels: 4, n_out_channels: 3, dropout: 0.0,
  data_loader_config: synthetic, limit_nsamples: 8, limit_nsamples_val: 4, global_batch_size: 8, micro_batch_size: 1, num_iters: 6, lr: 1E-3, expdir: /logs}
"""


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

    def held(self, ranks, *flags, text=VIT):
        self.finish(self.start(ranks, "bench", "--yaml_config", self.write(text), "--config", "run", "--json", "held.json", "--device", "cpu",
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

    def staged(self, schedule, micros):
        """Bytes of each of two ranks, and the planner's of the one that it shows. A step has so many micro-batches of one sample."""
        flags = ("--pipeline_parallel", "2", "--pipeline_schedule", schedule, "--set", f"global_batch_size={micros}", "--set", f"limit_nsamples={micros}")
        held = self.held(2, *flags, text=STAGED)
        done = subprocess.run([BINARY, "plan", "estimate", "--yaml_config", self.write(STAGED), "--config", "run", "--device", "cpu", "--devices", "2",
                               "--json", "-", *flags], capture_output=True, text=True, check=True)
        planned, = (figures for title, figures in json.loads(done.stdout).items() if title.startswith("memory of a rank"))
        self.assertEqual(held["layout"], "dp 1, tp 1, cp 1, pp 2")
        self.assertEqual([row["place"] for row in held["held"]], ["pp 0", "pp 1"])
        for row in held["held"]:
            self.assertEqual(row["gradients_bytes"], row["weights_bytes"])
        return [row["activations_bytes"] for row in held["held"]], {name: row["value"] * 2**30 for name, row in planned.items()}

    def test_stages_hold_the_activations_of_micro_batches_under_way(self):
        """Of gpipe all, so that what one of them takes is the growth; of the others as many as their schedules promise, however many there are."""
        held = {schedule: [self.staged(schedule, micros)[0] for micros in (4, 8)] for schedule in ("gpipe", "1f1b", "interleaved", "zero_bubble")}
        micro = [(more - few) / 4 for few, more in zip(*held["gpipe"])]
        one, = (row["activations_bytes"] for row in self.held(1, "--set", "global_batch_size=1", "--set", "limit_nsamples=1", text=STAGED)["held"])
        for kept in (sum(micro), one):  # the ranks' parts and messages are more than the whole, and not twice as much
            self.assertLessEqual(one, kept)
            self.assertLess(kept, 1.3 * one)
        message, sample = 4 * 8 * 16 * 64, 4 * 3 * 32 * 64  # tokens, and input or target; one of each is on its way, one posted ahead
        for rank, promised in enumerate((2, 1)):
            self.assertLess(abs(held["1f1b"][1][rank] - held["1f1b"][0][rank]), 4096, "but for places of samples nothing grows with the micro-batches")
            self.assertGreaterEqual(held["1f1b"][0][rank], promised * micro[rank])
            self.assertLessEqual(held["1f1b"][0][rank], promised * micro[rank] + 2 * message + 2 * sample)
            self.assertGreater(held["zero_bubble"][0][rank], held["1f1b"][0][rank], "what gradients of weights are made of waits")
        for rank, promised in enumerate((2.5, 1.5)):  # in halves of a rank's part, of which each has messages of its own
            self.assertGreaterEqual(held["interleaved"][0][rank], promised * one / 2)
            self.assertLess(held["interleaved"][0][rank], 4 * micro[rank])

    def test_the_planner_knows_what_stages_hold(self):
        for schedule in ("gpipe", "1f1b", "interleaved", "zero_bubble"):
            with self.subTest(schedule=schedule):
                held, planned = self.staged(schedule, 8)
                within(planned["activations"] / held[round(planned["rank of the pipeline"] / 2**30)], 1, 0.06,
                       "a message is taken for as large as the model's input")

    def test_the_planner_counts_the_messages_of_tied_weights(self):
        """Of a pipeline's first rank, which sends most, against the counter of its calls: a ring's (n - 1)/n of each message, twice for a sum."""
        weight = {("dp", "gradient exchange"): 2, ("dp", "all_gather"): 1, ("dp", "reduce_scatter"): 1, ("tied", "all_reduce"): 2,
                  ("pp", "all_reduce"): 2}  # where all ranks of the pipeline have copies; with the norm of clipping, eight bytes
        plugin = ("--plugin", pathlib.Path(BINARY).resolve().parent / "tests/libtied_model.so")
        tied = {"lift": 16 * 16, "mix": 16 * 16 + 16}
        for stages, ranks, flags in ((2, 2, ()), (4, 4, ()), (2, 4, ()), (2, 4, ("--shard", "optimizer"))):
            with self.subTest(stages=stages, ranks=ranks, flags=flags):
                run = ["--yaml_config", self.write(TIED), "--config", "run", "--pipeline_parallel", str(stages), "--device", "cpu", *flags]
                self.finish(self.start(ranks, *plugin, "bench", "--mode", "all", *run, "--json", "out.json", "--windows", "1", "--window_seconds", "0.02",
                                       "--warmup_seconds", "0", "--comm_timeout_s", "60"))
                sent = of_tied = 0
                for call in json.loads((self.folder / "out.json").read_text())["communication"]["calls"]:
                    name, members = re.fullmatch(r"(\S+) \[(.*)\]", call["group"]).groups()
                    kind = ("dp" if name.startswith("dp") else name, call["collective"])
                    size = len(members.split(", "))
                    of_weights = call["bytes_per_step"] - (8 if kind == ("pp", "all_reduce") else 0)
                    bytes_sent = weight.get(kind, 0) * (size - 1) / size * of_weights
                    sent += bytes_sent
                    of_tied += 0 if name.startswith("dp") else bytes_sent
                holders = {"lift": 2, "mix": 2 if stages == 2 else 3}
                self.assertEqual(round(of_tied * (2 if flags else 1)), round(sum(2 * (h - 1) / h * 4 * tied[layer] for layer, h in holders.items())))
                done = subprocess.run([BINARY, *map(str, plugin), "plan", "estimate", *map(str, run), "--devices", str(ranks), "--json", "-"],
                                      capture_output=True, text=True, check=True)
                planned = 1e6 * next(row["value"] for figures in json.loads(done.stdout).values() for name, row in figures.items() if name.startswith("sent"))
                within(planned, sent, 4 * 8 * 40 if flags else 0.5, "the padding of pieces, eight values of each of so many parameters; else a byte")

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
