#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`welkin verify --layouts` and `--case` start the processes that they need and give one verdict; a user's model is split by its plan."""
import os
import pathlib
import signal
import subprocess
import tempfile
import unittest

BINARY = pathlib.Path(os.environ["WELKIN_BINARY"])
GOLDENS = pathlib.Path(os.environ.get("WELKIN_GOLDENS", pathlib.Path(os.environ["WELKIN_SOURCE_DIR"]).parent / "shared" / "goldens"))


def verify(*arguments, before=()):
    command = [str(BINARY), *before, "verify", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=250)
    return done.returncode, done.stdout + done.stderr


class VerifyLayouts(unittest.TestCase):
    def test_every_mesh_of_two_and_four_ranks(self):
        code, text = verify("--layouts", "some", "--world", "2,4")
        self.assertEqual(code, 0, text)
        for world in (2, 4):
            self.assertIn(f"{world} ranks: every layout equals one process", text)
        self.assertIn("dp 1, tp 2, cp 2", text)
        self.assertNotIn("FAIL", text)

    def test_ranks_that_divide_neither_batch_nor_heads(self):
        code, text = verify("--layouts", "some", "--world", "3")
        self.assertEqual(code, 0, text)
        self.assertIn("dp 3, tp 1, cp 1", text)
        self.assertIn("n/a   dp 1, tp 3, cp 1", text)
        self.assertIn("Heads must divide by tp", text)

    def test_a_sample_is_drawn_again_by_the_seed_that_was_printed(self):
        layouts = lambda lines: [line[15:] for line in lines.splitlines() if line.startswith("ok")]
        code, text = verify("--layouts", "some", "--world", "2", "--sample", "5")
        self.assertEqual(code, 0, text)
        seed = text.split("Random sample: 5 layouts, --sample 5 --seed ")[1].split()[0]
        self.assertEqual(layouts(text), layouts(verify("--layouts", "some", "--world", "2", "--sample", "5", "--seed", seed)[1]))

    def test_checkpoints_go_from_one_layout_to_another(self):
        with tempfile.TemporaryDirectory() as folder:
            code, text = verify("--layouts", "some", "--world", "2", "--checkpoint_folder", folder)
            self.assertEqual(code, 0, text)
            self.assertIn("checkpoint of dp 2, tp 1, cp 1 -> dp 1, tp 1, cp 1, pp 2", text)
            self.assertEqual(os.listdir(folder), [])
        code, text = verify("--layouts", "some", "--world", "2", "--checkpoint_folder", "/proc/nowhere")
        self.assertNotEqual(code, 0)
        self.assertIn("/proc/nowhere", text)

    def test_the_models_of_fields(self):
        for model, world, layout in (("unet2d", 4, "spatial 1x2x2"), ("unet2d", 2, "pp 2"), ("afno", 2, "spatial 1x2x1"), ("swin", 2, "cp 2"), ("sfno", 2, "spatial 1x1x2")):
            with self.subTest(model=model):
                code, text = verify("--layouts", "some", "--world", str(world), "--model", model)
                self.assertEqual(code, 0, text)
                self.assertIn(layout, text)

    def test_a_signal_ends_it_and_not_only_the_ranks_that_run(self):
        with subprocess.Popen([str(BINARY), "verify", "--layouts", "--world", "2,4,8"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
            process.stdout.readline()
            process.send_signal(signal.SIGTERM)
            text = process.stdout.read()
            self.assertEqual(process.wait(timeout=60), 128 + signal.SIGTERM, text)
        self.assertNotIn("4 ranks:", text)

    def test_a_model_of_ones_own(self):
        plugin = BINARY.parent / "examples" / "libparallel_model.so"
        if not plugin.exists():
            self.skipTest("the examples are not built")
        code, text = verify("--layouts", "some", "--world", "4", "--model", "parallel_model", before=("--plugin", str(plugin)))
        self.assertEqual(code, 0, text)
        self.assertIn("sequence parallel", text)

    def test_a_model_without_a_plan_is_refused(self):
        code, text = verify("--layouts", "--model", "linear_stencil")
        self.assertEqual(code, 2, text)
        self.assertIn("unknown plan of model: plan of model=linear_stencil", text)

    def test_the_unet_is_split_over_tp_alone(self):
        code, text = verify("--layouts", "some", "--world", "4", "--model", "unet3d")
        self.assertEqual(code, 0, text)
        self.assertIn("dp 2, tp 2, cp 1", text)
        self.assertNotIn("cp 2", text)

    def test_a_parallel_case_runs_on_its_ranks(self):
        case = GOLDENS / "mp25_cp2_uneven"
        if not case.is_dir():
            self.skipTest(f"no reference cases at {GOLDENS}: set WELKIN_GOLDENS")
        code, text = verify("--case", str(case))
        self.assertEqual(code, 0, text)
        self.assertIn("the same on 2 processes", text)


if __name__ == "__main__":
    unittest.main()
