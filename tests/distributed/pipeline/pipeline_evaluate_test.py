#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`welkin launch ... evaluate RUN --pipeline_parallel`: the scores of one process, from whatever layout has written, on ranks that each load
their stage alone; and what is refused."""
import pathlib
import subprocess
import sys
import unittest

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[i]) for i in (1, 2)]
from ranks_case import BINARY, DONE, OTHER, UNET, USAGE, VIT, RanksCase, checkpoints, clean_environment, run_folder  # noqa: E402

CHECKPOINT = 5
DEEP = VIT.replace("depth: 2", "depth: 4")


class PipelineEvaluate(RanksCase):
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
                ((), USAGE, "each process has a stage of the model: processes=2, launcher=welkin launch, pipeline_parallel=1. Give --pipeline_parallel 2"),
                (("--tensor_parallel", 2), USAGE, "each process has a stage of the model: processes=2"),
                (("--pp", 2, "--pipeline_split", "0-1,3"), USAGE, "block 2 should begin 3"),
                (("--pp", 2, "--forecast", "none.nc"), USAGE, "one process runs this verb: ranks=2"),
                (("--pp", 2, "--checkpoint", 77), CHECKPOINT, "there is no such checkpoint")):
            self.assertIn(wanted, self.evaluate(2, run, *flags, code=code))
        self.assertIn("pipeline_parallel times tensor_parallel times context_parallel does not divide the number of processes",
                      self.evaluate(0, run, "--pp", 2, code=USAGE))


if __name__ == "__main__":
    unittest.main()
