#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Elastic runs of real processes: ranks that are lost, stopped and started again, and the curve of a run that nothing disturbed."""
import json
import os
import pathlib
import re
import signal
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from ranks_case import CHECKPOINT, USAGE, RanksCase, checkpoints, children_of, free_port, log_text, run_folder, weights  # noqa: E402

# Whole batches of eight, for --rank_invariant: the curve does not depend on the number of ranks.
YAML = """
run: {{model: vit, embed_dim: 16, depth: 2, num_heads: 2, patch_size: 4, img_size: [16, 32], n_in_channels: 3, n_out_channels: 3, dropout: 0.1,
  data_loader_config: synthetic, limit_nsamples: 64, limit_nsamples_val: 8, global_batch_size: 8, num_iters: {steps}, lr: 1E-3, expdir: /logs}}
"""
EQUAL = ("--rank_invariant", "--threads", "1", "--set", "log_every_n_steps=1")
STEP_LINE = re.compile(r"Step (\d+)/\d+, epoch [^:]*: loss=([^,]+)")


def curve(root):
    """The loss of each step as logged, and those of validation in their order without what a round had to say again."""
    steps = {int(step): loss for step, loss in STEP_LINE.findall(log_text(root))}
    return steps, set(re.findall(r"Avg val loss=(\S+)", log_text(root)))


def events(root, name=None):
    found = [json.loads(line) for line in (run_folder(root) / "events.jsonl").read_text().splitlines()]
    return [event for event in found if name in (None, event["event"])]


class Elastic(RanksCase):
    def setUp(self):
        super().setUp()
        self.port = free_port()

    def elastic(self, limits, *flags, steps=24, options=(), ranks=4, name="root"):
        root = self.folder / name
        process = self.launch(ranks, self.write(YAML.format(steps=steps), f"{name}.yaml"), root, *EQUAL, *flags,
                              options=("--elastic", limits, *options))
        self.addCleanup(lambda: process.poll() is None and process.kill())
        return process, root

    def assert_undisturbed(self, root, steps=24, flags=()):
        """Bit for bit the run of one process."""
        whole = self.folder / "whole"
        self.run_ranks(0, self.write(YAML.format(steps=steps), "whole.yaml"), whole, *EQUAL, *flags)
        self.assertEqual(curve(root), curve(whole))
        self.assertEqual(len(curve(root)[0]), steps)
        found, expected = weights(root), weights(whole)
        for tensor, values in expected.items():
            self.assertTrue((found[tensor] == values).all(), tensor)

    def wait_for_steps(self, process, root, steps, limit_s=90):
        deadline = time.monotonic() + limit_s
        while time.monotonic() < deadline and process.poll() is None:
            if list(root.glob("run/*/00/out.log")) and max(curve(root)[0], default=0) >= steps:
                return
            time.sleep(0.05)
        self.fail(f"the run did not come to step {steps}")

    def test_a_killed_rank_is_missed_by_nobody(self):
        process, root = self.elastic("1:4", "--inject", "kill:step=5,phase=backward,rank=1", options=("--max_restarts", "0"))
        text = self.finish(process)
        self.assertNotIn("It is started again", text)
        self.assertIn("was ended by signal 9 (Killed); round 2 begins with ranks=2", text)
        self.assertIn("Resumed at step 4 from the memory of rank 0", log_text(root))
        (event,) = events(root, "round")
        self.assertEqual((event["round"], event["ranks"], event["of"], event["step"]), (2, 2, 4, 4))
        self.assertIn("rank 1 (process ", event["reason"])
        self.assertEqual([(event["event"], event["step"]) for event in events(root) if event["event"] in ("started", "resumed")], [("started", 0), ("resumed", 4)])
        self.assert_undisturbed(root)

    def test_a_full_disk_at_the_end_is_no_lost_rank(self):
        full = ";".join(f"write_error:step=24,error=ENOSPC,phase={phase},rank=all" for phase in ("create", "write", "sync"))
        process, _ = self.elastic("1:2", "--inject", full, ranks=2)
        text = self.finish(process, code=CHECKPOINT)
        self.assertIn("No space left on device", text)
        self.assertNotIn("Resumed at step", text)

    def test_the_first_rank_has_a_successor(self):
        process, root = self.elastic("1:4", "--inject", "kill:step=7,phase=reduce,rank=0", options=("--max_restarts", "0"))
        text = self.finish(process)
        self.assertIn("round 2 begins with ranks=2", text)
        self.assert_undisturbed(root)

    def test_two_losses_leave_one_rank(self):
        process, root = self.elastic("1:2", "--inject", "kill:step=9,phase=forward,rank=1", options=("--max_restarts", "0"), ranks=2)
        text = self.finish(process)
        self.assertIn("round 2 begins with ranks=1", text)
        self.assert_undisturbed(root)

    def test_a_rank_that_computes_wrong_numbers_is_left_out(self):
        process, root = self.elastic("1:2", "--recheck_interval", "3", "--inject", "wrong_gradient:step=9,rank=1", ranks=2)
        text = self.finish(process)
        self.assertIn("this rank computes two gradients from the same numbers", text)
        self.assertRegex(text, r"rank 1 \(process .*since it computes wrong numbers, and is left out from now on; round 2 begins with ranks=1")
        self.assertNotIn("It is started again", text)
        self.assert_undisturbed(root)

    def test_a_lost_rank_is_started_again_and_joins_between_two_steps(self):
        process, root = self.elastic("1:2", "--inject", "kill:step=5,phase=optimizer,rank=1;slow:step=8,rank=0,steps=60,seconds=0.2", steps=80, ranks=2)
        text = self.finish(process, limit_s=240)
        self.assertIn("was ended by signal 9 (Killed). It is started again in 1 s: start 1 of 3", text)
        self.assertIn("a rank came back; round 3 begins with ranks=2", text)
        self.assertEqual([event["ranks"] for event in events(root, "round")], [1, 2])
        self.assert_undisturbed(root, steps=80)

    def test_a_rank_that_stops_answering_is_lost_after_the_time(self):
        process, root = self.elastic("1:2", "--comm_timeout_s", "4", "--inject", "stop:step=6,rank=1,phase=forward", ranks=2,
                                     options=("--max_restarts", "0", "--grace", "2"))
        text = self.finish(process)  # which ends waiting
        self.assertIn("round 2 begins with ranks=1", text)
        self.assert_undisturbed(root)

    def assert_stopped_ranks_are_started_again(self, limits, ranks, who):
        process, root = self.elastic(limits, "--checkpoint_interval", "3", "--inject", f"stop:step=8,rank={who},phase=forward", ranks=ranks,
                                     options=("--max_restarts", "4"))
        text = self.finish(process)
        self.assertEqual(text.count("is stopped (SIGSTOP) and did not go on within 15 s: it is ended"), ranks)
        self.assertIn("round 2 begins", text)
        self.assertRegex(log_text(root), r"Resumed at step [36] from \S+step_[36]")  # the stop may come while 6 is being written
        self.assert_undisturbed(root)

    def test_a_rank_that_is_stopped_alone_is_lost(self):
        self.assert_stopped_ranks_are_started_again("1:1", 1, "0")

    def test_ranks_that_are_all_stopped_are_lost(self):
        self.assert_stopped_ranks_are_started_again("2:2", 2, "all")

    def test_sigterm_wakes_stopped_ranks(self):
        process, root = self.elastic("1:2", steps=100000, ranks=2)
        self.wait_for_steps(process, root, 3)
        for rank in children_of(process):
            os.kill(rank, signal.SIGSTOP)
        time.sleep(1)
        process.send_signal(signal.SIGTERM)
        self.finish(process, limit_s=30)
        self.assertIn("Interrupted by SIGTERM", log_text(root))

    def test_a_dropped_connection_ends_no_process(self):
        process, root = self.elastic("2:2", "--inject", "drop_connection:step=6,rank=1", ranks=2, options=("--max_restarts", "0"))
        text = self.finish(process)
        self.assertIn("an exchange between ranks had failed; round 2 begins with ranks=2", text)
        self.assert_undisturbed(root)

    def test_too_few_ranks_end_the_run_whose_checkpoint_is_whole(self):
        process, root = self.elastic("2:2", "--checkpoint_interval", "3", "--inject", "kill:step=8,rank=1,phase=forward", ranks=2,
                                     options=("--max_restarts", "0"))
        text = self.finish(process, 128 + signal.SIGKILL)
        self.assertIn("too few ranks are left: left=1, elastic=2:2", text)
        self.assertEqual(checkpoints(root)[-1], 6)
        self.run_ranks(2, self.folder / "root.yaml", root, *EQUAL, "--resume")
        self.assert_undisturbed(root)

    def test_restarts_without_limits_wait_for_all_ranks(self):
        root = self.folder / "root"
        text = self.finish(self.launch(2, self.write(YAML.format(steps=24)), root, *EQUAL, "--inject", "kill:step=7,rank=1,phase=forward",
                                       options=("--max_restarts", "1")))
        self.assertIn("It is started again in 1 s: start 1 of 1", text)
        self.assertIn("round 2 begins with ranks=2", text)
        self.assert_undisturbed(root)

    def test_nodes_of_other_sizes_are_told_so(self):
        nodes = [self.elastic("1:3", ranks=node + 1, options=("--nnodes", "2", "--node_rank", str(node), "--rdzv", f"127.0.0.1:{self.port}"), name=f"n{node}")
                 for node in range(2)]
        texts = [self.finish(process, USAGE) for process, _ in nodes]
        self.assertIn("the nodes were started with other numbers: node 0 with -n 1 --nnodes 2, node 1 with -n 2 --nnodes 2", texts[0])
        self.assertIn("node 1 with -n 2 --nnodes 2, node 0 with -n 1 --nnodes 2. Give every node the same -n and --nnodes", texts[1])

    def test_a_split_model_goes_on_from_its_checkpoint(self):
        flags = ("--tensor_parallel", "2", "--checkpoint_interval", "3")
        process, root = self.elastic("2:4", *flags, "--inject", "kill:step=8,rank=3,phase=forward", options=("--max_restarts", "0"))
        text = self.finish(process)
        self.assertIn("round 2 begins with ranks=2", text)
        self.assertRegex(log_text(root), r"Resumed at step 6 from \S+step_6")
        self.assertEqual(checkpoints(root)[-1], 24)

    def test_a_lost_node_is_gone_with_its_ranks(self):
        nodes = [self.elastic("1:2", steps=150, ranks=1, options=("--nnodes", "2", "--node_rank", str(node), "--rdzv", f"127.0.0.1:{self.port}"))
                 for node in range(2)]
        (first, root), (second, _) = nodes
        self.wait_for_steps(first, root, 5)
        second.kill()  # its rank does not outlive it
        second.communicate()
        text = self.finish(first)
        self.assertIn("the launcher of node 1 does not answer; round 2 begins with ranks=1", text)
        self.assertRegex(log_text(root), r"Resumed at step \d+ from the memory of rank 0")
        self.assert_undisturbed(root, steps=150)

    def test_sigterm_saves_and_ends(self):
        process, root = self.elastic("1:2", steps=100000, ranks=2)
        self.wait_for_steps(process, root, 3)
        process.send_signal(signal.SIGTERM)
        self.finish(process)
        self.assertIn("Interrupted by SIGTERM", log_text(root))

    def test_an_error_of_all_ranks_is_not_tried_again(self):
        process, root = self.elastic("1:2", "--inject", "exception:step=4,rank=all", ranks=2)
        text = self.finish(process, 1)
        self.assertIn("an exception was asked for", text)

    def test_limits_that_cannot_be_are_refused(self):
        for limits, flags, expected in (("3:4", (), "no smaller number of ranks in these limits can train the run: elastic=3:4, global_batch_size=8"),
                                        ("3:4", ("--tensor_parallel", "2"), "ranks of a model=2, rank_invariant=true, sizes that can=[2, 4]"),
                                        ("4:2", (), "MIN is above MAX: elastic=4:2"), ("0:2", (), "a run needs a rank at least: elastic=0:2")):
            with self.subTest(limits=limits, flags=flags):
                process, root = self.elastic(limits, *flags)
                self.assertIn(expected, self.finish(process, USAGE))
                self.assertFalse((root / "run").exists())


if __name__ == "__main__":
    unittest.main()
