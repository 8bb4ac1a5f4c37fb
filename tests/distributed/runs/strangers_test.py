#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Who has no business with a job: connects, floods, talks nonsense at every port that it finds, or has another secret."""
import pathlib
import socket
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from ranks_case import COMM, DONE, USAGE, VIT, RanksCase, children_of, free_port, log_text, losses, run_folder  # noqa: E402

SECRET = "0123456789abcdef0123456789abcdef"
WORDS = (b"GET / HTTP/1.0\r\n\r\n", b"\0" * 8, b"\1" + b"\0" * 7, b"WELKINS1" + b"n" * 32 + b"\x40\0\0\0" + b"x" * 64, b"WELKINS1" + b"n" * 32 + b"\xff" * 4,
         b"\xff" * 4096)


def talk_at(port, words):
    """The connection, for as long as the caller wants it open."""
    deadline = time.monotonic() + 30
    while True:
        try:
            stranger = socket.create_connection(("127.0.0.1", port), timeout=1)
            break
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.02)
    try:
        stranger.sendall(words)
    except OSError:
        pass  # it was closed at the first word
    return stranger


def listening_ports(process):
    """TCP ports at which a process listens."""
    inodes = set()
    for entry in pathlib.Path(f"/proc/{process}/fd").iterdir():
        try:
            target = str(entry.readlink())
        except OSError:
            continue
        if target.startswith("socket:["):
            inodes.add(target[8:-1])
    ports = set()
    for line in pathlib.Path(f"/proc/{process}/net/tcp").read_text().splitlines()[1:]:
        words = line.split()
        if words[3] == "0A" and words[9] in inodes:
            ports.add(int(words[1].rpartition(":")[2], 16))
    return ports


class Strangers(RanksCase):
    def two_ranks(self, name, *flags, secrets=(SECRET, SECRET), between=None):
        yaml, root, port = self.write(VIT), self.folder / name, free_port()
        first = self.by_hand(yaml, root, 0, 2, port, *flags, WELKIN_JOB_SECRET=secrets[0])
        self.addCleanup(lambda: first.poll() is None and first.kill())
        if between:
            between(port, first)
        second = self.by_hand(yaml, root, 1, 2, port, *flags, WELKIN_JOB_SECRET=secrets[1])
        self.addCleanup(lambda: second.poll() is None and second.kill())
        return first, second, root

    def test_a_rank_with_another_secret_is_refused(self):
        first, second, _ = self.two_ranks("root", "--comm_timeout_s", "3", secrets=(SECRET, SECRET[::-1]))
        text = self.finish(second, COMM, limit_s=60)
        self.assertIn("the store of the rendezvous does not know this process", text)
        self.assertIn("same WELKIN_JOB_SECRET", text)
        self.assertNotIn(SECRET[::-1], text)
        self.assertIn("ranks did not arrive: missing=[1]", self.finish(first, COMM, limit_s=60))

    def test_a_short_secret_is_refused_before_anything_starts(self):
        process = self.by_hand(self.write(VIT), self.folder / "root", 0, 2, free_port(), WELKIN_JOB_SECRET="short")
        text = self.finish(process, USAGE, limit_s=30)
        self.assertIn("the job's secret has another length than 16 to 4096 bytes: WELKIN_JOB_SECRET is set, bytes=5", text)

    def test_strangers_are_closed_and_counted_and_change_nothing(self):
        first, second, undisturbed = self.two_ranks("undisturbed")
        for process in (first, second):
            self.finish(process, DONE, limit_s=60)
        strangers = []
        self.addCleanup(lambda: [stranger.close() for stranger in strangers])

        def disturb(port, _):
            strangers.extend(talk_at(port, WORDS[i % len(WORDS)]) for i in range(400))

        first, second, disturbed = self.two_ranks("disturbed", between=disturb)
        deadline = time.monotonic() + 30
        while first.poll() is None and second.poll() is None and time.monotonic() < deadline:
            for process in (first, second):  # and the ports of the collectives
                try:
                    strangers.extend(talk_at(port, words) for port in listening_ports(process.pid) for words in WORDS)
                except OSError:
                    pass  # it has ended
            time.sleep(0.05)
        for process in (first, second):
            self.finish(process, DONE, limit_s=60)
        self.assertEqual(losses(disturbed), losses(undisturbed))
        self.assertRegex(log_text(disturbed), r"[0-9]{3,} connections to the store of the rendezvous were closed")
        self.assertNotIn("connections to the store", log_text(undisturbed))

    def test_the_secret_stands_nowhere(self):
        first, second, root = self.two_ranks("root")
        for process in (first, second):
            self.assertNotIn(SECRET, self.finish(process, DONE, limit_s=60))
        for path in run_folder(root).rglob("*"):
            self.assertTrue(path.is_dir() or SECRET.encode() not in path.read_bytes(), path)

    def test_launched_ranks_get_a_secret_of_their_own(self):
        yaml, root = self.write(VIT.replace("num_iters: 6", "num_iters: 100000")), self.folder / "root"
        process = self.launch(2, yaml, root, options=("--grace", "1"))
        self.addCleanup(lambda: process.poll() is None and process.kill())
        deadline, found = time.monotonic() + 30, []
        while len(found) < 2 and time.monotonic() < deadline:
            time.sleep(0.1)
            environments = [pathlib.Path(f"/proc/{child}/environ").read_bytes().split(b"\0") for child in children_of(process)]
            found = [entry for environment in environments for entry in environment if entry.startswith(b"WELKIN_JOB_SECRET=")]
        process.terminate()
        process.communicate(timeout=60)
        self.assertEqual(len(found), 2)
        self.assertEqual(len(set(found)), 1)
        self.assertEqual(len(found[0]), len("WELKIN_JOB_SECRET=") + 64)


if __name__ == "__main__":
    unittest.main()
