#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What goes wrong between processes: every case ends within its time-out, on every rank, and says what it was."""
import os
import pathlib
import signal
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from ranks_case import BINARY, COMM, DONE, USAGE, UNET, VIT, RanksCase, children_of, free_port, log_text, losses  # noqa: E402

LONG = VIT.replace("num_iters: 6", "num_iters: 100000")


class RankFaults(RanksCase):
    def start_long_run(self, ranks, *flags):
        """A run that has begun to step, and the process numbers of its ranks."""
        root = self.folder / "root"
        process = self.launch(ranks, self.write(LONG), root, "--checkpoint_interval", "5", *flags, options=("--grace", "10"))
        self.addCleanup(lambda: process.poll() is None and process.kill())
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and not list(root.glob("run/*/00/checkpoints/step_*")):
            time.sleep(0.02)
        return process, children_of(process), root

    def test_a_killed_rank_is_named_and_ends_all(self):
        process, ranks, root = self.start_long_run(4)
        os.kill(ranks[1], signal.SIGKILL)
        begun = time.monotonic()
        text = self.finish(process, 128 + signal.SIGKILL, limit_s=40)
        self.assertLess(time.monotonic() - begun, 20)
        self.assertIn("[launch] rank 1 (process ", text)
        self.assertIn("was ended by signal 9 (Killed); all ranks have been stopped", text)
        self.assertIn("silent ranks=[1],", log_text(root))  # those that wait for another in the ring are not taken for dead
        self.assertEqual([rank for rank in ranks if os.path.exists(f"/proc/{rank}")], [])

    def test_a_stopped_rank_is_named_when_the_time_is_over(self):
        process, ranks, root = self.start_long_run(2, "--comm_timeout_s", "3")
        os.kill(ranks[1], signal.SIGSTOP)
        text = self.finish(process, COMM, limit_s=60)
        self.assertIn("silent ranks=[1]", log_text(root))
        self.assertIn("comm_timeout_s", log_text(root))
        self.assertIn("all ranks have been stopped", text)

    def test_no_rank_outlives_a_killed_launcher(self):
        process, ranks, _ = self.start_long_run(2)
        process.kill()
        deadline = time.monotonic() + 10
        running = ranks
        while running and time.monotonic() < deadline:
            running = [rank for rank in ranks if os.path.exists(f"/proc/{rank}") and "\nState:\tZ" not in pathlib.Path(f"/proc/{rank}/status").read_text()]
            time.sleep(0.05)
        self.assertEqual(running, [])

    def test_another_configuration_is_refused_on_all_ranks(self):
        port = free_port()
        yaml, root = self.write(VIT), self.folder / "root"
        first = self.by_hand(yaml, root, 0, 2, port)
        second = self.by_hand(yaml, root, 1, 2, port, "--set", "lr=2e-3")
        texts = [self.finish(process, USAGE, limit_s=60) for process in (first, second)]
        for text in texts:
            self.assertIn("has another configuration than rank 0: 'lr: 0.001' and 'lr: 0.002'", text)
        self.assertFalse((root / "run").exists())

    def test_missing_ranks_are_named(self):
        text = self.finish(self.by_hand(self.write(VIT), self.folder / "root", 0, 4, free_port(), "--comm_timeout_s", "2"), COMM, limit_s=30)
        self.assertIn("ranks did not arrive: missing=[1, 2, 3], world size=4, waited_s=2", text)

    def test_a_rank_without_its_first_says_where_it_looked(self):
        port = free_port()
        text = self.finish(self.by_hand(self.write(VIT), self.folder / "root", 1, 2, port, "--comm_timeout_s", "1"), COMM, limit_s=30)
        self.assertIn(f"rank 0 does not listen: address=127.0.0.1, port={port}, waited_s=1", text)

    def test_an_unknown_host_a_taken_port_and_a_missing_interface(self):
        import socket
        yaml, root = self.write(VIT), self.folder / "root"
        text = self.finish(self.by_hand(yaml, root, 1, 2, 29500, "--comm_timeout_s", "1", MASTER_ADDR="no-such-host.invalid"), COMM, limit_s=30)
        self.assertIn("the host of rank 0 is not known: address=no-such-host.invalid", text)
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            text = self.finish(self.by_hand(yaml, root, 0, 2, taken.getsockname()[1]), COMM, limit_s=30)
        self.assertIn("the port of the rendezvous is taken", text)
        text = self.finish(self.by_hand(yaml, root, 0, 2, free_port(), GLOO_SOCKET_IFNAME="ib7"), COMM, limit_s=30)
        self.assertIn("no such network interface: GLOO_SOCKET_IFNAME=ib7", text)

    def test_shared_memory_is_switched_off_for_all_where_one_rank_says_so(self):
        yaml = self.write(UNET)
        text = self.finish(self.by_hand(yaml, self.folder / "root", 0, 2, free_port(), WELKIN_SHARED_MEMORY="maybe"), USAGE, limit_s=30)
        self.assertIn("WELKIN_SHARED_MEMORY=maybe. Choose auto, buffers, which reads no other process's memory, or off, which takes TCP", text)
        found = {}
        for said in ("auto", "buffers", "off"):
            root, port = self.folder / said, free_port()
            ranks = [self.by_hand(yaml, root, rank, 2, port, WELKIN_SHARED_MEMORY=said if rank == 1 else "auto") for rank in range(2)]
            for process in ranks:
                self.finish(process, DONE, limit_s=60)
            found[said] = losses(root)
            self.assertIn("collectives of host memory over " + ("TCP: shared memory is off" if said == "off" else "shared memory"), log_text(root))
        self.assertEqual(len(found["auto"]), 6)
        self.assertEqual(found["auto"], found["buffers"])
        self.assertEqual(found["auto"], found["off"])  # sums of two ranks have the same bits either way

    def test_the_ranks_also_meet_at_a_file(self):
        yaml, root = self.write(UNET), self.folder / "root"
        flags = ("--set", "wireup_store=file")
        text = self.finish(self.by_hand(yaml, root, 0, 2, 1, *flags), USAGE, limit_s=30)
        self.assertIn("WIREUP_FILE_PATH is not set", text)
        ranks = [self.by_hand(yaml, root, rank, 2, 1, *flags, WIREUP_FILE_PATH=self.folder / "meeting") for rank in range(2)]
        for process in ranks:
            self.finish(process, DONE, limit_s=60)
        self.assertEqual(len(losses(root)), 6)

    def test_an_incomplete_environment_is_refused(self):
        import subprocess
        done = subprocess.run([BINARY, *self.train_arguments(self.write(VIT), self.folder / "root")], env={**os.environ, "WORLD_SIZE": "4"},
                              capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, USAGE)
        self.assertIn("WORLD_SIZE=4, RANK is not set", done.stderr)


if __name__ == "__main__":
    unittest.main()
