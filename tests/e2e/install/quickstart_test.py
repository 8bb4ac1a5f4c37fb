# SPDX-License-Identifier: Apache-2.0
"""quickstart.sh: which build each flag asks for, in a copy of its scripts whose cmake writes down how it is called; and that what it asks for
is there. What tools/check_quickstart.py says of its outcome."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import h5py
import numpy as np

BINARY = pathlib.Path(os.environ["WELKIN_BINARY"])
SOURCE = pathlib.Path(os.environ["WELKIN_SOURCE_DIR"])
PAGE = SOURCE / "docs/guide/plugins.md"


def setting(name):
    return re.search(rf"^{name}=(\S+)", (SOURCE / "tools/setup.sh").read_text(), re.M)[1]


class Flags(unittest.TestCase):
    def setUp(self):
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="welkin-quickstart-"))
        self.addCleanup(shutil.rmtree, self.root)
        self.clone = self.root / "clone"
        for name in ("quickstart.sh", "tools/setup.sh", "tools/first_job.sh"):
            (self.clone / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(SOURCE / name, self.clone / name)
        self.pretend_to_be_set_up()

    def write(self, path, text="", mode=0o644):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(mode)

    def pretend_to_be_set_up(self):
        """All packages are installed, torch and the outlines are there: nothing is downloaded."""
        site = self.clone / ".venv/lib/python3.11/site-packages"
        for library in ("cublas", "cupti", "cudart"):
            self.write(site / f"nvidia/cu13/lib/lib{library}.so.13")
        self.write(site / "torch/version.py", f"__version__ = '{setting('torch_version')}'\n")
        self.write(self.clone / "build/natural_earth/naturalearth_lowres.shp")
        self.write(self.clone / "build/nvcc/nvidia/cu13/bin/nvcc", "#!/bin/sh\necho release 13.0\n", 0o755)
        self.write(self.clone / "build/release/welkin", "#!/bin/sh\necho welkin 0\n", 0o755)
        self.write(self.root / "bin/dpkg-query", "#!/bin/sh\necho install ok installed\n", 0o755)
        self.write(self.root / "bin/cmake", f'#!/bin/sh\necho "$@" >>{self.root}/calls\n', 0o755)

    def quickstart(self, *flags):
        """The exit code, what is said, and the calls of cmake as lists of words."""
        environment = {**os.environ, "PATH": f"{self.root}/bin:{os.environ['PATH']}"}
        environment.pop("WELKIN_CMAKE_OPTIONS", None)
        done = subprocess.run(["bash", self.clone / "quickstart.sh", *flags], capture_output=True, text=True, timeout=60, env=environment)
        calls = (self.root / "calls").read_text().splitlines() if (self.root / "calls").exists() else []
        return done, [call.split() for call in calls]

    def build_of(self, *flags):
        """Options of the configuration, and targets of the build."""
        done, calls = self.quickstart("--skip-train", *flags)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn(f"built: {self.clone}/build/release/welkin", done.stdout)
        configure, build = calls
        self.assertEqual(configure[:2], ["--preset", "release"])
        self.assertEqual(build[:2], ["--build", str(self.clone / "build/release")])
        return [word for word in configure[2:] if not word.startswith("-DWELKIN_PYTHON=")], build[build.index("--target") + 1:]

    def test_without_flags_the_programs_are_built(self):
        self.assertEqual(self.build_of(), ([], ["programs"]))

    def test_examples(self):
        self.assertEqual(self.build_of("--examples"), (["-DWELKIN_BUILD_EXAMPLES=ON"], ["programs", "examples"]))

    def test_examples_and_cuda(self):
        options, targets = self.build_of("--cuda", "--examples")
        self.assertIn("-DWELKIN_CUDA=ON", options)
        self.assertIn("-DWELKIN_BUILD_EXAMPLES=ON", options)
        self.assertEqual(targets, ["programs", "examples"])

    def test_unknown_flags_and_help(self):
        done, calls = self.quickstart("--example")
        self.assertEqual((done.returncode, calls), (1, []))
        self.assertIn("unknown flag: --example", done.stderr)
        done, calls = self.quickstart("--help")
        self.assertEqual((done.returncode, calls), (0, []))
        for flag in re.findall(r"--[a-z-]+", PAGE.read_text().split("quickstart.sh")[1].split("\n")[0]):
            self.assertIn(flag, done.stdout)


class Judgement(unittest.TestCase):
    """tools/check_quickstart.py on an outcome of each kind."""

    def setUp(self):
        self.out = pathlib.Path(tempfile.mkdtemp(prefix="welkin-quickstart-"))
        self.addCleanup(shutil.rmtree, self.out)
        self.waves = np.sin(np.arange(48) / 7)[:, None] + np.sin(np.arange(96) / 9) + np.zeros((2, 2, 48, 96))

    def judged(self, prediction, losing=()):
        """The exit code and lines for a globe of two channels, of which t2m alone is drawn."""
        run, pictures = self.out / "logs/vit/1GPU/00", self.out / "pictures/vit"
        for folder in run, pictures:
            folder.mkdir(parents=True, exist_ok=True)
        (run / "config.yaml").write_text("base:\n  model:\n    patch_size: 8\n")
        (self.out / "scores-vit.json").write_text(json.dumps({"worse_than_persistence": list(losing)}))
        (pictures / "sample_0_t2m.png").touch()
        with h5py.File(pictures / "predictions.h5", "w") as file:
            file["target"], file["prediction"] = self.waves, prediction
            file["target"].attrs["channels"] = ["z500", "t2m"]
        done = subprocess.run([sys.executable, SOURCE / "tools/check_quickstart.py", self.out], capture_output=True, text=True, timeout=60)
        return done.returncode, done.stdout

    def seams(self, channel):
        prediction = self.waves.copy()
        prediction[:, channel, :, 8:16] += 0.5
        return prediction

    def test_what_is_worth_showing_passes(self):
        self.assertEqual(self.judged(self.waves + 0.1)[0], 0)

    def test_every_channel_must_beat_persistence(self):
        code, lines = self.judged(self.waves, losing=["t500", "t2m"])
        self.assertEqual(code, 1)
        self.assertIn("vit loses to persistence in t500\nvit loses to persistence in t2m\n", lines)

    def test_pictures_must_have_no_seams(self):
        code, lines = self.judged(self.seams(1))
        self.assertEqual(code, 1)
        self.assertIn("the pictures of t2m have seams: ", lines)
        self.assertEqual(self.judged(self.seams(0))[0], 0, "a channel that is not drawn")


class Examples(unittest.TestCase):
    """That option and that target build a library for every source of examples/, and the page's command runs with them."""

    @classmethod
    def setUpClass(cls):
        if not (BINARY.parent / "CMakeCache.txt").exists():
            raise unittest.SkipTest("the binary does not lie in its build folder")
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="welkin-examples-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cache = dict(re.findall(r"^(WELKIN_PYTHON|CMAKE_CXX_COMPILER_LAUNCHER):\w+=(.*)$", (BINARY.parent / "CMakeCache.txt").read_text(), re.M))
        options = [f"-D{name}={value}" for name, value in cache.items()]
        done = subprocess.run(["cmake", "-S", SOURCE, "-B", cls.folder, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", "-DWELKIN_BUILD_EXAMPLES=ON",
                               *options], capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stdout + done.stderr

    def inputs_of(self, target):
        done = subprocess.run(["ninja", "-C", self.folder, "-t", "inputs", target], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        return {pathlib.Path(line).relative_to(SOURCE).as_posix() for line in done.stdout.splitlines() if line.startswith(f"{SOURCE}/examples/")}

    def test_the_target_is_every_source(self):
        sources = {f"examples/{path.name}" for path in (SOURCE / "examples").glob("*.cpp")}
        self.assertGreater(len(sources), 5)
        self.assertEqual(self.inputs_of("examples"), sources)
        self.assertEqual(self.inputs_of("programs"), set())

    def test_the_command_of_the_page(self):
        built = BINARY.parent / "examples/liblog_cosh_loss.so"
        if not built.exists():
            self.skipTest("the examples are not built")
        command = next(line for line in PAGE.read_text().splitlines() if line.startswith("build/release/welkin --plugin"))
        command = command.replace("build/release/examples/", f"{BINARY.parent}/examples/").replace("build/release/welkin", str(BINARY))
        done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=60, cwd=SOURCE)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("log_cosh", done.stdout)


if __name__ == "__main__":
    unittest.main()
