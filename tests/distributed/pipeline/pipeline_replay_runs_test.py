#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`welkin launch ... train --pipeline_parallel` with a replay buffer and with members of an ensemble: the curve and the weights of one process
under every schedule and beside other axes; a run that is cut off goes on bit for bit, and in other layouts."""
import pathlib
import shutil
import sys
import unittest

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[i]) for i in (1, 2)]
from ranks_case import RanksCase, checkpoints, log_text, losses, run_folder, weights  # noqa: E402

MODEL = """
run: {model: vit, embed_dim: 16, depth: 4, num_heads: 2, patch_size: 4, img_size: [16, 32], n_in_channels: 3, n_out_channels: 3, dropout: 0.1, residual: true,
  data_loader_config: synthetic, limit_nsamples: 20, limit_nsamples_val: 10, global_batch_size: 8, num_iters: 8, lr: 1E-2, optimizer: SGD, schedule: constant,
  folder_rule: mp, expdir: /logs}
"""
REPLAY = ("--set", "replay_buffer=2", "--set", "replay_steps=3")
MEMBERS = ("--set", "ensemble_members=3", "--set", "input_noise=0.05", "--set", "loss=mae")
TWO = ("--pp", "2", "--micro_batch_size", "2")
LAYOUTS = ((2, TWO), (2, (*TWO, "--pipeline_schedule", "gpipe")), (2, (*TWO, "--pipeline_schedule", "interleaved")),
           (2, (*TWO, "--pipeline_schedule", "zero_bubble")), (4, TWO), (4, ("--pp", "4", "--micro_batch_size", "1")), (4, (*TWO, "--shard", "full")),
           (4, (*TWO, "--context_parallel", "2")), (4, (*TWO, "--tensor_parallel", "2", "--sequence_parallel")))


class PipelineReplayRuns(RanksCase):
    def setUp(self):
        super().setUp()
        self.yaml = self.write(MODEL)

    def train(self, ranks, name, *flags, code=0):
        return self.run_ranks(ranks, self.yaml, self.folder / name, *flags, code=code)

    def compare(self, flags, layouts):
        self.train(0, "one", *flags)
        for number, (ranks, layout) in enumerate(layouts):
            with self.subTest(ranks=ranks, layout=layout):
                self.train(ranks, f"piped{number}", *flags, *layout)
                self.assert_close_training(self.folder / "one", self.folder / f"piped{number}")

    def test_a_replay_buffer_is_that_of_one_process(self):
        self.compare(REPLAY, LAYOUTS)
        self.assertIn("Replay buffer: 2 states for each of 8 samples", log_text(self.folder / "piped0"))
        self.train(0, "plain")
        self.assertNotEqual(losses(self.folder / "plain"), losses(self.folder / "one"))

    def test_members_are_those_of_one_process(self):
        self.compare(MEMBERS, LAYOUTS)

    def test_members_of_several_steps_and_of_a_replay_buffer(self):
        self.compare((*MEMBERS, "--multistep", "2"), LAYOUTS[:5])
        shutil.rmtree(self.folder / "one")
        for path in self.folder.glob("piped*"):
            shutil.rmtree(path)
        self.compare((*MEMBERS, *REPLAY), LAYOUTS[2:6])

    def cut_at(self, cut, step):
        for later in checkpoints(cut):
            if later > step:  # as if the run had been cut off there
                shutil.rmtree(run_folder(cut) / "checkpoints" / f"step_{later}")

    def test_a_run_that_is_cut_off_goes_on_bit_for_bit(self):
        for number, flags in enumerate((REPLAY, (*REPLAY, *MEMBERS))):
            flags = (*flags, *TWO, "--checkpoint_interval", "1", "--keep_checkpoints", "9", "--resume")
            whole, cut = self.folder / f"whole{number}", self.folder / f"cut{number}"
            self.train(4, whole.name, *flags)
            self.train(4, cut.name, *flags)
            self.cut_at(cut, 3)  # within the second cycle of the buffer
            self.assertIn("The replay buffer goes on with the states of the checkpoint", self.train(4, cut.name, *flags))
            expected, found = weights(whole), weights(cut)
            for name, values in expected.items():
                self.assertEqual(values.tobytes(), found[name].tobytes(), name)

    def test_states_go_on_in_another_layout(self):
        self.train(0, "one", *REPLAY)
        cut = self.folder / "cut"
        flags = (*REPLAY, "--checkpoint_interval", "1", "--checkpoint_async=false", "--keep_checkpoints", "9", "--resume")
        for begins_at, ranks, layout in ((0, 4, TWO), (3, 2, (*TWO, "--pipeline_schedule", "zero_bubble")), (5, 4, (*TWO, "--shard", "full")),
                                         (6, 4, TWO)):
            self.cut_at(cut, begins_at) if begins_at else None
            said = self.train(ranks, "cut", *flags, *layout)
            if begins_at:
                self.assertIn("The replay buffer goes on with the states of the checkpoint", said)
        self.assert_close_weights(self.folder / "one", cut)


if __name__ == "__main__":
    unittest.main()
