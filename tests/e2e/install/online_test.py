# SPDX-License-Identifier: Apache-2.0
"""Training on pairs that a program hands over, through ctypes and from Fortran: what is trained on is what was handed over, however the
threads run; a full buffer, the end, a resume; what is refused."""
import ctypes
import json
import pathlib
import re
import shutil
import sys
import tempfile
import time
import unittest

import h5py
import numpy as np
from coupling_test import BINARY, FLOAT32, FLOAT64, INPUT, SOURCE, TARGET, USAGE, Model, library, os, places, run
from tolerance import rounds_to

FULL, OVER, DATA, CHECKPOINT = 100, 101, 3, 5
IN, OUT = ("u", "v", "mask"), ("u", "v")
HEIGHT, WIDTH = 8, 16
FIELDS = {"model": "vit", "dataset": "online", "embed_dim": 16, "depth": 1, "num_heads": 2, "patch_size": 4, "img_size": [HEIGHT, WIDTH], "in_channels": list(IN),
          "out_channels": list(OUT), "global_batch_size": 4, "num_iters": 1000, "lr": 1e-3, "loss": "mse", "limit_nsamples": 40, "limit_nsamples_val": 6,
          "online_pairs": 16, "online_uses": 2, "device": "cpu", "threads": 1}
BOX = {key: value for key, value in FIELDS.items() if key not in ("num_iters", "lr", "embed_dim", "depth", "num_heads", "patch_size", "img_size")} | {
    "model": "unet3d", "width": 4, "scales": 2, "data_size": 8, "in_channels": ["density"], "out_channels": ["density", "temperature"], "num_epochs": 1,
    "lr_schedule": {"start_lr": 1e-3, "end_lr": 0.0}}


class Progress(ctypes.Structure):
    _fields_ = [(name, ctypes.c_int64) for name in ("step", "total_steps", "epoch", "pairs")] + \
               [(name, ctypes.c_double) for name in ("train_loss", "valid_loss", "waited_seconds")] + [("is_running", ctypes.c_int)]


def training_library():
    lib, handle = library(), ctypes.c_void_p
    lib.welkin_train_open.argtypes = [ctypes.c_char_p, ctypes.POINTER(handle)]
    lib.welkin_train_set_channel.argtypes = [handle, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_double, ctypes.c_double]
    lib.welkin_train_set_grid.argtypes = [handle, ctypes.POINTER(ctypes.c_double), ctypes.POINTER(ctypes.c_double)]
    lib.welkin_train_shape.argtypes = [handle, ctypes.POINTER(ctypes.c_int64)]
    lib.welkin_train_set_field.argtypes = [handle, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_int, ctypes.POINTER(ctypes.c_int64)]
    lib.welkin_train_give.argtypes = [handle, ctypes.c_int64]
    lib.welkin_train_progress.argtypes = [handle, ctypes.POINTER(Progress)]
    lib.welkin_train_folder.argtypes, lib.welkin_train_folder.restype = [handle], ctypes.c_char_p
    lib.welkin_train_close.argtypes = [handle]
    return lib


def pair(number):
    """Inputs and targets by name, of any number."""
    random = np.random.default_rng(number)
    u, v = random.normal(10, 3, (HEIGHT, WIDTH)), random.normal(0, 1, (HEIGHT, WIDTH))
    mask = (np.arange(HEIGHT * WIDTH).reshape(HEIGHT, WIDTH) % 7 < 2).astype(np.float32)
    return {INPUT: {"u": u, "v": v.astype(np.float32), "mask": mask}, TARGET: {"u": np.roll(u, 1, axis=1), "v": np.asfortranarray(0.5 * v + 0.1 * u)}}


class Training:
    """The handle of one training."""

    def __init__(self, lib, options):
        self.lib, self.handle = lib, ctypes.c_void_p()
        self.check(lib.welkin_train_open(" ".join(map(str, options)).encode(), ctypes.byref(self.handle)))
        self.folder = pathlib.Path(lib.welkin_train_folder(self.handle).decode())

    def check(self, status, *allowed):
        if status not in (0, *allowed):
            raise RuntimeError(f"{status}: {self.lib.welkin_last_error().decode()}")
        return status

    def channel(self, name, unit=None, mean=0, deviation=0):
        self.check(self.lib.welkin_train_set_channel(self.handle, name.encode(), unit and unit.encode(), mean, deviation))

    def set(self, side, name, field):
        strides = (ctypes.c_int64 * 3)(*[step // field.itemsize for step in field.strides])
        kind = FLOAT64 if field.dtype == np.float64 else FLOAT32
        self.check(self.lib.welkin_train_set_field(self.handle, side, name.encode(), field.ctypes.data, kind, strides))

    def set_pair(self, fields):
        for side, channels in fields.items():
            for name, field in channels.items():
                self.set(side, name, field)

    def give(self, milliseconds=-1):
        return self.check(self.lib.welkin_train_give(self.handle, milliseconds), FULL, OVER)

    def progress(self):
        progress = Progress()
        self.check(self.lib.welkin_train_progress(self.handle, ctypes.byref(progress)))
        return progress

    def close(self):
        handle, self.handle = self.handle, None
        if handle:
            self.check(self.lib.welkin_train_close(handle))


class Online(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        os.environ.update(places())
        cls.lib = training_library()

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)

    def options(self, config=FIELDS, logs="logs", **more):
        yaml = self.root / f"{logs}.yaml"
        yaml.write_text(json.dumps({"run": config | {"expdir": "/logs"} | more}))
        return ["--yaml_config", yaml, "--config", "run", "--log_root", self.root / logs]

    def training(self, *options):
        training = Training(self.lib, options)
        self.addCleanup(lambda: training.handle and self.lib.welkin_train_close(training.handle))
        return training

    def train(self, pairs, options, pause=0.0):
        training = self.training(*options)
        for number in pairs:
            training.set_pair(pair(number))
            if training.give() == OVER:
                break
            time.sleep(pause)
        training.close()
        return training.folder

    def weights(self, folder):
        newest = max((folder / "checkpoints").glob("step_*"), key=lambda path: int(path.name.split("_")[1]))
        return newest.name, {path.name: path.read_bytes() for path in newest.glob("*.safetensors")}

    def log(self, folder):
        return (folder / "out.log").read_text()

    def refused(self, text, call, code=USAGE):
        with self.assertRaises(RuntimeError) as caught:
            call()
        self.assertTrue(str(caught.exception).startswith(f"{code}: "), str(caught.exception))
        self.assertIn(text, str(caught.exception))

    # The last validation, by numpy from what the model makes of the pairs that were held out.
    def test_what_was_handed_over_is_what_is_trained_and_validated(self):
        held = self.root / "held"
        training = self.training(*self.options(valid_data_path=str(held)))
        training.channel("u", "m s-1", 9, 2.5)
        for number in range(60):
            training.set_pair(pair(number))
            self.assertEqual(training.give(), 0)
        self.assertEqual(training.progress().pairs, 60)
        training.close()
        losses = [float(loss) for loss in re.findall(r"Avg val loss=(\S+)", self.log(training.folder))]
        self.assertEqual(len(losses), 3)  # 27 steps, of which an epoch has ten
        self.assertIn("The pairs have ended: step 27 was the last", self.log(training.folder))  # (60 - 6) pairs, twice, by four
        with h5py.File(held / "pairs.h5") as file:
            for name, side, channels in (("input", INPUT, IN), ("target", TARGET, OUT)):
                wanted = np.stack([[pair(number)[side][channel] for channel in channels] for number in range(6)]).astype(np.float32)
                np.testing.assert_array_equal(file[name], wanted)
            self.assertEqual(list(file["input"].attrs["units"]), ["m s-1", "", ""])
            mean, deviation = file["target"].attrs["mean"], file["target"].attrs["std"]
        # Both sides of the held-out pairs and of those that the window held first.
        first = np.stack([side["v"] for number in range(6 + 12) for side in pair(number).values()]).astype(np.float32).astype(np.float64)
        rounds_to(mean, [9, first.mean()], 64, scale=1)
        rounds_to(deviation, [2.5, first.std()], 64, scale=1)

        model = Model(self.lib, training.folder, b"--checkpoint newest --device cpu")
        squares = []
        for number in range(6):
            model.set_all([pair(number)[INPUT][name] for name in IN])
            wanted = np.stack([pair(number)[TARGET][name] for name in OUT])
            squares.append(((model.step() - wanted) / deviation[:, None, None]) ** 2)
        model.close()
        rounds_to(losses[-1], np.mean(squares), 256, scale=1)
        scores = self.root / "scores.json"
        done = run(BINARY, "evaluate", training.folder, "--checkpoint", "newest", "--device", "cpu", "--json", scores)
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = json.loads(scores.read_text())["channels"]
        for c, name in enumerate(OUT):
            error = np.sqrt(np.mean([field[c] for field in squares])) * deviation[c]
            rounds_to(rows[name]["model"]["rmse_physical"], error, 256, scale=1)

    def test_a_run_is_the_same_however_the_threads_run(self):
        first = self.weights(self.train(range(40), self.options()))
        self.assertEqual(self.weights(self.train(range(40), self.options(logs="slow"), pause=0.02)), first)
        self.assertNotEqual(self.weights(self.train(range(1, 41), self.options(logs="other"))), first)

    def test_a_full_buffer_keeps_the_pair_and_the_end_of_the_run_is_said(self):
        training = self.training(*self.options(num_iters=5))
        codes = []
        while OVER not in codes and len(codes) < 10 ** 6:
            if not codes or codes[-1] == 0:
                training.set_pair(pair(len(codes)))
            codes.append(training.give(0))
        self.assertEqual(set(codes), {0, FULL, OVER})
        progress = training.progress()
        self.assertEqual((progress.step, progress.total_steps, progress.is_running, progress.pairs), (5, 5, 0, codes.count(0)))
        self.assertTrue(np.isfinite(progress.valid_loss))
        training.close()
        self.assertRegex(self.log(training.folder), r"Pairs: \d+\. Steps waited \S+ s for them, and the program that gave them \S+ s for a place")

    def test_a_resumed_run_is_normalised_as_it_began(self):
        options = self.options()
        folder = self.train(range(30), options)
        data, steps = (folder / "data.json").read_text(), int(self.weights(folder)[0].split("_")[1])
        training = self.training(*options, "--resume")
        self.refused("the run began with other numbers: channel=u, mean=", lambda: training.channel("u", None, 1, 1))
        for number in range(100, 130):
            training.set_pair(pair(number))
            training.give()
        training.close()
        self.assertEqual((folder / "data.json").read_text(), data)
        self.assertIn(f"Resumed at step {steps} from", self.log(folder))
        self.assertEqual(int(self.weights(folder)[0].split("_")[1]), 2 * steps)

    def test_boxes(self):
        training = self.training(*self.options(BOX))
        shape = (ctypes.c_int64 * 3)()
        self.assertEqual((self.lib.welkin_train_shape(training.handle, shape), list(shape)), (3, [8, 8, 8]))
        random = np.random.default_rng(1)
        for _ in range(40):
            density = random.normal(size=(8, 8, 8)).astype(np.float32)
            training.set(INPUT, "density", density)
            training.set(TARGET, "density", 2 * density)
            training.set(TARGET, "temperature", density.transpose(2, 1, 0))
            if training.give() == OVER:
                break
        training.close()
        self.assertIn("DONE ---- rank 0", self.log(training.folder))
        model = Model(self.lib, training.folder)
        model.set("density", density)
        self.assertEqual(model.step().shape, (2, 8, 8, 8))
        model.close()

    def test_pairs_that_were_not_kept(self):
        folder = self.train(range(30), self.options())
        done = run(BINARY, "evaluate", folder, "--device", "cpu")
        self.assertEqual(done.returncode, DATA)
        self.assertIn(f"[data] the pairs that the run was trained on were not kept: run={folder}. Name a folder for those held out with valid_data_path",
                      done.stderr)
        package = self.root / "model.welkin"
        done = run(BINARY, "ckpt", "package", folder, package)
        self.assertEqual(done.returncode, 0, done.stderr)
        of_run, of_package = Model(self.lib, folder), Model(self.lib, package)
        fields = [pair(3)[INPUT][name] for name in IN]
        of_run.set_all(fields)
        of_package.set_all(fields)
        np.testing.assert_array_equal(of_run.step(), of_package.step())
        self.refused("models are open in this process", lambda: self.training(*self.options(logs="late")))
        of_run.close()
        of_package.close()

    def test_errors_are_codes_and_text(self):
        cases = [({"dataset": "era5"}, "this run reads its own data: dataset=era5"), ({"in_channels": []}, "the channels of the pairs have no names"),
                 ({"online_pairs": 7}, "fewer pairs are held than two batches: online_pairs=7"), ({"history": 2}, "pairs that a program hands over do not support this: history=2"),
                 ({"online_uses": 0}, "online_uses"), ({"multistep": 2}, "do not support this: multistep=2")]
        for change, text in cases:
            self.refused(text, lambda change=change: self.training(*self.options(FIELDS | change)))
        self.refused("unknown flag: --unheard_of", lambda: self.training("--unheard_of"))
        training = self.training(*self.options())
        self.refused("a run trains in this process", lambda: self.training(*self.options(logs="second")))
        self.refused("a run trains in this process", lambda: Model(self.lib, self.root))
        self.refused("the run has no such channel: channel=w", lambda: training.channel("w"))
        self.refused("no mean and deviation: channel=u", lambda: training.channel("u", None, 0, -1))
        self.refused("the pairs have no such target: channel=mask. They have: u, v", lambda: training.set(TARGET, "mask", np.zeros((HEIGHT, WIDTH))))
        self.refused("the layout does not fit a field", lambda: training.set(INPUT, "u", np.zeros((HEIGHT, WIDTH))[:, ::-1]))
        fields = pair(0)
        fields[INPUT]["u"][2, 3] = np.nan
        self.refused("a field has values that are not finite: channel=u, points=1, pair=0. Fill them", lambda: training.set_pair(fields))
        self.refused("channels of the pair have no values yet: input u, input v, input mask, target u, target v", training.give)
        self.refused("a pointer is null: argument=values",
                     lambda: training.check(self.lib.welkin_train_set_field(training.handle, INPUT, b"u", None, FLOAT32, None)))
        self.refused("there is no training", lambda: training.check(self.lib.welkin_train_give(None, 0)))
        self.refused("no pair was handed over", training.close, DATA)

        few = self.training(*self.options(logs="few"))
        few.set_pair(pair(0))
        few.give()
        self.refused("the run has begun", lambda: few.channel("u", "m"))
        self.refused("the pairs ended before the first step: pairs=1, held out for validation=6, global_batch_size=4", few.close, DATA)
        failing = self.training(*self.options(logs="failing"), "--init_from", self.root / "absent.pt")

        def give_on():
            for number in range(1000):
                failing.set_pair(pair(number))
                failing.give()

        self.refused("absent.pt", give_on, CHECKPOINT)
        self.refused("absent.pt", failing.close, CHECKPOINT)
        done = run(BINARY, "train", *self.options(logs="alone"))
        self.assertEqual(done.returncode, USAGE)
        self.assertIn("[online] no program provides pairs: dataset=online. Such a run is started by a program, with welkin_train_open()", done.stderr)

    def test_the_c_program_goes_on_while_the_buffer_is_full(self):
        program = self.root / "train_model"
        done = run("cc", "-std=c11", "-D_POSIX_C_SOURCE=199309L", "-Wall", "-Wextra", "-Werror", SOURCE / "examples/capi/train_model.c", f"-I{SOURCE}/apps/capi",
                   f"-L{BINARY.parent}", "-lwelkin_c", "-lm", f"-Wl,-rpath,{BINARY.parent}", "-o", program)
        self.assertEqual(done.returncode, 0, done.stderr)
        options = f"--yaml_config {SOURCE}/examples/capi/waves.yaml --config waves --set in_channels=[u] --set online_uses=4 --log_root {self.root} --device cpu"
        done = run(program, "400", options)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertRegex(done.stdout, r"^400 pairs, step \d+ of 2000; the buffer was full [1-9]\d* times\nset_field \S+ us, give \S+ us\n$")
        losses = [float(loss) for loss in re.findall(r"Avg val loss=(\S+)", self.log(self.root / "waves/1GPU/00"))]
        self.assertLess(losses[-1], losses[0] / 2)

    @unittest.skipIf(shutil.which("gfortran") is None, "not installed: gfortran")
    def test_the_fortran_model_trains_its_emulator(self):
        program = self.root / "train_waves"
        done = run("gfortran", "-std=f2008", "-Wall", "-Wextra", "-Werror", "-fcheck=all", SOURCE / "apps/capi/welkin.f90", SOURCE / "apps/capi/welkin_train.f90",
                   SOURCE / "examples/capi/train_waves.f90", f"-L{BINARY.parent}", "-lwelkin_c", f"-Wl,-rpath,{BINARY.parent}", "-o", program, cwd=self.root)
        self.assertEqual(done.returncode, 0, done.stderr)
        options = f"--yaml_config {SOURCE}/examples/capi/waves.yaml --config waves --log_root {self.root} --device cpu"
        done = run(program, "15", "20", options)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("handed over 300 pairs; the run is at step ", done.stdout)
        error, persistence = map(float, re.search(r"RMSE +(\S+) m, persistence +(\S+) m", done.stdout).groups())
        self.assertLess(error, 0.6 * persistence)
        done = run(program, "1", "1", options + " --set online_pairs=3")
        self.assertEqual(done.returncode, 1)
        self.assertIn("train_waves: [config] --set online_pairs: fewer pairs are held than two batches", done.stderr)


if __name__ == "__main__":
    sys.exit(unittest.main())
