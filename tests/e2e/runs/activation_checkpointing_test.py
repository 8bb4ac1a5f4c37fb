# SPDX-License-Identifier: Apache-2.0
"""Activation checkpointing of the shipped program: a run that memory does not suffice for says so and fits with it, and the estimate knows."""
import json
import re
import unittest

from bad_input_case import BINARY, BOXES, DONE, FIELDS, OTHER, USAGE, BadInputCase

# Eight blocks of 10 x 512 x 96 values a sample: 120 MiB a step of eight samples, beside 15 MiB of weights and their state.
WIDE = {**FIELDS, "embed_dim": 96, "depth": 8, "num_heads": 4, "img_size": [64, 128], "data_loader_config": "synthetic",
        "limit_nsamples": 16, "limit_nsamples_val": 8, "global_batch_size": 8, "num_iters": 2}
SMALL = {**WIDE, "depth": 4, "img_size": [32, 64]}
LIMIT = ("--memory_limit_gib", "0.1")
BLOCKS = ("--activation_checkpointing", "blocks")


class ActivationCheckpointing(BadInputCase):
    def test_a_run_fits_into_less_memory(self):
        self.assert_refused(self.train(WIDE, *LIMIT), OTHER, "[memory] tensors would take more memory than the limit allows: requested=",
                            "--activation_checkpointing blocks and --amp_mode bf16")
        done = self.train(WIDE, *LIMIT, *BLOCKS, "--run_num", "blocks")
        self.assertEqual(done.returncode, DONE, done.stderr)

    def test_a_model_without_attention_is_refused_before_anything_is_written(self):
        done = self.train({**BOXES, "data_loader_config": "synthetic"}, "--activation_checkpointing", "attention")
        self.assert_refused(done, USAGE, "the U-Net has neither attention nor an MLP: activation_checkpointing=attention")
        self.assertFalse(self.run_folder.exists())

    def losses(self, done):
        self.assertEqual(done.returncode, DONE, done.stderr)
        return re.findall(r"[Ll]oss[^,;]*?([0-9]+\.[0-9]+)", done.stderr)

    def test_a_unet_runs_its_levels_again(self):
        boxes = {**BOXES, "data_loader_config": "synthetic"}
        plain = self.losses(self.train(boxes, "--run_num", "plain"))
        self.assertTrue(plain)
        for number, value in enumerate(("blocks", "pattern:levels.*|conv_up.*", "budget:8")):
            self.assertEqual(self.losses(self.train(boxes, "--activation_checkpointing", value, "--run_num", str(number))), plain, value)

    def test_sites_are_named_where_no_pattern_matches(self):
        self.assert_refused(self.train(WIDE, "--activation_checkpointing", "pattern:block"), USAGE,
                            "no site has a name that the pattern matches as a whole: pattern=block", "blocks.#.attn")
        self.assert_refused(self.train(WIDE, "--activation_checkpointing", "pattern:("), USAGE, "wants a POSIX extended regular expression")

    def within(self, gib, number, *flags):
        return self.train(SMALL, "--activation_checkpointing", f"budget:{gib:.6f}", "--run_num", number, *flags)

    def test_a_budget_is_kept_and_leaves_no_trace(self):
        plain = self.within(1, "plain")
        whole = re.search(r"nothing runs again; predicted ([0-9.]+) MiB at the peak", plain.stderr)
        self.assertIsNotNone(whole, plain.stderr)
        done = self.within(0.85 * float(whole[1]) / 1024, "budget")
        self.assertEqual(self.losses(done), self.losses(plain))
        chosen = re.search(r"GiB: (.*) run again; predicted ([0-9.]+) MiB at the peak, [0-9.e-]+ s a step", done.stderr)
        self.assertIsNotNone(chosen, done.stderr)
        self.assertLessEqual(float(chosen[2]), 0.86 * float(whole[1]))
        sites = ("--activation_checkpointing", "pattern:" + chosen[1].replace(", ", "|").replace(".", "\\."))
        fits, tight = (self.train(SMALL, *sites, "--memory_limit_gib", str(share * float(chosen[2]) / 1024), "--run_num", str(share)) for share in (1.05, 0.95))
        self.assertEqual(self.losses(fits), self.losses(plain))
        self.assert_refused(tight, OTHER, "[memory] tensors would take more memory than the limit allows")

    def test_an_impossible_budget_is_refused_with_what_is_possible(self):
        message = self.assert_refused(self.within(0.001, "01"), USAGE,
                                      "a step takes more than the budget, whatever runs again: budget=1.0 MiB, least possible=")
        done = self.within(1.01 * float(re.search(r"Say at least budget:([0-9.]+),", message)[1]), "least")
        self.assertEqual(done.returncode, DONE, done.stderr)

    def test_the_micro_batch_is_chosen_by_memory(self):
        done = self.train(SMALL, "--micro_batch_size", "auto")
        self.assertEqual(done.returncode, DONE, done.stderr)
        found = re.search(r"auto: 8 of 8 samples a forward pass, .* of what the machine has left\); ([0-9.]+) MiB and ([0-9.]+) MiB a sample", done.stderr)
        self.assertIsNotNone(found, done.stderr)
        limit = ("--memory_limit_gib", str((float(found[1]) + 6 * float(found[2])) / 1024))
        done = self.train(SMALL, *limit, "--micro_batch_size", "auto", "--run_num", "limited")
        self.assertEqual(done.returncode, DONE, done.stderr)
        self.assertRegex(done.stderr, r"micro_batch_size auto: 4 of 8 samples a forward pass, predicted .* \(memory_limit_gib\); .*, so 8 would take")
        self.assert_refused(self.train(SMALL, "--memory_limit_gib", "0.002", "--micro_batch_size", "auto", "--run_num", "01"), USAGE,
                            "[micro_batch_size] not even one sample a forward pass fits into memory")

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
