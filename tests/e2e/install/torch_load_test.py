# SPDX-License-Identifier: Apache-2.0
"""docs/guide/checkpoints.md, what it says of torch.load: its lines are run with the interpreters that it names."""
import os
import pathlib
import re
import subprocess
import sys
import unittest
from tempfile import TemporaryDirectory

import torch
from interchange_case import stored, train, welkin

SOURCE = pathlib.Path(os.environ["WELKIN_SOURCE_DIR"])
PAGE = SOURCE / "docs/guide/checkpoints.md"


def lines_of_page():
    """The shell lines behind "Which Python?"."""
    return re.search(r"\*\*Which Python\?\*\*.*?```\n(.*?)```", PAGE.read_text(), re.S)[1].splitlines()


class TorchLoad(unittest.TestCase):
    def setUp(self):
        folder = TemporaryDirectory(prefix="welkin-torch-load-")
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)

    def test_the_lines_of_the_page(self):
        """As the page has them, after its export; the environment that its first line makes is the tests' own, whose torch is the same."""
        install, load = lines_of_page()
        wanted = re.search(r"^torch_version=(\S+)", (SOURCE / "tools/setup.sh").read_text(), re.M)[1]
        self.assertEqual(install, f"python3 -m venv pytorch && pytorch/bin/pip install torch=={wanted} numpy")
        self.assertEqual(torch.__version__.partition("+")[0], wanted)
        (self.root / "pytorch").symlink_to(sys.prefix)
        run = train(self.root, self.root / "logs")
        (self.root / "logs/short").symlink_to(self.root / "logs/run")
        export = next(line for line in PAGE.read_text().splitlines() if line.startswith("welkin ckpt export logs/short"))
        self.assertIn("torch.load(weights_only=True)", export)
        words = [self.root / word if word.startswith(("logs/", "weights")) else word for word in export.partition("#")[0].split()[1:]]
        welkin(*words)
        done = subprocess.run(["bash", "-c", load], capture_output=True, text=True, timeout=300, cwd=self.root)
        self.assertEqual(done.returncode, 0, done.stderr)
        tensors = stored(max((run / "checkpoints").glob("step_*"), key=lambda path: int(path.name.partition("_")[2])))
        self.assertEqual(int(done.stdout), len(tensors))

    @unittest.skipIf(pathlib.Path("/dev/nvidiactl").exists(), "on a machine with a GPU .venv has the whole of torch")
    def test_the_environment_of_the_quickstart_has_no_torch_for_python(self):
        text = PAGE.read_text()
        self.assertIn("on a machine without a GPU it holds torch's libraries alone, and `import torch` fails there", text)
        self.assertIn("`.venv-test/bin/python3` after `./test.sh unit`", text)
        python = SOURCE / ".venv/bin/python3"
        if not python.exists():
            self.skipTest("there is no .venv: torch comes from elsewhere")
        done = subprocess.run([python, "-c", "import torch"], capture_output=True, text=True, timeout=300, env={"PATH": os.environ["PATH"]})
        self.assertNotEqual(done.returncode, 0, "the page says that this fails")


if __name__ == "__main__":
    unittest.main()
