# SPDX-License-Identifier: Apache-2.0
"""Models of fields besides the ViT, from a configuration to scores: train, resume, evaluate, forecast, export, ranks, estimates, refusals."""
import json
import unittest

from bad_input_case import DONE, USAGE, yaml_text
from forecast_case import KEYS, ForecastCase
from tolerance import rounds_to, within

COMMON = {key: value for key, value in KEYS.items() if key not in ("num_heads", "patch_size", "dropout", "embed_dim", "depth")}
MODELS = {
    "afno": {"embed_dim": 16, "depth": 2, "num_blocks": 4, "patch_size": 2, "dropout": 0.1},
    "sfno": {"embed_dim": 16, "depth": 2, "scale_factor": 2, "mlp_ratio": 2, "dropout": 0.1, "model_grid_type": "legendre-gauss"},
    "swin": {"embed_dim": 16, "depth": 2, "num_heads": 2, "patch_size": 2, "window_size": [2, 4], "dropout": 0.1},
    "unet2d": {"width": 4, "scales": 2},
}
NAMES = {"afno": "blocks.1.filter.w1", "sfno": "blocks.1.filter.filter.weight", "swin": "blocks.1.attn.earth_position_bias_table",
         "unet2d": "up2.conv.double_conv.3.weight"}
OF_TOKENS = ("afno", "sfno", "swin")


class FieldModels(ForecastCase):
    """The run of the base class is a ViT's; its data serve all."""

    def run_of(self, model, *flags, keys=None, ranks=0, code=DONE, name="one"):
        """Returns the process and the folder of the run."""
        logs = self.folder / model / name
        (self.folder / "run.yaml").write_text(yaml_text(COMMON | {"model": model} | MODELS[model] | (keys or {})))
        launcher = ["launch", "-n", str(ranks), "--bind", "off", "--"] if ranks else []
        done = self.call(*launcher, "train", "--yaml_config", self.folder / "run.yaml", "--data_root", self.data, "--log_root", logs, "--device", "cpu",
                         "--threads", "1", *flags, code=code)
        return done, next(logs.glob("base/*/00"), None)

    def last_loss(self, run):
        return json.loads((run / "status.json").read_text())["loss"]

    def test_from_training_to_scores(self):
        for model in MODELS:
            with self.subTest(model):
                done, run = self.run_of(model, keys={"residual": True})
                self.assertIn("DONE ---- rank 0", done.stdout + done.stderr)
                self.assertNotIn("without effect", done.stdout + done.stderr)
                self.run_of(model, "--resume", "--set", "num_iters=6", keys={"residual": True})
                self.assertTrue((run / "checkpoints/step_6").is_dir())
                self.call("evaluate", run, "--device", "cpu", "--rollout", "2")
                self.call("forecast", run, "--device", "cpu", "--output", self.folder / f"{model}.nc", "--steps", "2")
                self.call("ckpt", "export", run / "checkpoints/step_6", self.folder / f"{model}.pt", "--format", "pt")
                listed = self.call("ckpt", "inspect", run / "checkpoints/step_6").stdout
                self.assertIn(NAMES[model], listed)

    def test_activation_checkpointing_and_mixed_precision(self):
        for model in MODELS:
            with self.subTest(model):
                _, plain = self.run_of(model)
                for part in ("blocks", "mlp") if model in OF_TOKENS else ("blocks",):
                    _, run = self.run_of(model, "--activation_checkpointing", part, name=part)
                    self.assertEqual(self.last_loss(run), self.last_loss(plain), part)
                _, run = self.run_of(model, "--amp_mode", "bf16", name="bf16")
                within(self.last_loss(run), self.last_loss(plain), 0.05, "four steps in 16 bits")

    def test_ranks(self):
        for model in MODELS:
            with self.subTest(model):
                sgd = {"optimizer": "SGD", "lr": 0.01}  # Adam would make steps of noise
                _, alone = self.run_of(model, keys=sgd)
                layouts = {"tp": ("--tensor_parallel", "2"), "pp": ("--pipeline_parallel", "2", "--set", "micro_batch_size=2")}
                for name, flags in layouts.items():
                    if name == "pp" and model == "unet2d":
                        continue  # refused below
                    _, run = self.run_of(model, *flags, ranks=2, name=name, keys=sgd)
                    rounds_to(self.last_loss(run), self.last_loss(alone), 64, message=name)

    def test_sequence_parallel(self):
        _, alone = self.run_of("swin", keys={"optimizer": "SGD", "lr": 0.01})
        _, run = self.run_of("swin", "--tensor_parallel", "2", "--sequence_parallel", ranks=2, name="sp", keys={"optimizer": "SGD", "lr": 0.01})
        rounds_to(self.last_loss(run), self.last_loss(alone), 64)

    def test_refusals(self):
        done, _ = self.run_of("unet2d", "--tensor_parallel", "2", ranks=2, code=USAGE, keys={"width": 5})
        self.assertIn("the channels cannot be split: width=5, tp=2", done.stderr)
        done, _ = self.run_of("swin", "--set", "window_size=[3,4]", code=USAGE)
        self.assertIn("windows must divide the grid of patches: patches=[4, 8], window_size=[3, 4]", done.stderr)
        done, _ = self.run_of("unet2d", "--set", "scales=4", code=USAGE)
        self.assertIn("both edges must be divisible by 2^scales: grid=[8, 16], scales=4", done.stderr)
        for model, flags, axis in (("sfno", "--context_parallel 2", "cp"), ("unet2d", "--context_parallel 2", "cp"), ("afno", "--spatial 2x1x1", "d"),
                                   ("swin", "--spatial 2x1x1", "d"), ("sfno", "--spatial 2x1x1", "d"), ("unet2d", "--spatial 2x1x1", "d")):
            with self.subTest(model, flags=flags):
                done, _ = self.run_of(model, *flags.split(), ranks=2, code=USAGE)
                self.assertIn(f"the plan of the model does not split it over this axis: model={model}, {axis}=2", done.stderr)
        done, _ = self.run_of("sfno", "--tensor_parallel", "2", "--sequence_parallel", ranks=2, code=USAGE)
        self.assertIn("the SFNO has no tokens to split: sequence_parallel=true", done.stderr)
        done, _ = self.run_of("afno", "--set", "num_blocks=3", code=USAGE)
        self.assertIn("blocks of channels must divide the width: embed_dim=16, num_blocks=3", done.stderr)


if __name__ == "__main__":
    unittest.main()
