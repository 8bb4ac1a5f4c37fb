# SPDX-License-Identifier: Apache-2.0
"""`import welkin`: models, data, training and export in Python, beside what the program says of the same run."""
import ast
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import unittest.mock

from install_test import BINARY, SOURCE, cached

os.environ["WELKIN_LIBRARIES"] = str(BINARY.parent)
sys.path[:0] = [str(SOURCE / "python")]

import h5py  # noqa: E402
import numpy as np  # noqa: E402
import torch  # noqa: E402
import welkin  # noqa: E402
from tolerance import rounds_to  # noqa: E402

FIELDS = {"data_loader_config": "synthetic", "img_size": [16, 32], "n_in_channels": 3, "n_out_channels": 2, "limit_nsamples": 8, "limit_nsamples_val": 4,
          "global_batch_size": 4, "num_iters": 2, "lr": 1e-3, "warmup": 1, "device": "cpu", "threads": 1, "run_num": "00"}
VIT = FIELDS | {"model": "vit", "embed_dim": 16, "depth": 1, "num_heads": 2, "patch_size": 4}
TOKENS = {"embed_dim": 16, "depth": 2, "patch_size": 2, "mlp_ratio": 2.0}
MODELS = {
    "vit": VIT | {"qkv": "joint", "residual": True, "n_out_channels": 3},
    "afno": FIELDS | TOKENS | {"model": "afno", "num_blocks": 4},
    "sfno": FIELDS | {"model": "sfno", "embed_dim": 8, "depth": 2, "scale_factor": 2, "mlp_ratio": 2.0},
    "swin": FIELDS | TOKENS | {"model": "swin", "num_heads": 4, "window_size": [2, 4]},
    "unet2d": FIELDS | {"model": "unet2d", "width": 4, "scales": 2},
    "unet3d": {"model": "unet3d", "data_loader_config": "synthetic", "scales": 2, "width": 4, "data_size": 16, "box_size": [32, 32], "Nsamples": 4,
               "Nsamples_val": 4, "global_batch_size": 4, "num_epochs": 1, "lr_schedule": {"start_lr": 1e-3}, "device": "cpu", "threads": 1},
}


def run(*words):
    return subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=300)


def fields_of(root):
    return root / "fields"


class PythonCase(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if cached("WELKIN_SANITIZE"):
            raise unittest.SkipTest("an interpreter without sanitizers does not load libraries with them")
        cls.root = pathlib.Path(tempfile.mkdtemp())
        cls.addClassCleanup(shutil.rmtree, cls.root)

    def train(self, config, name, **options):
        return welkin.train(config, log_root=self.root / name, progress=False, **options)


class Runs(PythonCase):
    """A model of simulated weather, which the program has trained."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        fields = cls.root / "fields"
        words = ["--grid", "16x32", "--truncation", "10", "--years", "1", "--years_test", "1", "--steps", "8", "--spin_up_days", "1", "--quiet"]
        done = run(BINARY, "data", "simulate", "weather", "--out", fields, *words)
        assert done.returncode == 0, done.stderr
        cls.config = {"img_size": [16, 32], "embed_dim": 32, "depth": 1, "num_heads": 2, "global_batch_size": 2, "data_root": fields, "device": "cpu", "num_iters": 4}
        cls.trained = welkin.train(SOURCE / "config/ViT.yaml", "short", log_root=cls.root / "logs", progress=False, **cls.config)
        cls.model = cls.trained.load(split="test")

    def test_predicts_what_the_program_predicts(self):
        done = run(BINARY, "predict", self.trained.folder, "--split", "test", "--samples", "2", "--output", self.root / "pictures")
        self.assertEqual(done.returncode, 0, done.stderr)
        with h5py.File(self.root / "pictures/predictions.h5") as file:
            given, wanted = torch.from_numpy(file["input"][...]), file["prediction"][...]
        got = self.model.predict(given).numpy()
        for channel in range(wanted.shape[1]):
            rounds_to(got[:, channel], wanted[:, channel], 64, scale=wanted[:, channel], message=f"channel {channel}")

    def test_scores_are_those_of_evaluate(self):
        done = run(BINARY, "evaluate", self.trained.folder, "--split", "test", "--json", self.root / "scores.json")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.model.scores(), json.loads((self.root / "scores.json").read_text()))

    def test_says_what_it_is(self):
        model = self.model
        self.assertEqual((model.grid, model.split, model.step, len(model.channels["input"])), ((16, 32), "test", 4, 20))
        self.assertEqual((model.channels["target"][0], model.units["target"][0]), ("u10m", "m s-1"))
        self.assertEqual((model.config["model"]["embed_dim"], model.config["loop"]["global_batch_size"]), (32, 2))
        self.assertEqual((len(model.spec["latitude"]), model.spec["geometry"]), (16, "sphere"))
        self.assertIn("welkin.Model vit of step 4", repr(model))

    def test_data_are_what_the_model_is_given(self):
        normal, files = self.model.dataset(), self.model.dataset(normalized=False)
        self.assertGreater(len(normal), 2)
        (x, y), (raw, later) = normal.read([0, 1]), files.read([0, 1])
        rounds_to(self.model.normalize(raw), x, 4, scale=[x.abs().max().item(), 1])
        rounds_to(self.model.denormalize(y), later, 4, scale=later.numpy())
        self.assertTrue(torch.equal(normal[1][0], x[1]))
        self.assertTrue(torch.equal(normal[-1][0], normal[len(normal) - 1][0]))
        self.assertIn("path=", normal.location(0))
        self.assertEqual([len(batch) for batch, _ in normal.batches(3)], [3] * (len(normal) // 3) + ([len(normal) % 3] if len(normal) % 3 else []))
        shuffled = torch.cat([batch for batch, _ in normal.batches(4, shuffle=True, seed=1)])
        self.assertEqual(sorted(shuffled.sum((1, 2, 3)).tolist()), sorted(x.sum().item() for x, _ in normal))
        batch, _ = next(iter(torch.utils.data.DataLoader(normal, batch_size=2)))
        self.assertTrue(torch.equal(batch, x))
        with self.assertRaises(IndexError):
            normal[len(normal)]

    def test_tensors_are_the_models_own(self):
        model = self.trained.load(split="test")
        x, _ = model.dataset().read([0])
        before, kept = model(x), x.clone()
        head = model.state_dict()["head.weight"]
        self.assertEqual(head.data_ptr(), model.state_dict()["head.weight"].data_ptr())
        head.zero_()
        self.assertEqual(model(x).abs().max().item(), 0)
        self.assertTrue(torch.equal(x, kept))
        self.assertNotEqual(before.abs().max().item(), 0)

    def test_a_gradient_goes_through_the_model(self):
        x, _ = self.model.dataset().read([0])
        self.assertFalse(self.model(x).requires_grad)
        x.requires_grad_()
        self.model(x)[0, 0, 3, 3].backward()
        moved, step = x.detach().clone(), 1e-2
        moved[0, 1, 4, 5] += step
        change = (self.model(moved) - self.model(x.detach()))[0, 0, 3, 3].item() / step
        rounds_to(x.grad[0, 1, 4, 5].item(), change, 2 ** 14, scale=x.grad.abs().max().item())
        self.assertEqual([value.grad for value in self.model.state_dict().values() if value.grad is not None], [])

    def test_every_way_to_name_a_checkpoint_is_the_same_model(self):
        x, _ = self.model.dataset().read([0])
        newest = sorted((self.trained.folder / "checkpoints").glob("step_*"))[-1]
        wanted = welkin.load(self.trained.folder, checkpoint="newest", split="test")(x)
        for name in ("weights.safetensors", "weights.pt"):
            done = run(BINARY, "ckpt", "export", newest, self.root / name)
            self.assertEqual(done.returncode, 0, done.stderr)
        shutil.copytree(newest, self.root / "alone")
        for path in (newest, self.root / "alone", self.root / "weights.safetensors", self.root / "weights.pt"):
            model = welkin.load(path, split="test")
            self.assertTrue(torch.equal(model(x), wanted), path)
            self.assertEqual(model.run_folder, self.trained.folder if path == newest else None)

    def test_a_package_needs_neither_run_nor_data(self):
        """Every verb takes it as a run folder; what it holds is looked at."""
        package = self.root / "weather.welkin"
        done = run(BINARY, "ckpt", "package", self.trained.folder, package, "--licence", "CC-BY-4.0", "--note", "for a test")
        self.assertEqual(done.returncode, 0, done.stderr)
        about = json.loads((package / "package.json").read_text())
        self.assertEqual((about["licence"], about["note"], about["model"], about["spec"]["input"]["channels"]),
                         ("CC-BY-4.0", "for a test", "vit", self.model.channels["input"]))
        x, _ = self.model.dataset().read([0])
        fields, elsewhere = self.root / "fields", self.root / "elsewhere"
        fields.rename(elsewhere)
        self.addCleanup(lambda: elsewhere.exists() and elsewhere.rename(fields))
        model = welkin.load(package)
        self.assertTrue(torch.equal(model(x), self.model(x)))
        self.assertEqual((model.step, model.spec, model.checkpoint), (4, self.model.spec, package.resolve()))
        with self.assertRaisesRegex(welkin.DataError, "valid"):
            model.scores()
        for verb, *flags in (["evaluate", "--split", "test"], ["predict", "--split", "test", "--output", self.root / "from_package"]):
            done = run(BINARY, verb, package, "--data_root", elsewhere, *flags)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(f"checkpoint {package.resolve()}, step 4", done.stdout)
        self.assertEqual(welkin.load(package, data_root=elsewhere, split="test").scores(), welkin.load(self.trained.folder, data_root=elsewhere, split="test").scores())
        for words in (["ckpt", "inspect", package], ["ckpt", "export", package, self.root / "of_package.pt"],
                      ["train", "--yaml_config", package / "config.yaml", "--config", "short", "--data_root", elsewhere, "--log_root", self.root / "more", "--init_from", package,
                       "--num_iters", "1"]):
            done = run(BINARY, *words)
            self.assertEqual(done.returncode, 0, done.stderr)
        elsewhere.rename(fields)
        self.refuses(package)

    def refuses(self, package):
        done = run(BINARY, "ckpt", "package", self.trained.folder, package)
        self.assertEqual((done.returncode, "[package] the path exists already: path=" in done.stderr), (2, True), done.stderr)
        done = run(BINARY, "ckpt", "package", self.trained.folder)
        self.assertIn("takes a run folder and the folder to make", done.stderr)
        other = self.root / "other_stds.npy"
        np.save(other, 2 * np.load(fields_of(self.root) / "stats/global_stds.npy"))
        with self.assertRaisesRegex(welkin.ConfigError, r"the data are not those that this model takes: .* input deviations\[0\]: "):
            welkin.load(package, global_stds_path=other).scores()
        weights, facts = package / "weights.safetensors", package / "package.json"
        whole, text = weights.read_bytes(), facts.read_text()
        weights.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
        with self.assertRaisesRegex(welkin.CheckpointError, r"\[package\] a file is not as it was written: path=.*weights.safetensors"):
            welkin.load(package)
        weights.write_bytes(whole)
        for found, put, message in (('"shape"', '"shade"', "the specification of the data is damaged"), ('"version": 1', '"version": 9', "written by a newer version"),
                                    ('"weights.safetensors"', '"../weights"', "a name of a file"), ('"data.global_means_path"', '"output.expdir"', "a key of a file"),
                                    ('"spec": {', '"deep": ' + 200000 * "[" + 200000 * "]" + ', "spec": {', "nested too deeply")):
            facts.write_text(text.replace(found, put))
            with self.assertRaisesRegex(welkin.DataError, message):
                welkin.load(package)
        facts.write_text(text)
        welkin.load(package)

    def test_settings_of_torch_are_left_as_they_are(self):
        torch.set_num_threads(2)
        model = welkin.load(self.trained.folder, threads=1)
        self.assertTrue(model.config["backend"]["cudnn_benchmark"])
        self.assertEqual((torch.get_num_threads(), torch.backends.cudnn.benchmark), (2, False))
        model(model.dataset().read([0])[0])
        self.assertEqual((torch.get_num_threads(), torch.backends.cudnn.benchmark), (2, False))

    def test_errors_have_kinds_and_texts(self):
        x, _ = self.model.dataset().read([0])
        (self.root / "empty.pt").write_bytes(b"")
        cases = [(welkin.ConfigError, "[python] the input does not fit the model: shape=(1, 3, 16, 32), wanted=(B, 20, 16, 32)", lambda: self.model(x[:, :3])),
                 (welkin.ConfigError, "dtype=Double, device=cpu, wanted=Float on cpu. Convert it", lambda: self.model(x.double())),
                 (welkin.ConfigError, "there is no such run, checkpoint or package: path=/nowhere", lambda: welkin.load("/nowhere")),
                 (welkin.CheckpointError, "it does not say which configuration it is of", lambda: welkin.load(self.root / "empty.pt")),
                 (welkin.CheckpointError, "there is no such checkpoint", lambda: welkin.load(self.trained.folder, checkpoint=99)),
                 (welkin.ConfigError, "unknown part of the data: split=nope", lambda: self.model.dataset("nope")),
                 (welkin.ConfigError, "no_such_key", lambda: welkin.load(self.trained.folder, no_such_key=1)),
                 (welkin.DataError, "/nowhere", lambda: welkin.load(self.trained.folder, valid_data_path="/nowhere")),
                 (welkin.ConfigError, "these options open no model", lambda: welkin._native.classes().Model([str(self.trained.folder), "--help"], [])),
                 (welkin.ConfigError, "num_heads does not divide embed_dim", lambda: self.train(VIT | {"embed_dim": 17}, "refused"))]
        for kind, text, call in cases:
            with self.subTest(text), self.assertRaises(kind) as caught, welkin._errors.raised():
                call()
            self.assertIn(text, str(caught.exception))
            self.assertIsInstance(caught.exception, welkin.WelkinError)
        self.assertFalse((self.root / "refused").exists())

    def test_other_threads_of_python_run_meanwhile(self):
        counted, done = [0], threading.Event()

        def count():
            while not done.is_set():
                counted[0] += 1
                time.sleep(0)

        x = self.model.dataset().read([0])[0].expand(64, -1, -1, -1)
        thread = threading.Thread(target=count)
        thread.start()
        try:
            time.sleep(0.01)
            before = counted[0]
            for _ in range(5):
                self.model(x)
            self.assertGreater(counted[0], before)
        finally:
            done.set()
            thread.join()


class Training(PythonCase):
    def test_is_that_of_the_program(self):
        """The same weights, bit for bit, and what a callback hears on the way."""
        events = []
        mine = self.train(VIT, "mine", callback=events.append)
        (self.root / "run.yaml").write_text(json.dumps({"python": VIT}))
        done = run(BINARY, "train", "--yaml_config", self.root / "run.yaml", "--config", "python", "--log_root", self.root / "theirs")
        self.assertEqual(done.returncode, 0, done.stderr)
        folder = mine.folder.relative_to(self.root / "mine")
        weights = [welkin.load(root / folder, checkpoint="newest").state_dict() for root in (self.root / "mine", self.root / "theirs")]
        self.assertTrue(all(torch.equal(one, other) for one, other in zip(weights[0].values(), weights[1].values())))
        self.assertTrue(mine.completed)
        self.assertEqual((mine.steps, [entry["epoch"] for entry in mine.history]), (2, [1]))
        self.assertEqual(set(mine.history[0]), {"step", "total_steps", "epoch", "train_loss", "valid_loss", "rate"})
        self.assertEqual(events[-1]["kind"], "epoch")
        self.assertIn("step", [event["kind"] for event in events])

    def test_an_interrupt_saves_and_a_resume_goes_on(self):
        def interrupt(event):
            if event["kind"] == "step" and event["step"] >= 4:
                os.kill(os.getpid(), signal.SIGINT)

        # A job in the background of a script inherits a SIGINT that is ignored.
        self.addCleanup(signal.signal, signal.SIGINT, signal.signal(signal.SIGINT, signal.default_int_handler))
        with self.assertRaises(welkin.Interrupted) as caught:
            self.train(VIT, "stopped", num_iters=4000, callback=interrupt)
        stopped = caught.exception.run
        self.assertIn("[train] interrupted at step", str(caught.exception))
        self.assertFalse(stopped.completed)
        self.assertTrue((stopped.folder / "checkpoints" / f"step_{stopped.steps}").is_dir())
        more = self.train(VIT, "stopped", num_iters=stopped.steps + 2, resume=True)
        self.assertEqual((more.completed, more.steps, more.folder), (True, stopped.steps + 2, stopped.folder))
        self.assertEqual(signal.getsignal(signal.SIGINT), signal.default_int_handler)

    def test_an_error_of_the_callback_ends_the_run(self):
        def fail(event):
            raise ZeroDivisionError(event["kind"])

        with self.assertRaises(ZeroDivisionError):
            self.train(VIT, "failed", num_iters=4000, callback=fail)
        steps = [int(path.name[5:]) for path in self.root.glob("failed/**/step_*")]
        self.assertTrue(steps)
        self.assertLess(max(steps), 4000)

    def test_a_model_waits_for_no_run(self):
        model = self.train(VIT, "first").load()
        x, _ = model.dataset().read([0])
        texts = []

        def use(event):
            try:
                model(x)
            except welkin.ConfigError as error:
                texts.append(str(error))
                raise

        with self.assertRaises(welkin.ConfigError):
            self.train(VIT, "second", num_iters=4000, callback=use)
        self.assertIn("[python] a run trains in this process", texts[0])
        self.assertEqual(model(x).shape, (1, 2, 16, 32))


class Export(PythonCase):
    """Every built-in model as files of other programs, against the native model."""

    def test_formats(self):
        for name, config in MODELS.items():
            model = self.train(config, name).load()
            for ending in ("ts", "onnx") if name not in ("vit", "sfno") else ("ts", "onnx", "pt2"):
                with self.subTest(model=name, ending=ending):
                    path = self.root / "out" / f"{name}.{ending}"
                    done = welkin.export(model, path)
                    self.assertLess(done.file_difference, 2e-5)
                    self.assertTrue(path.is_file())
            self.assertEqual(sorted(file.name for file in (self.root / "out").iterdir() if file.name.startswith(".")), [])
        files = {"welkin.json": ""}
        x, _ = model.dataset(normalized=False).read([0, 1, 2])
        loaded = torch.jit.load(str(self.root / "out/unet3d.ts"), _extra_files=files)
        rounds_to(loaded(x).detach(), model.predict(x), 64, scale=1)
        self.assertEqual(json.loads(files["welkin.json"])["model"]["model"], "unet3d")

    def test_what_differs_is_refused(self):
        model = self.train(VIT, "differs").load()
        with unittest.mock.patch.object(welkin._export, "twin_of", lambda model: welkin.twins.build(model.config, model.spec)):
            with self.assertRaisesRegex(welkin.WelkinError, r"\[export\] its twin does not compute what the native model does: difference="):
                welkin.export(model, self.root / "x.ts")
        with self.assertRaisesRegex(welkin.ConfigError, "the name of the file says no format"):
            welkin.export(model, self.root / "x.bin")
        self.assertEqual(list(self.root.glob("x.*")), [])

    def test_the_program_says_where_to_go(self):
        done = run(BINARY, "ckpt", "export", "run", "x.onnx")
        self.assertEqual(done.returncode, 2)
        self.assertIn("[ckpt export] ONNX, torch.export and TorchScript are written in Python: out=x.onnx", done.stderr)


class Notebook(PythonCase):
    def test_every_cell_runs(self):
        notebook = json.loads((SOURCE / "examples/python/fields.ipynb").read_text())
        cells = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
        self.assertFalse(any(cell.get("outputs") for cell in notebook["cells"]), "outputs are not kept")
        program = f"import sys, warnings\nwarnings.simplefilter('ignore')\nsys.path[:0] = [{str(SOURCE / 'python')!r}]\n" + "\n".join(cells)
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300, cwd=SOURCE, env=os.environ | {"TMPDIR": str(self.root)})
        self.assertEqual(done.returncode, 0, done.stderr)


class Types(unittest.TestCase):
    def test_the_package_and_its_stub_are_typed(self):
        done = run(sys.executable, "-m", "mypy", "--cache-dir", os.devnull, "--config-file", SOURCE / "python/mypy.ini", "--package", "welkin")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_the_stub_names_what_there_is(self):
        tree = ast.parse((SOURCE / "python/welkin/__init__.pyi").read_text())
        named, = (ast.literal_eval(node.value) for node in tree.body if isinstance(node, ast.Assign))
        self.assertEqual(named, welkin.__all__)
        self.assertTrue(all(hasattr(welkin, name) for name in named))
        with self.assertRaises(AttributeError):
            welkin.no_such_name


if __name__ == "__main__":
    unittest.main()
