#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes of a checkpoint that take longer than the deadline of collectives: the run waits for a disk that goes on, however slow it
is, and ends by itself when one hangs."""
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from ranks_case import COMM, VIT, RanksCase, checkpoints, log_text, weights  # noqa: E402

DEADLINE_S = 3


def slow_writes(step, rank=0, seconds=0.7, times=10):
    """Each write of these waits, so that all together they take twice the deadline."""
    return ";".join(f"slow:step={step},phase=write,rank={rank},after={i},seconds={seconds}" for i in range(times))


class SlowDisk(RanksCase):
    def check(self, name, faults, *flags, ranks=2):
        """The run ends as one with a fast disk does."""
        root, plain = self.folder / name, self.folder / f"plain {name}"
        common = ("--comm_timeout_s", DEADLINE_S, "--checkpoint_interval", "2", "--keep_checkpoints", "9", *flags)
        text = self.run_ranks(ranks, self.write(VIT), root, *common, "--inject", faults)
        self.assertGreaterEqual(text.count("Fault injected: slow"), 10, text)
        self.run_ranks(ranks, self.write(VIT), plain, *common)
        self.assertEqual(checkpoints(root), [2, 4, 6])
        self.assertNotIn("a collective failed", text + log_text(root))
        found, expected = weights(root), weights(plain)
        for tensor, values in expected.items():
            self.assertTrue((found[tensor] == values).all(), tensor)

    def test_a_last_checkpoint(self):
        self.check("last", slow_writes(6))

    def test_a_checkpoint_that_steps_wait_for(self):
        self.check("held", slow_writes(2), "--checkpoint_async=false")

    def test_parts_that_are_put_together_while_they_are_written(self):
        self.check("parts", slow_writes(4) + ";" + slow_writes(6), "--tensor_parallel", 2, "--checkpoint_async=false")

    def test_stages_of_a_pipeline(self):
        self.check("stages", slow_writes(4) + ";" + slow_writes(6), "--pipeline_parallel", 2, "--checkpoint_async=false")

    def test_a_rank_that_writes_its_own_files(self):
        self.check("pieces", slow_writes(4, rank=1, times=6, seconds=1.2) + ";" + slow_writes(6, rank=1, times=6, seconds=1.2),
                   "--shard", "full", "--checkpoint_async=false")

    def test_a_checkpoint_beside_training_that_the_next_one_waits_for(self):
        self.check("beside", slow_writes(2), "--checkpoint_overlap", "wait")

    def test_a_disk_that_hangs_ends_the_run(self):
        text = self.run_ranks(2, self.write(VIT), self.folder / "root", "--comm_timeout_s", DEADLINE_S, "--inject",
                              "slow:step=6,phase=write,seconds=200", code=COMM)
        self.assertIn("a collective failed", text)


if __name__ == "__main__":
    unittest.main()
