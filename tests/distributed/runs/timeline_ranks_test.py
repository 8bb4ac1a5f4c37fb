#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`train --timeline` on several processes: the exchange of gradients beside the threads, the collectives of the other axes by name,
and how much of it lies behind computing."""
import json
import pathlib
import re
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from ranks_case import VIT, RanksCase, log_text, run_folder  # noqa: E402

# Five buckets of a MiB and more: while the later ones are computed, the first are on their way.
WIDE = VIT.replace("embed_dim: 16, depth: 2", "embed_dim: 192, depth: 4").replace("num_iters: 6", "num_iters: 4")


class TimelineRanks(RanksCase):
    def spans(self, *flags, text=VIT, ranks=2):
        """(phase, name, lane's category) of every span of each rank."""
        root = self.folder / "logs"
        self.run_ranks(ranks, self.write(text), root, "--timeline", *flags)
        files = ["timeline.json", *(f"timeline_rank{rank}.json" for rank in range(1, ranks))]
        ranks_events = [json.loads((run_folder(root) / "profile" / name).read_text())["traceEvents"] for name in files]
        return [[event for event in events if event["ph"] != "M"] for events in ranks_events]

    def names(self, events, phase):
        return {event["name"] for event in events if event["ph"] == phase}

    def shares(self):
        """Communication of all time, and what of it is behind computing, in percent."""
        found = re.search(r"Timeline: idle .*; communication ([\d.]+) %, of which ([\d.]+) % behind computing", log_text(self.folder / "logs"))
        self.assertIsNotNone(found, log_text(self.folder / "logs"))
        return float(found[1]), float(found[2])

    def test_the_exchange_of_gradients(self):
        for events in self.spans("--bucket_cap_mb", "1", text=WIDE):
            buckets = self.names(events, "b")
            self.assertGreaterEqual(len(buckets), 5, buckets)
            self.assertEqual(buckets, {f"gradient exchange {i}" for i in range(len(buckets))})
            self.assertEqual({event["cat"] for event in events if event["ph"] == "b"}, {"gradient exchange dp"})
            begins = {event["id"]: event["ts"] for event in events if event["ph"] == "b"}
            ends = {event["id"]: event["ts"] for event in events if event["ph"] == "e"}
            self.assertEqual(begins.keys(), ends.keys())
            for number, begin in begins.items():
                self.assertLessEqual(begin, ends[number])
            self.assertIn("gradient exchange, waiting", self.names(events, "X"))
            steps = [event for event in events if event["name"].startswith("step ")]
            self.assertEqual(len(begins), len(buckets) * len(steps), "every bucket of every step")
        communicating, hidden = self.shares()
        self.assertGreater(communicating, 0)
        self.assertGreater(hidden, 0)

    def test_no_exchange(self):
        for events in self.spans("--noddp", "--bucket_cap_mb", "1", text=WIDE):
            self.assertEqual(self.names(events, "b"), set())
            self.assertFalse([name for name in self.names(events, "X") if "gradient exchange" in name])
            self.assertIn("all_reduce world", self.names(events, "X"))  # the loss
        self.assertEqual(self.shares()[1], 0, "the loss is waited for")

    def test_gradients_that_travel_narrow(self):
        for events in self.spans("--compress_gradients", "bf16"):
            self.assertEqual(self.names(events, "b"), {"gradient exchange 0"})

    def test_tensor_and_context_parallel_calls_have_the_names_of_their_axis(self):
        for flags, axis in ((("--tensor_parallel", "2"), "tp"), (("--context_parallel", "2"), "cp")):
            with self.subTest(axis=axis):
                for events in self.spans(*flags):
                    names = {event["name"] for event in events}
                    self.assertTrue([name for name in names if name.endswith(f" {axis}")], names)
                    self.assertFalse([name for name in names if name == "all_reduce"], names)
                self.assertGreater(self.shares()[0], 0)

    def test_one_process_has_no_communication(self):
        self.run_ranks(0, self.write(VIT), self.folder / "logs", "--timeline")
        text = log_text(self.folder / "logs")
        self.assertIn("Timeline: idle ", text)
        self.assertNotIn("communication", text[text.index("Timeline: idle "):].splitlines()[0])


if __name__ == "__main__":
    unittest.main()
