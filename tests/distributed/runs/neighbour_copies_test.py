#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checkpoints on the disks of nodes with copies on the next one's: a run goes on bit for bit when a node's disk is lost, and from another
checkpoint, with the reason, when the copy is damaged. Nodes are launchers with one rank each; their disks are folders of their own."""
import pathlib
import shutil
import signal
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from ranks_case import BINARY, DONE, VIT, RanksCase, clean_environment, free_port, log_text, weights  # noqa: E402

LONG = VIT.replace("num_iters: 6", "num_iters: 14")
KILLED = 128 + signal.SIGKILL


class NeighbourCopies(RanksCase):
    def run_nodes(self, nodes, root, *flags, codes=(DONE,), ranks=1):
        """Everything that was said; the first node ends with one of `codes`."""
        yaml, port = self.write(LONG), free_port()
        processes = []
        for node in range(nodes):
            command = [BINARY, "launch", "-n", str(ranks), "--nnodes", str(nodes), "--node_rank", str(node), "--rdzv", f"127.0.0.1:{port}", "--bind", "off",
                       "--grace", "2", "--", *self.train_arguments(yaml, root, *flags)]
            processes.append(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=clean_environment()))
            self.addCleanup(processes[-1].kill)
        said = [process.communicate(timeout=120)[0] for process in processes]
        self.assertIn(processes[0].returncode, codes, "\n".join(said))
        return "\n".join(said)

    def place(self, interval=2, keep=3):
        return ("--checkpoint_dirs", f"fast:{self.folder}/disk{{node}}:{interval}:{keep}:neighbour")

    def disk(self, node, root="run", nodes=2):
        return self.folder / f"disk{node}" / root / f"{nodes}GPU" / "00"

    def steps(self, node, nodes=2):
        return sorted(path.name for path in self.disk(node, nodes=nodes).glob("step_*"))

    def killed_at(self, step, *flags):
        """A second after the step began, so that what was being written is there. The best ones, of even steps, go to the run's folder."""
        fault = f"slow:step={step},rank=0,seconds=1;kill:step={step},rank=0"
        return self.run_nodes(2, self.folder / "logs", *self.place(interval=7), "--inject", fault, *flags, codes=(KILLED,))

    def assert_whole(self, root):
        self.run_nodes(2, self.folder / "whole")
        expected, found = weights(self.folder / "whole"), weights(root)
        for name, values in expected.items():
            self.assertTrue((found[name] == values).all(), name)

    def test_the_next_node_has_the_same_files(self):
        self.run_nodes(2, self.folder / "logs", *self.place())
        self.assertEqual(self.steps(0), ["step_10", "step_12", "step_14"])
        self.assertEqual(self.steps(1), self.steps(0))
        for path in sorted(self.disk(0).glob("step_*/*")):
            self.assertEqual(path.read_bytes(), (self.disk(1) / path.parent.name / path.name).read_bytes(), path)
        self.assertEqual(list(self.disk(1).glob(".*")), [])

    def test_the_next_node_waits_for_a_slow_disk(self):
        """Its first message comes after twice the deadline."""
        slow = ";".join(f"slow:step=4,phase=write,after={i},seconds=0.6" for i in range(10))
        said = self.run_nodes(2, self.folder / "logs", *self.place(interval=4), "--comm_timeout_s", "3", "--checkpoint_overlap", "wait", "--inject", slow)
        self.assertEqual(said.count("Fault injected: slow"), 10, said)
        self.assertNotIn(" - ERROR - ", said)
        self.assertEqual(self.steps(1), ["step_12", "step_4", "step_8"])

    def test_a_lost_disk_is_brought_back_from_the_neighbour(self):
        self.killed_at(8)
        self.assertIn("step_7", self.steps(1))
        shutil.rmtree(self.folder / "disk0")
        self.run_nodes(2, self.folder / "logs", *self.place(interval=7), "--resume")
        log = log_text(self.folder / "logs")
        self.assertIn("Checkpoint step_7 was brought from the disk of node 1 to node 0", log)
        self.assertIn(f"Resumed at step 7 from {self.disk(0)}/step_7", log)
        self.assert_whole(self.folder / "logs")

    def test_a_damaged_copy_is_named_and_a_safe_checkpoint_taken(self):
        self.killed_at(8, "--checkpoint_interval", "5")
        shutil.rmtree(self.folder / "disk0")
        for step in self.steps(1):
            with open(self.disk(1) / step / "model.safetensors", "r+b") as file:
                file.seek(-5, 2)
                byte = file.read(1)[0]
                file.seek(-5, 2)
                file.write(bytes([byte ^ 1]))
        self.run_nodes(2, self.folder / "logs", *self.place(interval=7), "--resume")
        log = log_text(self.folder / "logs")
        self.assertIn(f"On node 1 a file is damaged: path={self.disk(1)}/step_7/model.safetensors", log)
        self.assertRegex(log, r"WARNING - \[checkpoint\] no node has a whole copy of a file: path=\S+/step_7, file=model\.safetensors")
        self.assertRegex(log, r"Resumed at step [56] from \S+/logs/run/2GPU/00/checkpoints/step_[56]")
        self.assert_whole(self.folder / "logs")

    def test_a_damaged_file_comes_from_the_other_node(self):
        self.killed_at(8)
        (self.disk(0) / "step_7" / "optimizer.safetensors").write_bytes(b"x")
        self.run_nodes(2, self.folder / "logs", *self.place(interval=7), "--resume")
        log = log_text(self.folder / "logs")
        self.assertIn(f"On node 0 a file has the wrong size: path={self.disk(0)}/step_7/optimizer.safetensors, bytes=1, expected=", log)
        self.assertIn("Resumed at step 7 ", log)
        self.assert_whole(self.folder / "logs")

    def test_all_ranks_of_a_node_open_what_was_brought(self):
        place = ("--checkpoint_dirs", f"fast:{self.folder}/disk{{node}}:7:3:neighbour")
        fault = "slow:step=8,rank=0,seconds=1;kill:step=8,rank=0"
        self.run_nodes(2, self.folder / "logs", *place, "--inject", fault, codes=(KILLED,), ranks=2)
        shutil.rmtree(self.folder / "disk0")
        self.run_nodes(2, self.folder / "logs", *place, "--resume", ranks=2)
        log = log_text(self.folder / "logs")
        self.assertIn("Checkpoint step_7 was brought from the disk of node 1 to node 0", log)
        self.assertIn("Resumed at step 7 ", log)
        self.assertEqual(list(self.folder.glob("disk*/**/*.damaged")), [])

    def test_further_nodes_keep_none(self):
        fault = "slow:step=8,rank=0,seconds=1;kill:step=8,rank=0"
        self.run_nodes(4, self.folder / "logs", *self.place(interval=7, keep=1), "--inject", fault, codes=(KILLED,))
        self.assertEqual([self.steps(node, nodes=4) for node in range(4)], [["step_7"], ["step_7"], [], []])
        self.run_nodes(4, self.folder / "logs", *self.place(interval=7, keep=1), "--resume")
        self.assertIn("Checkpoint step_7 was brought from the disk of node 0 to node 2, 3", log_text(self.folder / "logs"))
        self.assertEqual([self.steps(node, nodes=4) for node in range(4)], [["step_14"], ["step_14"], [], []])

    def test_a_copy_that_cannot_be_written_is_said_and_the_run_goes_on(self):
        (self.folder / "disk1").write_text("a file in the way of a folder")
        said = self.run_nodes(2, self.folder / "logs", *self.place())
        self.assertIn("the copy for a neighbour failed: path=", said)
        self.assertIn("DONE ---- rank 0", said)

    def test_each_node_copies_its_ranks_parts_to_the_next_one(self):
        shared = (*self.place(interval=5, keep=1), "--shard", "full")
        fault = "slow:step=6,rank=0,seconds=1;slow:step=7,rank=0,seconds=1;kill:step=7,rank=0"  # published in step 6, copied until 7
        self.run_nodes(4, self.folder / "logs", *shared, "--inject", fault, codes=(KILLED,))
        for node in range(4):
            folder = self.disk(node, nodes=4) / "step_5"
            ranks = sorted(path.name for path in folder.glob("model-r*"))
            self.assertEqual(ranks, sorted(f"model-r{rank}.safetensors" for rank in (node, (node + 3) % 4)), node)
            self.assertEqual((folder / "index.json").read_bytes(), (self.disk(0, nodes=4) / "step_5" / "index.json").read_bytes())
        shutil.rmtree(self.folder / "disk1")
        self.run_nodes(4, self.folder / "logs", *shared, "--resume")
        log = log_text(self.folder / "logs")
        self.assertRegex(log, "Checkpoint step_5 was brought from the disk of node 0, 2 to node 0, 1, 2, 3")
        self.assertNotIn("a file is missing", log)
        for node in range(4):  # one more than is kept, until the end of the run on the first one
            self.assertEqual(self.steps(node, nodes=4), ["step_10", "step_5"][:1 if node == 0 else 2])
        self.run_nodes(4, self.folder / "whole", "--shard", "full")
        expected, found = weights(self.folder / "whole"), weights(self.folder / "logs")
        for name, values in expected.items():
            self.assertTrue((found[name] == values).all(), name)


if __name__ == "__main__":
    unittest.main()
