# SPDX-License-Identifier: Apache-2.0
"""The wheel of tools/wheel.sh in an empty virtual environment, without a compiler on the path, beside torch with and without CUDA."""
import pathlib
import shutil
import sys
import tempfile
import unittest

from install_test import BINARY, LIMIT_BYTES, SOURCE, cached, run, torch_package

TRAIN = ["train", "--set", "dataset=nbody", "--set", "data_loader_config=synthetic", "--set", "data_size=8", "--set", "box_size=[16,16]", "--set", "Nsamples=4",
         "--set", "Nsamples_val=2", "--set", "N_in_channels=2", "--set", "N_out_channels=1", "--set", "global_batch_size=2", "--set", "augment=none",
         "--set", "model=unet3d", "--set", "width=4", "--set", "scales=2", "--num_epochs", "1", "--device", "cpu"]


def torch_without_cuda(folder):
    """A site-packages folder with torch as the CPU-only wheel has it: another version, and no library of CUDA of its own."""
    torch = torch_package()
    (folder / "torch/lib").mkdir(parents=True)
    for library in (torch / "lib").iterdir():
        if "cuda" not in library.name and "nvshmem" not in library.name:
            (folder / "torch/lib" / library.name).symlink_to(library)
    (folder / "torch/__init__.py").write_text("raise ImportError('nothing imports torch')\n")
    (folder / "torch/version.py").write_text("__version__ = '2.11.0+cpu'\n")
    if (torch.parent / "nvidia").exists():  # what libtorch_cpu of the other wheel needs to load
        (folder / "nvidia").symlink_to(torch.parent / "nvidia")
    return folder


@unittest.skipIf(cached("WELKIN_SANITIZE"), "a build with sanitizers is not packed")
class Wheel(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.root = pathlib.Path(tempfile.mkdtemp())
        cls.addClassCleanup(shutil.rmtree, cls.root)
        done = run([SOURCE / "tools/wheel.sh", "--from", BINARY.parent, cls.root / "dist"])
        assert done.returncode == 0, done.stdout + done.stderr
        cls.wheel, = (cls.root / "dist").iterdir()
        cls.venv = cls.root / "a venv"
        done = run([sys.executable, "-m", "venv", cls.venv])
        assert done.returncode == 0, done.stderr
        cls.pip("install", "--no-index", "--no-deps", cls.wheel)
        cls.site, = cls.venv.glob("lib/python3*/site-packages")
        cls.elsewhere = cls.root / "elsewhere"
        cls.elsewhere.mkdir()

    @classmethod
    def pip(cls, *words):
        done = run([cls.venv / "bin/python3", "-m", "pip", "--disable-pip-version-check", "-q", *words])
        assert done.returncode == 0, done.stderr

    def with_torch(self, site):
        """As if torch were installed beside: the folder is on Python's path."""
        (self.site / "torch.pth").write_text(f"{site}\n")
        self.addCleanup((self.site / "torch.pth").unlink)

    def welkin(self, *words, **environment):
        return run([self.venv / "bin/welkin", *words], cwd=self.elsewhere, env={"PATH": str(self.root / "empty"), **environment})

    def test_names_its_level_and_torch(self):
        self.assertRegex(self.wheel.name, r"^welkin-\d+\.\d+\.\d+-py3-none-manylinux_2_\d\d_x86_64\.whl$")
        code = "import importlib.metadata as m; print(m.requires('welkin'), m.version('welkin'))"
        done = run([self.venv / "bin/python3", "-c", code])
        self.assertEqual(done.stdout, f"['torch==2.11.0'] {self.wheel.name.split('-')[1]}\n")
        self.assertLessEqual(self.wheel.stat().st_size, LIMIT_BYTES)

    def test_trains_beside_torch(self):
        self.with_torch(torch_package().parent)
        done = self.welkin(*TRAIN, "--log_root", self.root / "logs")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("DONE ---- rank 0", done.stdout + done.stderr)

    def test_is_imported_beside_torch(self):
        """The package of the wheel, with a torch that Python can import: the tests' own."""
        import torch  # noqa: PLC0415
        self.with_torch(pathlib.Path(torch.__file__).parents[1])
        code = ("import sys, welkin; assert 'torch' not in sys.modules; keys = dict(word.split('=') for word in sys.argv[2:]); "
                "run = welkin.train({'box_size': [16, 16]}, log_root=sys.argv[1], num_epochs=1, device='cpu', **keys); print(run.completed, run.load())")
        keys = [word for word in TRAIN if "=" in word and not word.startswith("box_size")]
        done = run([self.venv / "bin/python3", "-c", code, self.root / "python", *keys], cwd=self.elsewhere)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"^True <welkin.Model unet3d of step \d+, \(2, 8, 8, 8\) -> \(1, 8, 8, 8\), on cpu>")
        folder, = self.root.glob("python/**/00")
        done = self.welkin("ckpt", "export", folder, self.root / "model.ts", "--checkpoint", "newest")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"model.ts, torchscript, difference from the native model \d")

    def test_exports_only_where_torch_is_imported(self):
        self.with_torch(torch_without_cuda(self.root / "bare"))
        done = self.welkin("ckpt", "export", self.root / "nothing", self.root / "x.ts")
        self.assertEqual(done.returncode, 2)
        self.assertEqual(done.stderr, "welkin: [export] torch cannot be imported, which writes this format: reason=nothing imports torch. "
                                      "Install it whole: python3 -m pip install torch==2.11.0.\n")

    def test_trains_on_two_ranks_beside_torch_without_cuda(self):
        self.with_torch(torch_without_cuda(self.root / "cpu"))
        done = self.welkin("launch", "-n", "2", "--", *TRAIN, "--log_root", self.root / "ranks")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("DONE ---- rank 0", done.stdout + done.stderr)

    def test_is_a_module_and_knows_its_folder(self):
        self.with_torch(torch_package().parent)
        done = run([self.venv / "bin/python3", "-m", "welkin", "version"], cwd=self.elsewhere)
        self.assertRegex(done.stdout, r"^welkin \d+\.\d+\.\d+\n$")
        done = run([self.venv / "bin/python3", "-c", "import welkin; print(welkin.PREFIX)"])
        prefix = pathlib.Path(done.stdout.strip())
        for name in ("bin/welkin", "lib/libwelkin.so", "lib/cmake/Welkin/WelkinConfig.cmake", "share/welkin/config/ViT.yaml"):
            self.assertTrue((prefix / name).exists(), name)

    def test_without_torch_it_says_what_to_do(self):
        done = self.welkin("version")
        self.assertEqual(done.returncode, 2)
        self.assertIn("pip install torch==2.11.0", done.stderr)

    def test_another_torch_is_refused_by_its_version(self):
        other = self.root / "other"
        shutil.copytree(torch_without_cuda(self.root / "first"), other, symlinks=True)
        (other / "torch/version.py").write_text("__version__ = '2.9.1'\n")
        self.with_torch(other)
        done = self.welkin("version")
        self.assertEqual(done.returncode, 2)
        self.assertIn("wrong version of torch: found=2.9.1, wanted=2.11.0", done.stderr)

    def test_goes_away_whole(self):
        venv = self.root / "second"
        run([sys.executable, "-m", "venv", "--without-pip", venv])
        site, = venv.glob("lib/python3*/site-packages")
        pip = [self.venv / "bin/python3", "-m", "pip", "--disable-pip-version-check", "-q", "--python", venv / "bin/python3"]
        self.assertEqual(run([*pip, "install", "--no-index", "--no-deps", self.wheel]).returncode, 0)
        self.assertTrue((site / "welkin/bin/welkin").exists())
        self.assertEqual(run([*pip, "uninstall", "-y", "welkin"]).returncode, 0)
        self.assertEqual([path.name for path in site.iterdir()], [])
        self.assertFalse((venv / "bin/welkin").exists())


if __name__ == "__main__":
    unittest.main()
