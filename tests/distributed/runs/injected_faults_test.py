#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Faults on purpose on one of two ranks: how the run ends or goes on, and what it says."""
import json
import pathlib
import signal
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from ranks_case import CHECKPOINT, COMM, DEFECTIVE, OTHER, VIT, RanksCase, checkpoints, log_text, run_folder, weights  # noqa: E402

LONG = VIT.replace("num_iters: 6", "num_iters: 14")
WATCH = ("--set", "spike_window=8", "--set", "spike_patience=2", "--set", "rollback_interval=2", "--on_spike")


def events(root):
    return [json.loads(line) for line in (run_folder(root) / "events.jsonl").read_text().splitlines()]


class InjectedFaults(RanksCase):
    def faulty(self, faults, *flags, code=0, name="root"):
        root = self.folder / name
        return self.run_ranks(2, self.write(LONG), root, "--checkpoint_interval", "2", "--inject", faults, *flags, code=code), root

    def test_a_killed_rank_is_named_and_the_run_resumes(self):
        text, root = self.faulty("kill:step=7,rank=1,phase=forward", code=128 + signal.SIGKILL)
        self.assertIn("rank 1: Fault injected: kill:step=7,rank=1,phase=forward, at step 7", text)
        self.assertIn("silent ranks=[1]", log_text(root))
        self.assertEqual([event["rank"] for event in events(root) if event["event"] == "fault"], [1])
        self.assertEqual(events(root)[-1]["event"], "failed")
        self.run_ranks(2, self.write(LONG), root, "--resume")
        self.run_ranks(2, self.write(LONG), self.folder / "whole")
        found, expected = weights(root), weights(self.folder / "whole")
        for tensor, values in expected.items():
            self.assertTrue((found[tensor] == values).all(), tensor)

    def test_a_dropped_connection_ends_all_ranks_with_a_reason(self):
        text, root = self.faulty("drop_connection:step=6,rank=1", code=COMM)
        self.assertIn("Fault injected: drop_connection:step=6,rank=1, at step 6", text)
        self.assertIn("[parallel] a collective failed: call=", text)
        self.assertIn("rank 1 (process ", text)
        self.assertGreaterEqual(checkpoints(root)[-1], 4)

    def test_an_exception_on_one_rank_is_named_by_the_others(self):
        text, root = self.faulty("exception:step=5,rank=1", code=OTHER)
        self.assertIn("an exception was asked for: step=5, fault=exception:step=5,rank=1", text)
        self.assertEqual(checkpoints(root)[-1], 4)

    def test_a_flipped_weight_is_found_by_the_comparison_of_replicas(self):
        text, _ = self.faulty("flip_weight:step=5,rank=1,parameter=head.weight", "--set", "replica_check_interval=1", code=COMM)
        self.assertIn("replicas of a parameter differ at step 5: parameter=head.weight, ranks=[0, 1], of which nobody can tell who is right", text)

    def test_nothing_that_differs_is_saved(self):
        """The first rank writes for all: with its own flip it would write what the others refuse."""
        text, root = self.faulty("flip_weight:step=6,rank=0,parameter=head.weight", "--checkpoint_async=false", code=COMM)
        self.assertIn("replicas of a parameter differ at step 6: parameter=head.weight", text)
        self.assertEqual(checkpoints(root)[-1], 4)

    def test_a_checkpoint_that_a_step_waits_for_is_there_before_the_next(self):
        """Also where each rank writes its own files."""
        _, root = self.faulty("exception:step=5,rank=1", "--shard", "full", "--checkpoint_async=false", code=OTHER)
        self.assertEqual(checkpoints(root)[-1], 4)

    def test_a_vote_beside_training_saves_nothing_that_differs(self):
        """Weights of more than 16 MiB are hashed while the next steps are made."""
        large = self.write(LONG.replace("embed_dim: 16, depth: 2", "embed_dim: 256, depth: 6"), "large.yaml")
        common = ("--checkpoint_interval", "2", "--keep_checkpoints", "9")
        for rank in (0, 1):
            root = self.folder / f"flip{rank}"
            text = self.run_ranks(2, large, root, *common, "--inject", f"flip_weight:step=6,rank={rank},parameter=head.weight", code=COMM)
            self.assertIn("replicas of a parameter differ at step 6: parameter=head.weight, ranks=[0, 1]", text)
            self.assertEqual(checkpoints(root)[-1], 4)
        pair = []
        for how in ("true", "false"):
            self.run_ranks(2, large, self.folder / how, *common, f"--checkpoint_async={how}")
            self.assertEqual(len(checkpoints(self.folder / how)), 7)
            pair.append(weights(self.folder / how))
        self.assertIn("Checkpoints written beside training: ", log_text(self.folder / "true"))
        for tensor, values in pair[0].items():
            self.assertTrue((pair[1][tensor] == values).all(), tensor)

    def test_a_full_run_folder_leaves_the_other_place(self):
        """Also where parts of tensors are put together while they are written, with steps that wait for it."""
        for split in (("--tensor_parallel", "2"), ("--shard", "full")):
            root, disk = self.folder / split[1], self.folder / f"disk{split[1]}"
            flags = (*split, "--checkpoint_dirs", f"fast:{disk}:4:4", "--checkpoint_interval", "4", "--keep_checkpoints", "9", "--checkpoint_async=false")
            text = self.run_ranks(2, self.write(LONG), root, *flags, "--inject", "write_error:step=12,error=EIO,phase=create")
            self.assertEqual(text.count(" - ERROR - "), 1, text)
            self.assertEqual(sorted(path.name for path in disk.glob("*/*/00/step_*")), ["step_12", "step_4", "step_8"])

    def test_all_ranks_know_that_the_last_checkpoint_was_not_written(self):
        """The first rank writes alone: the others would find it gone, and take it for one that died."""
        full = ";".join(f"write_error:step=14,error=ENOSPC,phase={phase}" for phase in ("create", "write", "sync"))
        text, _ = self.faulty(full, code=CHECKPOINT)
        self.assertIn("No space left on device", text)
        self.assertIn("the first rank could not save the state: step=14", text)
        self.assertNotIn("a collective failed", text)

    def test_a_slow_rank_is_named_with_its_phase(self):
        _, root = self.faulty("slow:step=1,steps=14,rank=1,phase=forward,seconds=0.3", "--set", "slow_rank_interval=5")
        self.assertRegex(log_text(root), r"event slow_rank: step=10, rank=1, host=\S+, phase=forward, factor=\S+ of the median over 5 steps")
        found = [event for event in events(root) if event["event"] == "slow_rank"]
        self.assertIn((1, "forward"), {(event["slow_rank"], event["phase"]) for event in found})

    def test_a_rank_that_disagrees_with_itself_is_named(self):
        text, root = self.faulty("wrong_gradient:step=6,rank=1", "--set", "recheck_interval=3", code=DEFECTIVE)
        self.assertRegex(text, r"this rank computes two gradients from the same numbers: host=\S+, parameter=\S+, epoch step=")
        self.assertIn("rank 1", text)
        self.assertEqual(checkpoints(root)[-1], 4)

    def test_nan_of_one_rank_is_skipped_by_all(self):
        _, root = self.faulty("nan_gradient:step=5,rank=1", "--on_nonfinite", "skip")
        self.assertIn("event nonfinite_gradient: step=5", log_text(root))
        found = [event for event in events(root) if event["event"] == "nonfinite_gradient"]
        self.assertEqual([(event["step"], event["gradient_norm"], event["action"]) for event in found], [(5, "nan", "skip")])

    def test_nan_of_a_stage_is_made_by_the_stage_with_the_loss(self):
        """The first stage of a pipeline has no loss of its own."""
        text, root = self.faulty("nan_gradient:step=5,rank=0", "--pipeline_parallel", "2", "--on_nonfinite", "skip")
        self.assertIn("rank 1: Fault injected: nan_gradient:step=5,rank=0, at step 5", text)
        self.assertEqual(text.count("Fault injected"), 1)
        self.assertNotIn("Fault left out", text)
        self.assertEqual([event["step"] for event in events(root) if event["event"] == "nonfinite_gradient"], [5])

    def test_a_spike_of_one_rank_is_judged_by_all_alike(self):
        for action in ("skip", "rollback"):
            pair = []
            for name in ("a", "b"):
                _, root = self.faulty("spike:step=9,rank=1,steps=2", *WATCH, action, name=action + name)
                pair.append(weights(root))
                self.assertIn(f"event spike: step=9, loss=", log_text(root))
                (samples,) = [event["samples"] for event in events(root) if event["event"] == "spike" and event["step"] == 10]
                self.assertEqual(len(set(samples)), 8)  # of both ranks
                self.assertEqual("event rollback: step=10, state_of_step=8" in log_text(root), action == "rollback")
            for tensor, values in pair[0].items():
                self.assertTrue((pair[1][tensor] == values).all(), tensor)


if __name__ == "__main__":
    unittest.main()
