#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`welkin launch ... evaluate RUN`: the scores of one process, from whatever layout has written, where replicas divide the samples and ranks
that share a sample each load their part of the model alone; and what is refused."""
import json
import pathlib
import subprocess
import sys
import unittest

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[i]) for i in (1, 2)]
from ranks_case import BINARY, DONE, OTHER, UNET, USAGE, VIT, RanksCase, checkpoints, clean_environment, run_folder  # noqa: E402

CHECKPOINT = 5
DEEP = VIT.replace("depth: 2", "depth: 4")
SUMS = 1e-12  # relative: float64 sums over samples in another order
ROUNDING = 2e-5  # float32 sums over parts of a layer


class EvaluateRanks(RanksCase):
    def assert_close(self, found, expected, rounding, what):
        """JSON, number by number; text, keys and whole numbers are equal."""
        if isinstance(expected, dict):
            self.assertEqual(found.keys(), expected.keys(), what)
            for key, value in expected.items():
                self.assert_close(found[key], value, rounding, (what, key))
        elif isinstance(expected, list):
            self.assertEqual(len(found), len(expected), what)
            for one, other in zip(found, expected):
                self.assert_close(one, other, rounding, what)
        elif isinstance(expected, float):
            self.assertLessEqual(abs(found - expected), rounding * max(abs(expected), 1e-3), what)
        else:
            self.assertEqual(found, expected, what)

    def assert_close_scores(self, ranks, run, layout, flags=(), rounding=SUMS):
        one = json.loads(self.evaluate(0, run, *flags))
        self.assert_close(json.loads(self.evaluate(ranks, run, *layout, *flags)), one, rounding, (ranks, layout, flags))

    def evaluate(self, ranks, run, *flags, code=DONE):
        """Scores as JSON, or standard error where it is to fail; ranks 0 means without a launcher."""
        scores = self.folder / "scores.json"
        scores.unlink(missing_ok=True)
        launcher = ["launch", "-n", str(ranks), "--bind", "off", "--"] if ranks else []
        command = [BINARY, *launcher, "evaluate", run, "--device", "cpu", "--json", scores, *map(str, flags)]
        done = subprocess.run(command, capture_output=True, text=True, env=clean_environment(), check=False, timeout=120)
        self.assertEqual(done.returncode, code, done.stderr)
        if code != DONE:
            self.assertFalse(scores.exists())
            return done.stderr
        self.assertEqual(done.stdout.count("checkpoint "), 1, "one rank speaks for all")
        return scores.read_text()

    def test_scores_are_those_of_one_process(self):
        root = self.folder / "vit"
        self.run_ranks(0, self.write(DEEP), root, "--set", "ema_decay=0.5")
        run = run_folder(root)
        for flags in ((), ("--ema",), ("--checkpoint", checkpoints(root)[0]), ("--amp_mode", "bf16"), ("--rollout_steps", 2)):
            one = self.evaluate(0, run, *flags)
            for ranks in (2, 4):
                self.assertEqual(self.evaluate(ranks, run, "--pp", ranks, *flags), one, (ranks, flags))
        self.assertEqual(self.evaluate(2, run, "--pp", 2, "--pipeline_schedule", "interleaved"), self.evaluate(0, run))
        self.assertEqual(self.evaluate(2, run, "--pp", 2, "--pipeline_split", "0,1-3"), self.evaluate(0, run))

    def test_replicas_divide_the_samples(self):
        """Ten samples in batches of two: five batches, of which the last of six ranks has none."""
        root = self.folder / "vit"
        self.run_ranks(0, self.write(DEEP), root, "--micro_batch_size", 2)
        for ranks in (2, 3, 6):
            for flags in ((), ("--rollout_steps", 2)):
                self.assert_close_scores(ranks, run_folder(root), (), flags)
        self.assert_close_scores(4, run_folder(root), ("--pp", 2))

    def test_ranks_that_share_a_sample(self):
        root = self.folder / "vit"
        self.run_ranks(2, self.write(DEEP), root, "--shard", "full", "--set", "ema_decay=0.5")
        run = run_folder(root)
        for layout in (("--tp", 2), ("--cp", 2), ("--cp", 2, "--context_io", "sharded"), ("--spatial", "1x1x2")):
            for flags in ((), ("--ema",), ("--rollout_steps", 2)):
                self.assert_close_scores(2, run, layout, flags, ROUNDING)
        self.assert_close_scores(4, run, ("--tp", 2), rounding=ROUNDING)
        self.assert_close_scores(4, run, ("--tp", 2, "--pp", 2), rounding=ROUNDING)
        file = next((run / "checkpoints").glob("step_*"))
        self.assert_close_scores(2, run, ("--tp", 2), ("--checkpoint", file.name[5:]), ROUNDING)

    def test_boxes_on_blocks_and_replicas_with_their_statistics(self):
        root = self.folder / "unet"
        self.run_ranks(2, self.write(UNET), root, "--spatial", "2x1x1")
        run, file = run_folder(root), self.folder / "boxes.json"
        flags = ("--box_statistics", file)
        self.evaluate(0, run, *flags)
        one = json.loads(file.read_text())
        for ranks, layout in ((2, ("--spatial", "2x1x1")), (2, ()), (4, ("--spatial", "1x2x1")), (6, ("--micro_batch_size", 2))):
            self.assert_close_scores(ranks, run, layout, flags, ROUNDING)
            self.evaluate(ranks, run, *layout, *flags)
            self.assert_close(json.loads(file.read_text()), one, ROUNDING, (ranks, layout))

    def test_the_unet_and_a_run_whose_ranks_wrote_pieces(self):
        root = self.folder / "unet"
        self.run_ranks(4, self.write(UNET), root, "--pp", "2", "--shard", "full", "--pipeline_schedule", "gpipe")
        one = self.evaluate(0, run_folder(root))
        self.assertEqual(self.evaluate(2, run_folder(root), "--pp", 2), one)

    def test_weights_of_a_foreign_file(self):
        root = self.folder / "vit"
        self.run_ranks(0, self.write(DEEP), root)
        file = next((run_folder(root) / "checkpoints").glob("step_*/model.safetensors"))
        one = self.evaluate(0, run_folder(root), "--checkpoint", file)
        self.assertEqual(self.evaluate(2, run_folder(root), "--checkpoint", file, "--pp", 2), one)

    def test_a_rank_needs_the_memory_of_its_stage(self):
        """12 MiB of weights, of which half of each rank's limit is free for its part."""
        root = self.folder / "wide"
        self.run_ranks(0, self.write(DEEP.replace("embed_dim: 16", "embed_dim: 256").replace("num_iters: 6", "num_iters: 1")), root)
        flags = ("--micro_batch_size", 1, "--memory_limit_gib", 0.01)
        self.assertIn("[memory] tensors would take more memory than the limit allows", self.evaluate(0, run_folder(root), *flags, code=OTHER))
        self.assertEqual(self.evaluate(2, run_folder(root), "--pp", 2, *flags), self.evaluate(0, run_folder(root), *flags[:2]))

    def test_what_cannot_be_is_refused(self):
        root = self.folder / "vit"
        self.run_ranks(0, self.write(DEEP), root)
        run = run_folder(root)
        for flags, code, wanted in (
                (("--shard", "full"), USAGE, "replicas have whole weights, no training state is shared out: shard is set"),
                (("--pp", 4), USAGE, "does not divide the number of ranks: tp=1, cp=1, pp=4, ranks=2. Start a multiple of 4 processes"),
                (("--spatial", "2x1x1"), USAGE, "the plan of the model does not split it over this axis"),
                (("--pp", 2, "--pipeline_split", "0-1,3"), USAGE, "block 2 should begin 3"),
                (("--pp", 2, "--forecast", "none.nc"), USAGE, "one process runs this verb: ranks=2"),
                (("--pp", 2, "--checkpoint", 77), CHECKPOINT, "there is no such checkpoint")):
            self.assertIn(wanted, self.evaluate(2, run, *flags, code=code))
        self.assertIn("pipeline_parallel times tensor_parallel times context_parallel does not divide the number of processes",
                      self.evaluate(0, run, "--pp", 2, code=USAGE))


if __name__ == "__main__":
    unittest.main()
