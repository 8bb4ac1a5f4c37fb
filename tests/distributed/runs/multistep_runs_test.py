#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Training over several steps of the model by real processes: under every layout the losses and the weights are those of one process, also
where steps run again and where their number grows."""
import pathlib
import sys
import unittest

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[i]) for i in (1, 2)]
from ranks_case import VIT, RanksCase, log_text, losses  # noqa: E402

SGD = ("--set", "optimizer=SGD")  # Adam divides by its own noise where a gradient is all but zero
STEPS = ("--multistep", "[2, 3]", "--set", "multistep_iters=[4]", "--set", "input_noise=0.05")

LAYOUTS = {
    2: {"data": ("--micro_batch_size", "1"), "tensor": ("--tensor_parallel", "2", "--sequence_parallel"), "context": ("--context_parallel", "2"),
        "spatial": ("--spatial", "1x2x1"), "optimizer": ("--shard", "optimizer"), "full": ("--shard", "full", "--multistep_recompute"),
        "pipeline": ("--pipeline_parallel", "2", "--micro_batch_size", "2")},
    4: {"data": ("--multistep_recompute",), "mixed": ("--tensor_parallel", "2", "--context_parallel", "2", "--multistep_recompute"),
        "full": ("--shard", "full", "--tensor_parallel", "2"), "gradients": ("--shard", "gradients", "--micro_batch_size", "1"),
        "pipeline": ("--pipeline_parallel", "2", "--shard", "full", "--micro_batch_size", "2", "--multistep_recompute")},
}


class MultistepRuns(RanksCase):
    def compare(self, ranks):
        yaml = self.write(VIT)
        one = self.folder / "one"
        self.run_ranks(0, yaml, one, *SGD, *STEPS)
        self.assertIn("From step 5 on a sample is trained for 3 steps of the model", log_text(one))
        for name, flags in LAYOUTS[ranks].items():
            with self.subTest(layout=name):
                self.run_ranks(ranks, yaml, self.folder / name, *SGD, *STEPS, *flags)
                self.assert_close_training(one, self.folder / name)

    def test_two_ranks(self):
        self.compare(2)

    def test_four_ranks(self):
        self.compare(4)

    def test_the_gradient_of_the_last_step_alone(self):
        yaml = self.write(VIT)
        flags = (*SGD, "--multistep", "3", "--set", "multistep_gradient=last")
        self.run_ranks(0, yaml, self.folder / "one", *flags)
        self.run_ranks(2, yaml, self.folder / "two", *flags, "--shard", "full")
        self.assert_close_training(self.folder / "one", self.folder / "two")

    def test_a_replay_buffer_is_that_of_one_process(self):
        """States of 8 places of the batch on 2 and on 4 ranks; the checkpoint of some goes on with others."""
        yaml = self.write(VIT)
        flags = (*SGD, "--set", "replay_buffer=2", "--set", "replay_steps=3", "--set", "folder_rule=mp", "--set", "schedule=constant")
        one, two, four, cut = (self.folder / name for name in ("one", "two", "four", "cut"))
        self.run_ranks(0, yaml, one, *flags)
        self.assertIn("Replay buffer: 2 states for each of 8 samples, of rollouts of 3 steps", log_text(one))
        self.run_ranks(2, yaml, two, *flags)
        self.assert_close_training(one, two)
        self.run_ranks(4, yaml, four, *flags, "--shard", "full", "--tensor_parallel", "2")
        self.assert_close_training(one, four)
        self.run_ranks(4, yaml, cut, *flags, "--shard", "full", "--num_iters", "3")  # within the second cycle
        said = self.run_ranks(2, yaml, cut, *flags, "--resume")
        self.assertIn("The replay buffer goes on with the states of the checkpoint", said)
        self.assert_close_weights(one, cut)
        plain = self.folder / "plain"
        self.run_ranks(0, yaml, plain, *SGD, "--set", "schedule=constant")
        self.assertNotEqual(losses(plain), losses(one))

    def test_ranks_that_share_a_sample_have_parts_of_each_state(self):
        """Tokens, blocks and blocks beside replicas; a checkpoint of parts goes on with whole states, and the other way round."""
        yaml = self.write(VIT)
        flags = (*SGD, "--set", "replay_buffer=2", "--set", "replay_steps=3", "--set", "folder_rule=mp", "--set", "schedule=constant")
        one = self.folder / "one"
        self.run_ranks(0, yaml, one, *flags)
        for name, ranks, layout in (("cp", 2, ("--context_parallel", "2")), ("blocks", 2, ("--spatial", "1x2x1")),
                                    ("both", 4, ("--context_parallel", "2", "--shard", "full"))):
            with self.subTest(name=name):
                self.run_ranks(ranks, yaml, self.folder / name, *flags, *layout)
                self.assert_close_training(one, self.folder / name)
        cp = ("--context_parallel", "2")
        for name, before, after in (("parts", (4, *cp, "--shard", "full"), (2,)), ("whole", (2,), (2, *cp)), ("joined", (2, *cp), (2, "--spatial", "1x2x1"))):
            with self.subTest(name=name):
                cut = self.folder / name
                self.run_ranks(before[0], yaml, cut, *flags, *before[1:], "--num_iters", "3")
                run = next(cut.glob("**/?MP"))  # named after the ranks of one model
                run.rename(run.with_name("1MP" if len(after) == 1 else "2MP"))
                said = self.run_ranks(after[0], yaml, cut, *flags, *after[1:], "--resume")
                self.assertIn("The replay buffer goes on with the states of the checkpoint", said)
                self.assert_close_weights(one, cut)


if __name__ == "__main__":
    unittest.main()
