# SPDX-License-Identifier: Apache-2.0
"""Activation checkpointing of the shipped program: a run that memory does not suffice for says so and fits with it, and the estimate knows."""
import json
import unittest

from bad_input_case import BINARY, BOXES, DONE, FIELDS, OTHER, USAGE, BadInputCase

# Eight blocks of 10 x 512 x 96 values a sample: 120 MiB a step of eight samples, beside 15 MiB of weights and their state.
WIDE = {**FIELDS, "embed_dim": 96, "depth": 8, "num_heads": 4, "img_size": [64, 128], "data_loader_config": "synthetic",
        "limit_nsamples": 16, "limit_nsamples_val": 8, "global_batch_size": 8, "num_iters": 2}
LIMIT = ("--memory_limit_gib", "0.1")
BLOCKS = ("--activation_checkpointing", "blocks")


class ActivationCheckpointing(BadInputCase):
    def test_a_run_fits_into_less_memory(self):
        self.assert_refused(self.train(WIDE, *LIMIT), OTHER, "[memory] tensors would take more memory than the limit allows: requested=",
                            "--activation_checkpointing blocks and --amp_mode bf16")
        done = self.train(WIDE, *LIMIT, *BLOCKS, "--run_num", "blocks")
        self.assertEqual(done.returncode, DONE, done.stderr)

    def test_a_model_without_blocks_is_refused_before_anything_is_written(self):
        done = self.train({**BOXES, "data_loader_config": "synthetic"}, *BLOCKS)
        self.assert_refused(done, USAGE, "the U-Net has no blocks to run again: activation_checkpointing=blocks")
        self.assertFalse(self.run_folder.exists())

    def estimate(self, *flags):
        done = self.run_command([BINARY, "plan", "estimate", *self.train_command(WIDE, "--device", "cpu", *flags)[2:], "--json", "-"])
        self.assertEqual(done.returncode, DONE, done.stderr)
        return json.loads(done.stdout)

    def test_the_estimate_counts_what_stays_and_what_runs_again(self):
        plain, blocks = self.estimate(), self.estimate(*BLOCKS)
        half = self.estimate(*BLOCKS, "--activation_checkpointing_blocks", "4")
        memory = [next(figures["activations"]["value"] for title, figures in sheet.items() if title.startswith("memory"))
                  for sheet in (plain, half, blocks)]
        self.assertGreater(memory[0], 1.4 * memory[1])
        self.assertGreater(memory[1], 2 * memory[2])
        self.assertNotIn("forward again", plain["work"])
        again, whole = blocks["work"]["forward again"]["value"], plain["work"]["training step"]["value"]
        self.assertGreater(again, 0.3 * whole)
        self.assertLess(again, whole / 3)

    def test_the_estimate_counts_no_state_of_what_is_frozen(self):
        def memory(*flags):
            return next(figures for title, figures in self.estimate(*flags).items() if title.startswith("memory"))

        plain, frozen, most = memory(), memory("--freeze", "head.*"), memory("--freeze", "blocks.*,patch_embed.*")
        self.assertEqual(frozen["weights"], plain["weights"])
        for part in ("gradients", "optimizer"):
            self.assertLess(frozen[part]["value"], plain[part]["value"])
            self.assertLess(most[part]["value"], 0.1 * plain[part]["value"])


if __name__ == "__main__":
    unittest.main()
