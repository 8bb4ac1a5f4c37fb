#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The lines with which the tutorials' ViT programs describe their data, in out.log: texts, order, values."""
import unittest

from bad_input_case import BOXES, DONE, FIELDS, BadInputCase


class DataLines(BadInputCase):
    def lines(self, keys):
        """The messages of out.log between the beginning and the end of the loaders."""
        done = self.train(keys)
        self.assertEqual(done.returncode, DONE, done.stderr)
        messages = [line.split(" - INFO - ", 1)[-1] for line in (self.run_folder / "out.log").read_text().splitlines()]
        first = messages.index("rank 0, begin data loader init")
        last = next(i for i, message in enumerate(messages) if message.startswith("rank 0, data loader initialized"))
        return messages[first + 1:last]

    def test_fields(self):
        self.make_fields(("train/2000", "train/2001", "valid/2002"))
        self.assertEqual(self.lines({**FIELDS, "limit_nsamples_val": 4}), [
            f"Getting file stats from {self.data}/train/2000.h5",
            "Number of samples per year: 12",
            f"Found data at path {self.data}/train. Number of examples: 22. Image Shape: 8 x 16 x 3",
            f"Getting file stats from {self.data}/valid/2002.h5",
            "Overriding total number of samples to: 4",
            "Number of samples per year: 12",
            f"Found data at path {self.data}/valid. Number of examples: 4. Image Shape: 8 x 16 x 3",
            # Ours, behind the tutorials': what is assumed of such files.
            "The files hold nothing but fields: scores weight the rows as equally spaced from pole to pole. An array latitude of one value for "
            "each row, in degrees, sets them."])

    def test_boxes_have_none(self):
        self.make_boxes()
        self.assertEqual(self.lines(BOXES), [])


if __name__ == "__main__":
    unittest.main()
