# SPDX-License-Identifier: Apache-2.0
"""The image of packaging/container, built by buildah in chroots from a Debian base that debootstrap makes, and used as its user."""
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

from install_test import BINARY, SOURCE, cached, run

TRAIN = ["train", "--set", "dataset=nbody", "--set", "data_loader_config=synthetic", "--set", "data_size=8", "--set", "box_size=[16,16]", "--set", "Nsamples=4",
         "--set", "Nsamples_val=2", "--set", "N_in_channels=2", "--set", "N_out_channels=1", "--set", "global_batch_size=2", "--set", "augment=none",
         "--set", "model=unet3d", "--set", "width=4", "--set", "scales=2", "--num_epochs", "1", "--device", "cpu", "--log_root", "/home/welkin/logs"]
NEEDED_GIB = 8
# How this machine reaches Debian's packages and PyPI; the base image has it as a site's own would.
SETTINGS = ("etc/apt/sources.list", "etc/apt/sources.list.d", "etc/apt/apt.conf.d", "etc/apt/keyrings", "usr/share/keyrings", "etc/ssl", "usr/share/ca-certificates",
            "usr/local/share/ca-certificates", "etc/pip.conf")


def why_not():
    for program in ("buildah", "debootstrap"):
        if not shutil.which(program):
            return f"no {program} here: apt-get install buildah debootstrap"
    if os.geteuid() != 0:
        return "debootstrap and chroots need root"
    if cached("WELKIN_SANITIZE"):
        return "a build with sanitizers is not packed"
    free = shutil.disk_usage(tempfile.gettempdir()).free / 2**30
    return f"{free:.0f} of {NEEDED_GIB} GiB are free" if free < NEEDED_GIB else None


@unittest.skipIf(why_not(), why_not())
class Image(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.root = pathlib.Path(tempfile.mkdtemp())
        cls.addClassCleanup(shutil.rmtree, cls.root, ignore_errors=True)
        storage = cls.root / "storage.conf"
        storage.write_text(f'[storage]\ndriver = "overlay"\ngraphroot = "{cls.root}/images"\nrunroot = "{cls.root}/run"\n')
        cls.environment = os.environ | {"CONTAINERS_STORAGE_CONF": str(storage), "BUILDAH_ISOLATION": "chroot"}
        cls.make_base()
        cls.call([SOURCE / "tools/wheel.sh", "--from", BINARY.parent, cls.root / "dist"])
        wheel, = (cls.root / "dist").iterdir()
        settings = [word for name, value in os.environ.items() if name.startswith("PIP_") for word in ("--env", f"{name}={value}")]
        cls.call([SOURCE / "tools/container.sh", "--cpu", "--wheel", wheel, "--base", "localhost/debian-base", "--tag", "welkin", "--", *settings])
        cls.container = cls.call(["buildah", "from", "localhost/welkin"]).strip()
        cls.addClassCleanup(subprocess.run, ["buildah", "rm", "--all"], env=cls.environment, check=False, capture_output=True)

    @classmethod
    def call(cls, words):
        done = run(words, env=cls.environment)
        assert done.returncode == 0, f"{words[0]}: {done.stdout[-2000:]}{done.stderr[-4000:]}"
        return done.stdout

    @classmethod
    def make_base(cls):
        mirrors = cls.call(["apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages"]).split()
        base = cls.root / "base"
        cls.call(["debootstrap", "--variant=minbase", "bookworm", base, *mirrors[:1]])
        for name in SETTINGS:
            source, target = pathlib.Path("/") / name, base / name
            if source.is_dir():
                shutil.copytree(source, target, symlinks=True, dirs_exist_ok=True)
            elif source.exists():
                shutil.copy(source, target)
        container = cls.call(["buildah", "from", "scratch"]).strip()
        cls.call(["buildah", "add", "--quiet", container, base, "/"])
        shutil.rmtree(base)
        cls.call(["buildah", "commit", "--quiet", "--rm", container, "debian-base"])

    def inside(self, *words):
        return run(["buildah", "run", self.container, "--", *words], env=self.environment)

    def test_trains_as_its_user(self):
        self.assertEqual(self.inside("id", "-un").stdout, "welkin\n")
        done = self.inside("welkin", *TRAIN)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("/checkpoints/", self.inside("find", "/home/welkin/logs", "-name", "model.safetensors").stdout)
        self.assertEqual(self.inside("welkin", "doctor").returncode, 0)

    def test_has_no_compiler_and_the_size_of_the_guide(self):
        self.assertNotEqual(self.inside("sh", "-c", "command -v gcc g++ cmake").returncode, 0)
        size, = self.call(["buildah", "images", "--format", "{{.Size}}", "localhost/welkin"]).split("\n")[:1]
        number, unit = size.split()
        self.assertEqual(unit, "GB")
        self.assertLess(float(number), 2.0)  # docs/guide/containers.md


if __name__ == "__main__":
    unittest.main()
