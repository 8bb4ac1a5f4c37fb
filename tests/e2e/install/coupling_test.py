# SPDX-License-Identifier: Apache-2.0
"""libwelkin_c.so from C, Fortran and ctypes: fields by name, steps, errors as text, any layout, several threads. What a step gives is
what `welkin predict` writes, bit for bit."""
import ctypes
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import unittest

import h5py
import numpy as np
from hole_fields import CONFIG, write_hole_fields
from tolerance import rounds_to

BINARY = pathlib.Path(os.environ["WELKIN_BINARY"])
SOURCE = pathlib.Path(os.environ["WELKIN_SOURCE_DIR"])
FLOAT32, FLOAT64 = 0, 1
INPUT, TARGET = 0, 1
USAGE = 2


def run(*words, cwd=None):
    return subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=300, cwd=cwd, env=os.environ | places())


def places():
    """The torch of the build, and a linker path to nothing else."""
    cache = (BINARY.parent / "build.ninja").read_text()
    return {"WELKIN_TORCH": re.search(r"(\S+)/lib/libtorch_cpu\.so", cache).group(1)}


def library():
    loaded = ctypes.CDLL(str(BINARY.parent / "libwelkin_c.so"))
    loaded.welkin_last_error.restype = ctypes.c_char_p
    for name in ("welkin_channel_name", "welkin_channel_unit"):
        getattr(loaded, name).restype = ctypes.c_char_p
        getattr(loaded, name).argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_int]
    loaded.welkin_open.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.POINTER(ctypes.c_void_p)]
    loaded.welkin_num_channels.argtypes = [ctypes.c_void_p, ctypes.c_int]
    for name in ("welkin_close", "welkin_step", "welkin_advance"):
        getattr(loaded, name).argtypes = [ctypes.c_void_p]
    loaded.welkin_shape.argtypes = [ctypes.c_void_p, ctypes.POINTER(ctypes.c_int64)]
    for name in ("welkin_set_field", "welkin_get_field"):
        getattr(loaded, name).argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_int, ctypes.POINTER(ctypes.c_int64)]
    return loaded


class Model:
    """The handle of one model, through ctypes."""

    def __init__(self, lib, folder, options=b"--device cpu"):
        self.lib, self.handle = lib, ctypes.c_void_p()
        self.check(lib.welkin_open(str(folder).encode(), options, ctypes.byref(self.handle)))
        shape = (ctypes.c_int64 * 3)()
        self.shape = tuple(shape[:lib.welkin_shape(self.handle, shape)])

    def check(self, status):
        if status != 0:
            raise RuntimeError(f"{status}: {self.lib.welkin_last_error().decode()}")

    def channels(self, side):
        return [self.lib.welkin_channel_name(self.handle, side, i).decode() for i in range(self.lib.welkin_num_channels(self.handle, side))]

    def layout(self, field):
        strides = (ctypes.c_int64 * 3)(*[step // field.itemsize for step in field.strides])
        return field.ctypes.data, FLOAT64 if field.dtype == np.float64 else FLOAT32, strides

    def set(self, channel, field):
        self.check(self.lib.welkin_set_field(self.handle, channel.encode(), *self.layout(field)))

    def get(self, channel, like=None):
        field = np.zeros(self.shape, np.float32) if like is None else np.zeros_like(like)
        self.check(self.lib.welkin_get_field(self.handle, channel.encode(), *self.layout(field)))
        return field

    def set_all(self, fields):
        for channel, field in zip(self.channels(INPUT), fields):
            self.set(channel, field)

    def step(self):
        self.check(self.lib.welkin_step(self.handle))
        return np.stack([self.get(channel) for channel in self.channels(TARGET)])

    def close(self):
        self.lib.welkin_close(self.handle)


class Coupling(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.root = pathlib.Path(tempfile.mkdtemp())
        cls.addClassCleanup(shutil.rmtree, cls.root)
        cls.fields = cls.root / "fields"
        words = ["--grid", "16x32", "--truncation", "10", "--years", "1", "--years_test", "1", "--steps", "8", "--spin_up_days", "1", "--quiet"]
        cls.need(run(BINARY, "data", "simulate", "weather", "--out", cls.fields, *words))
        settings = ["img_size=[16,32]", "embed_dim=32", "depth=1", "num_heads=2", "global_batch_size=2"]
        cls.need(run(BINARY, "train", "--yaml_config", SOURCE / "config/ViT.yaml", "--config", "short", "--data_root", cls.fields, "--log_root", cls.root / "logs",
                     "--device", "cpu", "--num_iters", "4", *[word for setting in settings for word in ("--set", setting)]))
        cls.run_folder = next(cls.root.glob("logs/**/checkpoints")).parent
        cls.need(run(BINARY, "predict", cls.run_folder, "--device", "cpu", "--output", cls.root / "pictures"))
        with h5py.File(cls.root / "pictures/predictions.h5") as file:
            cls.input, cls.prediction = file["input"][0], file["prediction"][0]
        os.environ.update(places())
        cls.lib = library()

    @staticmethod
    def need(done):
        assert done.returncode == 0, done.stdout + done.stderr

    def model(self):
        model = Model(self.lib, self.run_folder)
        self.addCleanup(model.close)
        return model

    def test_a_step_is_a_prediction_of_the_program(self):
        model = self.model()
        self.assertEqual((model.shape, len(model.channels(INPUT)), len(model.channels(TARGET))), ((16, 32), 20, 20))
        model.set_all(self.input)
        self.close_to(model.step(), self.prediction)

    def close_to(self, values, expected, roundings=64):
        """Both normalise the values of a file, which `predict` has written rounded: a few roundings of the largest value of a channel."""
        for channel, (mine, theirs) in enumerate(zip(values, expected)):
            rounds_to(mine, theirs, roundings, scale=theirs, message=f"channel {channel}")

    def test_any_layout_and_type_is_the_same(self):
        model = self.model()
        expected = None
        for arrange in (lambda f: f, np.asfortranarray, lambda f: f.astype(np.float64), lambda f: np.repeat(f, 2, axis=1)[:, ::2]):
            model.set_all([arrange(field) for field in self.input])
            expected = model.step() if expected is None else expected
            self.assertTrue(np.array_equal(model.step(), expected))
        name = model.channels(TARGET)[0]
        for like in (np.zeros((16, 32), order="F", dtype=np.float64), np.zeros((16, 64), np.float32)[:, ::2]):
            self.assertTrue(np.array_equal(model.get(name, like), expected[0]))

    def test_an_input_comes_back_as_it_was_set(self):
        model = self.model()
        model.set_all(self.input)
        only_inputs = [name for name in model.channels(INPUT) if name not in model.channels(TARGET)]
        for name in only_inputs:
            self.close_to([model.get(name)], [self.input[model.channels(INPUT).index(name)]])

    def test_advancing_is_setting_what_was_predicted(self):
        model = self.model()
        model.set_all(self.input)
        first = model.step()
        model.check(self.lib.welkin_advance(model.handle))
        second = model.step()
        other = self.model()
        other.set_all(first)
        self.close_to(other.step(), second, roundings=256)  # once more through the model, from values rounded beside means that are not 0
        self.assertFalse(np.array_equal(first, second))

    def test_points_without_a_value_are_filled_as_in_training(self):
        write_hole_fields(self.root / "holes")
        self.need(run(BINARY, "data", "stats", self.root / "holes/train", "--out", self.root / "holes/stats"))
        yaml = self.root / "holes.yaml"
        yaml.write_text(json.dumps({"base": CONFIG}))
        self.need(run(BINARY, "train", "--yaml_config", yaml, "--config", "base", "--data_root", self.root / "holes", "--log_root", self.root / "hole_logs",
                      "--device", "cpu"))
        folder = self.root / "hole_logs/base/1GPU/00"
        self.need(run(BINARY, "predict", folder, "--device", "cpu", "--output", self.root / "hole_pictures"))
        with h5py.File(self.root / "holes/valid/2001.h5") as file, h5py.File(self.root / "hole_pictures/predictions.h5") as pictures:
            fields, wanted = file["fields"][:2], pictures["prediction"][0]
        model = Model(self.lib, folder)
        self.addCleanup(model.close)
        model.set_all(fields[0])
        got = model.step()
        self.assertTrue(np.isfinite(got).all())
        known = ~np.isnan(wanted)
        self.close_to([mine[where] for mine, where in zip(got, known)], [theirs[where] for theirs, where in zip(wanted, known)])
        model.check(self.lib.welkin_advance(model.handle))
        again = model.step()
        moved = np.where(np.isnan(fields[0]), np.nan, got)
        model.set_all(moved)
        self.close_to(model.step(), again, roundings=256)
        whole = self.model()
        field = np.zeros((16, 32), np.float32)
        field[3, 4] = np.nan
        code = self.lib.welkin_set_field(whole.handle, whole.channels(INPUT)[0].encode(), field.ctypes.data_as(ctypes.c_void_p), FLOAT32, None)
        self.assertEqual(code, USAGE)
        self.assertIn("a field has points without a value, and the run takes none: channel=", self.lib.welkin_last_error().decode())

    def test_threads_have_models_of_their_own_or_wait(self):
        expected = self.model()
        expected.set_all(self.input)
        wanted, results = expected.step(), []

        def work(model):
            for _ in range(5):
                model.check(self.lib.welkin_step(model.handle))
                results.append(np.array_equal(model.get(model.channels(TARGET)[0]), wanted[0]))

        models = [expected, expected, self.model()]
        models[2].set_all(self.input)
        threads = [threading.Thread(target=work, args=(model,)) for model in models]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(results, [True] * 15)

    def test_a_package_is_opened_without_its_data(self):
        package = self.root / "model.welkin"
        self.need(run(BINARY, "ckpt", "package", self.run_folder, package))
        expected = self.model()
        expected.set_all(self.input)
        wanted = expected.step()
        elsewhere = self.root / "elsewhere"
        self.fields.rename(elsewhere)
        self.addCleanup(elsewhere.rename, self.fields)
        model = Model(self.lib, package)
        self.addCleanup(model.close)
        model.set_all(self.input)
        self.assertTrue(np.array_equal(model.step(), wanted))

    def test_errors_are_codes_and_text(self):
        model = self.model()
        cases = [(lambda: model.set("no_such_field", self.input[0]), "2: [coupling] the model has no such input: channel=no_such_field"),
                 (lambda: model.step(), "2: [coupling] inputs have no values yet: channels="),
                 (lambda: model.check(self.lib.welkin_advance(model.handle)), "2: [coupling] there is no prediction"),
                 (lambda: model.get(model.channels(TARGET)[0]), "2: [coupling] there is no prediction yet"),
                 (lambda: model.get(next(iter(set(model.channels(INPUT)) - set(model.channels(TARGET))), "absent")), "2: [coupling] "),
                 (lambda: model.set(model.channels(INPUT)[0], np.where(np.arange(32) == 3, np.float64(1e300), self.input[0])),
                  "2: [coupling] a field has values that are not finite in float32: channel=u10m, points=16"),
                 (lambda: model.check(self.lib.welkin_set_field(model.handle, b"t", None, FLOAT32, None)), "a pointer is null: argument=values"),
                 (lambda: model.check(self.lib.welkin_step(None)), "2: [coupling] there is no model"),
                 (lambda: Model(self.lib, self.root), "this is no run folder"),
                 (lambda: Model(self.lib, self.run_folder, b"--checkpoint 999"), "999"),
                 (lambda: Model(self.lib, self.run_folder, b"--unheard_of"), "unknown flag: --unheard_of")]
        for call, text in cases:
            with self.assertRaises(RuntimeError, msg=text) as caught:
                call()
            self.assertIn(text, str(caught.exception))
        self.assertEqual(self.lib.welkin_num_channels(model.handle, 7), 0)
        handle = ctypes.c_void_p(5)
        self.assertEqual(self.lib.welkin_open(None, None, ctypes.byref(handle)), USAGE)
        self.assertIsNone(handle.value)
        strides = (ctypes.c_int64 * 2)(32, 0)
        self.assertEqual(self.lib.welkin_set_field(model.handle, model.channels(INPUT)[0].encode(), self.input[0].ctypes.data, FLOAT32, strides), USAGE)
        self.assertIn(b"the layout does not fit a field: strides=(32, 0), shape=(16, 32)", self.lib.welkin_last_error())

    def test_a_channel_that_is_transformed_otherwise_as_a_target_is_not_advanced(self):
        settings = ["img_size=[16,32]", "embed_dim=32", "depth=1", "num_heads=2", "global_batch_size=2", "in_channels=[t2m,tcwv,z500]", "out_channels=[tcwv]",
                    "log_channels_in=[1]"]
        self.need(run(BINARY, "train", "--yaml_config", SOURCE / "config/ViT.yaml", "--config", "short", "--data_root", self.fields, "--log_root",
                      self.root / "with blank", "--device", "cpu", "--num_iters", "2", *[word for setting in settings for word in ("--set", setting)]))
        folder = next(self.root.glob("with blank/**/checkpoints")).parent
        model = Model(self.lib, folder, f"--device cpu --checkpoint '{folder}/checkpoints/step_2'".encode())
        self.addCleanup(model.close)
        with self.assertRaisesRegex(RuntimeError, "2: .coupling. the input has no values yet: channel=z500"):
            model.get("z500")
        with self.assertRaisesRegex(RuntimeError, r"channel=tcwv, points=512, and the run takes ln\(1 \+ x / 1\), which needs values above -1"):
            model.set("tcwv", np.full((16, 32), -5, np.float32))
        for name, value in (("t2m", 280), ("tcwv", 20), ("z500", 55000)):
            model.set(name, np.full((16, 32), value, np.float32))
        model.step()
        with self.assertRaisesRegex(RuntimeError, r"2: .coupling. a prediction is not the next input, .* channel=tcwv, logarithm of the input \(log_channels_in\)"):
            model.check(self.lib.welkin_advance(model.handle))

    def test_the_library_needs_the_system_alone_and_shows_its_functions_alone(self):
        needed = re.findall(r"\(NEEDED\).*\[(.*)\]", run("readelf", "-dW", BINARY.parent / "libwelkin_c.so").stdout)
        self.assertFalse([name for name in needed if not re.match(r"lib(c|m|dl|stdc\+\+|gcc_s|pthread)\.so|ld-linux", name)], needed)
        shown = run("nm", "-D", "--defined-only", BINARY.parent / "libwelkin_c.so").stdout
        names = {line.split()[-1] for line in shown.splitlines() if " T " in line}
        self.assertEqual(names, set(re.findall(r"WELKIN_API[^;(]*?(welkin_\w+)\(", (SOURCE / "apps/capi/welkin.h").read_text())))

    def test_the_c_program_steps(self):
        program = self.root / "step_model"
        self.need(run("cc", "-std=c11", "-D_POSIX_C_SOURCE=199309L", "-Wall", "-Wextra", "-Werror", SOURCE / "examples/capi/step_model.c", f"-I{SOURCE}/apps/capi",
                      f"-L{BINARY.parent}", "-lwelkin_c", "-lm", f"-Wl,-rpath,{BINARY.parent}", "-o", program))
        done = run(program, self.run_folder, "5", "--device cpu")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("20 inputs and 20 targets of 2 dims, 512 values each", done.stdout)
        print(done.stdout.splitlines()[-1], file=sys.stderr)
        self.assertRegex(done.stdout, r"set_field \S+ us, step \S+ us, get_field \S+ us\n$")
        done = run(program, self.root, "1")
        self.assertEqual(done.returncode, USAGE)
        self.assertIn("step_model: [welkin_open] this is no run folder", done.stderr)

    @unittest.skipIf(shutil.which("gfortran") is None, "not installed: gfortran")
    def test_the_fortran_model_steps_with_a_network_in_its_loop(self):
        program = self.root / "shallow_water"
        self.need(run("gfortran", "-std=f2008", "-Wall", "-Wextra", "-Werror", "-fcheck=all", SOURCE / "apps/capi/welkin.f90", SOURCE / "examples/capi/shallow_water.f90",
                      f"-L{BINARY.parent}", "-lwelkin_c", f"-Wl,-rpath,{BINARY.parent}", "-o", program, cwd=self.root))
        done = run(program, self.run_folder, "t2m")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        rows = [[float(word) for word in re.findall(r"-?\d\.\d+E[+-]\d+", line)] for line in done.stdout.splitlines()]
        self.assertEqual(len(rows), 4)
        for mean, energy in rows:
            rounds_to(mean, rows[0][0], 512, scale=5, message="the water is kept")
            self.assertTrue(0 < energy < 1e3)
        done = run(program, self.run_folder, "no_such_field")
        self.assertEqual(done.returncode, 1)
        self.assertIn("shallow_water: [coupling] the model has no such input: channel=no_such_field", done.stderr)


if __name__ == "__main__":
    sys.exit(unittest.main())
