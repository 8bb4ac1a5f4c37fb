#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`welkin launch ... train --shard`: the curve of plain data parallelism, for both models, with validation; a run goes on under another layout."""
import pathlib
import shutil
import subprocess
import sys
import unittest

import numpy as np

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[i]) for i in (1, 2)]
from ranks_case import BINARY, UNET, USAGE, VIT, RanksCase, checkpoints, clean_environment, log_text, losses, run_folder, stored_tensors, weights  # noqa: E402
from tolerance import rounds_to, within  # noqa: E402

CHECKPOINT = 5
LOGGED = 3e-6  # six decimals
SGD = ("--set", "optimizer=SGD")  # Adam divides by its own noise where a gradient is all but zero


class ShardedRuns(RanksCase):
    def assert_same(self, got, wanted):
        within(losses(got), losses(wanted), LOGGED, "a unit of the last logged digit, and the sums of ranks")
        for name, values in weights(wanted).items():
            rounds_to(weights(got)[name], values, 8, scale=max(1.0, np.abs(values).max()), message=name)  # a few steps of SGD

    def assert_files_of_ranks(self, root, ranks, stage):
        """Each rank has written its own part; `ckpt` verifies and exports it as one."""
        newest = run_folder(root) / "checkpoints" / f"step_{checkpoints(root)[-1]}"
        names = {path.name for path in newest.iterdir()}
        for rank in range(ranks):
            self.assertIn("state.safetensors", names)
            self.assertEqual(f"model-r{rank}.safetensors" in names, stage == "full", names)
        if stage != "full":
            return
        for words in (("verify", newest), ("export", newest, self.folder / "one.safetensors")):
            done = subprocess.run([BINARY, "ckpt", *map(str, words)], capture_output=True, text=True, env=clean_environment())
            self.assertEqual(done.returncode, 0, done.stderr)
        for name, values in stored_tensors(self.folder / "one.safetensors").items():
            np.testing.assert_array_equal(values, weights(root)[name], err_msg=name)

    def ckpt(self, *words, code=0):
        done = subprocess.run([BINARY, "ckpt", *map(str, words)], capture_output=True, text=True, env=clean_environment())
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def write_again(self, newest, ranks):
        """The checkpoint in the pieces of another number of ranks takes its place; without one of its files it is refused."""
        again = self.folder / f"of_{ranks}"
        self.assertIn(f"in pieces of {ranks} ranks", self.ckpt("reshard", newest, again, "--shards", ranks))
        self.ckpt("diff", newest, again)
        self.ckpt("reshard", again, self.folder / f"whole_{ranks}")
        self.ckpt("diff", newest, self.folder / f"whole_{ranks}")
        missing = again / "optimizer-r1.safetensors"
        missing.rename(self.folder / "aside")
        self.assertIn(f"a file is missing: path={missing}", self.ckpt("inspect", again, code=CHECKPOINT))
        self.assertIn(f"a file is missing: path={missing}", self.ckpt("reshard", again, self.folder / "nowhere", code=CHECKPOINT))
        (self.folder / "aside").rename(missing)
        shutil.rmtree(newest)
        again.rename(newest)

    def layout_flags(self, stage):
        """By our own flags, or by DeepSpeed's JSON."""
        if stage != "gradients":
            return "--shard", stage, "--micro_batch_size", "1"
        path = self.folder / "ds_config.json"
        path.write_text('{"zero_optimization": {"stage": 2}, "train_batch_size": "auto", "train_micro_batch_size_per_gpu": 1}')
        return "--ds_config", path

    def test_the_curve_is_that_of_one_process(self):
        for model, text in (("vit", VIT), ("unet", UNET)):
            yaml = self.write(text)
            one = self.folder / model
            self.run_ranks(0, yaml, one, *SGD)
            for ranks, stage in ((4, "full"), (2, "gradients"), (2, "optimizer")):
                root = self.folder / f"{model}-{stage}"
                self.run_ranks(ranks, yaml, root, *SGD, *self.layout_flags(stage))
                self.assertIn("Gradients are shared out", log_text(root))
                self.assert_files_of_ranks(root, ranks, stage)
                self.assert_same(root, one)

    def test_ranks_may_have_different_numbers_of_micro_batches(self):
        text = VIT.replace("nsamples: 20", "nsamples: 16").replace("nsamples_val: 10", "nsamples_val: 3").replace("batch_size: 8", "batch_size: 4")
        yaml, one, two = self.write(text), self.folder / "one", self.folder / "two"
        self.run_ranks(0, yaml, one, *SGD)
        self.run_ranks(2, yaml, two, *SGD, "--shard", "full", "--micro_batch_size", "1")
        self.assert_same(two, one)

    def test_a_run_goes_on_under_another_layout(self):
        yaml = self.write(VIT)
        flags = ("--set", "folder_rule=mp", *SGD)
        whole, parts = self.folder / "whole", self.folder / "parts"
        self.run_ranks(0, yaml, whole, *flags)
        for until, ranks, stage in ((2, 4, "full"), (4, 0, "none"), (6, 2, "optimizer")):
            self.run_ranks(ranks, yaml, parts, *flags, "--num_iters", until, "--shard", stage, "--resume")
            self.assertEqual(checkpoints(parts)[-1], until)
            if until < 6:
                self.write_again(run_folder(parts) / "checkpoints" / f"step_{until}", until)

    def test_every_optimizer_takes_parts_of_weights(self):
        """What the program accepts, beside what the tests of its parts compare: the curve of whole weights, where that is exact."""
        yaml = self.write(VIT.replace("embed_dim: 16", "embed_dim: 64"))  # weights that are large enough for lean states
        for number, words in enumerate((("optimizer=Muon",), ("optimizer=Adafactor",), ("optimizer=AdamW", "optimizer_state=8bit"), ("optimizer=Adam", "optimizer_state=bf16"))):
            flags = [word for setting in words for word in ("--set", setting)] + ["--num_iters", "3"]
            whole = self.folder / f"whole-{number}"
            self.run_ranks(2, yaml, whole, *flags)
            for layout in (("--shard", "full"), ("--tensor_parallel", "2")):
                with self.subTest(words=words, layout=layout):
                    parts = self.folder / f"parts-{number}{layout[0]}"
                    self.run_ranks(2, yaml, parts, *flags, *layout)
                    if layout[0] == "--shard":
                        within(losses(parts), losses(whole), LOGGED, "a unit of the last logged digit")

    def test_a_run_begins_with_the_parts_of_a_file(self):
        """Each rank takes what it has of the weights, whichever format and layout."""
        yaml = self.write(VIT)
        self.run_ranks(2, yaml, self.folder / "source", *SGD, "--num_iters", "2", "--shard", "full")
        source = run_folder(self.folder / "source") / "checkpoints" / "step_2"
        file = self.folder / "weights.safetensors"
        self.ckpt("export", source, file)
        still = (*SGD, "--num_iters", "1", "--set", "lr=1E-30", "--set", "warmup=0")
        for number, (ranks, path, layout) in enumerate(((4, source, ("--shard", "full", "--tensor_parallel", "2")), (2, file, ("--tensor_parallel", "2")),
                                                        (2, file, ("--shard", "full")), (2, source, ("--pipeline_parallel", "2", "--micro_batch_size", "2")))):
            with self.subTest(layout=layout):
                root = self.folder / f"begun-{number}"
                self.run_ranks(ranks, yaml, root, *still, "--init_from", path, *layout)
                self.assertIn(f"Weights are those of {path}", log_text(root))
                given = stored_tensors(file)
                for name, values in weights(root).items():
                    np.testing.assert_array_less(np.abs(values - given[name]), 1e-25, err_msg=name)

    def test_pieces_of_weights_leave_the_memory(self):
        yaml = self.write(VIT)
        offload = ("--offload", "parameters,optimizer", "--offload_path", self.folder)
        for number, (ranks, flags) in enumerate(((2, ()), (4, ("--tensor_parallel", "2")), (2, ("--set", "optimizer=Muon")))):
            with self.subTest(flags=flags):
                held, offloaded = self.folder / f"held-{number}", self.folder / f"offloaded-{number}"
                for root, more in ((held, ()), (offloaded, offload)):
                    self.run_ranks(ranks, yaml, root, "--shard", "full", *flags, *more)
                self.assertIn("Offload: the pieces of weights are in a file", log_text(offloaded))
                self.assertEqual(losses(offloaded), losses(held))
                for name, values in weights(held).items():
                    np.testing.assert_array_equal(weights(offloaded)[name], values, err_msg=name)

    def test_a_plug_ins_model_needs_no_code_of_its_own(self):
        plugin = pathlib.Path(BINARY).parent / "examples" / "liblinear_stencil.so"
        if not plugin.exists():
            self.skipTest("the examples are not built")
        yaml = self.write(UNET.replace("model: unet3d, width: 4, scales: 2,", "model: linear_stencil, dataset: nbody,"))
        for stage in ("none", "full"):
            command = [BINARY, "launch", "-n", "2", "--bind", "off", "--", "--plugin", str(plugin), *self.train_arguments(yaml, self.folder / stage, *SGD, "--shard", stage)]
            self.finish(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=clean_environment()))
        self.assert_same(self.folder / "full", self.folder / "none")

    def test_files_written_beside_training_are_those_that_a_step_waits_for(self):
        yaml = self.write(VIT.replace("depth: 2", "depth: 4"))
        for name, layout in (("replicas", ()), ("optimizer", ("--shard", "optimizer")), ("full", ("--shard", "full")), ("tp", ("--tp", "2")), ("pp", ("--pp", "2"))):
            with self.subTest(name):
                roots = [self.folder / f"{name}-{how}" for how in ("waits", "beside")]
                flags = ("--checkpoint_interval", "1", "--keep_checkpoints", "9", "--num_iters", "9", "--deterministic", *SGD, *layout)
                self.run_ranks(2, yaml, roots[0], *flags, "--checkpoint_async=false")
                self.run_ranks(2, yaml, roots[1], *flags)
                self.assertIn("Checkpoints written beside training: ", log_text(roots[1]))
                waits, beside = [{(path.parent.name, path.name): path.read_bytes() for path in (run_folder(root) / "checkpoints").glob("step_*/*.safetensors")}
                                 for root in roots]
                self.assertEqual({step for step, _ in waits}, {f"step_{step}" for step in range(1, 10)})
                self.assertEqual(beside, waits)
                self.ckpt("verify", run_folder(roots[1]))

    def test_a_checkpoint_is_left_out_while_another_is_written(self):
        """Every rank leaves out the same ones; the last is always there."""
        for layout in ((), ("--shard", "full")):
            root = self.folder / f"skip{len(layout)}"
            self.run_ranks(2, self.write(VIT), root, *SGD, *layout, "--num_iters", "60", "--checkpoint_interval", "1", "--checkpoint_overlap", "skip",
                           "--inject", "slow:step=3,rank=0,seconds=1,phase=sync")
            self.assertRegex(log_text(root), "written beside training: [0-9]+, [0-9]+ left out while another was being written")
            self.assertEqual(checkpoints(root)[-1], 60)

    def test_a_group_that_does_not_divide_is_refused(self):
        text = self.run_ranks(2, self.write(VIT), self.folder / "root", "--shard", "full", "--shard_group", "3", code=USAGE)
        self.assertIn("shard_group=3, data-parallel ranks=2. Say all, node, or a number that divides them", text)


if __name__ == "__main__":
    unittest.main()
