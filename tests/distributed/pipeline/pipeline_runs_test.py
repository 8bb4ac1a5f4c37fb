#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`welkin launch ... train --pipeline_parallel`: the curve and the files of one process under every schedule, a run that goes on in another
layout, what is refused before anything starts, and the sentence of a rank that fails."""
import os
import pathlib
import signal
import subprocess
import sys
import time
import unittest

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[i]) for i in (1, 2)]
from ranks_case import BINARY, UNET, USAGE, VIT, RanksCase, checkpoints, children_of, clean_environment, log_text, losses, run_folder  # noqa: E402
from tolerance import within  # noqa: E402

LOGGED = 3e-6  # six decimals
DEEP = VIT.replace("depth: 2", "depth: 4")
SGD = ("--set", "optimizer=SGD", "--set", "clip_norm=0.05", "--micro_batch_size", "2")  # four micro-batches; clipping acts


class PipelineRuns(RanksCase):
    def welkin(self, *words):
        done = subprocess.run([BINARY, *map(str, words)], capture_output=True, text=True, env=clean_environment(), check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_every_schedule_has_the_curve_of_one_process(self):
        yaml = self.write(DEEP)
        one = self.folder / "one"
        self.run_ranks(0, yaml, one, *SGD)
        self.assert_has_pictures(one)
        for ranks, flags in ((2, ()), (2, ("--pipeline_schedule", "gpipe", "--pipeline_split", "0,1-3")),
                             (2, ("--pipeline_schedule", "interleaved")), (4, ("--tensor_parallel", "2", "--sequence_parallel", "--pipeline_schedule", "zero_bubble")),
                             (4, ("--shard", "optimizer", "--pipeline_schedule", "interleaved")), (4, ("--shard", "full")),
                             (4, ("--shard", "full", "--pipeline_schedule", "zero_bubble"))):
            root = self.folder / "-".join(("piped", *(flag.lstrip("-") for flag in flags)))
            self.run_ranks(ranks, yaml, root, *SGD, "--pp", "2", *flags)
            self.assert_close_training(root, one, LOGGED)
            newest = run_folder(root) / "checkpoints" / f"step_{checkpoints(root)[-1]}"
            pieces = [f"model-r{rank}.safetensors" for rank in (range(4) if "full" in flags else (2,) if "optimizer" in flags else ())]
            self.assertEqual(sorted(path.name for path in newest.glob("model*")), [*pieces, "model.safetensors"])
            self.assert_has_pictures(root)

    def assert_has_pictures(self, root):
        """The first rank logs what the last stage has made of a sample, in each of three epochs."""
        events = b"".join(path.read_bytes() for path in run_folder(root).rglob("*tfevents*"))
        self.assertEqual(events.count(b"Visualization, "), 3)

    def test_the_layout_of_the_lecture_has_the_curve_of_one_process(self):
        yaml = self.write(DEEP)
        one, sixteen = self.folder / "one", self.folder / "sixteen"
        self.run_ranks(0, yaml, one, *SGD)
        self.run_ranks(16, yaml, sixteen, *SGD, "--tensor_parallel", "2", "--pipeline_parallel", "4")
        self.assertIn("Ranks: 16 on 1 node(s)", log_text(sixteen))
        self.assertIn("data parallel 2", log_text(sixteen))
        self.assert_close_training(sixteen, one, LOGGED)

    def test_the_unet_is_cut_between_its_levels(self):
        yaml = self.write(UNET)
        self.run_ranks(0, yaml, self.folder / "one", *SGD)
        for ranks, flags in ((2, ()), (4, ("--spatial", "1x1x2", "--pipeline_schedule", "gpipe", "--shard", "gradients")),
                             (2, ("--offload", "activations,optimizer,parameters", "--offload_path", self.folder / "offload"))):
            root = self.folder / "-".join(("piped", *(str(flag).strip("-/").replace("/", "_") for flag in flags)))
            self.run_ranks(ranks, yaml, root, *SGD, "--pp", "2", *flags)
            self.assert_close_training(root, self.folder / "one", LOGGED)

    def test_a_run_goes_on_in_another_layout_and_is_evaluated(self):
        yaml = self.write(DEEP.replace("lr: 1E-3", "lr: 1E-3, lr_schedule: constant"))
        flags = (*SGD, "--set", "folder_rule=mp", "--set", "ema_decay=0.5")
        whole, parts = self.folder / "whole", self.folder / "parts"
        self.run_ranks(0, yaml, whole, *flags)
        for until, ranks, layout in ((2, 2, ("--pp", "2")), (4, 0, ()), (6, 4, ("--pp", "2", "--pipeline_schedule", "gpipe", "--shard", "full"))):
            if until > 2:  # the folder is named after the ranks of one model
                run_folder(parts).parent.rename(parts / "run" / f"{2 if layout else 1}MP")
            self.run_ranks(ranks, yaml, parts, *flags, "--num_iters", until, "--resume", *layout)
            self.assertEqual(checkpoints(parts)[-1], until)
        within(losses(parts)[-1], losses(whole)[-1], LOGGED, "a unit of the last logged digit")
        self.assert_close_weights(parts, whole)
        self.assertRegex(self.welkin("evaluate", run_folder(parts), "--device", "cpu"), "(?i)rmse|loss")

    def test_what_cannot_be_is_refused_before_anything_starts(self):
        yaml = self.write(DEEP)
        for flags, wanted in (
                (("--pp", "2", "--pipeline_chunks", "4", "--pipeline_schedule", "interleaved", "--micro_batch_size", "1"), "more stages than the model has blocks: stages=8, blocks=4"),
                (("--pp", "2", "--pipeline_split", "0-1,3"), "pipeline_split=0-1,3, block 2 should begin 3"),
                (("--pp", "2", "--pipeline_schedule", "interleaved", "--micro_batch_size", "3"), "makes 2 or 4 micro-batches"),
                (("--pp", "2", "--pipeline_schedule", "zero_bubble", "--activation_checkpointing", "blocks"),
                 "pipeline_parallel=2, pipeline_schedule: zero_bubble, activation_checkpointing. Leave activation_checkpointing out, or take pipeline_schedule: 1f1b, gpipe or interleaved"),
                (("--pp", "2", "--pipeline_schedule", "zero_bubble", "--offload", "activations", "--offload_path", self.folder), "zero_bubble, offload: activations. Leave"),
                (("--pp", "2", "--rank_invariant"), "pipeline_parallel=2, rank_invariant"),
                (("--pp", "3"), "pipeline_parallel times tensor_parallel times context_parallel does not divide the number of processes")):
            root = self.folder / "refused"
            self.assertIn(wanted, self.run_ranks(2, yaml, root, *flags, code=USAGE))
            self.assertFalse((root / "run").exists(), flags)

    def test_a_plug_in_without_segments_is_refused(self):
        plugin = pathlib.Path(BINARY).parent / "examples" / "liblinear_stencil.so"
        if not plugin.exists():
            self.skipTest("the examples are not built")
        yaml = self.write(UNET.replace("model: unet3d, width: 4, scales: 2,", "model: linear_stencil, dataset: nbody,"))
        command = [BINARY, "launch", "-n", "2", "--bind", "off", "--", "--plugin", str(plugin), *self.train_arguments(yaml, self.folder / "root", "--pp", "2")]
        text = self.finish(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=clean_environment()), USAGE)
        self.assertIn("the model does not say where a pipeline may cut it: model=linear_stencil", text)

    def test_a_killed_stage_is_named_and_ends_all(self):
        root = self.folder / "root"
        process = self.launch(2, self.write(DEEP.replace("num_iters: 6", "num_iters: 100000")), root, *SGD, "--pp", "2", "--checkpoint_interval", "5",
                              options=("--grace", "10"))
        self.addCleanup(lambda: process.poll() is None and process.kill())
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and not list(root.glob("run/*/00/checkpoints/step_*")):
            time.sleep(0.02)
        os.kill(children_of(process)[1], signal.SIGKILL)
        text = self.finish(process, 128 + signal.SIGKILL, limit_s=40)
        self.assertIn("[launch] rank 1 (process ", text)
        self.assertIn("silent ranks=[1]", log_text(root))
        self.assertIn("rank 0, pp 0", text)


if __name__ == "__main__":
    unittest.main()
